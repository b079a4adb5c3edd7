"""The container files say what the program understands: variables, configuration, places."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from barnabas.config.load import load
from barnabas.config.single import VARIABLES, from_environment

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()


def test_what_the_image_is_made_of_is_there_and_not_kept_away_from_it() -> None:
    copied = [name for line in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.MULTILINE) for name in line.split()]
    let_in = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    assert "src" in copied
    for name in copied:
        assert (ROOT / name).exists()
        assert any(fnmatch(name, pattern) for pattern in let_in), name


def test_compose_sets_the_variables_of_a_run_without_a_file() -> None:
    (service,) = yaml.safe_load((ROOT / "containers" / "compose.yaml").read_text())["services"].values()
    assert set(service["environment"]) == set(VARIABLES.values())
    assert from_environment(service["environment"]) is not None
    assert (ROOT / "containers" / service["build"] / "Dockerfile").is_file()


def test_the_deployment_brings_a_right_configuration_to_where_the_image_looks_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, deployment = yaml.safe_load_all((ROOT / "containers" / "kubernetes.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for variable in container["env"]:
        monkeypatch.setenv(variable["name"], "secret")
    file = tmp_path / "barnabas.yaml"
    file.write_text(given["data"][file.name])
    configuration = load(file)
    configuration.refuse_missing(configuration.clusters)
    assert [mirror.name for mirror in configuration.mirrors] == ["prod__orders__orders"]
    (place,) = re.findall(r"^WORKDIR (\S+)\nENTRYPOINT", DOCKERFILE, re.MULTILINE)
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    (mount,) = [mount for mount in container["volumeMounts"] if mount["mountPath"] == place]
    assert volumes[mount["name"]]["configMap"]["name"] == given["metadata"]["name"]
    assert deployment["spec"]["replicas"] == 1 and deployment["spec"]["strategy"] == {"type": "Recreate"}

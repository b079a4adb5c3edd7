"""A Spark that does not start: the one who runs it reads why, not what Spark said last."""

from pathlib import Path

import pytest
import yaml

from tests.barnabas_runs import Run, write_configuration

NOWHERE = "127.0.0.1:9"


@pytest.mark.parametrize(
    ("setting", "value", "reason"),
    [
        ("spark.ui.port", "nonsense", "The value 'nonsense' in the config \"spark.ui.port\" is invalid"),
        ("spark.driver.memory", "lots", "Invalid maximum heap size: -Xmxlots"),
        ("spark.driver.defaultJavaOptions", "-Xmx4g", "Error: Not allowed to specify max heap(Xmx) memory settings"),
    ],
)
def test_the_error_gives_the_reason(tmp_path: Path, setting: str, value: str, reason: str) -> None:
    file = write_configuration(tmp_path / "barnabas.yaml", NOWHERE, NOWHERE, [{"name": "orders", "from": "orders"}])
    document = yaml.safe_load(file.read_text())
    file.write_text(yaml.safe_dump({**document, "spark": {"settings": {setting: value}}}))
    with Run(tmp_path, "run", "-c", file, JAVA_TOOL_OPTIONS="-Dtrust.password=hush") as run:
        assert run.wait() == 1
    assert run.messages.startswith("barnabas: Spark does not start: ")
    assert reason in run.messages and "hush" not in run.messages

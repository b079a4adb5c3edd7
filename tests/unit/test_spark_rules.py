"""`spark:` runs on this machine, and what protects its ports cannot be switched off."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from barnabas.config.spark import SparkRules

HERE = ["local", "local[1]", "local[*]", "local[4,1]", "local-cluster[2,1,900]"]
ELSEWHERE = ["spark://h:7077", "yarn", "k8s://https://h", "mesos://h", "local[", "local-cluster", "", "local[*] "]
GUARDED = {
    "spark.authenticate": "a secret of its own",
    "spark.authenticate.secret": "a secret of its own",
    "spark.authenticate.secret.file": "a secret of its own",
    "spark.ui.killEnabled": "no password",
    "spark.python.unix.domain.socket.dir": "a private directory",
}


@pytest.mark.parametrize("master", HERE)
def test_a_master_on_this_machine_is_taken(master: str) -> None:
    assert SparkRules(master=master).master == master


@pytest.mark.parametrize("master", ELSEWHERE)
def test_a_master_elsewhere_is_refused_with_the_reason_and_the_remedy(master: str) -> None:
    with pytest.raises(ValidationError, match=r"is not on this machine: workers read secrets .* use local\[\*\]"):
        SparkRules(master=master)


@pytest.mark.parametrize(("name", "reason"), GUARDED.items())
def test_what_protects_sparks_ports_cannot_be_changed(name: str, reason: str) -> None:
    with pytest.raises(ValidationError, match=f"`{name}` may not be set: .*{reason}"):
        SparkRules(settings={name: "x"})

"""Where Spark finds its Kafka source: on the class path that the archive holds, or brought to executors elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.archive import CLASS_PATH, connector

JARS = [Path("/cache/source.jar"), Path("/cache/client.jar")]


@pytest.mark.parametrize("master", ["local", "local[*]", "local[4]", "local[4,2]"])
def test_a_local_master_has_the_connector_on_its_class_path(master: str) -> None:
    assert connector(JARS, master, "") == {CLASS_PATH: "/cache/source.jar:/cache/client.jar"}


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", "local-cluster[2,1,1024]"])
def test_executors_elsewhere_are_brought_the_jars(master: str) -> None:
    assert connector(JARS, master, "") == {"spark.jars": "/cache/source.jar,/cache/client.jar"}


def test_what_the_operator_adds_to_the_class_path_comes_behind() -> None:
    assert connector(JARS, "local[*]", "/own/a.jar")[CLASS_PATH].endswith(":/own/a.jar")


def test_a_path_that_no_class_path_can_hold_is_brought_as_a_jar() -> None:
    assert connector([Path("/odd:cache/source.jar")], "local[*]", "") == {"spark.jars": "/odd:cache/source.jar"}

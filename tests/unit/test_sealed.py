"""No secret travels with a task: a worker finds it in a file that only we may read."""

from __future__ import annotations

import pickle
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark import cloudpickle

from barnabas.errors import Unavailable
from barnabas.model import Connection, Route
from barnabas.schemas.settings import RegistrySettings, SchemaRules, TopicRoute, TranslationSettings
from barnabas.worker.sealed import opened, sealed
from barnabas.worker.task import WriteTask
from barnabas.worker.write import write
from tests.unit.configurations import CANARY

pickled: Callable[[object], bytes] = cloudpickle.dumps  # as PySpark does it
ROUTE = Route(7, "orders", "id", "orders.copy", 3)


def task(password: str = CANARY, *, schemas: bool = True) -> WriteTask:
    registries = RegistrySettings("a", "http://a", "me", CANARY), RegistrySettings("b", "https://b", token=CANARY)
    rules = SchemaRules(mode="ids", strategy="fixed", subject="größe")
    translation = TranslationSettings("m", *registries, rules, (TopicRoute(7, "orders", "orders.copy"),), 3.0)
    properties: dict[str, str | int | float | bool] = {
        "sasl.password": password,
        "linger.ms": 5,
        "socket.keepalive.enable": True,
        "x": 0.5,
    }
    connection = Connection("hub", "h:1", properties)
    found = translation if schemas else None
    return WriteTask("m", "_barnabas.m", 4, "r", connection, {7: ROUTE}, {"acks": "all"}, spread=3, schemas=found)


@pytest.mark.parametrize("schemas", [True, False])
def test_a_worker_gets_the_whole_task_and_spark_gets_no_secret(tmp_path: Path, schemas: bool) -> None:
    whole, file = task(schemas=schemas), tmp_path / "query" / "task"
    travels = pickled(partial(write, sealed(whole, file)))
    assert CANARY.encode() not in travels and b"orders.copy" in travels
    assert opened(pickle.loads(travels).args[0]) == whole
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("holder", [task(), task().destination, task().schemas], ids=lambda v: type(v).__name__)
def test_what_holds_secrets_cannot_be_sent_to_a_worker(holder: object) -> None:
    for pickler in (pickle.dumps, pickled):
        with pytest.raises((TypeError, pickle.PicklingError), match=r"hold.* secrets and do.* not leave this process"):
            pickler(holder)


def test_each_query_has_its_secrets_as_they_are_then(tmp_path: Path) -> None:
    first, second = (sealed(task(word), tmp_path / word / "task") for word in ("first", "rotated"))
    assert [opened(each).destination.properties["sasl.password"] for each in (first, second)] == ["first", "rotated"]


def test_the_file_is_read_once_in_a_query(tmp_path: Path) -> None:
    travels = sealed(task(), tmp_path / "task")
    before = opened(travels)
    (tmp_path / "task").unlink()
    assert opened(travels) is before


def test_a_task_whose_query_has_ended_is_told_so(tmp_path: Path) -> None:
    travels = sealed(task(), tmp_path / "gone" / "task")
    (tmp_path / "gone" / "task").unlink()
    with pytest.raises(Unavailable, match=r'mirror "m": .*gone/task: No such file or directory: did its query end\?'):
        opened(travels)

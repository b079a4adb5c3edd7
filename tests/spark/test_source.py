"""What Spark is told of the records it reads. Nothing is read here: a plan tells."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas.config.mirror import Mirror
from barnabas.model import Partition, Position, Route
from barnabas.plan import Plan, Stretch
from barnabas.shape import shaped
from barnabas.source import records

pytest_plugins = ["tests.spark_session"]

ROUTE = Route(1, "orders", "id", "orders", 1)
STRETCHES = {Partition("orders", 0): Stretch(Position(0, "id"), 0, known=False)}
PLAN = Plan("m", "a", "b", (ROUTE,), (), (), STRETCHES)


def read(spark: SparkSession, *, as_text: bool) -> DataFrame:
    return records(spark, PLAN, {"bootstrap.servers": "127.0.0.1:1"}, batch_records=1, as_text=as_text)


def types(frame: DataFrame) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def test_keys_and_values_said_to_be_text_are_all_that_differs(spark: SparkSession) -> None:
    bytewise, text = types(read(spark, as_text=False)), types(read(spark, as_text=True))
    assert {bytewise[name] for name in ("key", "value")} == {"binary"}
    assert text == bytewise | {"key": "string", "value": "string"}


@pytest.mark.parametrize("as_text", [True, False])
def test_only_what_came_as_bytes_is_cast_to_text(spark: SparkSession, as_text: bool) -> None:
    mirror: Any = Mirror.model_construct(where=None, provenance=False, kind="mirror")
    rows = shaped(read(spark, as_text=as_text), mirror, PLAN)
    optimizer = spark._jsparkSession.sessionState().optimizer()
    plan = optimizer.execute(rows._jdf.queryExecution().analyzed()).toString()
    assert "value" in plan and ("cast(value" in plan) is not as_text
    assert types(rows)["value"] == "string"

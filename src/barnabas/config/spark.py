"""`spark:` the session's master and any Spark setting of the operator's own."""

from __future__ import annotations

import re

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from barnabas.config.cluster import Scalar, Strict
from barnabas.config.guarantees import refuse_guarded_spark

ONE_MACHINE = re.compile(r"local(\[([0-9]+|\*)(,[0-9]+)?\])?|local-cluster\[[0-9]+,[0-9]+,[0-9]+\]")


class SparkRules(Strict):
    master: str = "local[*]"
    settings: dict[str, Scalar] = Field(default_factory=dict)

    @field_validator("master")
    @classmethod
    def _on_this_machine(cls, master: str) -> str:
        if not ONE_MACHINE.fullmatch(master):
            raise PydanticCustomError(
                "master",
                "{m} is not on this machine: workers read secrets from files here, and Spark's connections between "
                "machines would carry records in plain text; use local[*], local[N] or local-cluster[N,CORES,MB]",
                {"m": repr(master)},
            )
        return master

    @field_validator("settings")
    @classmethod
    def _harmless(cls, settings: dict[str, Scalar]) -> dict[str, Scalar]:
        return refuse_guarded_spark(settings)

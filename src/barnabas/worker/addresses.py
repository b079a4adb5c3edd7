"""Where each record of a batch goes: topic and partition, one entry a record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.errors import TopicsNeeded
from barnabas.model import Route
from barnabas.spoke import misplaced

BROKEN = "its MUX_* headers are missing or broken"


@dataclass
class Addresses:
    """`routes` are those of the original topics where they differ by row; `bad` are rows that belong nowhere."""

    topics: list[str]
    partitions: list[int]
    routes: Any
    bad: Mapping[int, str]


def demuxed(known: Mapping[str, Route], batch: pa.RecordBatch) -> Addresses:
    """The original topic and partition of each record; TopicsNeeded names all of the batch that the hub lacks."""
    names = pc.dictionary_encode(batch.column("to_topic"))
    codes = pc.fill_null(names.indices, -1).to_numpy()
    words: list[str] = names.dictionary.to_pylist()
    partitions = pc.fill_null(batch.column("to_partition"), -1).to_numpy()
    wanted = pc.fill_null(batch.column("to_partitions"), 0).to_numpy()
    lost = (codes < 0) | (partitions < 0)
    _refuse_unknown(known, batch, words, np.where(lost, -1, codes), wanted)
    numbers = np.array([known[word].number if word in known else 0 for word in words] or [0], dtype=np.int64)
    return Addresses(
        topics=[words[code] if code >= 0 else "" for code in codes.tolist()],
        partitions=partitions.tolist(),
        routes=numbers[np.maximum(codes, 0)],
        bad={row: f"{BROKEN}: {_why(batch, row)}" for row in np.flatnonzero(lost).tolist()},
    )


def _why(batch: pa.RecordBatch, row: int) -> str:
    return misplaced([(pair["key"], pair["value"]) for pair in batch.column("headers")[row].as_py() or ()])


def _refuse_unknown(
    known: Mapping[str, Route], batch: pa.RecordBatch, words: list[str], codes: Any, wanted: Any
) -> None:
    needed: dict[str, tuple[str, int]] = {}
    for code, word in enumerate(words):
        those = codes == code
        if not those.any():
            continue
        count = int(wanted[those].max())
        if word not in known or known[word].partitions < count:
            source = batch.column("from_topic")[int(np.flatnonzero(those)[0])].as_py()
            needed[word] = source, count
    if needed:
        raise TopicsNeeded(json.dumps(needed))

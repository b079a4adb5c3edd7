"""Where each record of a batch goes: topic and partition, one entry a record."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.errors import TopicsNeeded
from barnabas.model import Route
from barnabas.spoke import misplaced
from barnabas.worker.headers import headers_of

BROKEN = "its MUX_* headers are missing or broken"
BEYOND = "is beyond what this demux may make in one run: raise `topics.create_at_most` if it is meant"


@dataclass
class Addresses:
    """`routes` are those of the original topics where they differ by row; `bad` are rows that belong nowhere."""

    topics: list[str]
    partitions: list[int]
    routes: Any
    bad: Mapping[int, str]


def demuxed(known: Mapping[str, Route], batch: pa.RecordBatch, declined: Collection[str] = ()) -> Addresses:
    """The original topic and partition of each record; TopicsNeeded names all of the batch that the hub lacks.

    `declined`: topics that are not to be made or grown. Records that need one belong nowhere.
    """
    names = pc.dictionary_encode(batch.column("to_topic"))
    codes = pc.fill_null(names.indices, -1).to_numpy()
    words: list[str] = names.dictionary.to_pylist()
    partitions = pc.fill_null(batch.column("to_partition"), -1).to_numpy()
    wanted = pc.fill_null(batch.column("to_partitions"), 0).to_numpy()
    lost = (codes < 0) | (partitions < 0)
    bad = {row: f"{BROKEN}: {_why(batch, row)}" for row in np.flatnonzero(lost).tolist()}
    placed = np.where(lost, -1, codes)
    needed: dict[str, tuple[str, int]] = {}
    for code, word in enumerate(words):
        there = known[word].partitions if word in known else 0
        lacking = np.flatnonzero((placed == code) & (wanted > there))
        if not lacking.size:
            continue
        count = int(wanted[lacking].max())
        if word in declined:
            bad |= dict.fromkeys(lacking.tolist(), f"topic {word} with {count:,} partitions {BEYOND}")
        else:
            needed[word] = batch.column("from_topic")[int(lacking[0])].as_py(), count
    if needed:
        raise TopicsNeeded(json.dumps(needed))
    numbers = np.array([known[word].number if word in known else 0 for word in words] or [0], dtype=np.int64)
    return Addresses(
        topics=[words[code] if code >= 0 else "" for code in codes.tolist()],
        partitions=partitions.tolist(),
        routes=numbers[np.maximum(codes, 0)],
        bad=bad,
    )


def _why(batch: pa.RecordBatch, row: int) -> str:
    return misplaced(headers_of(batch, row))

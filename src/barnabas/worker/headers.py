"""The headers of a batch: flattened once and sliced by offsets.

A list of structs turned into Python row by row costs ten times as much.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.worker.columns import bounds

# What decoding as UTF-8 leaves where bytes were none; and where the Kafka client takes a name to end.
DAMAGE = "\ufffd"
_UNWRITABLE = f"{DAMAGE}|\\x00"

Headers = list[tuple[str, bytes | None]]


class HeaderColumn:
    """The column `headers` of a batch."""

    def __init__(self, column: Any) -> None:
        starts = bounds(column)
        self._rows = len(column)
        self._starts = starts - starts[0]
        self._flat = column.flatten() if self._starts[-1] else None
        # there are few names: each is made a string once
        self._names = pc.dictionary_encode(self._flat.field(0)) if self._flat is not None else None

    def damaged(self) -> dict[int, str]:
        """Row → the first name in it that cannot be written as it was."""
        names = self._names
        if names is None:
            return {}
        codes = np.flatnonzero(pc.match_substring_regex(names.dictionary, _UNWRITABLE).to_numpy(zero_copy_only=False))
        if not codes.size:
            return {}
        found: dict[int, str] = {}
        of_each = names.indices.to_numpy()
        for at in np.flatnonzero(np.isin(of_each, codes)).tolist():
            row = int(np.searchsorted(self._starts, at, side="right")) - 1
            found.setdefault(row, names.dictionary[int(of_each[at])].as_py())
        return found

    def bytes_at_most(self) -> int:
        """Bytes of the names and values of all rows together: no row has more."""
        if self._flat is None:
            return 0
        ends = (bounds(self._flat.field(part)) for part in (0, 1))
        return sum(int(end[-1]) - int(end[0]) for end in ends)

    def bytes_of_rows(self) -> Any:
        """The same for each row."""
        if self._flat is None:
            return np.zeros(self._rows, dtype=np.int64)
        at = self._starts
        ends = (bounds(self._flat.field(part)) for part in (0, 1))
        return sum((end[at[1:]] - end[at[:-1]]).astype(np.int64) for end in ends)

    def counts(self) -> Any:
        """How many headers each row has."""
        return np.diff(self._starts)

    def lists(self) -> list[Headers | None]:
        """Each row's headers; None where no row has any."""
        names = self._names
        if self._flat is None or names is None:
            return [None] * self._rows
        each = np.array(names.dictionary.to_pylist(), dtype=object)[names.indices.to_numpy()].tolist()
        pairs = list(zip(each, self._flat.field(1).to_pylist(), strict=True))
        counts = self.counts()
        if (counts == counts[0]).all():  # as they mostly do: quicker than slices
            following_each_other = iter(pairs)
            return list(map(list, zip(*[following_each_other] * int(counts[0]), strict=True)))
        return [pairs[first:following] for first, following in pairwise(self._starts.tolist())]


def writable(headers: Headers) -> Headers:
    """The same headers with names that the client can write; what was damaged shows it."""
    return [(name.replace("\0", DAMAGE), value) for name, value in headers]


def headers_of(batch: pa.RecordBatch, row: int, column: str = "headers") -> Headers:
    """The headers of one row."""
    return [(pair["key"], pair["value"]) for pair in batch.column(column)[row].as_py() or ()]

"""Replaces the schema ids in a batch's keys and values, on whole columns and without decoding a record.

A column is three buffers: validity, offsets, data. The ids of all its rows are gathered from the data through
the offsets, each distinct one is resolved once, and the new ids are scattered into one copy of the data.
Python never sees a record; a batch whose ids are known costs no request.

Nothing untranslated passes: rows that cannot be translated come back as `bad` with a reason each, and while a
registry does not answer `Unavailable` is raised.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.errors import Refused, Unavailable
from barnabas.schemas.fields import LARGEST_ID
from barnabas.schemas.resolver import Resolver, Unresolved
from barnabas.schemas.settings import Side, TranslationSettings
from barnabas.schemas.wire import GUID_HEADERS, MAGIC, PREFIX_BYTES, guid
from barnabas.worker.columns import bounds

Ints = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
SIDES: tuple[Side, ...] = ("key", "value")
ROUTE_SHIFT = 32  # a route number and an id have 32 bits each and share one integer
LOW_BITS = 2**ROUTE_SHIFT - 1

_translators: dict[str, tuple[tuple[TranslationSettings, int], "Translator"]] = {}  # by mirror: of its last epoch


@dataclass(frozen=True)
class Bad:
    """Rows of a batch that share the reason why they cannot be translated."""

    rows: Ints
    reason: str


@dataclass(frozen=True)
class Translated:
    """A batch's columns with the destination's ids; rows in `bad` are as they were."""

    keys: Any
    values: Any
    bad: tuple[Bad, ...]

    def reasons(self) -> dict[int, str]:
        """Row → reason, for the bad rows only; a row bad in key and value shows the key's."""
        found: dict[int, str] = {}
        for group in self.bad:
            for row in group.rows.tolist():
                found.setdefault(row, group.reason)
        return dict(sorted(found.items()))


def translator(settings: TranslationSettings, epoch: int) -> "Translator":
    """The translator of this process for a mirror's epoch: kept, with its connections and what it has learnt.

    A new epoch asks anew: what was not to be found may have been registered meanwhile.
    """
    kept = _translators.get(settings.mirror)
    if kept is not None and kept[0] == (settings, epoch):
        return kept[1]
    try:
        resolver = Resolver(settings)
    except Refused as error:  # the driver's was made of the same settings: a file of theirs is being replaced
        raise Unavailable(str(error)) from None
    if kept is not None:
        kept[1].close()
    made = Translator(settings, resolver)
    _translators[settings.mirror] = (settings, epoch), made
    return made


class Translator:
    """Translates batches of one mirror."""

    def __init__(self, settings: TranslationSettings, resolver: Resolver) -> None:
        self._rules = settings.rules
        self._resolver = resolver

    def close(self) -> None:
        """Give the connections back."""
        self._resolver.close()

    @property
    def idle(self) -> bool:
        """Neither keys nor values carry schemas: there is nothing to do."""
        return self._rules.key == "none" and self._rules.value == "none"

    def translate(self, *, routes: Any, keys: Any, values: Any, headers: Any = None) -> Translated:
        """Translate a batch.

        `routes` is one route number, or a column of them; `keys` and `values` are (large) binary columns;
        `headers` is the column of lists of (name, value), or None where the records have none.
        """
        if self.idle or len(values) == 0:
            return Translated(keys, values, ())
        numbers = routes if isinstance(routes, int) else np.asarray(routes, dtype=np.int64)
        given = {"key": keys, "value": values}
        columns = dict(given)
        bad: list[Bad] = []
        for side in SIDES:
            if self._rules.carried(side) != "none":
                carried, wrong = self._carried(side, numbers, headers, len(values))
                columns[side], untranslated = self._column(side, columns[side], numbers, carried)
                bad += [*wrong, *untranslated]
        if bad:  # a key may be good where its value is not: such a row stays whole as it was
            columns = {side: _restored(columns[side], given[side], bad) for side in SIDES}
        return Translated(columns["key"], columns["value"], tuple(bad))

    def _column(self, side: Side, column: Any, routes: int | Ints, carried: Mask | None) -> tuple[Any, list[Bad]]:
        """One column, except for the rows whose schema is `carried` in a header."""
        layout = _Layout.of(column)
        due = layout.valid if carried is None else layout.valid & ~carried
        prefixed = due & (layout.lengths >= PREFIX_BYTES)
        rows = np.flatnonzero(prefixed)
        with_magic = layout.data[layout.starts[rows]] == MAGIC
        bad: list[Bad] = []
        if self._rules.carried(side) == "registry":
            bad += _bad(np.flatnonzero(due & ~prefixed), f"the {side} is too short to hold a schema id")
            bad += _bad(rows[~with_magic], f"the {side} does not start with the magic byte 0 of a schema id")
        rows = rows[with_magic]
        if not rows.size:
            return column, bad
        places = layout.starts[rows]
        ids = _ids(layout.data)[places].astype(np.int64)
        new, unresolved = self._resolved(side, rows, ids, routes)
        if (new == ids).all():
            return column, bad + unresolved
        data = layout.data.copy()
        _ids(data)[places] = new
        return layout.holding(data), bad + unresolved

    def _resolved(self, side: Side, rows: Ints, ids: Ints, routes: int | Ints) -> tuple[Ints, list[Bad]]:
        """The new id of each row, the old one where there is none; and why there is none.

        With `auto`, a number that no registry gives out is part of other bytes. Any other unknown id may name another
        schema at the destination, so such a record is bad there too.
        """
        joined = _joined(routes if isinstance(routes, int) else routes[rows], ids)
        distinct = joined[:1] if (joined == joined[0]).all() else np.unique(joined)
        index = np.searchsorted(distinct, joined)
        new = (distinct & LOW_BITS).astype(np.int64)
        bad: list[Bad] = []
        for at, both in enumerate(distinct.tolist()):
            found = self._resolver.destination_id(both >> ROUTE_SHIFT, side, both & LOW_BITS)
            if not isinstance(found, Unresolved):
                new[at] = found
            elif found.known or self._rules.carried(side) == "registry" or 0 < both & LOW_BITS <= LARGEST_ID:
                bad += _bad(rows[index == at], f"{side}: {found.reason}")
        return new[index], bad

    def _carried(self, side: Side, routes: int | Ints, headers: Any, length: int) -> tuple[Mask | None, list[Bad]]:
        """The rows that name their schema in a header, with that schema at the destination; and those that fail."""
        if headers is None:
            return None, []
        flat = headers.flatten()
        hits = pc.equal(flat.field(0), GUID_HEADERS[side])
        if not pc.any(hits).as_py():
            return None, []
        rows = np.asarray(pc.list_parent_indices(headers).filter(hits), dtype=np.int64)
        encoded = pc.dictionary_encode(flat.field(1).filter(hits), null_encoding="encode")
        codes = np.asarray(encoded.indices, dtype=np.int64)
        joined = _joined(routes if isinstance(routes, int) else routes[rows], codes)
        carried = np.zeros(length, dtype=np.bool_)
        bad: list[Bad] = []
        for both in np.unique(joined).tolist():
            those = rows[joined == both]
            name = guid(encoded.dictionary[both & LOW_BITS].as_py() or b"")
            if name is None:
                if self._rules.carried(side) == "registry":
                    bad += _bad(those, f"header {GUID_HEADERS[side]} does not hold a schema GUID")
                continue
            carried[those] = True
            failed = self._resolver.bring_guid(both >> ROUTE_SHIFT, side, name)
            if failed is not None and (failed.known or self._rules.carried(side) == "registry"):
                bad += _bad(those, f"header {GUID_HEADERS[side]}: {failed.reason}")
        return carried, bad


@dataclass(frozen=True)
class _Layout:
    """A binary column as numpy sees it; `starts` count from the first byte of `data`."""

    type: Any
    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.signedinteger[Any]]
    starts: Ints
    lengths: Ints
    valid: Mask

    @classmethod
    def of(cls, column: Any) -> "_Layout":
        """The part of a column's buffers that this column, perhaps a slice, really covers."""
        if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
            raise TypeError(f"keys and values are binary columns, this one is {column.type}")
        at, data_buffer = bounds(column), column.buffers()[2]
        data = np.frombuffer(b"" if data_buffer is None else data_buffer, dtype=np.uint8)[at[0] : at[-1]]
        at = at - at[0]
        valid = (
            np.ones(len(column), dtype=np.bool_)
            if column.null_count == 0
            else column.is_valid().to_numpy(zero_copy_only=False)
        )
        return cls(column.type, data, at, at[:-1].astype(np.int64), np.diff(at).astype(np.int64), valid)

    def holding(self, data: npt.NDArray[np.uint8]) -> Any:
        """A column of the same rows with other bytes."""
        nulls = int(self.valid.size - np.count_nonzero(self.valid))
        validity = pa.py_buffer(np.packbits(self.valid, bitorder="little")) if nulls else None
        buffers = [validity, pa.py_buffer(self.offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(self.type, self.valid.size, buffers, nulls)


def _ids(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """Every byte position seen as the start of a record: element n is the id in bytes n+1 to n+4."""
    return np.ndarray((data.size - PREFIX_BYTES + 1,), dtype=">u4", buffer=data, offset=1, strides=(1,))


def _joined(routes: int | Ints, numbers: Ints) -> Unsigned:
    high = np.uint64(routes) if isinstance(routes, int) else routes.astype(np.uint64)
    return (high << np.uint64(ROUTE_SHIFT)) | numbers.astype(np.uint64)


def _restored(column: Any, given: Any, bad: list[Bad]) -> Any:
    if column is given:
        return given
    mask = np.zeros(len(given), dtype=np.bool_)
    mask[np.concatenate([group.rows for group in bad])] = True
    return pc.if_else(pa.array(mask), given, column)


def _bad(rows: Ints, reason: str) -> Iterable[Bad]:
    return (Bad(rows, reason),) if rows.size else ()

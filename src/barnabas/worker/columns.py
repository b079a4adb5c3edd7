"""What a column holds, read from its memory as it lies there: that costs nothing for each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def bounds(column: Any) -> npt.NDArray[np.signedinteger[Any]]:
    """Where each value begins in the data of a binary or list column, perhaps a slice, and where the last one ends."""
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_list(column.type)
    width: type[np.signedinteger[Any]] = np.int64 if is_large else np.int32
    return np.frombuffer(column.buffers()[1], dtype=width)[column.offset : column.offset + len(column) + 1]


def as_bytes(column: Any) -> Any:
    """The bytes of a column that came as strings, whatever they are; nothing is copied or looked at."""
    if pa.types.is_string(column.type):
        return column.view(pa.binary())
    return column.view(pa.large_binary()) if pa.types.is_large_string(column.type) else column

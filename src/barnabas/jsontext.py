"""JSON that others wrote: whatever it is, it is plain values or a ValueError."""

import json
import math
from typing import Any


def parsed(text: str | bytes) -> Any:
    """The values in a JSON text; ValueError for what RFC 8259 does not allow or what would need a deep recursion.

    Python's own parser also takes `NaN` and `Infinity`, makes infinity of 1e999, and raises RecursionError.
    """
    try:
        return json.loads(text, parse_constant=_refused, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def whole(value: object, least: int, most: int) -> int:
    """A whole number in these bounds; ValueError for anything else, also for true, 1.0 and "1"."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{str(value)[:40]!r} is no whole number from {least} to {most}")
    return value


def words(value: object) -> str:
    """A string; ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(f"{str(value)[:40]!r} is no string")
    return value


def _refused(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:40]} is too large")
    return number

"""What failed for single mirrors while the others went on: told on stderr, and in the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from barnabas.errors import BarnabasError


def told(errors: Iterable[BarnabasError]) -> int:
    """The exit code: 0 when nothing failed, 2 when a configuration is to blame."""
    code = 0
    for error in errors:
        print(f"barnabas: {error}", file=sys.stderr)
        code = max(code, error.exit_code)
    return code

"""Tables on stdout: aligned, plain text, one row a line, made to be read and to be grepped."""

from __future__ import annotations

from collections.abc import Sequence


def printed(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Numbers to the right, words to the left."""
    cells = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(headings), *cells]) for i in range(len(headings))]
    right = [all(isinstance(row[i], int | float) for row in rows) and bool(rows) for i in range(len(headings))]
    print(title)
    for line in [list(headings), *cells]:
        padded = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right, strict=True)]
        print("  " + "  ".join(padded).rstrip())


def _text(cell: object) -> str:
    if isinstance(cell, bool) or cell is None:
        return {True: "yes", False: "no", None: "-"}[cell]
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


def size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"

"""Java's class archive: Spark's classes as Java maps them into memory, so that a start takes half the time.

It belongs to this installation, as the class path that it holds does, and lies beside it. Where there is none, or Java
finds that it does not fit, Spark starts without.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DIRECTORY = Path(sys.prefix) / "share" / "barnabas"
FILE = DIRECTORY / "spark.jsa"
WRITE_SECONDS = 180.0  # Java writes it when it ends
_MAKING = "-XX:ArchiveClassesAtExit="


def in_use() -> str:
    """The Java option that uses the archive; none where there is no archive."""
    return f'"-XX:SharedArchiveFile={FILE}"' if FILE.is_file() else ""


def empty_directory(otherwise: Path) -> Path:
    """A directory for the class path to begin with: an archive fits only if that is always the same, and empty."""
    place = DIRECTORY / "conf"
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError:  # an installation that is not ours to write to
        otherwise.mkdir(parents=True)
        return otherwise
    return place


@contextmanager
def made() -> Iterator[str]:
    """The Java option for a session that is over, and its JVM gone, when the block ends: then the archive is there."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    FILE.unlink(missing_ok=True)
    new = FILE.with_suffix(".new")
    try:
        yield f'"{_MAKING}{new}"'
        if new.is_file():
            new.rename(FILE)
    finally:
        new.unlink(missing_ok=True)


def is_making(java_options: str) -> bool:
    return _MAKING in java_options

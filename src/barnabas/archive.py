"""Java's class archive: Spark's classes as Java maps them into memory, so that a start takes half the time.

It belongs to this installation, as the class path that it holds does, and lies beside it. Where there is none, or Java
finds that it does not fit, Spark starts without.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

DIRECTORY = Path(sys.prefix) / "share" / "barnabas"
FILE = DIRECTORY / "spark.jsa"
WRITE_SECONDS = 180.0  # Java writes it when it ends
CLASS_PATH = "spark.driver.extraClassPath"
_MAKING = "-XX:ArchiveClassesAtExit="


def in_use() -> str:
    """The Java option that uses the archive; none where there is no archive."""
    return f'"-XX:SharedArchiveFile={FILE}"' if FILE.is_file() else ""


def connector(jars: Sequence[Path], master: str, own: str) -> dict[str, str]:
    """The settings by which Spark finds its Kafka source; `own` is what the operator adds to the class path.

    In the one JVM of a local master it is on the class path, of which alone an archive holds classes: a start is a
    second shorter. Elsewhere Spark brings jars to its executors.
    """
    paths = [str(jar) for jar in jars]
    if not re.fullmatch(r"local(\[.*\])?", master) or any(os.pathsep in path for path in paths):
        return {"spark.jars": ",".join(paths)}
    return {CLASS_PATH: os.pathsep.join((*paths, own)).rstrip(os.pathsep)}


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

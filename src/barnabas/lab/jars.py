"""The jars of Spark's connector, the brokers, the registries and MirrorMaker: fetched once, verified, cached.

A file below the cache directory carries its final name only after its checksum was right, so a fetch may be killed or
run twice at once and never leaves a bad file. A cached file is hashed again at each use; nothing else is asked of a
network, or even of Java, while the cache is good. `python -m barnabas.lab.jars` fetches all that tests need.
"""

import fcntl
import hashlib
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from barnabas.errors import BarnabasError, ConfigError, Refused
from barnabas.lab import ivy

LOCK = Path(__file__).with_name("jars.lock")
FIELDS = 7

Tell = Callable[[str], None]


class JarSet(StrEnum):
    """What a jar is for: sets are fetched on demand, each by itself, and may hold different versions of a module."""

    SPARK = "spark"
    BROKER = "broker"
    REGISTRY = "registry"
    MIRRORMAKER = "mirrormaker"


@dataclass(frozen=True)
class Jar:
    """One line of the lock file."""

    jar_set: JarSet
    artifact: ivy.Artifact
    sha256: str

    @property
    def name(self) -> str:
        return self.artifact.file_name


def silent(_line: str) -> None:
    """Progress for callers that want none."""


def spark_jars(tell: Tell = silent) -> list[Path]:
    """What Spark needs in `spark.jars` to read Kafka."""
    return fetch(JarSet.SPARK, tell)


def broker_jars(tell: Tell = silent) -> list[Path]:
    """The class path of a Kafka broker and its tools."""
    return fetch(JarSet.BROKER, tell)


def mirrormaker_jars(tell: Tell = silent) -> list[Path]:
    """The class path of MirrorMaker 2, the peer we measure ourselves against."""
    return fetch(JarSet.BROKER, tell) + fetch(JarSet.MIRRORMAKER, tell)


def registry_home(tell: Tell = silent) -> Path:
    """The directory of the unpacked schema registry."""
    [jar] = locked(JarSet.REGISTRY)
    home = cache_directory() / f"registry-{jar.artifact.version}-{jar.sha256[:12]}"
    if not home.is_dir():
        [archive] = fetch(JarSet.REGISTRY, tell)
        with _workspace() as workspace:
            if not home.is_dir():  # another process may have unpacked it while we waited for the workspace
                with tarfile.open(archive) as tar:
                    tar.extractall(workspace / "home", filter="data")
                (workspace / "home").rename(home)
        archive.unlink(missing_ok=True)  # 109 MB that nothing reads again
    return home


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "barnabas" / "jars"


def locked(jar_set: JarSet, lock: Path = LOCK) -> list[Jar]:
    """The lines of one set in the lock file."""
    jars = []
    for number, line in enumerate(lock.read_text().splitlines(), start=1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != FIELDS or fields[0] not in list(JarSet):
            raise ConfigError(f"{lock}:{number}: not a locked jar: {line!r}: restore the file from the repository")
        name, organisation, module, version, classifier, extension, sha256 = fields
        artifact = ivy.Artifact(organisation, module, version, "" if classifier == "-" else classifier, extension)
        jars.append(Jar(JarSet(name), artifact, sha256))
    return [jar for jar in jars if jar.jar_set == jar_set]


def fetch(jar_set: JarSet, tell: Tell = silent, lock: Path = LOCK) -> list[Path]:
    """The verified files of a set, from the cache or else from the registry, in the order of the lock file."""
    jars = locked(jar_set, lock)
    if _missing(jars):
        with _workspace() as workspace:
            missing = _missing(jars)  # again: another process may have fetched them while we waited
            if missing:
                tell(f"jars: fetching {len(missing)} of {len(jars)} files for {jar_set}")
                directory = ivy.retrieve([jar.artifact for jar in missing], workspace, tell)
                _accept(directory, missing)
    return [_cached(jar) for jar in jars]


def _cached(jar: Jar) -> Path:
    # The checksum is part of the path: a new lock file can never be answered with an old jar.
    return cache_directory() / jar.sha256[:12] / jar.name


def _missing(jars: Sequence[Jar]) -> list[Jar]:
    return [jar for jar in jars if not (_cached(jar).is_file() and _sha256(_cached(jar)) == jar.sha256)]


def _accept(directory: Path, jars: Sequence[Jar]) -> None:
    """Moves each right file to its final name; then refuses, by name, if any was wrong."""
    wrong = []
    for jar in jars:
        file, place = directory / jar.name, _cached(jar)
        found = _sha256(file)
        if found == jar.sha256:
            place.parent.mkdir(parents=True, exist_ok=True)
            file.replace(place)
        else:
            file.unlink()
            place.unlink(missing_ok=True)
            wrong.append(f"{jar.name} has SHA-256 {found} but the lock file says {jar.sha256}")
    if wrong:
        raise Refused(
            f"jars: {'; '.join(wrong)}; removed: the download was altered or damaged: try again, and if it stays, "
            "do not use this registry"
        )


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextmanager
def _workspace() -> Iterator[Path]:
    """A directory for one process at a time, on the cache's own file system so that moves out of it are atomic."""
    cache = cache_directory()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left_by_killed in cache.glob("fetch-*"):
            shutil.rmtree(left_by_killed, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=cache) as directory:
            yield Path(directory)


def main() -> int:
    """Fetches what tests and the demo need; MirrorMaker's jars come when a benchmark asks."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        spark_jars(tell)
        broker_jars(tell)
        registry_home(tell)
    except BarnabasError as error:
        tell(str(error))
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())

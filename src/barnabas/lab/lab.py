"""Two clusters, `source` and `destination`, each with a registry: to play with, to test on, to show.

Everything lives in one directory that `up` makes and `down` removes. While `up` or `down` works there it holds a lock
on the directory, and a guard holds it too: a start that crashes is cleaned up before anybody can start again.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from barnabas.config.load import load
from barnabas.errors import Refused
from barnabas.kafka.settings import connection
from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.configuration import write_configuration
from barnabas.lab.guard import Guard
from barnabas.lab.jars import Tell, broker_jars, registry_home, silent
from barnabas.lab.process import end_all, recorded
from barnabas.lab.registry import Registry
from barnabas.lab.security import Security

MARK = "lab.json"


@dataclass(frozen=True)
class Lab:
    """A running lab; as a context manager it is down at the end."""

    directory: Path
    configuration: Path
    source: KafkaCluster
    destination: KafkaCluster
    source_registry: Registry
    destination_registry: Registry
    _guard: Guard | None = field(default=None, repr=False)

    def down(self) -> None:
        if self._guard:
            self._guard.end()
        else:
            down(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.down()


@dataclass(frozen=True)
class Part:
    """One process of a lab as `status` finds it."""

    name: str
    address: str
    pid: int
    running: bool


@dataclass(frozen=True)
class LabStatus:
    """What is in a lab directory; `configuration` is None and `parts` is empty where no lab is."""

    directory: Path
    configuration: Path | None
    parts: tuple[Part, ...]

    @property
    def up(self) -> bool:
        return bool(self.parts) and all(part.running for part in self.parts)


def default_directory() -> Path:
    base = os.environ.get("XDG_STATE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".local" / "state") / "barnabas" / "lab"
    except RuntimeError:
        raise Refused("this user has no home directory: say where the lab lives with --directory DIR") from None


def up(
    directory: Path | None = None,
    *,
    brokers: int = 1,
    security: Security | None = None,
    stay: bool = True,
    tell: Tell = silent,
) -> Lab:
    """Starts a lab and returns when all of it answers.

    With `stay` it outlives this process until `down`; without, it ends with this process, however that ends.
    """
    directory = (directory or default_directory()).absolute()
    broker_jars(tell)
    registry_home(tell)
    with _claimed(directory) as lock:
        _prepare(directory)
        guard = Guard(directory, (lock,))
        with ThreadPoolExecutor(4) as pool:  # left after the guard is done: then every start has failed, too
            try:
                lab = _build(directory, brokers, security or Security(), None if stay else guard)
                tell(f"lab: starting 2 clusters of {brokers} and 2 registries in {directory}")
                _start(lab, pool)
            except BaseException:
                guard.end()
                raise
        if stay:
            guard.release()
    return lab


def down(directory: Path | None = None) -> bool:
    """Ends all of a lab's processes and removes its directory; False if there was no lab."""
    directory = (directory or default_directory()).absolute()
    if not (directory / MARK).exists():
        return False
    with _claimed(directory):
        end_all(directory)
    return True


def status(directory: Path | None = None) -> LabStatus:
    """What runs in a lab directory, from its records alone."""
    directory = (directory or default_directory()).absolute()
    try:
        mark: dict[str, Any] = json.loads((directory / MARK).read_text())
    except FileNotFoundError:
        return LabStatus(directory, None, ())
    addresses: dict[str, str] = mark.get("addresses", {})
    parts = [Part(it.name, addresses.get(it.name, ""), it.pid, it.alive()) for it in recorded(directory)]
    return LabStatus(directory, Path(mark["configuration"]) if "configuration" in mark else None, tuple(parts))


def client_settings(directory: Path | None = None) -> dict[str, Any]:
    """How librdkafka reaches the source of a running lab; Refused where none runs."""
    found = status(directory)
    if not found.up or found.configuration is None:
        raise Refused(f"lab: none is up in {found.directory}: start it with barnabas lab up")
    configuration = load(found.configuration)
    return dict(connection("source", configuration.clusters["source"]).properties)


def _prepare(directory: Path) -> None:
    """Makes the directory ready for a start, or refuses: twice, or a directory that is not a lab's."""
    if (directory / MARK).exists():
        running = [it.name for it in recorded(directory) if it.alive()]
        if running:
            raise Refused(
                f"lab: already up in {directory} ({len(running)} processes): use it, or end it with barnabas lab down"
            )
        # What a power cut or a reboot left: nothing of it runs.
        for path in directory.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif any(directory.iterdir()):
        raise Refused(f"lab: {directory} holds files that are not a lab's; lab down would remove them: name another")
    (directory / MARK).write_text("{}")


def _build(directory: Path, brokers: int, security: Security, guard: Guard | None) -> Lab:
    return Lab(
        directory,
        directory / "barnabas.yaml",
        KafkaCluster(directory, "source", brokers=brokers, security=security),
        KafkaCluster(directory, "destination", brokers=brokers, security=security),
        Registry(directory, "source"),
        Registry(directory, "destination"),
        guard,
    )


def _start(lab: Lab, pool: Executor) -> None:
    for done in as_completed([pool.submit(part.start) for part in _parts(lab)]):
        done.result()
    write_configuration(
        lab.configuration, lab.source, lab.destination, lab.source_registry.url, lab.destination_registry.url
    )
    addresses = {process: address for part in _parts(lab) for process, address in part.addresses().items()}
    (lab.directory / MARK).write_text(json.dumps({"configuration": str(lab.configuration), "addresses": addresses}))


def _parts(lab: Lab) -> list[KafkaCluster | Registry]:
    return [lab.source, lab.destination, lab.source_registry, lab.destination_registry]


@contextmanager
def _claimed(directory: Path) -> Iterator[int]:
    """Holds the lock of a lab directory, making the directory if need be; refuses while another holds it."""
    while True:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A lab that went down between our open and our lock took its directory along: begin again.
            if directory.exists() and directory.stat().st_ino == os.fstat(handle).st_ino:
                yield handle
                return
        except BlockingIOError:
            raise Refused(
                f"lab: another barnabas is at work on the lab in {directory}: wait for it, or end it"
            ) from None
        finally:
            os.close(handle)

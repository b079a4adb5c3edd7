"""Processes of a lab, known by pid *and* start time, so that nobody ever signals a stranger with a recycled pid.

A lab directory holds `run/`, one record per process, and `logs/`. The process writes its own record before it becomes
what it shall be, by a move within `run/`. Whoever ends the lab renames `run/` first: a record is then either in the
renamed directory and its process is ended, or its move fails and the process never comes to be.
"""

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from barnabas.errors import Refused, Unavailable

RECORDS = "run"
ENDED = "run.ended"
LOGS = "logs"
# The start time in /proc/<pid>/stat stays the same across exec.
RECORD_AND_BECOME = 'cat /proc/$$/stat > "$0.new" && mv "$0.new" "$0" && exec "$@"'
POLL_SECONDS = 0.05
KILL_SECONDS = 10.0
LOG_TAIL_LINES = 8


@dataclass(frozen=True)
class Identity:
    """One process and no other, ever: `started` counts clock ticks from boot."""

    name: str
    pid: int
    started: int

    def alive(self) -> bool:
        return _started(self.pid) == self.started

    def signal(self, number: signal.Signals, wait_seconds: float) -> bool:
        """Sends the signal, to this process only; whether it has ended within the time."""
        try:
            handle = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            # The handle now pins the process: if the start time fits, it cannot be another when the signal goes out.
            if not self.alive():
                return True
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            poll = select.poll()
            poll.register(handle, select.POLLIN)
            return bool(poll.poll(wait_seconds * 1000))
        finally:
            os.close(handle)


class Process:
    """One named process of a lab directory."""

    def __init__(self, directory: Path, name: str) -> None:
        self.name = name
        self.directory = directory
        self.log = directory / LOGS / f"{name}.log"
        self._record = directory / RECORDS / name
        self._child: subprocess.Popen[bytes] | None = None
        self._identity: Identity | None = None
        # Made here and never in `start()`: a thread that starts a process while the lab is being ended must fail.
        self._record.parent.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(exist_ok=True)

    @property
    def pid(self) -> int | None:
        return self._identity.pid if self._identity and self._identity.alive() else None

    def start(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        """Starts the command in a session of its own, its output appended to the log."""
        if self.pid is not None:
            raise Refused(f"lab: {self.name} runs already, as pid {self.pid}: stop it first")
        with self.log.open("ab") as log:
            self._child = subprocess.Popen(
                ["sh", "-c", RECORD_AND_BECOME, str(self._record), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        started = _started(self._child.pid)
        self._identity = Identity(self.name, self._child.pid, -1 if started is None else started)

    def stop(self, seconds: float) -> None:
        """Asks it to end; kills it if it has not within the time."""
        if self._identity and not self._identity.signal(signal.SIGTERM, seconds):
            self._identity.signal(signal.SIGKILL, KILL_SECONDS)
        self._forget()

    def kill(self) -> None:
        """Ends it as a power cut would."""
        if self._identity:
            self._identity.signal(signal.SIGKILL, KILL_SECONDS)
        self._forget()

    def wait(self, seconds: float) -> int:
        """The exit code of a process that ends by itself; kills it if it does not within the time."""
        if self._child is None:
            raise Unavailable(f"lab: {self.name} was not started")
        try:
            return self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Unavailable(f"lab: {self.name} has not ended after {seconds:g} s; see {self.log}") from None
        finally:
            self.kill()

    def wait_until(self, answers: Callable[[], bool], seconds: float) -> None:
        """Returns when `answers()` is true; raises when the process has died or the time is over."""
        deadline = time.monotonic() + seconds
        while not answers():
            if self.pid is None:
                raise Unavailable(f"lab: {self.name} ended while starting; {self.log} ends with: {self.log_tail()}")
            if time.monotonic() > deadline:
                raise Unavailable(f"lab: {self.name} does not answer after {seconds:g} s; see {self.log}")
            time.sleep(POLL_SECONDS)

    def log_tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines() if self.log.exists() else []
        return " | ".join(lines[-LOG_TAIL_LINES:])

    def _forget(self) -> None:
        if self._child is not None:
            self._child.wait(KILL_SECONDS)
        self._child = self._identity = None
        self._record.unlink(missing_ok=True)


def recorded(directory: Path, records: str = RECORDS) -> list[Identity]:
    """The processes that were started in a lab directory and not stopped, alive or not."""
    try:
        paths = sorted((directory / records).iterdir())
    except FileNotFoundError:
        return []
    return [_identity(path) for path in paths if path.suffix != ".new"]


def end_all(directory: Path) -> None:
    """Ends every process recorded in a lab directory and removes the directory."""
    with suppress(FileNotFoundError):
        (directory / RECORDS).rename(directory / ENDED)
    left = [it for it in recorded(directory, ENDED) if not it.signal(signal.SIGKILL, KILL_SECONDS)]
    if left:
        names = ", ".join(f"{it.name} (pid {it.pid})" for it in left)
        raise Unavailable(f"lab: {names} did not end {KILL_SECONDS:g} s after SIGKILL; {directory} is kept")
    shutil.rmtree(directory, ignore_errors=True)


def _identity(record: Path) -> Identity:
    stat = record.read_text()
    return Identity(record.name, int(stat.split(" ", 1)[0]), _start_time(stat))


def _started(pid: int) -> int | None:
    """The start time of a running process; None if there is none or only its corpse."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if stat.rpartition(")")[2].split()[0] in "ZX" else _start_time(stat)


def _start_time(stat: str) -> int:
    # proc(5): the name in parentheses may hold anything, so count from behind it; the start time is field 22.
    return int(stat.rpartition(")")[2].split()[19])

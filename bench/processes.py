"""A contender's processes: started in a session of their own, measured from /proc, ended together."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

TICKS = os.sysconf("SC_CLK_TCK")
STOP_SECONDS = 45.0
PROC = Path("/proc")


@dataclass(frozen=True)
class Stat:
    """The parts of /proc/PID/stat that we ask for."""

    pid: int
    session: int
    started: int
    own_ticks: int
    cpu_ticks: int  # its own and that of children it has waited for
    state: str


class Program:
    """One program with all it starts. What it says on stderr is kept, each line with its moment."""

    def __init__(
        self, name: str, command: Sequence[str], directory: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self.lines: list[tuple[float, str]] = []
        self.started = time.monotonic()
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=directory,
            env={**os.environ, **(environment or {})},
            start_new_session=True,
        )
        self._ears = threading.Thread(target=self._listen, daemon=True)
        self._ears.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def said(self) -> str:
        """The last of its words, for an error message."""
        return " | ".join(line for _, line in self.lines[-5:])

    def refuse_ended(self) -> None:
        if self._child.poll() is not None:
            raise RuntimeError(f"{self.name} ended with {self._child.returncode}: {self.said}")

    def wait(self, seconds: float) -> int:
        return self._child.wait(seconds)

    def cpu_seconds(self) -> float:
        return sum(stat.cpu_ticks for stat in stats() if stat.session == self.pid) / TICKS

    def memory_bytes(self) -> int:
        """Proportional set size of all its processes: a page they share counts once."""
        return sum(_proportional(stat.pid) for stat in stats() if stat.session == self.pid)

    def kill(self) -> None:
        """Ends all of it as a power cut would."""
        while left := [stat for stat in stats() if stat.session == self.pid and stat.state not in "ZX"]:
            for stat in left:
                with suppress(ProcessLookupError):
                    os.kill(stat.pid, signal.SIGKILL)
            self._child.poll()
            time.sleep(0.02)
        self._child.wait(STOP_SECONDS)

    def stop(self) -> None:
        """Asks it to end; what is left after a while is killed."""
        self._child.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._child.wait(STOP_SECONDS)
        self.kill()

    def _listen(self) -> None:
        assert self._child.stderr is not None
        for line in self._child.stderr:
            self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop() if kind is None else self.kill()


def stats() -> list[Stat]:
    """Every process of the machine."""
    found = []
    for directory in PROC.iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                found.append(parsed((directory / "stat").read_text()))
    return found


def parsed(stat: str) -> Stat:
    # proc(5): the name in parentheses may hold anything, so count from behind it.
    head, _, rest = stat.rpartition(")")
    fields = rest.split()
    return Stat(
        pid=int(head.split(" ", 1)[0]),
        session=int(fields[3]),
        started=int(fields[19]),
        own_ticks=int(fields[11]) + int(fields[12]),
        cpu_ticks=sum(int(field) for field in fields[11:15]),
        state=fields[0],
    )


def cpu_seconds(pids: Sequence[int]) -> float:
    """Of these processes, without what they started."""
    total = 0
    for pid in pids:
        with suppress(OSError):
            total += parsed((PROC / str(pid) / "stat").read_text()).cpu_ticks
    return total / TICKS


def machine_busy_seconds() -> float:
    """What all cores together have worked since boot."""
    fields = [int(field) for field in (PROC / "stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, irq, softirq, _steal = fields
    return (user + nice + system + irq + softirq) / TICKS


def _proportional(pid: int) -> int:
    with suppress(OSError):
        for line in (PROC / str(pid) / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0

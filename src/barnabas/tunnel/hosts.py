"""The name mapping: which loopback address stands for which broker name, in the words of whoever needs it."""

import fcntl
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import IO

from barnabas.errors import ConfigError, Unavailable
from barnabas.tunnel.targets import Target, is_this_machine, loopback_of


class Format(StrEnum):
    """Where the mapping goes."""

    HOSTS = "hosts"
    COMPOSE = "compose"
    KUBERNETES = "kubernetes"


def mapped(targets: Iterable[Target], loopback: IPv4Address) -> dict[str, IPv4Address]:
    """Host name to loopback address, in the order of the addresses."""
    return {target.address.host: loopback_of(loopback, target.number) for target in sorted(targets) if target.mappable}


def formatted(names: Mapping[str, IPv4Address], form: Format) -> str:
    """The mapping as lines to paste."""
    if form is Format.HOSTS:
        return "".join(f"{address}\t{name}\n" for name, address in names.items())
    if form is Format.COMPOSE:
        return "extra_hosts:\n" + "".join(f'  - "{name}:{address}"\n' for name, address in names.items())
    return "hostAliases:\n" + "".join(
        f'  - ip: "{address}"\n    hostnames: ["{name}"]\n' for name, address in names.items()
    )


class HostsBlock:
    """A marked block in a hosts file, kept current and taken out again; nothing else in the file changes.

    `write` and `remove` never wait: they raise Unavailable while another process holds a lock on the file.
    """

    def __init__(self, tunnel: str, path: Path, loopback: IPv4Address) -> None:
        self._begin = f"# barnabas tunnel {tunnel}: begin, removed when the tunnel ends"
        self._end = f"# barnabas tunnel {tunnel}: end"
        self._path, self._loopback = path, loopback
        self._written: dict[str, IPv4Address] | None = None

    def write(self, names: Mapping[str, IPv4Address]) -> None:
        """Put the block in, in place of an older one; a block that a crash left behind is an older one."""
        if self._written == dict(names):
            return
        self._rewrite(f"{self._begin}\n{formatted(names, Format.HOSTS)}{self._end}\n")
        self._written = dict(names)

    def remove(self) -> None:
        """Take out the block that `write` put in."""
        if self._written is not None:
            self._rewrite("")
            self._written = None

    def _rewrite(self, block: str) -> None:
        # In place: in a container the hosts file is a mount of its own, and no other file can be renamed onto it.
        try:
            with self._path.open("r+b") as file:
                self._lock(file)
                old = file.read()
                new = self._without(old.decode(errors="surrogateescape"))
                if block and new and not new.endswith("\n"):
                    new += "\n"
                content = (new + block).encode(errors="surrogateescape")
                if content == old:
                    return
                # One write, then the cut: a reader never finds fewer of the names outside the block than before.
                os.pwrite(file.fileno(), content, 0)
                os.ftruncate(file.fileno(), len(content))
        except OSError as error:
            raise ConfigError(
                f"tunnel: {self._path} cannot be written: {error.strerror}; run as a user who may, "
                "or leave out --write-hosts and use `barnabas tunnel hosts`"
            ) from None

    def _lock(self, file: IO[bytes]) -> None:
        """Anybody who may read the file can hold a lock on it: so nothing here waits for one."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder_of_lock(os.fstat(file.fileno()))
            raise Unavailable(
                f"tunnel: {self._path} is locked by {holder}; end it, or use `barnabas tunnel hosts` instead"
            ) from None

    def _without(self, text: str) -> str:
        lines = text.splitlines(keepends=True)
        kept, place = [], 0
        while place < len(lines):
            if lines[place].rstrip("\r\n") == self._begin:
                place = self._past_block(lines, place + 1)
            else:
                kept.append(lines[place])
                place += 1
        return "".join(kept)

    def _past_block(self, lines: list[str], start: int) -> int:
        """The first line behind the block; where its end mark is gone, only lines like ours belong to it."""
        for place in range(start, len(lines)):
            bare = lines[place].rstrip("\r\n")
            if bare == self._end:
                return place + 1
            if bare == self._begin:
                break
        while start < len(lines) and self._is_ours(lines[start]):
            start += 1
        return start

    def _is_ours(self, line: str) -> bool:
        try:
            address, name = line.split()
            return (
                IPv4Address(address) >= self._loopback
                and IPv4Address(address).is_loopback
                and not is_this_machine(name)
            )
        except ValueError:
            return False


def _holder_of_lock(file: os.stat_result) -> str:
    """Who holds a lock on the file, as far as the system says."""
    wanted = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            kind, pid, place = (fields := line.split())[1], fields[-4], fields[-3]
            if kind == "FLOCK" and place == wanted:
                return f"process {pid}"
    return "another process"

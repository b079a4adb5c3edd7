"""What a run listens on: every TCP port and Unix socket of its processes, from /proc."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

LISTEN = "0A"
UNIX_LISTEN = "00010000"  # the flag __SO_ACCEPTCON


def tcp_ports(pids: Iterable[int]) -> list[int]:
    """The ports that the processes listen on, whatever the address."""
    ours = _sockets(pids)
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, _, _, _, _, _, inode, *_ = line.split()
            if state == LISTEN and inode in ours:
                ports.add(int(local.rpartition(":")[2], 16))
    return sorted(ports)


def unix_sockets(pids: Iterable[int]) -> list[str]:
    """The paths that the processes listen on; one that begins with @ is abstract: everybody may connect."""
    ours = _sockets(pids)
    lines = (line.split(maxsplit=7) for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return sorted(line[7] for line in lines if len(line) == 8 and line[3] == UNIX_LISTEN and line[6] in ours)


def _sockets(pids: Iterable[int]) -> set[str]:
    """Inodes of the sockets that the processes hold."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            for descriptor in Path(f"/proc/{pid}/fd").iterdir():
                with suppress(OSError):
                    match = re.fullmatch(r"socket:\[(\d+)\]", str(descriptor.readlink()))
                    found |= {match[1]} if match else set()
    return found

"""Who may call us from Java. PySpark's server for such calls listens on loopback and asks for no password.

A stranger's call could report records as copied that were not. Java's side cannot send a password there, so the server
asks the system which user is at the other end of a connection.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from barnabas.errors import Refused

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))  # Java may use a socket of IPv6 for IPv4

log = logging.getLogger(__name__)


def let_only_us_call_back(gateway: Any) -> None:
    """From now on the gateway's server, which PySpark starts when it needs it, turns other users away."""
    if not any(table.is_file() for table in TABLES):
        raise Refused(f"{TABLES[0]} is not there: without it nobody can say which user connects to Barnabas")
    make = gateway._create_callback_server

    def guarded(parameters: Any) -> Any:
        server = make(parameters)
        accept = server._create_connection

        def ours_only(connection: socket.socket, stream: Any) -> Any:
            return accept(connection, stream) if is_ours(connection) else _TurnedAway(connection, server)

        server._create_connection = ours_only
        return server

    gateway._create_callback_server = guarded


def is_ours(connection: socket.socket) -> bool:
    """Whether a process of our user is at the other end, on this machine, now."""
    try:
        here, there = connection.getsockname(), connection.getpeername()
    except OSError:  # it has gone already
        return False
    return peer_uid(here[:2], there[:2]) == os.geteuid()


def peer_uid(here: tuple[str, int], there: tuple[str, int]) -> int | None:
    """The user of the other end's socket, None where that is closed: such a socket is listed as root's."""
    wanted = _as_listed(there), _as_listed(here)
    found = _listed_uid(wanted)
    return _listed_uid(wanted) if found is None else found  # a table that changes while it is read may lack a line


def _listed_uid(wanted: tuple[str, str]) -> int | None:
    for table in TABLES:
        with suppress(FileNotFoundError):
            for line in table.read_text().splitlines()[1:]:
                _, local, remote, _, _, _, _, uid, _, inode, *_ = line.split()
                if (local[-13:], remote[-13:]) == wanted and inode != "0":
                    return int(uid)
    return None


def _as_listed(address: tuple[str, int]) -> str:
    """An IPv4 address as the kernel lists it; the last 13 characters of one that is mapped into IPv6."""
    host, port = address
    return f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"


class _TurnedAway:
    """What py4j's server takes for a connection of a stranger."""

    warned = False

    def __init__(self, connection: socket.socket, server: Any) -> None:
        self.socket = connection
        self._server = server

    def start(self) -> None:
        self._server.connections.discard(self)
        self.close()
        if not _TurnedAway.warned:
            _TurnedAway.warned = True
            log.warning("another user of this machine tried to call Barnabas, and was turned away")

    def close(self, reset: bool = False) -> None:
        self.socket.close()

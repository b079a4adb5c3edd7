"""Whose connections count: those of our own user, whatever table of the system lists them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import callbacks
from barnabas.callbacks import TABLES, is_ours
from tests.stranger import NOBODY

CONNECT = """
import os, socket, sys
os.setgroups([]); os.setresgid(*[int(sys.argv[2])] * 3); os.setresuid(*[int(sys.argv[2])] * 3)
connection = socket.socket(); connection.connect(("127.0.0.1", int(sys.argv[1])))
print(flush=True); sys.stdin.read()
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.mark.parametrize("mapped", [False, True], ids=["IPv4", "IPv4 by a socket of IPv6, as Java does"])
def test_a_connection_of_ours_is_known(server: socket.socket, mapped: bool) -> None:
    host, family = ("::ffff:127.0.0.1", socket.AF_INET6) if mapped else ("127.0.0.1", socket.AF_INET)
    with socket.socket(family) as client:
        client.connect((host, server.getsockname()[1]))
        assert is_ours(server.accept()[0])


def test_a_connection_of_another_user_is_known(server: socket.socket) -> None:
    assert os.geteuid() == 0, "only root can become another user: run this test as root, in a container for example"
    arguments = [sys.executable, "-c", CONNECT, str(server.getsockname()[1]), str(NOBODY)]
    with subprocess.Popen(arguments, stdin=-1, stdout=-1) as stranger:
        assert stranger.stdout is not None and stranger.stdout.readline()
        assert not is_ours(server.accept()[0])
        stranger.communicate(timeout=30)


def test_a_connection_that_is_closed_at_the_other_end_is_nobodys(server: socket.socket) -> None:
    with socket.socket() as client:
        client.connect(server.getsockname())
        accepted, _ = server.accept()
    assert not is_ours(accepted)  # the system lists such a socket as root's


class Changing:
    """A table of the system that is read while it changes: at first it lacks lines."""

    def __init__(self, table: Path) -> None:
        self._table, self._reads = table, 0

    def read_text(self) -> str:
        self._reads += 1
        return self._table.read_text() if self._reads > 1 else "head"


def test_a_connection_that_the_system_does_not_list_at_first_is_looked_for_once_more(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "TABLES", [Changing(table) for table in TABLES])
    with socket.create_connection(server.getsockname()):
        assert is_ours(server.accept()[0])

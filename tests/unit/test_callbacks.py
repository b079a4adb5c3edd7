"""Whose connections count: those of our own user, whatever table of the system lists them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from barnabas.callbacks import is_ours
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

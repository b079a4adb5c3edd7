"""How many open files a tunnel's process may have."""

import subprocess
import sys

ROOM = """
import logging, resource, sys
from barnabas.tunnel.descriptors import make_room
logging.basicConfig(format="%(message)s")
resource.setrlimit(resource.RLIMIT_NOFILE, (100, int(sys.argv[1])))
places = make_room("t", int(sys.argv[2]), int(sys.argv[2]))
if len(sys.argv) > 3:
    print(places, end=" ")
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


def made(hard: int, connections: int, *more: str) -> tuple[str, str]:
    """What a process that may have that many says of its limits, and its warnings; as many more are unfinished."""
    command = [sys.executable, "-c", ROOM, str(hard), str(connections), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr.strip()


def test_the_limit_rises_to_what_the_connections_need() -> None:
    assert made(900, 50) == ("214 900", "")


def test_a_limit_that_is_enough_stays() -> None:
    assert made(900, 12) == ("100 900", "")


def test_it_rises_as_far_as_it_may_and_says_what_is_missing() -> None:
    limits, said = made(150, 50)
    assert limits == "150 150"
    assert said.startswith('tunnel "t": 50 connections may need 214 open files and the system allows 150: raise `ulim')


def test_places_for_unfinished_handshakes_are_what_the_connections_leave_and_never_none() -> None:
    assert made(900, 100, "places")[0] == "100 364 900"
    assert made(350, 100, "places")[0] == "86 350 350"
    assert made(250, 100, "places")[0] == "32 250 250"

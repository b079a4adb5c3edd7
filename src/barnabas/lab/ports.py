"""Free ports on the loopback interface."""

import secrets
import socket

from barnabas.errors import Unavailable

LOOPBACK = "127.0.0.1"
# Below Linux's range for outgoing connections: a broker that was killed finds its port still free when it comes back.
FIRST, LAST = 20_000, 32_000
ATTEMPTS = 200


def free_ports(count: int) -> list[int]:
    """Distinct ports that nobody listened on just now; drawn at random, so labs started at once seldom meet."""
    ports: list[int] = []
    for _ in range(ATTEMPTS):
        if len(ports) == count:
            return ports
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if port not in ports and _is_free(port):
            ports.append(port)
    raise Unavailable(f"lab: no {count} free ports on {LOOPBACK} between {FIRST} and {LAST}: what is using them?")


def answers(port: int) -> bool:
    """Whether somebody accepts connections on the port."""
    with socket.socket() as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0


def _is_free(port: int) -> bool:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind((LOOPBACK, port))
        except OSError:
            return False
    return True

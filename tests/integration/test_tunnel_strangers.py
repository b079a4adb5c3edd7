"""A thousand strangers at the tunnel's port keep nobody out who has the key, and cost little memory."""

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tunnel_ends import Ends, running
from tests.tunnel_strangers import KINDS, strangers
from tests.tunnel_targets import Target

pytest_plugins = ["tests.tunnel_targeted"]

STRANGERS = 1000
MEMORY = 200 * 1024 * 1024
MANY = ",".join(f"127.1.0.{number}" for number in range(1, 251))


def trip(client: socket.socket) -> float:
    started = time.monotonic()
    client.sendall(b"ping")
    assert client.recv(10) == b"ping"
    return time.monotonic() - started


@contextmanager
def exchanging(ends: Ends) -> Iterator[list[float]]:
    """A connection that was there before; the list grows by the time of each of its exchanges."""
    times, stop = list[float](), threading.Event()

    def exchange(client: socket.socket) -> None:
        while not stop.is_set():
            times.append(trip(client))
            stop.wait(0.005)

    with ends.dial() as client:
        trip(client)
        exchanges = threading.Thread(target=exchange, args=(client,))
        exchanges.start()
        try:
            yield times
        finally:
            stop.set()
            exchanges.join(60)
        trip(client)


def peak(ends: Ends) -> int:
    """The most memory that serve ever had, in bytes."""
    status = Path(f"/proc/{ends.processes['serve'].pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def new_connections(ends: Ends, count: int) -> list[float]:
    took = []
    for _ in range(count):
        started = time.monotonic()
        with ends.dial() as client:
            trip(client)
        took.append(time.monotonic() - started)
    return took


def withstands(directory: Path, target: Target, kinds: str, sources: str, *prefix: str, usual: float = 1) -> None:
    name = f"tunnel-strangers-{len(prefix)}{kinds.replace(',', '-')}-{sources[:9]}-{len(sources)}"
    own = {"loopback": "127.0.5.1"}
    with running(Ends(directory, name, [target.address], connect=own, prefix={"serve": [*prefix]})) as ends:
        with exchanging(ends) as times, strangers(ends.port, STRANGERS, kinds, sources):
            times.clear()
            took = new_connections(ends, 50)
            assert ends.log("serve").count("\n") < 200
        times.sort()
        print(
            f"{kinds} from {sources[:10]}: 50 new connections took at most {max(took) * 1000:.0f} ms, one that was "
            f"there had p99 {times[int(len(times) * 0.99)] * 1000:.0f} ms, serve at most {peak(ends) >> 20} MiB, "
            f"{ends.metric('serve', 'refused_total'):.0f} refused"
        )
        assert sorted(took)[-5] < usual
        assert (
            max(took) < 5 * usual
        )  # the strangers come all at once: the first who is let in waits for a thousand handshakes
        assert times[int(len(times) * 0.99)] < 0.5
        assert peak(ends) < MEMORY


def test_a_thousand_strangers_keep_nobody_out_and_disturb_nobody(lab_directory: Path, target: Target) -> None:
    withstands(lab_directory, target, ",".join(KINDS), "127.0.0.1")


@pytest.mark.slow
@pytest.mark.parametrize("sources", ["127.0.0.1", "127.0.9.1", MANY], ids=["the-same", "another", "many"])
@pytest.mark.parametrize("kinds", ["silent", "garbage", "halfway"])
def test_nor_do_a_thousand_of_one_kind_from_one_address_or_many(
    lab_directory: Path, target: Target, kinds: str, sources: str
) -> None:
    withstands(lab_directory, target, kinds, sources)


@pytest.mark.slow
def test_nor_do_they_where_the_system_allows_few_open_files(lab_directory: Path, target: Target) -> None:
    """With 32 places the strangers come back all the time: everybody is let in, and waits for some of them."""
    withstands(lab_directory, target, ",".join(KINDS), "127.0.9.1", "prlimit", "--nofile=1024", usual=5)

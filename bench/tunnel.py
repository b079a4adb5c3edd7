"""The tunnel beside stunnel, and a mirror through the tunnel beside the same mirror without it.

`python -m bench.tunnel` prints megabytes a second and processor seconds of both tunnels and their ratio: the same
bytes, the same machine, TLS 1.3 with the same cipher and mutual certificates, in turn, the first of a round taking
turns too; needs the Debian package stunnel4. The ratio is that of the medians. `from` is the way a mirror's records go.
Then it mirrors the same records directly and through the tunnel, in turn as well.
"""

import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from barnabas.lab.guard import Guard
from barnabas.tunnel.keys import create
from bench.tunnel_load import MEGABYTES, Direction, Peer, measured, wait_for
from bench.tunnel_mirror import lands
from bench.tunnel_ways import Way, barnabas, stunnel

GOAL = 0.7  # of stunnel's throughput
ROUNDS = 6
MIRROR_ROUNDS = 3


def in_turn(rounds: int, tries: Mapping[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """Each try in every round; who begins changes, so that what a round leaves behind falls on each alike."""
    found: dict[str, list[float]] = {name: [] for name in tries}
    for number in range(rounds):
        for name in list(tries) if number % 2 == 0 else reversed(list(tries)):
            found[name].append(tries[name](number))
    return found


def compared(found: Mapping[str, list[float]], ours: str, theirs: str) -> tuple[float, str]:
    """The ratio of the medians, and in words with the smallest and largest ratio of a round."""
    ratio = statistics.median(found[ours]) / statistics.median(found[theirs])
    rounds = sorted(one / other for one, other in zip(found[ours], found[theirs], strict=True))
    return ratio, f"ratio {ratio:.2f} (rounds {rounds[0]:.2f} to {rounds[-1]:.2f})"


def beside_stunnel(folder: Path) -> None:
    peer = Peer()
    with stunnel(folder, peer.port) as theirs, barnabas(folder, peer.port) as ours:
        ways = {"barnabas": ours, "stunnel": theirs}
        for way in ways.values():
            wait_for(way.address)
        ceiling = measured(peer.address, 1, Direction.FROM)
        print(f"tunnel, what this measurement moves without any tunnel: {ceiling:.0f} MB/s", flush=True)
        worst = min(_beside(ways, connections, direction) for direction in Direction for connections in (1, 4))
    verdict = "met" if worst >= GOAL else "MISSED"
    print(f"tunnel, the lowest ratio to stunnel is {worst:.2f}; the goal of {GOAL:g} is {verdict}", flush=True)


def _beside(ways: Mapping[str, Way], connections: int, direction: Direction) -> float:
    before = {name: way.cpu_seconds() for name, way in ways.items()}
    speeds = in_turn(ROUNDS, {name: partial(_speed, way, connections, direction) for name, way in ways.items()})
    ratio, words = compared(speeds, "barnabas", "stunnel")
    gigabytes = ROUNDS * MEGABYTES / 1000
    figures = ", ".join(
        f"{name} {statistics.median(speeds[name]):.0f} MB/s with "
        f"{(way.cpu_seconds() - before[name]) / gigabytes:.2f} CPU s/GB"
        for name, way in ways.items()
    )
    print(f"tunnel, {direction}, {connections} connection(s), TLS 1.3: {figures}, {words}", flush=True)
    return ratio


def _speed(way: Way, connections: int, direction: Direction, _round: int) -> float:
    return measured(way.address, connections, direction)


def beside_direct(folder: Path) -> None:
    with lands(folder) as here:
        tries: dict[str, Callable[[int], float]] = {
            "direct": lambda number: here.mirrored(here.direct, f"direct-{number}"),
            "tunnelled": lambda number: here.mirrored(here.tunnelled, f"tunnelled-{number}"),
        }
        paces = in_turn(MIRROR_ROUNDS, tries)
    _, words = compared(paces, "tunnelled", "direct")
    direct, tunnelled = (statistics.median(paces[name]) for name in tries)
    print(
        f"mirror, 100 B records: through the tunnel {tunnelled:,.0f} records/s, direct {direct:,.0f} records/s, {words}"
    )


def main() -> int:
    if shutil.which("stunnel4") is None:
        raise SystemExit("bench: stunnel4 is not here to compare with; install it: apt-get install stunnel4")
    folder = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
    guard = Guard(folder)
    try:
        create(folder / "key")
        beside_stunnel(folder)
        beside_direct(folder)
    finally:
        guard.end()
    return 0


if __name__ == "__main__":
    sys.exit(main())

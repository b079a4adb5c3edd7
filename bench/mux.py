"""Hub and spoke against two plain mirrors: the same records through mux + demux, and twice through a plain one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bench.contenders import Errand, barnabas_with
from bench.ground import Ground, ends
from bench.processes import Program
from bench.shapes import SHAPES
from bench.table import rows
from bench.workload import fill

TITLE = "Mux and demux"
TOPIC = "spoke"
PARTITIONS = 4
RECORDS = 6_000_000
WARM_SHARE = 0.3
LIMIT_SECONDS = 240.0
LEAST_SHARE = 0.8

Mirrors = list[dict[str, Any]]


@dataclass(frozen=True)
class Way:
    """Two mirrors of one process; records have arrived when they are in all topics of `last`."""

    name: str
    mirrors: Mirrors
    last: tuple[str, ...]


# Both ways read every record twice and write it twice, the second time at the hub.
PLAIN = Way(
    "two plain mirrors",
    [
        {"name": "first", "from": TOPIC, "to": "{topic}.once"},
        {"name": "second", "from": TOPIC, "to": "{topic}.twice"},
    ],
    (f"{TOPIC}.once", f"{TOPIC}.twice"),
)
HUB = Way(
    "mux + demux",
    [
        {
            "name": "mux",
            "kind": "mux",
            "from": TOPIC,
            "identifier": "spoke-1",
            "topics": {"settings": {"retention.bytes": -1}},  # the demux has yet to read it
        },
        {
            "name": "demux",
            "kind": "demux",
            "source": "destination",
            "from": "mux-replication_spoke-1",
            "to": "{topic}.hub",
        },
    ],
    (f"{TOPIC}.hub",),
)


def run(ground: Ground) -> str:
    total = fill(ground, TOPIC, SHAPES["200B+headers"], partitions=PARTITIONS, records=RECORDS)
    try:
        rates = {way.name: _rate(ground, way, total) for way in (PLAIN, HUB)}
    except RuntimeError as error:
        return f"No figure: {error}\n"
    finally:
        ground.swept()
    share = rates[HUB.name] / rates[PLAIN.name]
    lines = [[name, f"{rate:,.0f}"] for name, rate in rates.items()]
    return rows(("way", "records/s"), lines) + f"\nShare {share:.2f}, at least {LEAST_SHARE} wanted.\n"


def _rate(ground: Ground, way: Way, total: int) -> float:
    """Records a second that arrive at the far end, after the warm-up."""
    directory = ground.directory / way.name.replace(" ", "-")
    directory.mkdir()
    try:
        with barnabas_with(Errand(ground, TOPIC, directory), way.mirrors) as program:
            admin = ground.destination.admin()

            def arrived() -> int:
                return min(sum(ends(admin, topic, PARTITIONS)) for topic in way.last)

            begun = _reached(program, arrived, int(total * WARM_SHARE))
            ended = _reached(program, arrived, total)
            return (ended[1] - begun[1]) / (ended[0] - begun[0])
    finally:
        ground.swept(keep=TOPIC)


def _reached(program: Program, count: Callable[[], int], wanted: int) -> tuple[float, int]:
    """The moment, and the count, at which so many have arrived."""
    while time.monotonic() - program.started < LIMIT_SECONDS:
        program.refuse_ended()
        now = count()
        if now >= wanted:
            return time.monotonic(), now
        time.sleep(0.1)
    raise RuntimeError(f"{program.name}: {wanted:,} records are not there after {LIMIT_SECONDS:g} s: {program.said}")

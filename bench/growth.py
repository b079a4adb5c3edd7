"""Cost grows with the work: twice the records take twice the time, and no more memory.

A mirror that is warm already gets 1, 2, 4 and 8 million records, each lot committed to the source in one transaction:
readers see all of it at the same moment, from which the time runs. Three times in turn, and the median counts: the
first million takes little more than a second, of which a crowded machine can take a fifth.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from bench.contenders import CONTENDERS, Errand
from bench.ground import Ground, create, ends
from bench.meter import Meter
from bench.processes import Program
from bench.race import metered
from bench.shapes import SHAPES
from bench.table import rows
from bench.workload import fill_at_once

TITLE = "Growth"
TOPIC = "growth"
PARTITIONS = 4
WARM_MILLIONS = 20
MILLIONS = (1, 2, 4, 8)
ROUNDS = 3
TOLERANCE = 0.15
LOT_SECONDS = 300.0
LOOK_SECONDS = 0.02  # a meter's fifth of a second would be a tenth of the smallest lot's time


@dataclass(frozen=True)
class Lot:
    millions: int
    seconds: float
    peak_memory: int


def run(ground: Ground) -> str:
    create(ground.source, TOPIC, PARTITIONS)
    directory = ground.directory / "growth"
    directory.mkdir()
    barnabas, lots, done = CONTENDERS["barnabas"], [], 0
    try:
        with barnabas.start(Errand(ground, TOPIC, directory)) as program:
            meter = metered(ground, program, barnabas.copy(TOPIC), PARTITIONS)
            try:
                for millions in (WARM_MILLIONS, *MILLIONS * ROUNDS):
                    each = millions * 1_000_000 // PARTITIONS
                    fill_at_once(ground, TOPIC, SHAPES["100B"], partitions=PARTITIONS, first=done, each=each)
                    meter.peak_memory = 0
                    began, done = time.monotonic(), done + each
                    ended = _copied(program, meter, done * PARTITIONS)
                    lots.append(Lot(millions, ended - began, meter.peak_memory))
            finally:
                meter.stop()
    finally:
        ground.swept()
    return told([_median(lot for lot in lots[1:] if lot.millions == millions) for millions in MILLIONS])


def _median(same: Iterable[Lot]) -> Lot:
    """One lot for several of a size: its seconds are their median, its memory is the most that any took."""
    lots = list(same)
    seconds, peak = median(lot.seconds for lot in lots), max(lot.peak_memory for lot in lots)
    return Lot(lots[0].millions, seconds, peak)


def told(lots: list[Lot]) -> str:
    """The table, and whether every lot took the time its size says."""
    mean = sum(lot.seconds for lot in lots) / sum(lot.millions for lot in lots)
    lines = [
        [
            f"{lot.millions} million",
            f"{lot.seconds:.2f}",
            f"{lot.seconds / lot.millions:.2f}",
            f"{100 * (lot.seconds / lot.millions / mean - 1):+.0f} %",
            f"{lot.peak_memory / 1e6:,.0f}",
        ]
        for lot in lots
    ]
    worst = max(abs(lot.seconds / lot.millions / mean - 1) for lot in lots)
    verdict = "proportional" if worst <= TOLERANCE else "NOT proportional"
    heads = ("records", "seconds", "s/million", "off the mean", "peak MB")
    return rows(heads, lines) + f"\n{verdict}: at most {100 * worst:.0f} % off, {100 * TOLERANCE:.0f} % allowed.\n"


def _copied(program: Program, meter: Meter, offsets: int) -> float:
    """The moment at which the copy holds this many offsets; markers let it seem to be there a little early."""
    admin, deadline = meter.cluster.admin(), time.monotonic() + LOT_SECONDS
    while sum(ends(admin, meter.topic, meter.partitions)) < offsets:
        program.refuse_ended()
        if meter.failure:
            raise RuntimeError(f"growth: cannot be measured: {meter.failure}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"growth: {offsets:,} records are not copied after {LOT_SECONDS:g} s")
        time.sleep(LOOK_SECONDS)
    return time.monotonic()

"""Where Barnabas' time goes: CPU by thread, micro-batches by step. `python -m bench.anatomy [--shape 1KB] [--pace]`.

CPU by thread depends less on what else the machine does than a rate, so it is a figure to work with on a crowded one
too; and what remains of that shows in all threads alike, so compare one with another of the same run. The steps of
micro-batches are Spark's own, from its event log: to be had without a change to what is measured.
"""

import argparse
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

from barnabas.session import DAEMON
from bench.contenders import CONTENDERS, Errand, barnabas
from bench.courses import laid
from bench.ground import Ground, create, ends, ground
from bench.latency import PARTITIONS, TOPIC, Sender
from bench.processes import PROC, TICKS, Program, machine_busy_seconds, parsed, stats
from bench.shapes import SHAPES
from bench.table import rows

PROGRESS = "StreamingQueryListener$QueryProgressEvent"
START_SECONDS = 600.0  # a crowded machine is what this one is made for
MANY = 50
# What a thread's name begins with, and what it does; the first that fits counts.
WORK = (
    ("Executor task", "JVM: task (fetch, rows to Arrow)"),
    ("stdout writer", "JVM: Arrow to the worker"),
    ("C1 Compiler", "JVM: compiler"),
    ("C2 Compiler", "JVM: compiler"),
    ("GC Thread", "JVM: garbage collection"),
    ("G1 ", "JVM: garbage collection"),
    ("stream execution", "JVM: query's own thread"),
    ("dag-scheduler", "JVM: scheduler"),
    ("rdk:", "worker: librdkafka"),
    ("python", "Python"),
    ("barnabas", "Python"),
)


def threads(program: Program) -> dict[str, float]:
    """CPU seconds of each kind of work since the program began."""
    found: dict[str, float] = defaultdict(float)
    for process in [stat.pid for stat in stats() if stat.session == program.pid]:
        with suppress(OSError):
            worker = DAEMON.encode() in (PROC / str(process) / "cmdline").read_bytes()
            for thread in (PROC / str(process) / "task").iterdir():
                text = (thread / "stat").read_text()
                found[kind(text[text.index("(") + 1 : text.rindex(")")], worker)] += parsed(text).own_ticks / TICKS
    return found


def kind(thread: str, worker: bool) -> str:
    for words, work in WORK:
        if thread.startswith(words):
            if work == "Python":
                return "worker: Python" if worker else "driver: Python"
            return work if worker or work.startswith("JVM") else f"driver: {work.partition(': ')[2]}"
    return f"JVM: {thread.rstrip('-0123456789#/ ')}"


def steps(log: Iterable[str]) -> list[dict[str, Any]]:
    """The progress of each micro-batch that had rows, in order."""
    found = []
    for line in log:
        if PROGRESS in line:
            with suppress(json.JSONDecodeError):  # the last line may be half written
                progress = json.loads(line)["progress"]
                if read(progress):
                    found.append(progress)
    return found


def read(batch: Mapping[str, Any]) -> int:
    return sum(source["numInputRows"] for source in batch["sources"])


def batches(found: list[dict[str, Any]]) -> str:
    """The middle and the longest duration of each step."""
    lines = [["rows", *_spread([read(batch) for batch in found])]]
    names = sorted({step for batch in found for step in batch["durationMs"]})
    lines += [[f"{step} ms", *_spread([batch["durationMs"].get(step, 0) for batch in found])] for step in names]
    return rows((f"{len(found)} micro-batches", "median", "p95", "longest"), lines)


def _spread(values: list[int]) -> list[str]:
    ordered = sorted(values)
    return [f"{value:,.0f}" for value in (median(ordered), ordered[int(0.95 * (len(ordered) - 1))], ordered[-1])]


def by_thread(before: Mapping[str, float], after: Mapping[str, float], records: int) -> str:
    spent = {work: after[work] - before.get(work, 0.0) for work in after}
    total = sum(spent.values()) or 1.0
    lines = [
        [work, f"{seconds / records * 1e6:.2f}", f"{100 * seconds / total:.0f} %"]
        for work, seconds in sorted(spent.items(), key=lambda it: -it[1])
        if seconds > 0.002 * total
    ]
    lines.append(["in all", f"{total / records * 1e6:.2f}", "100 %"])
    return rows((f"{records:,} records", "CPU s/M", "share"), lines)


def dissect(here: Ground, errand: Errand, partitions: int, *, warm: float, seconds: float) -> str:
    """Lets Barnabas copy for a while and tells what it did after the warm-up."""
    copy, admin = CONTENDERS["barnabas"].copy(errand.topic), here.destination.admin()
    with barnabas(errand) as program:
        while not any(ends(admin, copy, partitions)):
            program.refuse_ended()
            if time.monotonic() - program.started > START_SECONDS:
                raise RuntimeError(f"nothing copied in {START_SECONDS:g} s; it said: {program.said}")
            time.sleep(0.2)
        time.sleep(warm)
        before, first, began = threads(program), sum(ends(admin, copy, partitions)), time.time()
        busy = machine_busy_seconds()
        time.sleep(seconds)
        after, last, ended = threads(program), sum(ends(admin, copy, partitions)), time.time()
        busy = machine_busy_seconds() - busy
    log = [line for file in sorted(errand.directory.rglob("events_*")) for line in file.open(errors="replace")]
    inside = [it for it in steps(log) if began <= _moment(it["timestamp"]) <= ended]
    # Of many micro-batches all count that began in time; of few, the offsets, which have markers of transactions too.
    records = sum(map(read, inside)) if len(inside) > MANY else max(1, last - first)
    took = ended - began
    rate = f"{records / took:,.0f} records/s over {took:.0f} s, {busy / took:.2f} cores busy\n\n"
    return rate + by_thread(before, after, records) + "\n" + (batches(inside) if inside else "")


def dissect_paced(here: Ground, errand: Errand, *, warm: float, seconds: float) -> str:
    """The same at the pace of the latency run; the errand's topic is that run's."""
    create(here.source, TOPIC, PARTITIONS)
    sender = Sender(here.source.bootstrap)
    sender.start()
    try:
        return dissect(here, errand, PARTITIONS, warm=warm, seconds=seconds)
    finally:
        sender.stop()


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def events(directory: Path, **settings: str) -> dict[str, str]:
    """Spark's settings for an event log below the directory."""
    (directory / "events").mkdir(parents=True)
    own = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{directory / 'events'}"}
    return {**own, "spark.eventLog.compress": "false", **settings}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.anatomy")
    parser.add_argument("--shape", choices=SHAPES, default="100B")
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--pace", action="store_true", help="1,000 records a second instead of all at once")
    parser.add_argument("--warm", type=float, default=15.0)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument(
        "--set", action="append", default=[], metavar="spark.KEY=VALUE", help="a setting of the session"
    )
    parser.add_argument("--mirror", default="{}", help="settings of the mirror, as JSON")
    args = parser.parse_args()
    given = dict(setting.split("=", 1) for setting in args.set)
    with ground() as here:
        spark, mirror = events(here.directory / "anatomy", **given), json.loads(args.mirror)
        if args.pace:
            errand = Errand(here, TOPIC, here.directory / "anatomy", mirror=mirror, spark=spark)
            print(dissect_paced(here, errand, warm=args.warm, seconds=args.seconds))
            return 0
        shape, length = SHAPES[args.shape], args.warm + args.seconds
        with laid(here, shape, args.partitions, seconds=length, gigabytes=args.gigabytes) as lane:
            errand = Errand(here, lane.course.topic, here.directory / "anatomy", mirror=mirror, spark=spark)
            print(dissect(here, errand, args.partitions, warm=args.warm, seconds=args.seconds))
    return 0


if __name__ == "__main__":
    sys.exit(main())

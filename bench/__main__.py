"""`python -m bench`: the table, or a scenario by its name."""

import argparse
import random
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from bench import breakdown, growth, idle, latency, mux, restart, translation, tunnelled
from bench.contenders import CONTENDERS, Contender, Errand
from bench.courses import laid
from bench.ground import Ground, ground
from bench.race import race
from bench.report import Report
from bench.shapes import SHAPES

SCENARIOS = {it.TITLE: it for it in (breakdown, growth, idle, restart, translation, mux, tunnelled)}
NAMES = {it.__name__.rpartition(".")[2]: it for it in SCENARIOS.values()}
USUAL = "barnabas,mm2-tuned,mm2,loop"
# Brokers are slow while fresh, and again on records of another kind, which must not count against who is first.
REHEARSAL_SECONDS = 20.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measures Barnabas beside its peers.")
    choices = ["all", "throughput", "latency", *NAMES]
    parser.add_argument("what", nargs="*", default=["all"], help=f"of {', '.join(choices)}; all unless said otherwise")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="%(default)s")
    parser.add_argument("--partitions", default="4,64", help="%(default)s")
    parser.add_argument("--contenders", default=USUAL, help=f"of {', '.join(CONTENDERS)}: %(default)s")
    parser.add_argument("--rounds", type=int, default=2, help="how often each contender has its turn: %(default)s")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the steady part of a race: %(default)s")
    parser.add_argument("--warm", type=float, default=30.0, help="seconds of copying before that: %(default)s")
    parser.add_argument("--pace-seconds", type=float, default=60.0, help="of a latency run: %(default)s")
    parser.add_argument("--pace-warm", type=float, default=60.0, help="seconds before that: %(default)s")
    parser.add_argument("--gigabytes", type=float, default=12.0, help="no source topic is larger: %(default)s")
    parser.add_argument("--results", default="latest", help="name of the files in bench/results: %(default)s")
    args = parser.parse_args()
    for given, known in ((args.what, choices), (split(args.shapes), SHAPES), (split(args.contenders), CONTENDERS)):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"{', '.join(unknown)}: not one of {', '.join(known)}")
    return args


def split(words: str) -> list[str]:
    return [word for word in words.split(",") if word]


def main() -> int:
    args = arguments()
    what = {"throughput", "latency", *NAMES} if "all" in args.what else set(args.what)
    report = Report(args.results)
    contenders = [CONTENDERS[name] for name in split(args.contenders)]
    with _interrupted_by_signals(), ground() as here:
        if "throughput" in what:
            _races(args, here, contenders, report)
        if "latency" in what:
            _latencies(args, here, contenders, report)
        for name, scenario in NAMES.items():
            if name in what:
                say(f"{scenario.TITLE} …")
                report.sections[scenario.TITLE] = scenario.run(here)
                say(report.sections[scenario.TITLE])
                report.write()
    print(report.text())
    say(f"bench: {report.write()}")
    return 0


def _races(args: argparse.Namespace, here: Ground, contenders: list[Contender], report: Report) -> None:
    turns = random.Random(1)  # noqa: S311 - so that none always follows the same other
    for shape in split(args.shapes):
        for partitions in map(int, split(args.partitions)):
            with laid(
                here, SHAPES[shape], partitions, seconds=args.warm + args.seconds, gigabytes=args.gigabytes
            ) as lane:
                for contender in contenders[:1] if report.races else contenders:
                    race(lane.errand(contender), contender, lane.course, warm_seconds=0, seconds=REHEARSAL_SECONDS)
                    say(f"{shape} × {partitions}: {contender.name} has rehearsed")
                for _ in range(args.rounds):
                    for contender in turns.sample(contenders, len(contenders)):
                        errand = lane.errand(contender)
                        result = race(errand, contender, lane.course, warm_seconds=args.warm, seconds=args.seconds)
                        report.races.append(result)
                        rate = f"{result.steady.rate:,.0f} records/s" if result.steady else "no figure"
                        say(f"{shape} × {partitions}: {contender.name}: {rate} {result.note}")
                        report.write()


def _latencies(args: argparse.Namespace, here: Ground, contenders: list[Contender], report: Report) -> None:
    for contender in contenders:
        directory = here.directory / f"latency-{contender.name}"
        directory.mkdir()
        errand = Errand(here, latency.TOPIC, directory)
        found = latency.measure(errand, contender, warm_seconds=args.pace_warm, seconds=args.pace_seconds)
        report.latencies.append(found)
        say(f"latency: {contender.name}: p50 {found.p50:.0f} ms, p99 {found.p99:.0f} ms {found.note}")
        report.write()


def say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr, flush=True)


@contextmanager
def _interrupted_by_signals() -> Iterator[None]:
    """SIGTERM ends a run as ctrl-C does: through every `finally`."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

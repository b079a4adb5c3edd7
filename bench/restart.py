"""How soon a mirror that was killed copies again, and what the time goes into."""

import time

from bench.contenders import CONTENDERS, Errand
from bench.ground import Ground, ends
from bench.processes import Program
from bench.shapes import SHAPES
from bench.table import rows
from bench.workload import fill

TITLE = "Restart after SIGKILL"
TOPIC = "restart"
PARTITIONS = 4
RECORDS = 12_000_000
ROUNDS = 3
COPY_SECONDS = 3.0
LIMIT_SECONDS = 180.0
MOST_SECONDS = 10.0
# What it says on stderr, and what it has done by then.
STEPS = {"Spark UI at": "Python, configuration, Spark session", "copying": "survey, plan, take-over"}
LAST = "query start, workers, first commit"


def run(ground: Ground) -> str:
    fill(ground, TOPIC, SHAPES["100B"], partitions=PARTITIONS, records=RECORDS)
    directory = ground.directory / "restart"
    directory.mkdir()
    errand, barnabas = Errand(ground, TOPIC, directory), CONTENDERS["barnabas"]
    found: list[dict[str, float]] = []
    try:
        for number in range(ROUNDS + 1):
            program = barnabas.start(errand)
            try:
                first = _moved(ground, program, barnabas.copy(TOPIC))
                if number:  # the first start follows no kill
                    found.append(broken_down(program.started, program.lines, first))
                time.sleep(COPY_SECONDS)
            finally:
                program.kill()
    except RuntimeError as error:
        return f"{error}\n"
    finally:
        ground.swept()
    return told(found)


def broken_down(started: float, lines: list[tuple[float, str]], first: float) -> dict[str, float]:
    """Seconds of each step, in their order; the last ends with the first record committed anew."""
    steps, before = {}, started
    for words, step in STEPS.items():
        at = next((at for at, line in lines if words in line), before)
        steps[step] = at - before
        before = at
    steps[LAST] = first - before
    steps["in all"] = first - started
    return steps


def told(found: list[dict[str, float]]) -> str:
    heads = ("seconds", *(f"kill {number}" for number in range(1, len(found) + 1)))
    lines = [[step, *(f"{steps[step]:.2f}" for steps in found)] for step in found[0]]
    slowest = max(steps["in all"] for steps in found)
    return rows(heads, lines) + f"\nSlowest {slowest:.1f} s, {MOST_SECONDS:.0f} s allowed.\n"


def _moved(ground: Ground, program: Program, copy: str) -> float:
    """The moment at which the copy has grown since the program began.

    The open transactions of the killed are ended by the take-over, which moves the last stable offset as well, past
    aborted records: only what comes after the take-over counts.
    """
    admin = ground.destination.admin()
    before: list[int] | None = None
    while time.monotonic() - program.started < LIMIT_SECONDS:
        program.refuse_ended()
        if any("copying" in line for _, line in program.lines):
            now = ends(admin, copy, PARTITIONS)
            if before is not None and sum(now) > sum(before):
                return time.monotonic()
            before = before or now
        time.sleep(0.05)
    raise RuntimeError(f"restart: nothing copied {LIMIT_SECONDS:g} s after the start; it said: {program.said}")

"""What translating schema ids costs: the same Avro records, once carried as they are and once translated, in turn."""

from dataclasses import replace
from statistics import median

from bench.contenders import CONTENDERS
from bench.courses import laid
from bench.ground import Ground
from bench.race import Result, race
from bench.shapes import SHAPES
from bench.table import races

TITLE = "Schema translation"
ROUNDS = 3
PARTITIONS = 4
WARM_SECONDS, SECONDS = 12.0, 15.0
MOST_COST = 0.15


def run(ground: Ground) -> str:
    barnabas = CONTENDERS["barnabas"]
    plain, translating = replace(barnabas, name="as they are", translates=False), replace(barnabas, name="translated")
    results = []
    with laid(ground, SHAPES["200B-avro"], PARTITIONS, seconds=WARM_SECONDS + SECONDS, gigabytes=4.0) as lane:
        for _ in range(ROUNDS):
            for contender in (plain, translating):
                errand = lane.errand(contender)
                results.append(race(errand, contender, lane.course, warm_seconds=WARM_SECONDS, seconds=SECONDS))
    return races(results) + f"\n{verdict(results)}\n"


def verdict(results: list[Result]) -> str:
    """Pair by pair: what else the machine does in a round, it does to both."""
    if any("NOT" in result.note for result in results):
        return "No ids were translated: there is nothing to compare."
    pairs = zip(results[::2], results[1::2], strict=True)
    shares = [with_.steady.rate / without.steady.rate for without, with_ in pairs if with_.steady and without.steady]
    if not shares:
        return f"Nothing to compare: {'; '.join(sorted({result.note for result in results if result.note}))}"
    cost = 1 - median(shares)
    each = ", ".join(f"{100 * (1 - share):.0f} %" for share in shares)
    return f"Translation costs {100 * cost:.0f} % of the throughput, {100 * MOST_COST:.0f} % allowed (pairs: {each})."

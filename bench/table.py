"""The figures as Markdown."""

import math
from collections.abc import Iterable, Sequence
from statistics import median

from bench.latency import Latency
from bench.race import Result
from bench.shapes import SHAPES

PEER, PEER_AS_IT_COMES = "mm2-tuned", "mm2"


def rows(heads: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """One table; the first column to the left, figures to the right."""
    marks = [":--", *["--:"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (heads, marks, *lines)) + "\n"


def races(results: Sequence[Result]) -> str:
    """A line for each contender on each course, over all its rounds."""
    heads = ["records", "partitions", "contender", "records/s", f"of {PEER}", f"of {PEER_AS_IT_COMES}", "MB/s"]
    heads += ["CPU s/M", "brokers' CPU s/M", "peak MB", "first record s", "elsewhere", "notes"]
    return rows(heads, [_line(group, results) for group in grouped(results)])


def grouped(results: Sequence[Result]) -> list[list[Result]]:
    """Rounds of the same contender on the same course together, courses in the order they were run."""
    groups: dict[tuple[str, int, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.shape, result.partitions, result.contender), []).append(result)
    return list(groups.values())


def _line(group: list[Result], results: Sequence[Result]) -> list[str]:
    first = group[0]
    head = [first.shape, str(first.partitions), first.contender]
    notes = "; ".join(dict.fromkeys(result.note for result in group if result.note))
    parts = [result.steady for result in group if result.steady]
    if not parts:
        return [*head, *["–"] * 9, notes or "too few samples: ask for more seconds"]
    rate = median(part.rate for part in parts)
    compared = [ratio(group, results, peer) for peer in (PEER, PEER_AS_IT_COMES)]
    return [
        *head,
        f"{rate:,.0f}",
        *("–" if math.isnan(it) else f"{it:.2f}" for it in compared),
        f"{rate * SHAPES[first.shape].value_bytes / 1e6:.0f}",
        f"{median(part.cpu_per_million for part in parts):.2f}",
        f"{median(part.broker_cpu_per_million for part in parts):.2f}",
        f"{max(result.peak_memory for result in group) / 1e6:,.0f}",
        f"{median(result.first_record_seconds for result in group if result.steady):.1f}",
        f"{100 * median(part.elsewhere for part in parts):.0f} %",
        notes,
    ]


def ratio(group: Sequence[Result], results: Sequence[Result], to: str = PEER) -> float:
    """Round by round against a peer: what else the machine does in a round, it does to both."""
    first = group[0]
    peers = [
        result
        for result in results
        if (result.shape, result.partitions, result.contender) == (first.shape, first.partitions, to)
    ]
    found = [
        own.steady.rate / peer.steady.rate
        for own, peer in zip(group, peers, strict=False)
        if own.steady and peer.steady
    ]
    return median(found) if found else math.nan


def latencies(found: Sequence[Latency]) -> str:
    heads = ("contender", "p50 ms", "p95 ms", "p99 ms", "worst ms", "records", "of one core", "notes")
    lines = []
    for it in found:
        figures = [f"{value:.0f}" for value in (it.p50, it.p95, it.p99, it.worst)]
        lines.append([it.contender, *figures, f"{it.records:,}", f"{100 * it.cpu_share:.0f} %", it.note])
    return rows(heads, lines)

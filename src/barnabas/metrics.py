"""Every metric in one list, read from the boards and from Spark when somebody asks."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.samples import Sample

from barnabas.board import MirrorBoard
from barnabas.errors import Refused
from barnabas.metrics_page import MetricsPage

BREAKER_STATES = ("closed", "open", "half-open")
STATES = ("starting", "copying", "waiting", "done", "stopped", "refused")


@dataclass(frozen=True)
class Measure:
    """One metric: what it is called, what it means, and its values with their labels."""

    name: str
    kind: type[CounterMetricFamily] | type[GaugeMetricFamily]
    meaning: str
    labels: tuple[str, ...]
    values: Callable[[MirrorBoard], Iterable[tuple[tuple[str, ...], float]]]


def _one(value: Callable[[MirrorBoard], float]) -> Callable[[MirrorBoard], Iterable[tuple[tuple[str, ...], float]]]:
    return lambda board: [((board.name,), value(board))]


def _by_topic(place: int) -> Callable[[MirrorBoard], Iterable[tuple[tuple[str, ...], float]]]:
    return lambda board: [((board.name, topic), float(sums[place])) for topic, sums in list(board.topics.items())]


def _by_state(board: MirrorBoard) -> Iterable[tuple[tuple[str, ...], float]]:
    return [((board.name, state), float(board.state == state)) for state in STATES]


def _by_breaker(board: MirrorBoard) -> Iterable[tuple[tuple[str, ...], float]]:
    return [
        ((board.name, cluster, operation, state), float(breaker.state == state))
        for cluster, operations in board.breakers().items()
        for operation, breaker in operations.items()
        for state in BREAKER_STATES
    ]


Counter, Gauge = CounterMetricFamily, GaugeMetricFamily
MEASURES = (
    Measure("barnabas_records_read", Counter, "Committed source records read", ("mirror",), _one(lambda b: b.read)),
    Measure(
        "barnabas_records_written", Counter, "Records committed at the destination", ("mirror", "topic"), _by_topic(0)
    ),
    Measure("barnabas_bytes_read", Counter, "Key and value bytes read", ("mirror",), _one(lambda b: b.read_bytes)),
    Measure("barnabas_bytes_written", Counter, "Key and value bytes committed", ("mirror", "topic"), _by_topic(1)),
    Measure(
        "barnabas_records_filtered",
        Counter,
        "Records read and not to be copied",
        ("mirror",),
        _one(lambda b: b.filtered),
    ),
    Measure("barnabas_failures", Counter, "Epochs that ended with an error", ("mirror",), _one(lambda b: b.failures)),
    Measure("barnabas_restarts", Counter, "Epochs begun again after an error", ("mirror",), _one(lambda b: b.restarts)),
    Measure("barnabas_epoch", Gauge, "The epoch's number: its ledger offset", ("mirror",), _one(lambda b: b.epoch)),
    Measure(
        "barnabas_ledger_records",
        Gauge,
        "Records of the ledger when this epoch began, and those appended since",
        ("mirror",),
        _one(lambda b: b.ledger_records),
    ),
    Measure(
        "barnabas_ledger_bytes",
        Gauge,
        "Bytes of the ledger when this epoch began, and those appended since",
        ("mirror",),
        _one(lambda b: b.ledger_bytes),
    ),
    Measure("barnabas_lag_records", Gauge, "Source records past the positions", ("mirror",), _one(lambda b: b.lag())),
    Measure(
        "barnabas_undecided_records",
        Gauge,
        "Source records held back by open transactions",
        ("mirror",),
        _one(lambda b: sum(b.undecided.values())),
    ),
    Measure(
        "barnabas_lag_seconds", Gauge, "Seconds since there was no lag", ("mirror",), _one(lambda b: b.lag_seconds())
    ),
    Measure(
        "barnabas_commit_seconds",
        Gauge,
        "Longest commit of the last micro-batch",
        ("mirror",),
        _one(lambda b: b.commit_seconds),
    ),
    Measure(
        "barnabas_batch_seconds",
        Gauge,
        "Duration of the last micro-batch",
        ("mirror",),
        _one(lambda b: b.batch_millis / 1000),
    ),
    Measure("barnabas_batches", Counter, "Micro-batches done", ("mirror",), _one(lambda b: b.batches)),
    Measure("barnabas_records_quarantined", Counter, "Records set aside", ("mirror",), _one(lambda b: b.quarantined)),
    Measure(
        "barnabas_breaker",
        Gauge,
        "1 for the state a registry's circuit breaker is in",
        ("mirror", "cluster", "operation", "state"),
        _by_breaker,
    ),
    Measure("barnabas_state", Gauge, "1 for the state the mirror is in", ("mirror", "state"), _by_state),
)
JVM_MEASURES = {
    "barnabas_jvm_memory_bytes": "Memory of the Spark JVM, by area and kind",
    "barnabas_jvm_gc_seconds": "Time spent in garbage collection, by collector",
    "barnabas_jvm_gc_collections": "Garbage collections, by collector",
    "barnabas_jvm_threads": "Live threads of the Spark JVM",
    "barnabas_jvm_uptime_seconds": "Seconds since the Spark JVM began",
}


class Collector:
    """Asked by Prometheus at each scrape: nothing is counted twice, nothing runs in between."""

    def __init__(self, boards: Callable[[], Iterable[MirrorBoard]], jvm: Callable[[], Iterable[Metric]]) -> None:
        self._boards = boards
        self._jvm = jvm

    def collect(self) -> Iterator[Metric]:
        boards = list(self._boards())
        for measure in MEASURES:
            family = measure.kind(measure.name, measure.meaning, labels=measure.labels)
            for board in boards:
                for labels, value in measure.values(board):
                    family.add_metric(list(labels), value)
            yield family
        yield from self._jvm()


def serve(collector: Collector, host: str, port: int) -> MetricsPage:
    """The Prometheus page; Refused when the port is taken."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    try:
        return MetricsPage(registry, host, port)
    except OSError as error:
        raise Refused(f"metrics: cannot listen on {host}:{port}: {error.strerror}: choose another port") from None


def report(collector: Collector) -> str:
    """The same numbers as lines for the console."""
    lines = [f"metrics at {time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}"]
    for family in collector.collect():
        for sample in family.samples:
            labels = " ".join(f"{key}={value}" for key, value in sample.labels.items())
            if not _goes_without_saying(sample):
                lines.append(f"  {re.sub('_total$', '', sample.name)} {labels} {sample.value:g}")
    return "\n".join(lines)


def _goes_without_saying(sample: Sample) -> bool:
    """A state that a mirror is not in, or a breaker is not, and a breaker that is closed as it should be."""
    if sample.name == "barnabas_breaker":
        return sample.value == 0 or sample.labels["state"] == "closed"
    return sample.name == "barnabas_state" and sample.value == 0

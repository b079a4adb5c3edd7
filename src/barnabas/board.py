"""What every mirror is doing right now: written by its thread, read by the live view, the metrics and the summary."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from barnabas.errors import BarnabasError
from barnabas.model import Offsets, Partition, Range, Receipt, Route
from barnabas.plan import Plan
from barnabas.schemas.breaker import BreakerState

State = Literal["starting", "copying", "waiting", "done", "stopped", "refused"]
RATE_SECONDS = 10.0


@dataclass
class MirrorBoard:
    """One mirror. Every change happens under its lock; readers take `snapshot`."""

    name: str
    state: State = "starting"
    error: BarnabasError | None = None
    epoch: int = -1
    restarts: int = 0
    read: int = 0
    read_bytes: int = 0
    records: int = 0
    bytes: int = 0
    batches: int = 0
    batch_millis: int = 0
    commit_seconds: float = 0.0
    filtered: int = 0
    ledger_records: int = 0
    ledger_bytes: int = 0
    quarantined: int = 0
    breakers: Callable[[], dict[str, dict[str, BreakerState]]] = dict
    failures: int = 0
    routes: dict[int, Route] = field(default_factory=dict)
    topics: dict[str, tuple[int, int]] = field(default_factory=dict)  # written to: records, bytes
    committed: dict[Partition, int] = field(default_factory=dict)
    planned: dict[Partition, int] = field(default_factory=dict)  # the end of what Spark has worked through
    ends: dict[Partition, int] = field(default_factory=dict)
    undecided: dict[Partition, int] = field(default_factory=dict)  # records of open transactions and behind them
    target: int = 0  # records to copy when this run began
    copied_to_target: int = 0
    last_commit: float = 0.0
    caught_up_at: float = field(default_factory=time.time)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)
    _marks: deque[tuple[float, int, int]] = field(default_factory=deque, repr=False)

    def begin(self, plan: Plan, epoch: int) -> None:
        with self._lock:
            self.epoch, self.error = epoch, None
            self.routes = {route.number: route for route in plan.routes}
            self.committed = {p: s.position.next for p, s in plan.stretches.items()}
            self.planned = dict(self.committed)
            self.ends = {p: s.end for p, s in plan.stretches.items()}
            self.target = max(self.target, self.copied_to_target + plan.records)
            self.state = "copying"

    def ledger(self, records: int, size: int) -> None:
        """How large the ledger is: at the take-over, and what came since."""
        with self._lock:
            self.ledger_records, self.ledger_bytes = records, size

    def see(self, offsets: Mapping[Partition, Offsets]) -> None:
        """The source's ends as they are now: lag is seen to grow while a mirror waits."""
        with self._lock:
            self.ends |= {partition: log.end for partition, log in offsets.items()}

    def batch(
        self,
        receipts: list[Receipt],
        *,
        ends: dict[Partition, int],
        latest: dict[Partition, int],
        read: int,
        read_bytes: int | None,
        millis: int,
    ) -> None:
        """One micro-batch is done: all of `receipts` are committed and everything before `ends` was worked through."""
        with self._lock:
            self.read += read
            self.read_bytes += sum(receipt.bytes for receipt in receipts) if read_bytes is None else read_bytes
            self.filtered += max(0, read - sum(receipt.records for receipt in receipts))
            self.commit_seconds = max((receipt.commit_millis for receipt in receipts), default=0) / 1000
            self.batches += 1
            self.batch_millis = millis
            for receipt in receipts:
                route = self.routes[receipt.route]
                partition = Partition(route.source, receipt.partition)
                self.committed[partition] = max(receipt.next, self.committed.get(partition, 0))
                self.records += receipt.records
                self.quarantined += receipt.quarantined
                self.bytes += receipt.bytes
                topic = route.source if "{" in route.destination else route.destination  # a demux has a template there
                records, size = self.topics.get(topic, (0, 0))
                self.topics[topic] = records + receipt.records - receipt.quarantined, size + receipt.bytes
            for partition, end in ends.items():
                self.copied_to_target += max(0, end - self.planned.get(partition, end))
                self.planned[partition] = end
            self.ends |= latest
            if receipts:
                self.last_commit = time.time()

    def advanced(self, positions: dict[Partition, int]) -> None:
        with self._lock:
            for partition, to in positions.items():
                self.committed[partition] = max(to, self.committed.get(partition, 0))

    def behind_plan(self) -> dict[Partition, Range]:
        """What was worked through and not copied, from the position on: the driver must move the position past it."""
        with self._lock:
            ends = {p: end for p, end in self.planned.items() if end > self.committed.get(p, end)}
            return {p: Range(self.committed[p], end) for p, end in ends.items()}

    def change(self, state: State, error: BarnabasError | None = None) -> None:
        with self._lock:
            self.state, self.error = state, error
            self.restarts += state == "waiting"
            self.failures += error is not None

    def hold(self, reason: BarnabasError) -> None:
        """Waits for something that is not there yet, which is no failure."""
        with self._lock:
            self.state, self.error = "waiting", reason

    def lag(self) -> int:
        """What has not been worked through: past that, positions follow where nothing was there to copy."""
        with self._lock:
            done = {p: max(at, self.planned.get(p, 0)) for p, at in self.committed.items()}
            return sum(max(0, end - done.get(p, 0)) for p, end in self.ends.items())

    def lag_seconds(self) -> float:
        """How long ago everything that was there had been copied."""
        with self._lock:
            if self.lag() == 0:
                self.caught_up_at = time.time()
            return time.time() - self.caught_up_at

    def rate(self) -> tuple[float, float]:
        """Records and bytes a second over the last seconds."""
        now = time.monotonic()
        with self._lock:
            self._marks.append((now, self.records, self.bytes))
            while self._marks[0][0] < now - RATE_SECONDS and len(self._marks) > 2:
                self._marks.popleft()
            then, records, size = self._marks[0]
            seconds = now - then
            return ((self.records - records) / seconds, (self.bytes - size) / seconds) if seconds > 0 else (0.0, 0.0)

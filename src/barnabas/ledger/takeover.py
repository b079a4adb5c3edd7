"""Taking over a mirror: fence first, then read. The steps are those of DESIGN.md and their order is the point."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.errors import Unavailable
from barnabas.kafka.admin import Admin
from barnabas.kafka.producer import INIT_SECONDS, TransactionalProducer, append
from barnabas.ledger import records
from barnabas.ledger.records import LedgerState
from barnabas.ledger.topic import ledger_partition, read_state
from barnabas.model import Connection

RELEASE_SECONDS = 5.0  # a clean stop is over in ten
MORE_SECONDS = 2.0  # a client's own limit comes first, and says more


@dataclass(frozen=True)
class Epoch:
    """One run's right to write, and the ledger as it was when it began."""

    number: int
    run: str
    state: LedgerState


def take_over(connection: Connection, admin: Admin, topic: str, *, run: str, source_id: str) -> Epoch:
    """Ends every earlier run of the mirror and returns the positions it left."""
    # 1. our epoch is the offset of our epoch record
    (number,) = append(connection, topic, [(records.epoch_key(), records.epoch_value(run, source_id))], once=True)
    # 2. whoever registered before it may still write
    writers = read_state(connection, topic, number, committed=False).writers
    # 3. fence them all (B)
    fence(connection, topic, writers)
    # 4. only now are the positions final, up to the mark as it is now (C)
    mark = admin.high_watermark(ledger_partition(topic))
    return Epoch(number, run, read_state(connection, topic, mark, committed=True))


def fence(connection: Connection, topic: str, writers: Iterable[tuple[str, int]]) -> None:
    """Aborts what the writers left open, fences them, then strikes their registrations out."""
    wanted = list(writers)
    if not wanted:
        return
    _init_all(connection, topic, {transactional_id for transactional_id, _ in wanted}, INIT_SECONDS)
    append(connection, topic, [(records.writer_key(i, epoch), None) for i, epoch in wanted])


def _init_all(connection: Connection, topic: str, ids: set[str], seconds: float) -> None:
    """All at once, in threads that a process which ends does not wait for; raises the first failure."""
    failures: list[BaseException] = []

    def init(transactional_id: str) -> None:
        try:
            TransactionalProducer(connection, transactional_id).init(topic, seconds)
        except BaseException as failure:  # noqa: BLE001 - raised below, in the caller's thread
            failures.append(failure)

    threads = [threading.Thread(target=init, args=(each,), daemon=True) for each in ids]
    for thread in threads:
        thread.start()
    limit = time.monotonic() + seconds + MORE_SECONDS
    for thread in threads:
        thread.join(max(0.0, limit - time.monotonic()))
    if failures:
        raise failures[0]
    if any(thread.is_alive() for thread in threads):
        raise Unavailable(f'cluster "{connection.cluster}": writers of {topic} were not fenced in {seconds:.0f} s')


def release(connection: Connection, admin: Admin, topic: str, epoch: Epoch, *, ends: bool) -> None:
    """When an epoch is over: leaves no open transaction behind, unless a newer run has seen to that already.

    Registrations stay for the next take-over to strike out: a worker that does not know yet that the epoch is over may
    say its own anew, and must be found (B). `ends`: the run is over too, so its sign of life is struck out.
    """
    state = read_state(connection, topic, admin.high_watermark(ledger_partition(topic)), committed=False)
    if state.epoch == epoch.number:
        _init_all(connection, topic, {transactional_id for transactional_id, _ in state.writers}, RELEASE_SECONDS)
        if ends:
            append(connection, topic, [(records.alive_key(), None)])

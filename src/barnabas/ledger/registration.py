"""How a writer gets the right to write: init, register, and look whether a newer epoch stands before it.

One partition has one order: either the next driver reads our registration and fences us, or we read its epoch
record and stop. There is no third case (B).
"""

from __future__ import annotations

from barnabas.errors import Fenced, Unavailable
from barnabas.kafka.producer import TransactionalProducer, append
from barnabas.ledger import records
from barnabas.ledger.topic import read_state
from barnabas.model import Connection, Properties


def opened_writer(
    connection: Connection,
    ledger: str,
    *,
    epoch: int,
    run: str,
    transactional_id: str,
    extra: Properties | None = None,
) -> TransactionalProducer:
    """A producer that may write for `epoch`; Fenced when another run has taken over."""
    producer = TransactionalProducer(connection, transactional_id, extra)
    # 1. whatever this id left open is aborted, whoever held it is fenced
    producer.init(ledger)
    # 2. from here on the next driver will find us; said twice, by a retry, is said once
    registration = records.writer_key(transactional_id, epoch), records.writer_value(run)
    (offset,) = append(connection, ledger, [registration])
    if offset <= epoch:
        raise Unavailable(f"ledger {ledger} is shorter than it was: was it deleted and made anew?")
    # 3. or we find it
    newer = newer_epoch(connection, ledger, epoch + 1, offset)
    if newer is not None:
        raise Fenced(f"ledger {ledger}: epoch {epoch} is over; {newer}")
    return producer


def newer_epoch(connection: Connection, ledger: str, first: int, until: int, *, but: str | None = None) -> str | None:
    """A sentence about the last epoch record in [first, until), or None; also None when the run `but` began it."""
    state = read_state(connection, ledger, until, first=first, committed=False)
    if not state.begun_by_another_than(but):
        return None
    return f"epoch {state.epoch} was begun by {state.epoch_run}: another barnabas runs this mirror now"

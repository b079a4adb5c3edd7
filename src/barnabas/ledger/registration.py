"""How a writer gets the right to write: init, register, and look whether a newer epoch stands before it.

One partition has one order: either the next driver reads our registration and fences us, or we read its epoch
record and stop. There is no third case (B).
"""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError, Message

from barnabas.errors import Fenced, Unavailable
from barnabas.kafka.producer import TransactionalProducer, append
from barnabas.ledger import records
from barnabas.ledger.state import LedgerState
from barnabas.ledger.takeover import begun_by
from barnabas.ledger.topic import read_on
from barnabas.model import Connection, Properties


class LedgerEnd:
    """Where our last record in the ledger stands. A later one at or before it means that the ledger lost its tail."""

    def __init__(self, ledger: str, offset: int) -> None:
        self.ledger = ledger
        self.offset = offset
        self._cut_at: int | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        """The delivery report of each of our records in the ledger."""
        if error is not None:
            return
        at = message.offset()
        if at is None or at <= self.offset:
            self._cut_at = -1 if at is None else at
        else:
            self.offset = at

    def refuse_cut(self) -> None:
        """Raises Unavailable before a commit: who else may write now, this ledger no longer tells."""
        if self._cut_at is not None:
            raise Unavailable(
                f"ledger {self.ledger}: our record got offset {self._cut_at} and the one before it {self.offset}: the "
                f"ledger lost its tail or was made anew"
            )


@dataclass(frozen=True)
class Writer:
    """A producer that may write for an epoch, and where its last record in the ledger stands."""

    producer: TransactionalProducer
    end: LedgerEnd

    def commit(self) -> None:
        self.producer.commit(self.end.refuse_cut)


def opened_writer(
    connection: Connection,
    ledger: str,
    *,
    epoch: int,
    run: str,
    transactional_id: str,
    looked_to: int = 0,
    extra: Properties | None = None,
) -> Writer:
    """A writer for `epoch`; Fenced when another run has taken over.

    `looked_to`: up to here somebody has seen that no newer epoch stands in the ledger.
    """
    producer = TransactionalProducer(connection, transactional_id, extra)
    # 1. whatever this id left open is aborted, whoever held it is fenced
    producer.init(ledger)
    # 2. from here on the next driver will find us; said twice, by a retry, is said once
    registration = records.writer_key(transactional_id, epoch), records.writer_value(run)
    (ours,) = append(connection, ledger, [registration])
    first = max(epoch + 1, looked_to)
    if ours.offset < first:
        raise Unavailable(f"ledger {ledger} is shorter than it was: did it lose its tail, or was it made anew?")
    # 3. or we find it
    state = LedgerState(ledger, epoch, run, read_to=first)
    read_on(connection, state, ours.offset, committed=False)
    if state.epoch != epoch:
        raise Fenced(f"ledger {ledger}: epoch {epoch} is over; {begun_by(state)}")
    return Writer(producer, LedgerEnd(ledger, ours.offset))

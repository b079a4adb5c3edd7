"""Signs of life: how `status` and `position` know that a mirror runs, from any machine.

They are informational. Fencing keeps two runs apart, never a clock. So they are written without waiting; one that a
retry writes twice makes `status` wrong until the next, at worst.
"""

from __future__ import annotations

from barnabas.kafka.producer import append, plain_producer
from barnabas.ledger import records
from barnabas.ledger.state import LedgerState
from barnabas.model import Connection


class SignsOfLife:
    def __init__(self, connection: Connection, ledger: str) -> None:
        self._ledger = ledger
        self._producer = plain_producer(connection)

    def give(self, run: str, epoch: int) -> None:
        self._producer.produce(self._ledger, records.alive_value(run, epoch), records.alive_key(), 0)
        self._producer.poll(0)

    def close(self) -> None:
        """What still arrives after the sign is struck out shows the mirror as running for a moment."""
        self._producer.flush(2)


def give_one(connection: Connection, ledger: str, run: str, epoch: int) -> None:
    """A single sign, by a client of its own: for who waits and keeps none."""
    signs = SignsOfLife(connection, ledger)
    signs.give(run, epoch)
    signs.close()


def runs(connection: Connection, state: LedgerState) -> bool:
    """Whether the mirror runs, by the clock of the broker that stamps the ledger, and not by this machine's."""
    if state.alive is None or not state.alive_by_broker:
        return state.running()
    (barrier,) = append(connection, state.topic, [(records.barrier_key(), None)])
    return state.running(barrier.at)

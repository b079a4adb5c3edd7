"""Follows the end of a ledger while its mirror runs: who has taken over, and how large the ledger has grown."""

from __future__ import annotations

from barnabas.errors import Fenced
from barnabas.kafka.reader import PartitionReader
from barnabas.ledger.takeover import Epoch, begun_by, since
from barnabas.ledger.topic import fold
from barnabas.model import Connection

REPORT_MILLIS = 5_000


class LedgerTail:
    """What was appended since an epoch began. It never waits for a broker, so it holds up no stop."""

    def __init__(self, connection: Connection, epoch: Epoch) -> None:
        self._epoch = epoch
        self._state = since(epoch)
        self._reader = PartitionReader(connection, epoch.state.topic, committed=False, report_millis=REPORT_MILLIS)
        self._reader.follow(epoch.number + 1)

    @property
    def records(self) -> int:
        """Of the whole ledger: those at the take-over, and those since. Compaction removes some of them."""
        return self._epoch.state.read_records + self._reader.records

    @property
    def bytes(self) -> int:
        return self._epoch.state.read_bytes + self._reader.bytes

    def refuse_newer_epoch(self) -> None:
        """Raises Fenced when another run has taken the mirror over, also when nothing flows and no write would fail."""
        fold(self._state, self._reader.arrived())
        if self._state.epoch != self._epoch.number:
            raise Fenced(
                f"ledger {self._state.topic}: epoch {self._epoch.number} is over; {begun_by(self._state)}; "
                f"this run stops: is a second barnabas meant to run?"
            )

    def close(self) -> None:
        self._reader.close()

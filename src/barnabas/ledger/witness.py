"""What this process has seen committed in a ledger: a ledger that later says less has lost records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from barnabas.errors import Refused
from barnabas.ledger.state import LedgerState
from barnabas.model import Partition, Position

MISSED_ANSWERS, MISSED_SECONDS = 3, 10.0


@dataclass
class Witness:
    """What one run knows of its ledger: which topic it is, its own last epoch, positions that are committed."""

    topic_id: str | None = None
    epoch: int | None = None
    positions: Mapping[Partition, Position] = field(default_factory=dict)
    _missed: int = 0  # answers in a row that know no such topic
    _missed_since: float = 0.0

    def is_missing(self, there: bool) -> bool:
        """Whether to ask again, with a new client: one broker that knows no such topic may be behind the others."""
        if there or not self._missed:
            self._missed, self._missed_since = 0, time.monotonic()
        self._missed += not there
        lasting = time.monotonic() - self._missed_since > MISSED_SECONDS and self._missed >= MISSED_ANSWERS
        return not there and not lasting

    def refuse_lost(self, state: LedgerState) -> None:
        """Raises Refused where a position went back (E).

        One of a later epoch is newer, not lost: this run has moved it by `on_loss`. Who moves one by hand begins an
        epoch of his own, which ends this run.
        """
        now = state.positions()
        for partition, seen in sorted(self.positions.items()):
            found = now.get(partition)
            if found is None or _is_older(found, seen):
                raise Refused(
                    f"ledger {state.topic}: {partition} has {f'position {found.next}' if found else 'no position'} and "
                    f"this run saw {seen.next} committed: the ledger lost records, after an unclean election or with a "
                    f"disk; going on would copy records twice: compare the topics at both ends, then `position set`"
                )


def _is_older(found: Position, seen: Position) -> bool:
    return found.topic_id == seen.topic_id and found.epoch <= seen.epoch and found.next < seen.next

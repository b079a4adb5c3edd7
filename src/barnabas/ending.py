"""Why a mirror was refused, left in its ledger: `status` shows it on any machine until the mirror is started again."""

from __future__ import annotations

import logging

from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError, Fenced, Unavailable
from barnabas.kafka.producer import append
from barnabas.ledger import records
from barnabas.ledger.topic import checked
from barnabas.stopping import ended, in_thread
from barnabas.survey import Surveyor

SECONDS = 10.0
LONGEST_REASON = 2000

log = logging.getLogger(__name__)


def note_refusal(configuration: Configuration, mirror: Mirror, run: str, failure: BarnabasError) -> None:
    """As well as it can be done: nothing depends on it, and a cluster that does not answer holds nobody up.

    The end of a run that another one has replaced says nothing of the mirror, which goes on.
    """
    if isinstance(failure, Fenced):
        return
    noting = in_thread(lambda: _note(Surveyor(configuration, mirror), run, str(failure)))
    trouble = noting.exception() if ended(noting, SECONDS) else Unavailable(f"no answer in {SECONDS:.0f} s")
    if trouble is not None:
        log.info("%s: the reason is not in the ledger: %s", mirror.name, trouble)


def _note(surveyor: Surveyor, run: str, reason: str) -> None:
    """Nothing where there is no ledger yet, where it is no ledger, and where another run gives signs of life."""
    topic = surveyor.mirror.ledger_topic
    there = surveyor.destination.topics([topic]).get(topic)
    if there is None:
        return
    checked(surveyor.destination, there)
    state = surveyor.ledger()
    if state is None or (state.running() and state.epoch_run != run):
        return
    end = records.End(run, state.epoch, reason[:LONGEST_REASON])
    append(surveyor.to_destination, topic, [(records.ended_key(), records.ended_value(end))])

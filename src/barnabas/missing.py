"""Topics that are not there: reported once, and refused where a name can only be wrong."""

from __future__ import annotations

import logging

from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import Refused
from barnabas.plan import Plan, Survey
from barnabas.topology import is_written

log = logging.getLogger(__name__)


def told(survey: Survey, before: list[str], configuration: Configuration, mirror: Mirror, *, ends: bool) -> list[str]:
    """Reports which of the named topics are missing, if it did not `before`; Refused for one never seen where a run
    `ends` with what is there.

    Not for one that another mirror makes: its name is right, and perhaps there was nothing to put into it yet.
    """
    absent = [name for name in mirror.select.names if name not in survey.source]
    seen = {partition.topic for partition in survey.ledger.positions()} if survey.ledger and survey.source else ()
    sentence = f'mirror "{mirror.name}": source "{mirror.source}" has no topic {", ".join(absent)}'
    others = configuration.together()
    unknown = [n for n in absent if n not in seen and not is_written(others, (mirror.source, n))]
    if ends and unknown:
        raise Refused(f"{sentence}: is the name right?")
    if survey.source and absent and absent != before:
        log.warning("%s: is the name right, or was it deleted?", sentence)
    return absent if survey.source else []


def tell_gone(mirror: Mirror, plan: Plan) -> None:
    for name in dict.fromkeys(route.destination for route in plan.gone):
        log.warning(
            'mirror "%s": "%s" has no topic %s, to which this mirror has copied: was it deleted, or has `to` changed? '
            "It is made anew and gets what is copied from here on; `position set` brings older records again",
            mirror.name,
            mirror.destination,
            name,
        )

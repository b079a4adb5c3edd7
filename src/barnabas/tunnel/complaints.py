"""Log lines about refused connections: a few for each reason, the others as one number, and nothing that a peer wrote
unescaped."""

import asyncio
import logging

from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.refusals import Reason

LINES = 10  # of one reason, in so many seconds
SECONDS = 60.0

log = logging.getLogger(__name__)


class Complaints:
    """Counts every refusal in the metrics and logs as many as somebody may want to read.

    The lines are counted for each reason: a flood of strangers does not hide the refusal of somebody who has the key.
    """

    def __init__(self, tunnel: str, meter: Meter, verb: str) -> None:
        self._tunnel, self._meter, self._verb = tunnel, meter, verb
        self._seen: dict[Reason, int] = {}

    def refused(self, who: str, reason: Reason, detail: str) -> None:
        self._meter.refused(reason)
        seen = self._seen.get(reason, 0)
        if not seen:
            asyncio.get_running_loop().call_later(SECONDS, self.sum_up, reason)
        self._seen[reason] = seen + 1
        if seen < LINES:
            log.warning('tunnel "%s": %s %s: %s (%s)', self._tunnel, self._verb, who, reason, printable(detail))
        elif seen == LINES:
            log.warning(
                'tunnel "%s": more are %s: %s; the rest of this minute is counted', self._tunnel, self._verb, reason
            )

    def sum_up(self, reason: Reason) -> None:
        """One line about those of a reason that had none; the next of this reason have lines again."""
        more = self._seen.pop(reason, 0) - LINES
        if more > 0:
            log.warning('tunnel "%s": %s %d more in %g s: %s', self._tunnel, self._verb, more, SECONDS, reason)

    def stop(self) -> None:
        for reason in list(self._seen):
            self.sum_up(reason)


def printable(text: str) -> str:
    """What a peer wrote, for a log or a terminal: a line's end or an escape becomes the letters that stand for it."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)

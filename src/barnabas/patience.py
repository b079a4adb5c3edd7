"""How long to wait before the next epoch, and when to give up."""

from __future__ import annotations

import random
import time

from barnabas.errors import AccessDenied, BarnabasError, Unavailable
from barnabas.failures import Unexplained

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
UNEXPLAINED_TRIES = 5
CATCH_UP_SECONDS = 180.0  # a run that shall end gives up after so long without a record
DENIED_SECONDS = 300.0  # secrets and certificates rotate: so long a cluster may refuse to let us in
DENIED_CATCH_UP_SECONDS = 30.0  # the same, for a run that shall end
DENIED_ANEW_SECONDS = 120.0  # after so long without it, it is another rotation


class Patience:
    """Growing, bounded, jittered pauses; short again after an epoch that went well."""

    def __init__(self, *, gives_up: bool) -> None:
        self._gives_up = gives_up
        self._pause = FIRST_PAUSE
        self._unexplained = 0
        self._last_progress = time.monotonic()
        self._denied_first = self._denied_last = -DENIED_ANEW_SECONDS

    def after(self, failure: BarnabasError, *, well: bool) -> float | None:
        """Seconds to wait, or None: trying again will not help."""
        if not isinstance(failure, Unavailable):
            return None
        if well:
            self._pause, self._unexplained, self._last_progress = FIRST_PAUSE, 0, time.monotonic()
            self._denied_last = -DENIED_ANEW_SECONDS
        self._unexplained += isinstance(failure, Unexplained)
        tired = self._gives_up and time.monotonic() - self._last_progress > CATCH_UP_SECONDS
        if tired or self._denied_long(failure) or self._unexplained >= UNEXPLAINED_TRIES:
            return None
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.5)  # noqa: S311 - jitter

    def _denied_long(self, failure: BarnabasError) -> bool:
        """Whether a cluster has refused to let us in for so long that nobody is rotating anything."""
        if not isinstance(failure, AccessDenied):
            return False
        now = time.monotonic()
        if now - self._denied_last >= DENIED_ANEW_SECONDS:
            self._denied_first = now
        self._denied_last = now
        return now - self._denied_first > (DENIED_CATCH_UP_SECONDS if self._gives_up else DENIED_SECONDS)

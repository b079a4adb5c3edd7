"""How long to wait before the next epoch, and when to give up."""

from __future__ import annotations

import random
import time

from barnabas.errors import BarnabasError, Unavailable
from barnabas.failures import Unexplained

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
UNEXPLAINED_TRIES = 5
CATCH_UP_SECONDS = 180.0  # a run that shall end gives up after so long without a record


class Patience:
    """Growing, bounded, jittered pauses; short again after an epoch that went well."""

    def __init__(self, *, gives_up: bool) -> None:
        self._gives_up = gives_up
        self._pause = FIRST_PAUSE
        self._unexplained = 0
        self._last_progress = time.monotonic()

    def after(self, failure: BarnabasError, *, well: bool) -> float | None:
        """Seconds to wait, or None: trying again will not help."""
        if not isinstance(failure, Unavailable):
            return None
        if well:
            self._pause, self._unexplained, self._last_progress = FIRST_PAUSE, 0, time.monotonic()
        self._unexplained += isinstance(failure, Unexplained)
        tired = self._gives_up and time.monotonic() - self._last_progress > CATCH_UP_SECONDS
        if tired or self._unexplained >= UNEXPLAINED_TRIES:
            return None
        pause, self._pause = self._pause, min(self._pause * 2, LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.5)  # noqa: S311 - jitter

"""A circuit breaker: after several failures in a row, stop asking for a while, then ask once.

    closed ──failures in a row──▶ open ──seconds pass──▶ half-open ──success──▶ closed
                                    ▲                        └──────failure──────▶ open

There is one for each registry and operation, so that a registry which still answers reads is read
while registering is broken. While one is open its caller gets `Unavailable` at once: the mirror holds.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from barnabas.errors import Unavailable

State = Literal["closed", "open", "half-open"]
Clock = Callable[[], float]


@dataclass(frozen=True)
class BreakerState:
    """What metrics and `status` show of one breaker."""

    state: State
    failures: int
    opened: int
    last_error: str


class Breaker:
    """Guards one operation of one registry. Thread-safe; `clock` counts seconds and never goes back."""

    def __init__(self, name: str, failures: int, seconds: float, clock: Clock) -> None:
        self.name = name
        self._limit = failures
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._opened = 0
        self._since: float | None = None
        self._probing = False
        self._last_error = ""

    def enter(self) -> None:
        """Ask to go through; raises `Unavailable` while open, and for all but one caller while half-open."""
        with self._lock:
            if self._since is None:
                return
            left = self._since + self._seconds - self._clock()
            if left <= 0 and not self._probing:
                self._probing = True
                return
            raise self._refusal("another call is trying it now" if self._probing else f"asked again in {left:.0f} s")

    def refuse_open(self) -> None:
        """Raises `Unavailable` while open, and does not go through."""
        with self._lock:
            left = self._since + self._seconds - self._clock() if self._since is not None else 0
            if left > 0:
                raise self._refusal(f"asked again in {left:.0f} s")

    def _refusal(self, meanwhile: str) -> Unavailable:
        return Unavailable(
            f"{self.name}: failed {self._failures} times in a row, last with: {self._last_error}; {meanwhile}, "
            "and until it answers the records wait"
        )

    def succeeded(self) -> None:
        """The call that entered came back: close."""
        with self._lock:
            self._failures = 0
            self._since = None
            self._probing = False

    def failed(self, error: str) -> None:
        """The call that entered failed: count it, and open when it was one too many or the probe."""
        with self._lock:
            self._failures += 1
            self._last_error = error
            if self._probing or (self._since is None and self._failures >= self._limit):
                self._since = self._clock()
                self._opened += 1
            self._probing = False

    def snapshot(self) -> BreakerState:
        """The state now; an open breaker whose time is over already counts as half-open."""
        with self._lock:
            state: State = "closed"
            if self._since is not None:
                state = "half-open" if self._clock() >= self._since + self._seconds else "open"
            return BreakerState(state, self._failures, self._opened, self._last_error)

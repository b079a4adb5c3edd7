"""How a command that runs until it is told to stop is told."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

log = logging.getLogger("barnabas")


@contextmanager
def stopped_by_signals() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM ask for a clean stop; a second one ends the process at once."""
    stop = threading.Event()

    def ask(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        log.info("%s: stopping", signal.Signals(number).name)
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

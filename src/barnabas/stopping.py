"""A run that is to stop waits for nobody: what hangs is left to a thread that ends with the process.

A process that is killed leaves no more behind, so whatever such a thread had begun is safe.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from barnabas.errors import Unavailable

Result = TypeVar("Result")

GRACE_SECONDS = 2.0  # for a call that was under way, and for Spark to stop a query
LOOK_SECONDS = 0.1


class Abandoned(Unavailable):
    """A call that did not end although the run is to stop."""


def unless_stopped(call: Callable[[], Result], stop: threading.Event, grace: float = GRACE_SECONDS) -> Result:
    """The call's result. Abandoned when the run is to stop and the call does not end `grace` seconds later."""
    future = in_thread(call)
    while not stop.is_set():
        if ended(future, LOOK_SECONDS):
            return future.result()
    if ended(future, grace):
        return future.result()
    raise Abandoned("the run is to stop, and a cluster does not answer")


def in_thread(call: Callable[[], Result]) -> Future[Result]:
    """The call in a thread of its own, for which no process waits."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - raised to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def ended(future: Future[Result], seconds: float) -> bool:
    """Whether it ends in time, however it ends."""
    return bool(wait([future], seconds).done)

"""The connections that one end has open: their number, their log lines, and their end when the end stops."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from barnabas.config.tunnel import Address
from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.relay import Relay, Why

STOP_SECONDS = 5.0

log = logging.getLogger(__name__)


class Sessions:
    """One task per connection; the length is how many there are."""

    def __init__(self, tunnel: str, meter: Meter) -> None:
        self._tunnel, self._meter = tunnel, meter
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    def begin(self, attending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(attending)
        self._tasks.add(task)
        self._meter.open.inc()
        task.add_done_callback(self._ended)

    async def carry(self, relay: Relay, who: str, target: Address) -> None:
        """Let bytes flow until both sides have finished or one is lost."""
        started = asyncio.get_running_loop().time()
        self._meter.opened(str(target))
        log.info('tunnel "%s": %s opened to %s', self._tunnel, who, target)
        why = Why.STOPPED
        try:
            relay.start()
            why = await asyncio.shield(relay.done)
        finally:
            relay.end(why)
            self._meter.closed(why)
            log.info(
                'tunnel "%s": %s to %s closed after %.1f s, %d bytes into the tunnel, %d out of it: %s',
                *(self._tunnel, who, target, asyncio.get_running_loop().time() - started),
                *(relay.bytes_in, relay.bytes_out, why),
            )

    async def stop(self) -> None:
        """Break off what is open and wait until it is closed."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=STOP_SECONDS)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._meter.open.dec()
        if not task.cancelled() and task.exception():
            log.error(
                'tunnel "%s": a connection failed in a way that is a bug', self._tunnel, exc_info=task.exception()
            )

"""Places for those who have not shown a certificate yet. A newcomer always gets one, at the cost of the oldest."""

import asyncio
import ipaddress
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.tunnel.refusals import Reason, TurnedAway

V6_NETWORK = 64  # the bits of an IPv6 address that one customer of a provider usually holds


class Room:
    """At most `limit` tasks are inside. When it is full, the source that holds most places loses its oldest.

    So a source never loses a place while another one holds more: strangers from a few addresses cannot keep others out.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._inside: dict[str, dict[asyncio.Task[None], None]] = {}
        self._displaced: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return self._count

    @contextmanager
    def place(self, source: str, task: asyncio.Task[None]) -> Iterator[None]:
        """A place for the task while it is in this block; TurnedAway ends the block where a newcomer took the place."""
        if self._count >= self._limit:
            self._displace()
        self._inside.setdefault(source, {})[task] = None
        self._count += 1
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._displaced:
                raise
            task.uncancel()
            raise TurnedAway(
                Reason.DISPLACED, f"of {self._limit} unfinished handshakes the oldest of its source made room"
            ) from None
        finally:
            if task in self._displaced:
                self._displaced.discard(task)
            else:
                self._leave(source, task)

    def _displace(self) -> None:
        source = max(self._inside, key=lambda each: len(self._inside[each]))
        oldest = next(iter(self._inside[source]))
        self._leave(source, oldest)
        self._displaced.add(oldest)
        oldest.cancel()

    def _leave(self, source: str, task: asyncio.Task[None]) -> None:
        del self._inside[source][task]
        if not self._inside[source]:
            del self._inside[source]
        self._count -= 1


def source_of(host: str) -> str:
    """What counts as one source: an IPv4 address, or the network around an IPv6 address."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.version == 4:
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, V6_NETWORK), strict=False))

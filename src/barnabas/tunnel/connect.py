"""The end in the destination network: loopback addresses that lead to the source's brokers.

Every broker of the list that `serve` tells gets a listener, on the loopback address of its host and on its own port.
A Kafka connection made there becomes one TLS connection to `serve`. While `serve` cannot be reached, connections are
reset and Kafka clients try again by themselves; the list is asked for again until it comes. An address that cannot be
listened on is told and tried again with the next list; the others do not wait for it.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial

from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import BarnabasError, ConfigError, Unavailable
from barnabas.tunnel.complaints import Complaints
from barnabas.tunnel.hosts import HostsBlock, mapped
from barnabas.tunnel.keys import Role, load, tls_context
from barnabas.tunnel.link import Link, keep_alive
from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.refusals import Reason, TurnedAway
from barnabas.tunnel.relay import PlainEnd, Relay, Scratch
from barnabas.tunnel.serve import ACCEPT_PAUSE, listen
from barnabas.tunnel.sessions import Sessions
from barnabas.tunnel.targets import Target, loopback_of

FIRST_RETRY_SECONDS = 0.5
LOCK_PAUSE = 0.1
LOCK_SECONDS = 2.0  # for the end: whoever stops it may kill it soon

log = logging.getLogger(__name__)


class TunnelClient:
    """`barnabas tunnel connect`."""

    def __init__(self, name: str, tunnel: Tunnel) -> None:
        self.name, self.tunnel, self.limits = name, tunnel, tunnel.limits
        identity = load(tunnel.key, Role.CONNECT)
        self.meter = Meter(name, Role.CONNECT)
        self.meter.expires.set(identity.expires.timestamp())
        self._scratch = Scratch()
        self.link = Link(name, tunnel.serve.address, tls_context(identity), tunnel.limits, self._scratch)
        self._sessions = Sessions(name, self.meter)
        self._complaints = Complaints(name, self.meter, "reset")
        self._complaint = ""
        self._locked = False
        self._hosts = HostsBlock(name, tunnel.connect.hosts_file, tunnel.connect.loopback)
        self._listeners: dict[Target, tuple[socket.socket, asyncio.Task[None]]] = {}
        self._deaf: dict[Target, str] = {}

    async def run(self, ready: Callable[[], object] | None = None) -> None:
        """Carry connections until cancelled; `ready` is called whenever the list has come and was acted on."""
        failures = 0
        try:
            while True:
                try:
                    self._apply(await self.link.list_targets())
                    await self._name(self.tunnel.connect.refresh_seconds)
                except ConfigError:  # the hosts file: no trying again makes it writable
                    raise
                except BarnabasError as error:
                    wait = min(FIRST_RETRY_SECONDS * 2**failures, self.tunnel.connect.refresh_seconds)
                    failures = min(failures + 1, 10)
                    self._missed(error)
                else:
                    wait, failures = self.tunnel.connect.refresh_seconds, 0
                    self._complaint = ""
                    self.meter.list_current.set(1)
                    if ready:
                        ready()
                await asyncio.sleep(wait)
        finally:
            for target in list(self._listeners):
                self._close(target)
            await self._sessions.stop()
            self._complaints.stop()
            if not await self._unlocked(self._hosts.remove, LOCK_SECONDS):
                log.warning('tunnel "%s": its names stay in the hosts file; the next connect replaces them', self.name)

    def _apply(self, targets: tuple[Target, ...]) -> None:
        """Open a listener for what is new on the list, close that of what has gone; open connections go on."""
        for target in set(self._listeners) - set(targets):
            log.info('tunnel "%s": %s has left the list', self.name, target.address)
            self._close(target)
        for target in sorted(set(targets) - set(self._listeners)):
            self._open(target)
        self._deaf = {target: why for target, why in self._deaf.items() if target in targets}
        self.meter.targets.set(len(targets))
        self.meter.deaf.set(len(self._deaf))

    async def _name(self, seconds: float) -> None:
        """Keep the hosts file current. Connections are carried while somebody's lock on the file is waited for."""
        if self.tunnel.connect.write_hosts:
            names = mapped(self._listeners, self.tunnel.connect.loopback)
            await self._unlocked(partial(self._hosts.write, names), seconds)

    async def _unlocked(self, change: Callable[[], None], seconds: float) -> bool:
        """Change the hosts file as soon as no other process holds a lock on it; False if that takes too long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            try:
                change()
            except Unavailable as error:
                if not self._locked:
                    log.warning("%s; trying again", error)
                self._locked = True
                if loop.time() > until:
                    return False
                await asyncio.sleep(LOCK_PAUSE)
            else:
                self._locked = False
                return True

    def _open(self, target: Target) -> None:
        """Listen for one target; what stands in its way is said once, and tried again with the next list."""
        try:
            local = Address(str(loopback_of(self.tunnel.connect.loopback, target.number)), target.address.port)
            listening = listen(local)
        except BarnabasError as error:
            if self._deaf.get(target) != str(error):
                log.warning("%s; %s cannot be reached from here, trying again", error, target.address)
            self._deaf[target] = str(error)
            return
        self._deaf.pop(target, None)
        log.info('tunnel "%s": %s leads to %s', self.name, local, target.address)
        self._listeners[target] = (listening, asyncio.create_task(self._accept(listening, target.address)))

    def _missed(self, error: BarnabasError) -> None:
        self.meter.list_current.set(0)
        if str(error) != self._complaint:  # once, not at every try
            self._complaint = str(error)
            log.warning("%s; trying again until it works", error)

    def _close(self, target: Target) -> None:
        listening, task = self._listeners.pop(target)
        task.cancel()
        listening.close()

    async def _accept(self, listening: socket.socket, target: Address) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # out of file descriptors, or the client was gone again
                log.warning('tunnel "%s": a connection could not be accepted: %s', self.name, error.strerror)
                await asyncio.sleep(ACCEPT_PAUSE)
                continue
            await asyncio.sleep(0)  # whoever is connected has a turn, however many wait to be
            who = str(Address(address[0], address[1]))
            if len(self._sessions) >= self.limits.connections:
                connection.close()
                self._complaints.refused(
                    who, Reason.LIMIT, f"the limit of {self.limits.connections} connections is reached"
                )
                continue
            self._sessions.begin(self._attend(connection, who, target))

    async def _attend(self, connection: socket.socket, who: str, target: Address) -> None:
        keep_alive(connection, self.limits.keepalive_seconds)
        loop = asyncio.get_running_loop()
        _, plain = await loop.connect_accepted_socket(lambda: PlainEnd(self._scratch), connection)
        try:
            end = await self.link.open(target)
            await self._sessions.carry(Relay(plain, end, self.meter, self.limits.idle_seconds), who, target)
        except BarnabasError as error:
            self._complaints.refused(who, error.reason if isinstance(error, TurnedAway) else Reason.LINK, str(error))
        finally:
            if not plain.closed.done():
                plain.reset()

"""The end inside the source network: lets the right peer in through one port and joins it to brokers on the list.

What happens to a connection that comes in:
1. one over the limit is closed at once;
2. mutual TLS 1.3, within a time limit, and the peer's certificate must be that of `connect`;
3. one request, within a time limit: the list, or a target on the list;
4. the target is dialled, the answer sent, and bytes flow until both sides have finished.
Whoever fails a step is refused and counted; nothing of that touches the connections that others have.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import BarnabasError, ConfigError, Unavailable
from barnabas.tunnel.frames import LONGEST_REQUEST, BadFrame, decode, encode
from barnabas.tunnel.keys import Role, load, peer_name, tls_context
from barnabas.tunnel.link import keep_alive
from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.refusals import Reason, TurnedAway, reason_of
from barnabas.tunnel.relay import PlainEnd, Relay, Scratch, TunnelEnd
from barnabas.tunnel.sessions import Sessions
from barnabas.tunnel.targets import Directory, to_json

BACKLOG = 1024
ACCEPT_PAUSE = 0.1

log = logging.getLogger(__name__)


class TunnelServer:
    """`barnabas tunnel serve`: `settings` reads the cluster's client settings, in librdkafka's names."""

    def __init__(self, name: str, tunnel: Tunnel, settings: Callable[[], Mapping[str, Any]]) -> None:
        self.name, self.tunnel, self.limits = name, tunnel, tunnel.limits
        identity = load(tunnel.key, Role.SERVE)
        self._context = tls_context(identity)
        self.meter = Meter(name, Role.SERVE)
        self.meter.expires.set(identity.expires.timestamp())
        self.directory = Directory(tunnel, settings)
        self._scratch = Scratch()
        self._sessions = Sessions(name, self.meter)
        self._handshakes = 0

    async def run(self, ready: asyncio.Event | None = None) -> None:
        """Serve until cancelled."""
        listening = listen(self.tunnel.serve.listen)
        log.info('tunnel "%s": listening on %s', self.name, self.tunnel.serve.listen)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._follow())
                group.create_task(self._accept(listening))
                if ready:
                    ready.set()
        finally:
            listening.close()
            await self._sessions.stop()

    async def _follow(self) -> None:
        """Keep the list of brokers current; the one place that tries again."""
        while True:
            try:
                await self.directory.refresh()
                self.meter.list_current.set(1)
            except (Unavailable, ConfigError) as error:  # a secret's file may be missing while it is replaced
                self.meter.list_current.set(0)
                log.warning(
                    'tunnel "%s": %s; asking again in %g s', self.name, error, self.tunnel.serve.refresh_seconds
                )
            self.meter.targets.set(len(self.directory.targets))
            await asyncio.sleep(self.tunnel.serve.refresh_seconds)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, address = await loop.sock_accept(listening)
            except OSError as error:  # out of file descriptors, or the peer was gone again: neither may end the service
                log.warning('tunnel "%s": a connection could not be accepted: %s', self.name, error.strerror)
                await asyncio.sleep(ACCEPT_PAUSE)
                continue
            await asyncio.sleep(0)  # whoever is connected has a turn, however many wait to be
            who = str(Address(address[0], address[1]))
            # Counted apart, so that strangers who do not finish their handshake take no place from connections.
            if max(self._handshakes, len(self._sessions) - self._handshakes) >= self.limits.connections:
                connection.close()
                self._turned_away(who, Reason.LIMIT, f"the limit of {self.limits.connections} connections is reached")
                continue
            self._sessions.begin(self._attend(connection, who))

    async def _attend(self, connection: socket.socket, who: str) -> None:
        try:
            end = await self._let_in(connection)
            try:
                await self._answer(end, who)
            except BaseException:
                end.transport.abort()
                raise
        except (BarnabasError, OSError) as error:
            self._turned_away(who, reason_of(error), str(error))

    async def _let_in(self, connection: socket.socket) -> TunnelEnd:
        self._handshakes += 1
        try:
            keep_alive(connection, self.limits.keepalive_seconds)
            _, end = await asyncio.get_running_loop().connect_accepted_socket(
                lambda: TunnelEnd(self._scratch, LONGEST_REQUEST),
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self.limits.handshake_seconds,
                ssl_shutdown_timeout=self.limits.idle_seconds,
            )
        finally:
            self._handshakes -= 1
        secure: ssl.SSLObject = end.transport.get_extra_info("ssl_object")
        if peer_name(secure.getpeercert()) != Role.CONNECT.name_in_certificate:
            end.transport.abort()
            raise TurnedAway(Reason.CERTIFICATE, "the certificate is not the one of connect")
        return end

    async def _answer(self, end: TunnelEnd, who: str) -> None:
        try:
            request = decode(await end.message(self.limits.handshake_seconds))
            if request.get("ask") == "list":
                end.transport.write(encode({"ok": True, "targets": to_json(self.directory.targets)}))
                await end.part(self.limits.handshake_seconds)
                return
            target = self._asked_for(request)
            plain = await self._dial(target)
        except (TurnedAway, BadFrame) as error:
            end.transport.write(encode({"ok": False, "reason": reason_of(error), "detail": str(error)}))
            await end.part(self.limits.handshake_seconds)
            raise
        end.transport.write(encode({"ok": True}))
        await self._sessions.carry(Relay(plain, end, self.meter, self.limits.idle_seconds), who, target)

    def _asked_for(self, request: Mapping[str, Any]) -> Address:
        if request.get("ask") != "open":
            raise TurnedAway(Reason.REQUEST, "the request is neither list nor open")
        try:
            target = Address.parse(str(request.get("target")))
        except ValueError as error:
            raise TurnedAway(Reason.REQUEST, str(error)) from None
        if not self.directory.allows(target):
            raise TurnedAway(Reason.TARGET, f"{target} is not on the list of brokers of this tunnel")
        return target

    async def _dial(self, target: Address) -> PlainEnd:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self.limits.dial_seconds):
                _, plain = await loop.create_connection(lambda: PlainEnd(self._scratch), target.host, target.port)
        except OSError as error:  # a TimeoutError is one
            what = error.strerror or str(error) or f"no answer in {self.limits.dial_seconds:g} s"
            raise TurnedAway(Reason.UNREACHABLE, f"{target} cannot be reached from serve: {what}") from None
        keep_alive(plain.transport.get_extra_info("socket"), self.limits.keepalive_seconds)
        return plain

    def _turned_away(self, who: str, reason: Reason, detail: str) -> None:
        self.meter.refused(reason)
        log.warning('tunnel "%s": refused %s: %s (%s)', self.name, who, reason, detail)


def listen(address: Address) -> socket.socket:
    """A listening socket that asyncio may use; Unavailable says who has the address."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)
    except OSError as error:
        means = "is another program, or another barnabas tunnel, running here?"
        if isinstance(error, PermissionError):
            means = "a port this low is for root, or for a user with CAP_NET_BIND_SERVICE"
        raise Unavailable(f"tunnel: cannot listen on {address}: {error.strerror}; {means}") from None
    listening.setblocking(False)
    return listening

"""The end inside the source network: lets the right peer in through one port and joins it to brokers on the list.

What happens to a connection that comes in:
1. one over the limit of carried connections is closed at once;
2. its first byte must be one of a TLS handshake, within a time limit; until then it costs a file descriptor only;
3. mutual TLS 1.3, within the same limit, and the peer's certificate must be that of `connect`;
4. one request, within a time limit: the list, or a target on the list;
5. the target is dialled, the answer sent, and bytes flow until both sides have finished.
Whoever fails a step is refused and counted; nothing of that touches the connections that others have.

Steps 2 and 3 have places of their own. A newcomer always gets one, and the oldest of the source address that holds most
loses its place. So strangers who do not finish their handshake keep nobody out.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from typing import Any, cast

from barnabas.config.tunnel import Address, Tunnel
from barnabas.errors import BarnabasError, ConfigError, Unavailable
from barnabas.tunnel.complaints import Complaints
from barnabas.tunnel.frames import LONGEST_REQUEST, BadFrame, decode, encode
from barnabas.tunnel.keys import Role, load, peer_name, tls_context
from barnabas.tunnel.link import keep_alive
from barnabas.tunnel.metrics import Meter
from barnabas.tunnel.refusals import Reason, TurnedAway, reason_of
from barnabas.tunnel.relay import PlainEnd, Relay, Scratch, TunnelEnd
from barnabas.tunnel.room import Room, source_of
from barnabas.tunnel.sessions import Sessions
from barnabas.tunnel.targets import Directory, to_json
from barnabas.tunnel.tls import Handshakes

BACKLOG = 1024
ACCEPT_PAUSE = 0.1
UNFINISHED = 1536  # accepted connections without a finished handshake, at most
HANDSHAKES = 1024  # of these have begun one: each needs up to 80 KB
TLS_HANDSHAKE = b"\x16"  # how the first record of a TLS client begins

log = logging.getLogger(__name__)


class TunnelServer:
    """`barnabas tunnel serve`: `settings` reads the cluster's client settings, in librdkafka's names."""

    def __init__(
        self, name: str, tunnel: Tunnel, settings: Callable[[], Mapping[str, Any]], unfinished: int = UNFINISHED
    ) -> None:
        self.name, self.tunnel, self.limits = name, tunnel, tunnel.limits
        identity = load(tunnel.key, Role.SERVE)
        self.meter = Meter(name, Role.SERVE)
        self.meter.expires.set(identity.expires.timestamp())
        self.directory = Directory(tunnel, settings)
        self._scratch = Scratch()
        self._tls = Handshakes(
            tls_context(identity),
            self._scratch,
            longest_message=LONGEST_REQUEST,
            close_seconds=self.limits.idle_seconds,
        )
        self._sessions = Sessions(name, self.meter)
        self._complaints = Complaints(name, self.meter, "refused")
        self._unfinished = Room(unfinished)
        self._handshakes = Room(HANDSHAKES)

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
            self._complaints.stop()

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
            if self._carried >= self.limits.connections:
                connection.close()
                self._complaints.refused(who, Reason.LIMIT, self._full)
                continue
            self._sessions.begin(self._attend(connection, who, source_of(address[0])))

    @property
    def _carried(self) -> int:
        return len(self._sessions) - len(self._unfinished)

    @property
    def _full(self) -> str:
        return f"the limit of {self.limits.connections} connections is reached"

    async def _attend(self, connection: socket.socket, who: str, source: str) -> None:
        try:
            end = await self._let_in(connection, source)
            try:
                await self._answer(end, who)
            except BaseException:
                end.transport.abort()
                raise
        except (BarnabasError, OSError) as error:
            self._complaints.refused(who, reason_of(error), str(error))

    async def _let_in(self, connection: socket.socket, source: str) -> TunnelEnd:
        task, loop = cast("asyncio.Task[None]", asyncio.current_task()), asyncio.get_running_loop()
        until = loop.time() + self.limits.handshake_seconds
        with self._unfinished.place(source, task):
            try:
                async with asyncio.timeout_at(until):
                    await _begins_tls(connection)
                keep_alive(connection, self.limits.keepalive_seconds)
            except TimeoutError:
                connection.close()
                raise TurnedAway(Reason.SLOW, f"sent nothing in {self.limits.handshake_seconds:g} s") from None
            except BaseException:
                connection.close()
                raise
            with self._handshakes.place(source, task):
                end = await self._tls.serve(connection, max(0.001, until - loop.time()))
        secure: ssl.SSLObject = end.transport.get_extra_info("ssl_object")
        if peer_name(secure.getpeercert()) != Role.CONNECT.name_in_certificate:
            end.transport.abort()
            raise TurnedAway(Reason.CERTIFICATE, "the certificate is not the one of connect")
        return end

    async def _answer(self, end: TunnelEnd, who: str) -> None:
        try:
            request = decode(await end.message(self.limits.handshake_seconds))
            if self._carried > self.limits.connections:  # as many as are unfinished may finish at the same time
                raise TurnedAway(Reason.LIMIT, self._full)
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


def _tell(arrived: "asyncio.Future[None]") -> None:
    if not arrived.done():
        arrived.set_result(None)


async def _begins_tls(connection: socket.socket) -> None:
    """Return when the first byte has arrived and is that of a TLS handshake; it is left to be read."""
    loop = asyncio.get_running_loop()
    arrived = loop.create_future()
    loop.add_reader(connection, _tell, arrived)
    try:
        await arrived
    finally:
        loop.remove_reader(connection)
    first = connection.recv(1, socket.MSG_PEEK)
    if not first:
        raise TurnedAway(Reason.HUNG_UP, "hung up before its handshake")
    if first != TLS_HANDSHAKE:
        raise TurnedAway(Reason.NOT_TLS, "its first byte is none of TLS")


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

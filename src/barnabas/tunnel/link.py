"""The TLS connection from connect to serve: how both ends set up their sockets, and how connect asks for something."""

import asyncio
import socket
import ssl
from dataclasses import dataclass, field
from typing import Any

from barnabas.config.tunnel import Address, Limits
from barnabas.errors import Refused, Unavailable
from barnabas.tunnel.complaints import printable
from barnabas.tunnel.frames import LONGEST_ANSWER, decode, encode
from barnabas.tunnel.keys import Role
from barnabas.tunnel.refusals import Reason, TurnedAway, reason_of
from barnabas.tunnel.relay import Scratch, TunnelEnd
from barnabas.tunnel.targets import Target, from_json
from barnabas.tunnel.tls import Handshakes

KEEPALIVE_PROBES = 3
DIALS_AT_ONCE = 64  # all clients come back at once after a break; serve keeps a limited number of handshakes


@dataclass(frozen=True)
class Link:
    """Where the other end is and how to get in."""

    tunnel: str
    address: Address
    context: ssl.SSLContext
    limits: Limits
    scratch: Scratch
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(DIALS_AT_ONCE))

    async def list_targets(self) -> tuple[Target, ...]:
        """Ask serve what it leads to."""
        end, answer = await self._ask({"ask": "list"})
        end.transport.close()
        return from_json(answer.get("targets"))

    async def open(self, target: Address) -> TunnelEnd:
        """A TLS connection that serve has joined to the target."""
        end, _ = await self._ask({"ask": "open", "target": str(target)})
        return end

    async def _ask(self, request: dict[str, Any]) -> tuple[TunnelEnd, dict[str, Any]]:
        end = await self._dial()
        try:
            end.transport.write(encode(request))
            # Serve dials the broker before it answers: allow both ends their time.
            answer = decode(await end.message(self.limits.handshake_seconds + self.limits.dial_seconds))
        except TimeoutError:
            end.transport.abort()
            raise self._unavailable("gave no answer in time; is it overloaded?") from None
        except OSError as error:
            end.transport.abort()
            raise self._refused_by_tls(error) from None
        except BaseException:
            end.transport.abort()
            raise
        if not answer.get("ok"):
            end.transport.close()
            detail = f'tunnel "{self.tunnel}": {self.address} refused: {printable(str(answer.get("detail")))[:300]}'
            raise TurnedAway(_known(answer.get("reason")), detail)
        return end, answer

    async def _dial(self) -> TunnelEnd:
        handshakes = Handshakes(
            self.context, self.scratch, longest_message=LONGEST_ANSWER, close_seconds=self.limits.idle_seconds
        )
        try:
            async with self.turns, asyncio.timeout(self.limits.dial_seconds):
                end = await handshakes.connect(
                    self.address, Role.SERVE.name_in_certificate, self.limits.handshake_seconds
                )
        except ssl.SSLError as error:
            raise self._refused_by_tls(error) from None
        except TimeoutError:
            raise self._unavailable("does not answer; is serve running and the firewall open?") from None
        except ConnectionResetError:
            raise self._unavailable(
                "hung up during the handshake; is it at its limit of connections? see its log"
            ) from None
        except OSError as error:
            what = error.strerror or str(error)
            raise self._unavailable(f"cannot be reached: {what}; is serve running and the firewall open?") from None
        keep_alive(end.transport.get_extra_info("socket"), self.limits.keepalive_seconds)
        return end

    def _unavailable(self, what: str) -> Unavailable:
        return Unavailable(f'tunnel "{self.tunnel}": {self.address} {what}')

    def _refused_by_tls(self, error: OSError) -> Refused | Unavailable:
        """TLS 1.3 tells a client only after its handshake that its certificate was not accepted."""
        if not isinstance(error, ssl.SSLError):
            return self._unavailable("hung up before it answered; see its log for the reason")
        remedy = "copy the same key file to both ends"
        if reason_of(error) is Reason.EXPIRED:
            remedy = "make a new key file with barnabas tunnel keygen and copy it to both ends"
        what = getattr(error, "verify_message", "") or error.reason or "TLS failed"
        text = f'tunnel "{self.tunnel}": {self.address} and this end do not accept each other: {what}; {remedy}'
        return TurnedAway(reason_of(error), text)


def keep_alive(connection: socket.socket, seconds: int) -> None:
    """Notice a dead link within about twice `seconds`, whether or not bytes are under way; small writes go at once."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", seconds),
        ("TCP_KEEPINTVL", max(1, seconds // KEEPALIVE_PROBES)),
        ("TCP_KEEPCNT", KEEPALIVE_PROBES),
        ("TCP_USER_TIMEOUT", 2 * seconds * 1000),
    ):
        if hasattr(socket, name):  # Linux has them all, others some
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _known(reason: object) -> Reason:
    return next((known for known in Reason if known == reason), Reason.REQUEST)

"""Joins a plain TCP connection to a TLS connection of the tunnel and carries bytes both ways.

Why asyncio and not a thread per connection: OpenSSL forbids two threads on one TLS connection, so a thread would poll
like an event loop anyway, and 500 connections would be 500 of them; one loop with 128 KiB steps comes close to stunnel,
which has a thread for each (bench/tunnel.py prints the ratio).

Bounded buffers: a side that does not take its bytes makes the loop stop reading from the other. What can pile up per
connection and process is at most `HELD_AT_MOST`: 512 KiB of TLS records read and not yet decrypted, in each direction
a full write buffer plus one step, and towards TLS the same again as records.
"""

import asyncio
import socket
import struct
from contextlib import suppress
from enum import StrEnum
from typing import cast

from barnabas.tunnel.frames import CHUNK, END, HEADER, BadFrame, Unframer, first_frame
from barnabas.tunnel.metrics import Meter

HELD_AT_MOST = 2 * 1024 * 1024
RECORDS = 256 * 1024  # TLS records of one read
SHORT_FRAME, SHORT_READ = 256, 4096  # where frames are shorter than that, a turn of the loop reads so much
RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Why(StrEnum):
    """Why a joined connection ended, as metrics and logs name it."""

    FINISHED = "finished"
    PLAIN_LOST = "plain_side_lost"
    TUNNEL_LOST = "tunnel_side_lost"
    IDLE = "idle"
    STOPPED = "stopped"
    BROKEN = "broken_frame"


class Scratch:
    """The buffers for all reads of a loop: a read is handed on before the next begins.

    `records` takes TLS records as they arrive. `frame` holds one frame, header included, which is a whole number of
    full TLS records: none is sent for a few bytes, and what the other end reads at once ends where a frame ends.
    """

    def __init__(self) -> None:
        self.frame = memoryview(bytearray(CHUNK))
        self.payload = self.frame[HEADER.size :]
        self.records = memoryview(bytearray(RECORDS))


class End(asyncio.BufferedProtocol):
    """What both ends have in common: a transport, a relay once they are joined, and back-pressure on the other end."""

    def __init__(self, scratch: Scratch) -> None:
        self.scratch = scratch
        self.relay: Relay | None = None
        self._held: set[str] = set()
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=CHUNK)

    def pause_writing(self) -> None:
        if self.relay:
            self.relay.other(self).hold("slow reader")

    def resume_writing(self) -> None:
        if self.relay:
            self.relay.other(self).go_on("slow reader")

    def hold(self, why: str) -> None:
        """Read nothing until every reason for it is gone."""
        self._held.add(why)
        self.transport.pause_reading()

    def go_on(self, why: str) -> None:
        self._held.discard(why)
        if not self._held:
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed.set_result(None)
        if self.relay:
            self.relay.end_lost(self)


class PlainEnd(End):
    """The TCP connection of a Kafka client (at connect) or to a broker (at serve); reads nothing until joined."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.pause_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.scratch.payload

    def buffer_updated(self, nbytes: int) -> None:
        if self.relay:
            self.relay.from_plain(nbytes)

    def eof_received(self) -> bool:
        if self.relay:
            self.relay.plain_ended()
        return True

    def reset(self) -> None:
        """Close so that the other program sees a broken connection, not an end."""
        connection = self.transport.get_extra_info("socket")
        if connection is not None and connection.fileno() >= 0:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self.transport.abort()


class TunnelEnd(End):
    """The TLS connection: one message first, data after it is joined."""

    def __init__(self, scratch: Scratch, longest: int) -> None:
        super().__init__(scratch)
        self._longest = longest
        self._early = bytearray()
        self._message: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._unframer = Unframer()
        self._wasteful = False

    async def message(self, seconds: float) -> bytes:
        """The first frame of the other end; whatever follows waits until it is joined."""
        async with asyncio.timeout(seconds):
            return await self._message

    async def part(self, seconds: float) -> None:
        """Close, once the other end has read what was written and has closed too."""
        self.transport.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.shield(self.closed)  # which is told later, whether or not anybody waits
        self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.scratch.frame[:SHORT_READ] if self._wasteful else self.scratch.frame

    def buffer_updated(self, nbytes: int) -> None:
        if self.relay:
            self.deliver(self.scratch.frame[:nbytes])
            self._give_way(nbytes)
            return
        self._early += self.scratch.frame[:nbytes]
        if self._message.done():
            return
        try:
            message = first_frame(self._early, self._longest)
        except BadFrame as error:
            self._message.set_exception(error)
            self.transport.pause_reading()
            return
        if message is not None:
            self._message.set_result(message)
            self.transport.pause_reading()

    def _give_way(self, nbytes: int) -> None:
        """Tiny frames cost much time and carry little: a peer that sends them reads little at a time, in its turn."""
        self._wasteful = self._unframer.frames * SHORT_FRAME > nbytes + SHORT_READ
        if self._wasteful:
            self.hold("turn")
            asyncio.get_running_loop().call_soon(self.go_on, "turn")

    def deliver_early(self) -> None:
        """What came with or after the first message, once there is somewhere to put it."""
        early, self._early = self._early, bytearray()
        self.deliver(memoryview(early))
        self.go_on("start")

    def deliver(self, data: memoryview) -> None:
        relay = cast(Relay, self.relay)
        try:
            payload = self._unframer.payload(data)
        except BadFrame:
            relay.end(Why.BROKEN)
        else:
            relay.from_tunnel(payload, ended=self._unframer.ended)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._message.done():
            self._message.set_exception(exc or ConnectionResetError("hung up before a message"))
        if not self._message.cancelled():
            self._message.exception()  # taken note of: nobody may be waiting any more
        super().connection_lost(exc)


class Relay:
    """Both ends of one carried connection; `done` is why it ended, once both are closed."""

    def __init__(self, plain: PlainEnd, tunnel: TunnelEnd, meter: Meter, idle_seconds: float) -> None:
        self.plain, self.tunnel, self.meter = plain, tunnel, meter
        self.bytes_in = self.bytes_out = 0
        self._idle_seconds = idle_seconds
        self._loop = asyncio.get_running_loop()
        self._moved = self._loop.time()
        self._sends = self._receives = True
        self._why: Why | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.done: asyncio.Future[Why] = self._loop.create_future()

    def start(self) -> None:
        """Join the ends and let bytes flow."""
        self.plain.relay = self.tunnel.relay = self
        if self.plain.closed.done() or self.tunnel.closed.done():
            self.end_lost(self.plain if self.plain.closed.done() else self.tunnel)
            return
        self._watch()
        self.tunnel.deliver_early()
        self.plain.go_on("start")

    def other(self, end: End) -> End:
        return self.tunnel if end is self.plain else self.plain

    def from_plain(self, nbytes: int) -> None:
        """Put what was read behind a header, in the same buffer, and send both as one frame."""
        self._moved = self._loop.time()
        self.bytes_in += nbytes
        self.meter.bytes_in.inc(nbytes)
        frame = self.plain.scratch.frame
        HEADER.pack_into(frame, 0, nbytes)
        # A copy, because the transport may keep what it cannot send while the buffer is read into again.
        self.tunnel.transport.write(bytes(frame[: HEADER.size + nbytes]))

    def plain_ended(self) -> None:
        if self._sends:  # asyncio tells the end again when reading is resumed after it
            self._sends = False
            self.tunnel.transport.write(END)
            self._finish()

    def from_tunnel(self, payload: bytes, *, ended: bool) -> None:
        """Hand on what one read brought, in one write."""
        if payload:
            self._moved = self._loop.time()
            self.bytes_out += len(payload)
            self.meter.bytes_out.inc(len(payload))
            self.plain.transport.write(payload)
        if ended and self._receives:
            self._receives = False
            self.plain.transport.write_eof()
            self._finish()

    def end_lost(self, end: End) -> None:
        self.end(Why.PLAIN_LOST if end is self.plain else Why.TUNNEL_LOST)
        if self.plain.closed.done() and self.tunnel.closed.done() and not self.done.done():
            self._unwatch()
            self.done.set_result(cast(Why, self._why))

    def end(self, why: Why) -> None:
        """Break both connections off; the first reason stands."""
        if self._why is None:
            self._why = why
            self._break_off()

    def _finish(self) -> None:
        """Both directions have ended: close both, after what is still buffered has gone out.

        TLS closes when both ends have said so, and each says it behind its last byte. So a slow reader's bytes are safe
        as long as nobody loses patience before it: `ssl_shutdown_timeout` is the idle limit, nothing shorter.
        """
        if self._sends or self._receives or self._why is not None:
            return
        self._why = Why.FINISHED
        self.plain.transport.close()
        self.tunnel.transport.close()

    def _break_off(self) -> None:
        self.plain.reset()
        self.tunnel.transport.abort()

    def _watch(self) -> None:
        left = self._moved + self._idle_seconds - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._watch)
            return
        self._why = self._why or Why.IDLE
        self._break_off()

    def _unwatch(self) -> None:
        if self._timer:
            self._timer.cancel()

"""The page that Prometheus asks for metrics: one thread, few connections, and a time limit for each.

Who connects and says nothing costs others nothing: when all places are taken, the connection that has waited longest
for its request makes room. The page has no password, so whoever reaches its port may ask.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from contextlib import suppress

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

PLACES = 64  # connections at a time
REQUEST_SECONDS = 5.0  # for the whole request
ANSWER_SECONDS = 10.0  # to take the answer
LARGEST_REQUEST = 16_384  # bytes
AT_ONCE = 16  # connections that are accepted in a row: more would push out who is just asking
WAITING = 256  # connections that the system holds meanwhile

log = logging.getLogger(__name__)


class MetricsPage:
    """Shows one registry on one port, from a daemon thread, until it is closed."""

    def __init__(self, registry: CollectorRegistry, host: str, port: int) -> None:
        """OSError when the address cannot be listened on."""
        self._registry = registry
        self._asking: dict[asyncio.Task[None], None] = {}  # who has not asked yet, the longest first
        self.connections = 0
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        try:
            listening = socket.create_server(address[:2], family=family, backlog=WAITING)
        except OSError as error:  # Python puts the address behind the system's words
            raise OSError(error.errno, os.strerror(error.errno or 0)) from None
        self.port: int = listening.getsockname()[1]
        self._loop, self._closing = asyncio.new_event_loop(), asyncio.Event()
        self._thread = threading.Thread(target=self._run, args=(listening,), name="metrics-page", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(RuntimeError):  # it is closed already
            self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()

    def _run(self, listening: socket.socket) -> None:
        self._loop.run_until_complete(self._serve(listening))
        self._loop.close()

    async def _serve(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(self._connected, sock=listening, backlog=AT_ONCE, limit=LARGEST_REQUEST)
        listening.listen(WAITING)  # asyncio has one number for both
        async with server:
            await self._closing.wait()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._asking[task] = None
        self.connections += 1
        if self.connections > PLACES and self._asking:
            oldest = next(iter(self._asking))
            del self._asking[oldest]
            oldest.cancel()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
            self._asking.pop(task, None)
            async with asyncio.timeout(ANSWER_SECONDS):
                writer.write(self._answer(request))
                await writer.drain()
                writer.write_eof()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._asking.pop(task, None)
            self.connections -= 1
            writer.close()

    def _answer(self, request: bytes) -> bytes:
        """The whole response. It is made in the loop's thread: one at a time, however many ask."""
        line, _, rest = request.decode("latin-1").partition("\r\n")
        method, _, _ = line.partition(" ")
        if method != "GET":
            return _response("405 Method Not Allowed", "text/plain", b"use GET\n")
        headers = (header.partition(":") for header in rest.split("\r\n"))
        accepted = next((value.strip() for name, _, value in headers if name.lower() == "accept"), "")
        try:
            encoder, kind = choose_encoder(accepted)
            return _response("200 OK", kind, encoder(self._registry))
        except Exception:
            log.exception("the metrics cannot be read")
            return _response("500 Internal Server Error", "text/plain", b"the metrics cannot be read: see the log\n")


def _response(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body

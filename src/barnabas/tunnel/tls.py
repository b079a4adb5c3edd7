"""TLS on asyncio's own protocol, with one read buffer for all connections of a loop.

asyncio gives each TLS connection a read buffer of 256 KiB, also one whose handshake never ends. What is read is handed
on before the next read begins, so one buffer serves all connections. A thousand of them then need 60 MB, not 500.

The name of the protocol's class and of the buffer's two attributes are asyncio's own and not documented; only this file
knows them.
"""

import asyncio
import socket
import ssl
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.config.tunnel import Address
from barnabas.tunnel.relay import Scratch, TunnelEnd


class SharedBufferTls(SSLProtocol):
    """asyncio's TLS protocol, which reads into a buffer that it does not own."""

    max_size = 1  # what asyncio allocates for each connection; the shared buffer takes its place

    def __init__(self, buffer: memoryview, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._ssl_buffer = self._ssl_buffer_view = buffer

    def get_buffer(self, n: int) -> memoryview:
        return self._ssl_buffer_view


class Handshakes:
    """Makes TLS connections of one end: its context, and how long a handshake and a close may last."""

    def __init__(
        self, context: ssl.SSLContext, scratch: Scratch, *, longest_message: int, close_seconds: float
    ) -> None:
        self._context, self._scratch = context, scratch
        self._longest, self._close_seconds = longest_message, close_seconds

    async def serve(self, connection: socket.socket, seconds: float) -> TunnelEnd:
        """The handshake with a client that has been accepted."""
        loop = asyncio.get_running_loop()
        return await self._made(
            lambda factory: loop.connect_accepted_socket(factory, connection), seconds, server_side=True
        )

    async def connect(self, address: Address, name: str, seconds: float) -> TunnelEnd:
        """A connection to a server whose certificate bears this name."""
        loop = asyncio.get_running_loop()
        return await self._made(
            lambda factory: loop.create_connection(factory, address.host, address.port),
            seconds,
            server_side=False,
            server_hostname=name,
        )

    async def _made(
        self,
        connect: Callable[[Callable[[], SSLProtocol]], Awaitable[tuple[asyncio.Transport, SSLProtocol]]],
        seconds: float,
        **side: Any,
    ) -> TunnelEnd:
        loop = asyncio.get_running_loop()
        end, finished = TunnelEnd(self._scratch, self._longest), loop.create_future()
        transport, _ = await connect(
            lambda: SharedBufferTls(
                self._scratch.records,
                *(loop, end, self._context, finished),
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=self._close_seconds,
                **side,
            )
        )
        try:
            await finished
        except BaseException:
            transport.abort()
            raise
        return end

"""The TLS of the tunnel: one read buffer for all connections, whatever asyncio does for each."""

import asyncio
import socket
import ssl
from pathlib import Path

from barnabas.config.tunnel import Address
from barnabas.tunnel.keys import Role, create, load, tls_context
from barnabas.tunnel.relay import Scratch, TunnelEnd
from barnabas.tunnel.tls import Handshakes, SharedBufferTls


def test_connections_read_into_the_shared_buffer_and_own_none(tmp_path: Path) -> None:
    [key] = create(tmp_path / "key")

    async def scene() -> None:
        scratch = Scratch()
        made = []
        for _ in range(2):
            waiter = asyncio.get_running_loop().create_future()
            end = TunnelEnd(scratch, 100)
            made.append(
                SharedBufferTls(
                    scratch.records, asyncio.get_running_loop(), end, context(key, Role.SERVE), waiter, True
                )
            )
        assert all(each.get_buffer(-1).obj is scratch.records.obj for each in made)
        assert SharedBufferTls.max_size == 1

    asyncio.run(scene())


def context(key: Path, role: Role) -> ssl.SSLContext:
    return tls_context(load(key, role))


def test_two_ends_shake_hands_and_carry_more_than_a_buffer(tmp_path: Path) -> None:
    [key] = create(tmp_path / "key")

    async def scene() -> None:
        def handshakes(role: Role) -> Handshakes:
            return Handshakes(context(key, role), Scratch(), longest_message=1 << 20, close_seconds=5)

        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.setblocking(False)
            address = Address("127.0.0.1", listening.getsockname()[1])
            dialling = asyncio.create_task(handshakes(Role.CONNECT).connect(address, Role.SERVE.name_in_certificate, 5))
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
            server, client = await handshakes(Role.SERVE).serve(connection, 5), await dialling
            client.transport.write(len(message).to_bytes(4, "big") + message)
            assert await server.message(5) == message
            server.transport.abort()
            client.transport.abort()
            await asyncio.wait([server.closed, client.closed])

    message = bytes(range(256)) * 4096
    asyncio.run(scene())

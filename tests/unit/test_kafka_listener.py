"""What is said of a broker's certificate: nothing where the client's settings accept it."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from barnabas.kafka.listener import _refused_certificate
from barnabas.lab.certificates import make_certificates


@pytest.fixture
def misnamed(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """The port of a server whose certificate is of another host, and the authority that signed it."""
    files = make_certificates(tmp_path / "tls", ["elsewhere.example"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.server)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError), context.wrap_socket(server.accept()[0], server_side=True) as link:
                link.recv(1)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1], files.ca
    thread.join(10)


@pytest.mark.parametrize(
    ("settings", "with_ca", "said"),
    [
        ({}, True, "not valid for"),
        ({"ssl.endpoint.identification.algorithm": "https"}, True, "not valid for"),
        ({"ssl.endpoint.identification.algorithm": "none"}, True, None),
        ({"ssl.endpoint.identification.algorithm": "none"}, False, "the authority that signed it"),
        ({"enable.ssl.certificate.verification": "false"}, False, None),
        ({"enable.ssl.certificate.verification": False}, False, None),
    ],
)
def test_a_certificate_is_blamed_only_for_what_the_client_checks(
    misnamed: tuple[int, Path], settings: dict[str, Any], with_ca: bool, said: str | None
) -> None:
    port, ca = misnamed
    found = _refused_certificate({**settings, **({"ssl.ca.location": str(ca)} if with_ca else {})}, ("127.0.0.1", port))
    assert (found is None) if said is None else (said in str(found))

"""A gate before a registry: it can speak TLS, demand credentials, and be shut, as if the registry had been killed."""

import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from barnabas.lab.ports import LOOPBACK, free_ports

PASSED_ON = ("Content-Type", "Accept")
UNAUTHORIZED = b'{"error_code":40101,"message":"Unauthorized"}'
BROKEN = b'{"error_code":50001,"message":"Error in the backend data store"}'
SECONDS = 10


class Gate:
    """Passes requests on to a registry that keeps what it holds while the gate is shut.

    `demands` is the value of the Authorization header that lets a request through, None for no demand; `certificate`
    holds key and certificate in one file, and makes it speak TLS.
    """

    def __init__(self, registry: str, demands: str | None = None, certificate: Path | None = None) -> None:
        there = urlsplit(registry)
        [self._port] = free_ports(1)
        self.url = f"{'https' if certificate else 'http'}://{LOOPBACK}:{self._port}{there.path}"
        self.demands = demands
        self.client = httpx.Client(base_url=f"http://{there.netloc}", timeout=SECONDS, trust_env=False)
        self.is_shut = False
        self.registers = True  # else it answers 500 to whoever registers a schema, and all else is well
        self._certificate = certificate
        self._server: _Server | None = None

    def open(self) -> None:
        self.is_shut = False
        self._server = _Server((LOOPBACK, self._port), _Passage, self)
        if self._certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self._certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def shut(self) -> None:
        """Refuses new connections, and breaks open ones at their next request."""
        self.is_shut = True
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.shut()
        self.client.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], gate: Gate) -> None:
        super().__init__(address, handler)
        self.gate = gate


class _Passage(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _pass(self) -> None:
        gate = self.server.gate
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if gate.is_shut:
            self.close_connection = True
            return
        if gate.demands is not None and self.headers.get("Authorization") != gate.demands:
            self._answer(401, "application/json", UNAUTHORIZED)
            return
        if not gate.registers and self.command == "POST" and self.path.endswith("/versions"):
            self._answer(500, "application/json", BROKEN)
            return
        headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
        answer = gate.client.request(self.command, self.path, content=body, headers=headers)
        self._answer(answer.status_code, answer.headers.get("content-type", "application/json"), answer.content)

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _pass  # noqa: N815 - the names http.server looks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its parameter's name
        """Says nothing."""

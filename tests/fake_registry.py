"""A registry's server that answers whatever a test wants: slowly, wrongly, or as a kind we cannot run here."""

import json
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, Any]


class Server:
    """Answers by method and path, or else from a list, the last one for ever; remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: list[Answer] = [(200, [])]
        self.pages: dict[str, Answer] = {}
        self.asked: list[tuple[str, str, Any, str | None]] = []
        self.drip = 0.0
        self.headers: dict[str, str] = {}
        self.encodings: list[str | None] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                server.asked.append(
                    (self.command, self.path, json.loads(body or "null"), self.headers.get("authorization"))
                )
                server.encodings.append(self.headers.get("accept-encoding"))
                status, content = server.pages.get(f"{self.command} {self.path}") or server.next_answer()
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                for name, value in server.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(ConnectionError):  # a client may have had enough
                    for byte in data if server.drip else [data]:
                        self.wfile.write(bytes([byte]) if isinstance(byte, int) else byte)
                        time.sleep(server.drip)

            do_GET = do_POST = do_PUT = answer  # noqa: N815

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._http.server_port}/api"

    def next_answer(self) -> Answer:
        return self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

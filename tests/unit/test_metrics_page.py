"""The metrics page answers whoever asks, whatever others do to its port."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.error import HTTPError

import pytest
from prometheus_client import CollectorRegistry, Gauge

from barnabas import metrics_page
from barnabas.metrics_page import AT_ONCE, LARGEST_REQUEST, PLACES, MetricsPage
from tests.barnabas_runs import within
from tests.kafka_io import wait_until

SILENT = 1150
SERVE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
from prometheus_client import CollectorRegistry, Gauge
from barnabas.metrics_page import MetricsPage
registry = CollectorRegistry()
Gauge("answer", "of all", registry=registry).set(42)
print(MetricsPage(registry, "127.0.0.1", 0).port, flush=True)
sys.stdin.read()
"""


def asked(port: int, path: str = "/metrics", **headers: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(answer.read().decode())


def closed(connection: socket.socket) -> bool:
    """Waits for the end of a connection on which nothing is said."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    Gauge("answer", "of all", registry=registry).set(42)
    return registry


@pytest.fixture
def page(registry: CollectorRegistry) -> Iterator[MetricsPage]:
    with closing(MetricsPage(registry, "127.0.0.1", 0)) as page:
        yield page


@pytest.fixture
def many_files() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(4 * SILENT, hard)), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_thousand_silent_connections_keep_nobody_from_the_page_and_cost_no_threads(many_files: None) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", SERVE], stdin=-1, stdout=-1, text=True) as process,
        ExitStack() as stack,
    ):
        assert process.stdout is not None
        port = int(process.stdout.readline())
        for _ in range(SILENT):
            silent = stack.enter_context(socket.socket())
            silent.settimeout(10)
            silent.connect(("127.0.0.1", port))
        began = time.monotonic()
        assert "answer 42.0" in asked(port)
        assert time.monotonic() - began < within(5)
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 5
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) < PLACES + 2 * AT_ONCE + 20
        process.communicate(timeout=30)


def test_a_connection_that_does_not_ask_in_time_is_closed(page: MetricsPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "REQUEST_SECONDS", 0.2)
    for begun in (b"", b"GET /metrics HTTP/1.1\r\nHost:"):
        with socket.create_connection(("127.0.0.1", page.port), timeout=10) as slow:
            slow.sendall(begun)
            assert closed(slow)


def test_a_request_that_does_not_end_is_cut_off(page: MetricsPage) -> None:
    with socket.create_connection(("127.0.0.1", page.port), timeout=10) as endless:
        endless.sendall(b"x" * 3 * LARGEST_REQUEST)
        assert closed(endless)


def test_a_reader_who_does_not_read_is_dropped(registry: CollectorRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_page, "ANSWER_SECONDS", 0.2)
    labelled = Gauge("large", "page", ["name"], registry=registry)
    for number in range(100_000):
        labelled.labels(f"{number:060}")
    with closing(MetricsPage(registry, "127.0.0.1", 0)) as page, socket.socket() as idle:
        idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        idle.connect(("127.0.0.1", page.port))
        idle.sendall(b"GET / HTTP/1.1\r\n\r\n")
        wait_until(lambda: page.connections == 0, 30, "the connection to be dropped")


def test_formats_methods_and_paths_are_those_prometheus_knows(page: MetricsPage) -> None:
    assert "# TYPE answer gauge" in asked(page.port, "/")
    assert asked(page.port, Accept="application/openmetrics-text; version=1.0.0").endswith("# EOF\n")
    with pytest.raises(HTTPError, match="405"):
        urllib.request.urlopen(f"http://127.0.0.1:{page.port}/metrics", data=b"x", timeout=10)


def test_a_page_that_is_closed_frees_its_port(registry: CollectorRegistry) -> None:
    with closing(MetricsPage(registry, "127.0.0.1", 0)) as page:
        port = page.port
        with pytest.raises(OSError, match="in use"):
            MetricsPage(registry, "127.0.0.1", port)
    with closing(MetricsPage(registry, "127.0.0.1", port)):
        assert "answer 42.0" in asked(port)


def test_the_page_speaks_ipv6_too(registry: CollectorRegistry) -> None:
    if not Path("/proc/net/if_inet6").read_text():
        pytest.skip("this machine has no IPv6")
    with closing(MetricsPage(registry, "::1", 0)) as page:
        assert "answer 42.0" in urllib.request.urlopen(f"http://[::1]:{page.port}/", timeout=10).read().decode()

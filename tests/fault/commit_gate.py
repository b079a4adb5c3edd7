"""A man in the middle of a broker and its clients, who loses the answers of commits or keeps commits until later."""

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.kafka_io import wait_until

ADD_PARTITIONS_TO_TXN, END_TXN = 24, 26
OURS = b"barnabas."  # what a transactional id of ours begins with
FLEXIBLE = 3  # EndTxn has another shape from this version on


class CommitGate:
    """Listens on `host` for a broker on 127.0.0.1 and the same port, to whose clients it told that name."""

    def __init__(self, host: str, port: int) -> None:
        self.lost = 0
        self.late: list[int] = []  # what the broker answered to each commit that came late: an error code
        self._port = port
        self._to_lose = self._to_hold = False
        self._held: bytes | None = None  # the commit that is on its way
        self._lock = threading.Lock()
        self._server = socket.create_server((host, port))
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_an_answer(self) -> None:
        """The next commit arrives, its answer does not: the connection breaks instead."""
        before, self._to_lose = self.lost, True
        wait_until(lambda: self.lost > before, 120, "a commit's answer to be lost")

    def hold_a_commit(self) -> None:
        """The next commit stays on its way and its connection breaks; it arrives in the writer's next transaction."""
        before, self._to_hold = len(self.late), True
        wait_until(lambda: len(self.late) > before, 120, "a commit to arrive late")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):  # closed: it is over
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """Passes requests on, one by one; answers pass in a thread of their own."""
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._port)) as broker:
            swallowed: set[int] = set()
            threading.Thread(target=self._answer, args=(broker, client, swallowed), daemon=True).start()
            while (request := _frame(client)) is not None:
                kind, _, correlation = struct.unpack_from(">hhi", request)
                if kind == END_TXN and OURS in request:
                    with self._lock:
                        if self._to_hold:
                            self._held, self._to_hold = request, False
                            client.shutdown(socket.SHUT_RDWR)
                            return
                        if self._to_lose:
                            swallowed.add(correlation)
                            self._to_lose = False
                broker.sendall(struct.pack(">i", len(request)) + request)
                if kind == ADD_PARTITIONS_TO_TXN:
                    self._let_it_arrive_in(request)

    def _let_it_arrive_in(self, request: bytes) -> None:
        """Sends the commit that is on its way, if this request begins the next transaction of the same writer."""
        with self._lock:
            held = self._held
            if held is None or _writer_of(held) not in request:
                return
            self._held = None
        with socket.create_connection(("127.0.0.1", self._port)) as broker:
            broker.sendall(struct.pack(">i", len(held)) + held)
            answer = _frame(broker)
        assert answer is not None
        self.late.append(struct.unpack_from(">iih", answer)[2])  # correlation, throttled for, error

    def _answer(self, broker: socket.socket, client: socket.socket, swallowed: set[int]) -> None:
        with suppress(OSError):
            while (answer := _frame(broker)) is not None:
                if struct.unpack_from(">i", answer)[0] in swallowed:
                    self.lost += 1
                    break
                client.sendall(struct.pack(">i", len(answer)) + answer)
        for end in (client, broker):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _writer_of(end_txn: bytes) -> bytes:
    """The transactional id, after the client's name."""
    assert struct.unpack_from(">h", end_txn, 2)[0] < FLEXIBLE
    at = 8
    for _ in range(2):
        (size,) = struct.unpack_from(">h", end_txn, at)
        name, at = end_txn[at + 2 : at + 2 + size], at + 2 + size
    return name


def _frame(end: socket.socket) -> bytes | None:
    """One request or answer without its size; None when the other side has closed."""
    head = _received(end, 4)
    return _received(end, struct.unpack(">i", head)[0]) if head else None


def _received(end: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    while len(data) < size:
        part = end.recv(size - len(data))
        if not part:
            return None
        data += part
    return bytes(data)

"""How late a copy is: records sent at a steady pace, each with its moment, read at the destination as they commit."""

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.contenders import Contender, Errand
from bench.ground import NOT_YET, Ground, create, ends
from bench.processes import Program
from bench.shapes import SHAPES, TAIL_BYTES, tail

RATE = 1_000
PARTITIONS = 4
TICK_SECONDS = 0.01
START_SECONDS = 180.0
TOPIC = "pace"
SHAPE = SHAPES["100B"]


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the call that sends a record to its arrival at a read_committed reader."""

    contender: str
    p50: float = math.nan
    p95: float = math.nan
    p99: float = math.nan
    worst: float = math.nan
    records: int = 0
    cpu_share: float = math.nan  # of one core, meanwhile
    note: str = ""


def measure(errand: Errand, contender: Contender, *, warm_seconds: float, seconds: float) -> Latency:
    """Sends and reads while the contender copies; what was sent before it was warm does not count."""
    ground, copy = errand.ground, contender.copy(TOPIC)
    create(ground.source, TOPIC, PARTITIONS)
    sender, reader = Sender(ground.source.bootstrap), Reader(ground.destination.bootstrap, copy)
    try:
        sender.start()
        with contender.start(errand) as program:
            _wait_for_copy(ground, program, copy)
            reader.start()
            _sleep(program, warm_seconds)
            cpu, began = program.cpu_seconds(), time.time()
            _sleep(program, seconds)
            share = (program.cpu_seconds() - cpu) / (time.time() - began)
            sender.stop()
            _sleep(program, 3)
            reader.stop()
        if reader.failure:
            raise RuntimeError(reader.failure)
        return summary(contender.name, reader.seen, began, began + seconds, share)
    except RuntimeError as error:
        return Latency(contender.name, note=str(error))
    finally:
        sender.stop()
        reader.stop()
        ground.swept()


def summary(name: str, seen: Sequence[tuple[float, float]], began: float, ended: float, share: float) -> Latency:
    """Over the records sent in [began, ended); `seen` has the moments of sending and arrival."""
    late = sorted((arrived - sent) * 1000 for sent, arrived in seen if began <= sent < ended)
    if not late:
        return Latency(name, note="no record arrived")
    p50, p95, p99 = (percentile(late, share) for share in (0.50, 0.95, 0.99))
    return Latency(name, p50, p95, p99, late[-1], len(late), share)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that is not exceeded by this share of all."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


class Sender:
    """Sends RATE records a second, in turn to each partition, and stays behind no more than a tick."""

    def __init__(self, bootstrap: str) -> None:
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, "enable.idempotence": True, "log_level": 0}
        self._producer = Producer(settings)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _send(self) -> None:
        body, sent, began = SHAPE.body(), 0, time.monotonic()
        while not self._done.wait(TICK_SECONDS):
            for number in range(sent, int((time.monotonic() - began) * RATE)):
                moment = time.time_ns().to_bytes(TAIL_BYTES, "big")
                self._producer.produce(TOPIC, body + moment, moment, number % PARTITIONS)
                sent = number + 1
            self._producer.poll(0)
        self._producer.flush(30)


class Reader:
    """Notes when each record was sent and when it arrived."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen: list[tuple[float, float]] = []
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
            "auto.offset.reset": "latest",
            "log_level": 0,
        }
        self._consumer = Consumer(settings)
        self._partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        self.failure = ""
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)

    def start(self) -> None:
        self._consumer.assign(self._partitions)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _read(self) -> None:
        while not self._done.is_set():
            messages = self._consumer.consume(1_000, 0.005)
            arrived = time.time()
            for message in messages:
                error = message.error()
                if error is None:
                    self.seen.append((tail(message.value() or b"") / 1e9, arrived))
                elif error.code() not in NOT_YET:
                    self.failure = f"its copy cannot be read: {error.str()}"
                    return
        self._consumer.close()


def _wait_for_copy(ground: Ground, program: Program, copy: str) -> None:
    admin, deadline = ground.destination.admin(), time.monotonic() + START_SECONDS
    while not all(ends(admin, copy, PARTITIONS)):
        program.refuse_ended()
        if time.monotonic() > deadline:
            raise RuntimeError(f"{program.name}: nothing copied in {START_SECONDS:g} s; it said: {program.said}")
        time.sleep(0.2)


def _sleep(program: Program, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        program.refuse_ended()
        time.sleep(min(0.5, max(0.0, until - time.monotonic())))

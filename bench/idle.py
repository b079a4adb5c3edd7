"""What it costs to wait: 200 topics with 1,000 partitions in all, one in a hundred of which has something to say."""

import threading
import time

from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from bench.contenders import Errand, barnabas_with
from bench.ground import SECONDS, Ground, ends
from bench.processes import Program
from bench.table import rows

TITLE = "Idle"
TOPICS, PARTITIONS = 200, 5
ACTIVE_TOPICS = 2
START_SECONDS = 240.0
SETTLE_SECONDS, MEASURE_SECONDS = 120.0, 60.0  # a JVM with little to do takes long to compile what it does
MOST_START, MOST_SHARE = 60.0, 0.15


def run(ground: Ground) -> str:
    names = [f"idle-{number:03}" for number in range(TOPICS)]
    admin = ground.source.admin()
    wanted = [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
    for future in admin.create_topics(wanted, operation_timeout=SECONDS).values():
        future.result(SECONDS)
    directory = ground.directory / "idle"
    directory.mkdir()
    mirror = {"name": "idle", "from": {"match": "idle-.*"}, "to": "{topic}.copy"}
    done = threading.Event()
    talking = threading.Thread(target=_talk, args=(ground, names[:ACTIVE_TOPICS], done), daemon=True)
    talking.start()
    try:
        with barnabas_with(Errand(ground, "", directory), [mirror]) as program:
            first = _first_record(ground, program, f"{names[0]}.copy")
            time.sleep(SETTLE_SECONDS)
            program.refuse_ended()
            cpu, began = program.cpu_seconds(), time.monotonic()
            time.sleep(MEASURE_SECONDS)
            share = (program.cpu_seconds() - cpu) / (time.monotonic() - began)
            memory = program.memory_bytes()
    except RuntimeError as error:
        return f"{error}\n"
    finally:
        done.set()
        talking.join()
        ground.swept()
    heads = ("1,000 partitions, 10 active", "measured", "at most")
    lines = [
        ["start to first copied record", f"{first:.1f} s", f"{MOST_START:.0f} s"],
        ["CPU of one core, ten records a second", f"{100 * share:.1f} %", f"{100 * MOST_SHARE:.0f} %"],
        ["memory", f"{memory / 1e6:,.0f} MB", "–"],
    ]
    return rows(heads, lines)


def _talk(ground: Ground, topics: list[str], done: threading.Event) -> None:
    """One record a second to each partition of the active topics."""
    producer = Producer({"bootstrap.servers": ground.source.bootstrap, "linger.ms": 0, "log_level": 0})
    while True:
        for topic in topics:
            for partition in range(PARTITIONS):
                producer.produce(topic, b"still here", partition=partition)
        producer.flush(SECONDS)
        if done.wait(1.0):
            return


def _first_record(ground: Ground, program: Program, copy: str) -> float:
    """Seconds from the start of the process to the first committed record."""
    admin = ground.destination.admin()
    while not any(ends(admin, copy, PARTITIONS)):
        program.refuse_ended()
        if time.monotonic() - program.started > START_SECONDS:
            raise RuntimeError(f"idle: no record copied in {START_SECONDS:g} s; it said: {program.said}")
        time.sleep(0.1)
    return time.monotonic() - program.started

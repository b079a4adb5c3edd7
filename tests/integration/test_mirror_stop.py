"""SIGTERM and SIGINT end a run within ten seconds: exit 0, a word about what was copied, and nothing left behind."""

import os
import signal
import time
from pathlib import Path

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, copied, end_of, no_open_transaction, unanswered, within, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce, wait_until

STOP_SECONDS = 10.0


@pytest.mark.parametrize(
    ("number", "group"),
    [
        pytest.param(signal.SIGTERM, False, id="SIGTERM to the process"),
        pytest.param(signal.SIGINT, True, id="Ctrl-C on a terminal, which reaches the whole group"),
        pytest.param(signal.SIGTERM, True, id="SIGTERM to all, as a service manager sends it", marks=pytest.mark.slow),
    ],
)
def test_a_signal_ends_a_run_cleanly_and_leaves_no_transaction_process_or_directory(
    source: KafkaCluster,
    destination: KafkaCluster,
    topic_names: TopicNames,
    tmp_path: Path,
    temporary: Path,
    number: signal.Signals,
    group: bool,
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % 2) for i in range(5000)])
    mirror = {"name": f"m-{topic}", "from": topic, "batch": {"records": 500}}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    with Run(tmp_path, "run", "-c", file, TMPDIR=str(temporary)) as run:
        run.wait_says("copying")
        wait_until(lambda: end_of(destination.bootstrap, topic) > 0, 240, "records at the destination")
        [place] = temporary.glob("barnabas-spark-*")
        assert {path.name.split("-")[0] for path in place.iterdir()} >= {"artifacts", "liblz4"}, "Java's are elsewhere"
        began = time.monotonic()
        run.signal(number, group=group)
        assert run.wait(240) == 0, run.messages
        took = time.monotonic() - began
        wait_until(lambda: not run.processes(), within(5), f"every process of the run to be gone: {run.processes()}")
    assert took < within(STOP_SECONDS)
    assert f"m-{topic}: stopped, copied " in run.output
    assert "Traceback" not in run.messages
    assert no_open_transaction(destination.bootstrap, topic, f"_barnabas.m-{topic}")
    # locks of writers' slots stay: to remove a lock file is to let two processes hold it
    left = {path.name for path in temporary.iterdir() if path.is_dir()} - {f"barnabas-{os.getuid()}"}
    assert not left
    with Run(tmp_path, "run", "-c", file, "--until-caught-up") as again:
        assert again.wait() == 0, again.messages
    assert copied(source.bootstrap, destination.bootstrap, topic) == 5000


@pytest.mark.parametrize("frozen", [pytest.param("source", marks=pytest.mark.slow), "destination"])
def test_a_stop_takes_less_than_ten_seconds_while_a_broker_hangs(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path, frozen: str
) -> None:
    topic = topic_names("hanging")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % 2) for i in range(100)])
    mirror = {"name": f"m-{topic}", "from": topic}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    broker = {"source": source, "destination": destination}[frozen]
    pid, port = broker.pids[0], broker.ports[0]
    assert pid is not None
    with Run(tmp_path, "run", "-c", file) as run:
        run.wait_says("copying")
        wait_until(lambda: end_of(destination.bootstrap, topic) > 0, 240, "records at the destination")
        os.kill(pid, signal.SIGSTOP)
        try:
            # Spark's or the ledger's consumer is one, the driver's own look is another
            wait_until(lambda: unanswered(port) >= 2, 60, "the driver to wait for an answer")
            began = time.monotonic()
            run.signal(signal.SIGTERM)
            assert run.wait(240) == 0, run.messages
            took = time.monotonic() - began
        finally:
            os.kill(pid, signal.SIGCONT)
            broker.wait_until_up()
    assert took < within(STOP_SECONDS), run.messages
    assert f"m-{topic}: stopped, copied " in run.output
    assert "Traceback" not in run.messages

"""A mirror that may not go on stops alone and says where, what and what to do; the others go on; exit 1."""

import json
import socket
from pathlib import Path
from typing import Any

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import copied, ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, produce


def test_refused_mirrors_stop_alone_with_a_reason_the_others_finish_and_the_exit_code_is_1(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("orders")
    create_topic(source.bootstrap, topic, partitions=2)
    produce(source.bootstrap, topic, [Record(b"k", b"%d" % i, (), 1000, i % 2) for i in range(200)])
    names = ("good", "missing", "fewer", "deleting", "two", "stranger", "newer", "absent", "misspelt")
    mirrors: list[dict[str, Any]] = [
        {"name": f"{name}-{topic}", "from": topic, "to": f"{{topic}}.{name}"} for name in names
    ]
    by_name = dict(zip(names, mirrors, strict=True))
    ledger = {name: f"_barnabas.{name}-{topic}" for name in names}

    by_name["missing"]["topics"] = {"create": False}
    by_name["absent"]["from"] = topic_names("absent")
    by_name["misspelt"]["from"] = [topic, f"{topic}s"]
    create_topic(destination.bootstrap, f"{topic}.fewer", partitions=1)
    create_topic(destination.bootstrap, ledger["deleting"])
    create_topic(destination.bootstrap, ledger["two"], partitions=2, cleanup_policy="compact")
    create_topic(destination.bootstrap, ledger["stranger"], cleanup_policy="compact")
    produce(
        destination.bootstrap, ledger["stranger"], [Record(b"x", b"", (), 1000), Record(b"hello", b"you", (), 1000)]
    )
    create_topic(destination.bootstrap, ledger["newer"], cleanup_policy="compact")
    key, value = {"kind": "epoch"}, {"version": 99, "run": "a newer one", "source_cluster": "x", "at": 1}
    produce(destination.bootstrap, ledger["newer"], [Record(json.dumps(key).encode(), json.dumps(value).encode())])

    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)
    code, run = ran(tmp_path, "run", "-c", file, "--until-caught-up")
    assert code == 1
    assert copied(source.bootstrap, destination.bootstrap, topic, f"{topic}.good") == 200
    assert f"good-{topic}: done, copied 200 records" in run.output

    said = {name: [line for line in run.messages.splitlines() if line.startswith("barnabas: ")] for name in names}
    expected = {
        "missing": (f"{topic}.missing", "topics.create", "at least 2 partitions"),
        "fewer": (f"{topic}.fewer", "1 partitions", "2"),
        "deleting": (ledger["deleting"], "cleanup.policy=delete"),
        "two": (ledger["two"], "2 partitions"),
        "stranger": (ledger["stranger"], "offset 0", "somebody else"),
        "newer": (ledger["newer"], "offset 0", "version 99", "upgrade"),
        "absent": (str(by_name["absent"]["from"]), "no topic"),
        "misspelt": (f"no topic {topic}s: is the name right?",),
    }
    for name, words in expected.items():
        assert any(all(word in line for word in words) for line in said[name]), (name, words, run.messages)
        assert f"{name}-{topic}: refused" in run.output
    assert "Traceback" not in run.messages


def test_a_metrics_port_that_is_taken_ends_a_run_before_it_takes_over_anything(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, tmp_path: Path
) -> None:
    topic = topic_names("metered")
    create_topic(source.bootstrap, topic)
    mirrors = [{"name": f"metered-{topic}", "from": topic}]
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file.write_text(f"{file.read_text()}metrics: {{prometheus: {{port: {port}}}}}\n")
        code, run = ran(tmp_path, "run", "-c", file, "--until-caught-up")
    assert code == 1
    assert f"barnabas: metrics: cannot listen on 127.0.0.1:{port}: Address already in use: choose" in run.messages
    assert "Traceback" not in run.messages
    assert not {topic, f"_barnabas.metered-{topic}"} & set(destination.admin().list_topics(timeout=30).topics)

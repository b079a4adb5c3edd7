"""`status`, `plan` and `check`: right from any machine, writing nothing, telling no secret; and every exit code."""

from pathlib import Path
from typing import Any

import pytest

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import ran, write_configuration
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, ends, produce
from tests.replicator_host import Host

pytest_plugins = ["tests.hosted"]


def topics_of(*clusters: KafkaCluster) -> dict[str, Any]:
    """Every topic of the clusters and the ends of all their partitions."""
    return {
        f"{cluster.name}/{topic}": ends(cluster.bootstrap, topic)
        for cluster in clusters
        for topic in cluster.admin().list_topics(timeout=30).topics
        if not topic.startswith("__")
    }


def test_status_and_plan_tell_position_lag_and_bytes_from_an_empty_home_and_write_nothing(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topic, fresh, absent = topic_names("orders"), topic_names("fresh"), topic_names("absent")
    create_topic(source.bootstrap, topic, partitions=2, retention_ms="-1")
    create_topic(source.bootstrap, fresh, partitions=3, max_message_bytes="2000000", cleanup_policy="compact")
    produce(source.bootstrap, topic, [Record(b"key", b"v" * 97, (), 1000, i % 2) for i in range(300)])
    mirror = {"name": f"m-{topic}", "from": topic}
    host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    produce(source.bootstrap, topic, [Record(b"key", b"v" * 97, (), 1000)] * 40)
    produce(source.bootstrap, fresh, [Record(b"key", b"v" * 197, (), 1000, 2)] * 7)
    other = {"name": f"m-{fresh}", "from": [fresh, absent], "to": "{topic}.copy"}
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror, other])
    home = {"HOME": str(tmp_path / "empty"), "TMPDIR": str(tmp_path)}
    (tmp_path / "empty").mkdir()
    before = topics_of(source, destination)

    code, status = ran(tmp_path, "status", "-c", file, "--format", "json", **home)
    assert code == 0, status.messages
    old, new = status.answer()["mirrors"]
    assert (old["name"], old["lag"], old["ledger"]) == (f"m-{topic}", 40, f"_barnabas.m-{topic}")
    assert [(p["partition"], p["position"], p["end"], p["lag"]) for p in old["partitions"]] == [
        (0, 150, 190, 40),
        (1, 150, 150, 0),
    ]
    assert all(0 <= p["age_seconds"] < 600 for p in old["partitions"])
    assert (new["lag"], new["epoch"]) == (7, None), "never run: everything is still to do"

    code, plan = ran(tmp_path, "plan", "-c", file, "--format", "json", **home)
    assert code == 0, plan.messages
    old, new = plan.answer()["mirrors"]
    assert (old["records"], old["bytes"], old["create"]) == (40, 4000, [])
    assert [(p["position"], p["from_ledger"], p["records"]) for p in old["partitions"]] == [
        (150, True, 40),
        (150, True, 0),
    ]
    assert (new["records"], new["bytes"], new["absent"]) == (7, 1400, [absent])
    (made,) = new["create"]
    assert (made["topic"], made["partitions"], made["replication"]) == (f"{fresh}.copy", 3, 1)
    assert made["settings"].items() >= {"cleanup.policy": "compact", "max.message.bytes": "2000000"}.items()

    for command in ("status", "plan"):
        code, table = ran(tmp_path, command, "-c", file, **home)
        assert code == 0 and topic in table.output
    assert topics_of(source, destination) == before
    assert list((tmp_path / "empty").iterdir()) == []


def test_check_shows_where_secrets_come_from_and_never_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from-a-file-3141")
    (tmp_path / "c.yaml").write_text(
        "clusters:\n"
        "  a: {bootstrap: a:9092, sasl: {mechanism: PLAIN, username: me, password: env:SECRET_OF_A}}\n"
        f"  b: {{bootstrap: b:9092, sasl: {{mechanism: PLAIN, username: me, password: file:{tmp_path}/password}}}}\n"
        "groups: [{name: g, source: a, destination: b, mirrors: [{name: m, from: orders}]}]\n"
    )
    for form in ("table", "json"):
        code, check = ran(tmp_path, "check", "-c", "c.yaml", "--format", form, SECRET_OF_A="from-outside-2718")
        assert code == 0, check.messages
        assert "env:SECRET_OF_A" in check.output
        for secret in ("from-outside-2718", "from-a-file-3141"):
            assert secret not in check.output + check.messages
    code, check = ran(tmp_path, "check", "-c", "c.yaml")
    assert code == 2
    assert "c.yaml:2" in check.messages and "SECRET_OF_A is not set" in check.messages


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--version"], 0, ""),
        (["no-such-command"], 2, "no-such-command"),
        (["run", "-c", "no-such-file.yaml"], 2, "no-such-file.yaml"),
        (["status"], 2, "-c FILE"),
        (["plan", "-c", "c.yaml", "--mirror", "ordres"], 2, 'did you mean "orders"'),
        (["check", "-c", "wrong.yaml"], 2, "wrong.yaml:3"),
    ],
)
def test_the_exit_code_says_whether_the_work_failed_or_the_question_was_wrong(
    arguments: list[str], code: int, words: str, tmp_path: Path
) -> None:
    write_configuration(tmp_path / "c.yaml", "127.0.0.1:1", "127.0.0.1:2", [{"name": "orders", "from": "orders"}])
    (tmp_path / "wrong.yaml").write_text(
        "clusters:\n  a: {bootstrap: a:9092}\n  b: {bootstrap: a:high}\ngroups: [{}]\n"
    )
    found, run = ran(tmp_path, *arguments)
    assert found == code, run.messages
    assert words in run.messages
    assert "Traceback" not in run.messages

"""`status` where positions alone would tell a wrong lag: topics made anew, and sources that are held back."""

import time
from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import count_of, ran, write_configuration
from tests.conftest import TopicNames
from tests.integration.test_mirror_loss import remake
from tests.kafka_io import Record, create_topic, produce
from tests.replicator_host import Host
from tests.transactions import Transaction

pytest_plugins = ["tests.hosted"]


def test_a_topic_made_anew_with_fewer_records_and_one_held_back_by_a_transaction_are_shown_as_they_are(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    anew, held = topic_names("anew"), topic_names("held")
    began = int(time.time() * 1000) - 60_000
    for topic in (anew, held):
        create_topic(source.bootstrap, topic)
        produce(source.bootstrap, topic, [Record(b"k", b"old", (), began)] * 100)
    mirrors = [{"name": f"m-{anew}", "from": anew}, {"name": f"m-{held}", "from": held}]
    run = host.start(source.bootstrap, destination.bootstrap, mirrors[1:])
    host.catch_up(source.bootstrap, destination.bootstrap, mirrors[0])
    remake(source, anew)
    produce(source.bootstrap, anew, [Record(b"k", b"new", (), began)] * 60)
    run.wait_until(lambda: count_of(destination.bootstrap, held) == 100, 240, "the run to copy")
    transaction = Transaction(source.bootstrap, held).write(held, [Record(b"k", b"open", (), began)] * 40)
    produce(source.bootstrap, held, [Record(b"k", b"behind", (), began)] * 10)
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, mirrors)

    code, status = ran(tmp_path, "status", "-c", file, "--format", "json")
    assert code == 0, status.messages
    first, second = status.answer()["mirrors"]
    (partition,) = first["partitions"]
    assert (first["lag"], partition["position"], partition["end"]) == (60, 100, 60), "none of the 60 is copied"
    assert partition["next_run"].startswith("stops: ") and "made anew" in partition["next_run"]
    (partition,) = second["partitions"]
    assert (second["lag"], second["undecided"], partition["end"]) == (0, 50, 100)
    assert (partition["undecided"], partition["undecided_since"]) == (50, began)
    code, table = ran(tmp_path, "status", "-c", file)
    assert code == 0 and "lag 60" in table.output and "lag 0, 50 undecided" in table.output
    assert f"next run: {anew}-0: stops: " in table.output
    assert f"open transaction: {held}-0 is held back at offset 100, whose timestamp is" in table.output

    assert run.stop()[f"m-{held}"]["undecided"] == 50, "as the metric has it"
    transaction.abort()


def test_why_a_mirror_was_refused_is_shown_on_any_machine_until_it_is_started_again(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    topic = topic_names("refused")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, [Record(b"k", b"old", (), 1000)] * 10)
    mirror = {"name": f"m-{topic}", "from": topic}
    host.catch_up(source.bootstrap, destination.bootstrap, mirror)
    remake(source, topic)
    produce(source.bootstrap, topic, [Record(b"k", b"new", (), 1000)] * 5)
    file = write_configuration(tmp_path / "c.yaml", source.bootstrap, destination.bootstrap, [mirror])
    home = {"HOME": str(tmp_path / "elsewhere"), "TMPDIR": str(tmp_path)}

    def shown() -> object:
        code, status = ran(tmp_path, "status", "-c", file, "--format", "json", **home)
        assert code == 0, "a mirror that was refused is no failure of `status`"
        return status.answer()["mirrors"][0]["refused"]

    assert shown() is None
    ended = host.catch_up(source.bootstrap, destination.bootstrap, mirror)[mirror["name"]]
    assert ended["state"] == "refused"
    refused = shown()
    assert isinstance(refused, dict) and refused["reason"] == ended["error"] and "made anew" in refused["reason"]
    code, table = ran(tmp_path, "status", "-c", file, **home)
    assert code == 0 and "  refused at 2" in table.output and ended["error"] in table.output

    going_on = {**mirror, "on_loss": "record"}
    assert host.catch_up(source.bootstrap, destination.bootstrap, going_on)[mirror["name"]]["state"] == "done"
    assert shown() is None

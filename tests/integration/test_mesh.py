"""Clusters that copy each to each with `provenance: direct`: every record is everywhere, once."""

from pathlib import Path

import pytest

from barnabas.lab.cluster import KafkaCluster
from barnabas.provenance import ORIGIN
from tests.barnabas_runs import Run, ran
from tests.conftest import TopicNames
from tests.kafka_io import Record, produce, read_all, wait_until
from tests.meshes import Born, born, clusters_of, create_everywhere, differences, mesh_file, wait_for_all
from tests.replicator_host import Host, HostedRun

pytest_plugins = ["tests.hosted"]

WAVES, WAVE = 3, 1_000
ROUNDS = 200_000  # numbers of hosted runs that no other test has


def hosted(host: Host, file: Path, number: int, *, until_caught_up: bool = False) -> HostedRun:
    host.order({"id": number, "configuration": str(file), "until_caught_up": until_caught_up})
    return HostedRun(host, number)


def handed_on(cluster: KafkaCluster, topic: str, to: str) -> list[Record]:
    """What an application writes that reads a topic, changes values and hands on keys and headers, stamps and all."""
    read = [r._replace(value=b"%s!" % r.value, offset=-1) for r in read_all(cluster.bootstrap, topic) if r.value]
    assert any(name == ORIGIN for record in read for name, _ in record.headers)
    produce(cluster.bootstrap, to, read)
    return read


def test_in_a_mesh_of_three_every_record_is_everywhere_once_and_so_is_what_applications_make_of_copies(
    source: KafkaCluster, destination: KafkaCluster, topic_names: TopicNames, host: Host, tmp_path: Path
) -> None:
    orders, enriched = topic_names("orders"), topic_names("enriched")
    with clusters_of(tmp_path, ["third"]) as more:
        clusters = {"source": source, "destination": destination, **more}
        create_everywhere(clusters, orders, enriched)
        file = mesh_file(tmp_path / "mesh.yaml", clusters, [orders, enriched], mark=orders)
        everywhere: Born = {name: born(name, range(WAVES * WAVE)) for name in clusters}
        run = hosted(host, file, ROUNDS)
        for wave in range(WAVES):
            for name, cluster in clusters.items():
                produce(cluster.bootstrap, orders, everywhere[name][wave * WAVE : (wave + 1) * WAVE])
        wait_for_all(clusters, orders, 3 * WAVES * WAVE, lambda done, what: run.wait_until(done, 180, what))
        derived: Born = {"third": handed_on(clusters["third"], orders, enriched)}
        wait_for_all(clusters, enriched, 3 * WAVES * WAVE, lambda done, what: run.wait_until(done, 180, what))
        assert {mirror["state"] for mirror in run.stop().values()} == {"stopped"}
        again = hosted(host, file, ROUNDS + 1, until_caught_up=True).wait()
        assert {mirror["records"] for mirror in again.values()} == {0}, "copies of copies"
        for name, cluster in clusters.items():
            assert differences(cluster, name, orders, everywhere) == []
            assert differences(cluster, name, enriched, derived) == []


def test_a_mesh_that_would_double_every_record_is_refused_before_anything_is_copied(tmp_path: Path) -> None:
    clusters = "clusters: {a: {bootstrap: 'a:1'}, b: {bootstrap: 'b:1'}, c: {bootstrap: 'c:1'}}\n"
    links = ", ".join(
        f"{{name: {a}-{b}, source: {a}, destination: {b}, from: orders}}" for a in "abc" for b in "abc" if a != b
    )
    for mode, wanted in (("true", 2), ("direct", 0)):
        file = tmp_path / f"{mode}.yaml"
        file.write_text(f"{clusters}groups: [{{name: m, merge: true, provenance: {mode}, mirrors: [{links}]}}]")
        code, run = ran(tmp_path, "check", "-c", file)
        assert code == wanted, run.messages
        assert ("every record would be there twice" in run.messages) == (wanted == 2)


@pytest.mark.slow
@pytest.mark.parametrize(("names", "records"), [("abc", 100_000), ("abcde", 20_000)])
def test_in_a_large_mesh_every_record_is_everywhere_once(names: str, records: int, tmp_path: Path) -> None:
    """Half of the records are there when the mirrors begin, the others come while they copy."""
    everywhere: Born = {name: born(name, range(records)) for name in names}
    with clusters_of(tmp_path / "lab", names) as clusters:
        create_everywhere(clusters, "orders")
        for name, cluster in clusters.items():
            produce(cluster.bootstrap, "orders", everywhere[name][: records // 2])
        file = mesh_file(tmp_path / "mesh.yaml", clusters, ["orders"])
        with Run(tmp_path, "run", "-c", file) as run:
            for name, cluster in clusters.items():
                produce(cluster.bootstrap, "orders", everywhere[name][records // 2 :])
            wait_for_all(
                clusters,
                "orders",
                records * len(names),
                lambda done, what: wait_until(lambda: run.ended or done(), 600, what),
            )
            assert not run.ended, run.messages
        code, last = ran(tmp_path, "run", "-c", file, "--until-caught-up")
        assert code == 0, last.messages
        print(last.output)
        assert last.output.count("copied 0 records") == len(names) * (len(names) - 1), "copies of copies"
        for name, cluster in clusters.items():
            assert differences(cluster, name, "orders", everywhere) == []
            print(f"{name}: {records * len(names):,} records compared, every one there once")

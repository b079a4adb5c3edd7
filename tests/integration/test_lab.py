"""The lab is real, keeps to its security, survives a broker's death, and leaves nothing running."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from barnabas.config.load import load
from barnabas.errors import Refused, Unavailable
from barnabas.lab import lab
from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.process import recorded
from barnabas.lab.registry import Registry
from barnabas.lab.security import Mechanism, Protocol, Security
from tests.conftest import TopicNames
from tests.kafka_io import Record, create_topic, ends, produce, read_all, settings, wait_until

USERS = {"klamm": 'sec"ret\\', "frieda": "inn"}
RECORDS = [
    Record(b"key", b"value", (("a", b"1"), ("a", b"2"), ("b", None)), 1_700_000_000_000, 0),
    Record(None, b"", (), 1_700_000_000_001, 1),
    Record(b"", None, (), 1_700_000_000_002, 1),
]


def read_back(cluster: KafkaCluster, user: str | None = None) -> None:
    """Writes records as a client with the cluster's own settings and reads the same."""
    where = cluster.client_settings(user)
    topic = f"letters-{user}"
    create_topic(where, topic, 2)
    produce(where, topic, RECORDS)
    assert [record._replace(offset=-1) for record in read_all(where, topic)] == RECORDS


def refusals(where: dict[str, str]) -> set[int]:
    """The codes of the errors that a client with these settings meets until it is refused for good."""
    codes: set[int] = set()
    producer = Producer({**settings(where), "error_cb": lambda error: codes.add(error.code())})

    def refused() -> bool:
        producer.poll(0.1)
        return bool(codes & {KafkaError._AUTHENTICATION, KafkaError._SSL})

    wait_until(refused, 20, f"a refusal, not {codes}")
    return codes


@pytest.fixture
def directory(lab_directory: Path, tmp_path: Path) -> Iterator[Path]:
    """A place for a lab of a test's own, down again after the test."""
    place = lab_directory / tmp_path.name
    yield place
    lab.down(place)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [
        (Protocol.SASL_PLAINTEXT, Mechanism.PLAIN),
        pytest.param(Protocol.SASL_PLAINTEXT, Mechanism.SCRAM_SHA_256, marks=pytest.mark.slow),
        pytest.param(Protocol.SASL_SSL, Mechanism.PLAIN, marks=pytest.mark.slow),
        (Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512),
    ],
)
def test_users_come_in_with_their_password_only_and_it_can_change(
    lab_directory: Path, protocol: Protocol, mechanism: Mechanism
) -> None:
    name = f"{protocol}-{mechanism}".lower()
    with KafkaCluster(lab_directory, name, security=Security(protocol, mechanism, USERS)) as cluster:
        read_back(cluster, "klamm")
        read_back(cluster, "frieda")
        before = cluster.client_settings("frieda")
        assert KafkaError._AUTHENTICATION in refusals({**before, "sasl.password": "wrong"})
        cluster.set_password("frieda", "cottage")
        assert KafkaError._AUTHENTICATION in refusals(before)
        assert read_all(cluster.client_settings("frieda"), "letters-frieda")


def test_tls_is_checked_by_name_and_authority(lab_directory: Path) -> None:
    with KafkaCluster(lab_directory, "tls", security=Security(Protocol.SSL)) as cluster:
        read_back(cluster)
        assert cluster.bootstrap.startswith("localhost:")
        stranger = {key: value for key, value in cluster.client_settings().items() if key != "ssl.ca.location"}
        assert KafkaError._SSL in refusals(stranger)


def test_mutual_tls_asks_for_a_certificate(lab_directory: Path) -> None:
    with KafkaCluster(lab_directory, "mtls", security=Security(Protocol.SSL, mutual_tls=True)) as cluster:
        read_back(cluster)
        hidden = ("ssl.certificate.location", "ssl.key.location")
        anonymous = {key: value for key, value in cluster.client_settings().items() if key not in hidden}
        with pytest.raises(KafkaException):
            AdminClient(settings(anonymous)).list_topics(timeout=3)


def test_brokers_tell_clients_the_names_they_were_given(lab_directory: Path) -> None:
    with KafkaCluster(lab_directory, "named", hosts=["b0.castle.example"]) as cluster:
        told: list[str] = []

        def answered() -> bool:
            """A client may put its question to the name it was just told, which leads nowhere: then a new one asks."""
            try:
                brokers = AdminClient(settings(f"127.0.0.1:{cluster.ports[0]}")).list_topics(timeout=2).brokers
            except KafkaException:
                return False
            told.extend(f"{broker.host}:{broker.port}" for broker in brokers.values())
            return True

        wait_until(answered, 60, "a broker to tell its name")
        assert told == [cluster.bootstrap]
        assert cluster.bootstrap == f"b0.castle.example:{cluster.ports[0]}"


@pytest.mark.slow
def test_three_brokers_serve_with_one_killed_and_take_it_back(lab_directory: Path) -> None:
    with KafkaCluster(lab_directory, "three", brokers=3, heap_megabytes=384) as cluster:
        create_topic(cluster.bootstrap, "letters", 2)
        produce(cluster.bootstrap, "letters", RECORDS)
        cluster.kill_broker(1)
        assert cluster.pids[1] is None
        produce(cluster.bootstrap, "letters", RECORDS, transaction="while one is dead")
        assert len(read_all(cluster.bootstrap, "letters")) == 2 * len(RECORDS)
        cluster.start_broker(1)
        admin = cluster.admin()

        def in_sync() -> bool:
            partitions = admin.list_topics("letters", timeout=10).topics["letters"].partitions
            return all(sorted(partition.isrs) == [0, 1, 2] for partition in partitions.values())

        wait_until(in_sync, 60, "broker 1 to be in sync again")


@pytest.mark.slow
def test_a_stopped_and_a_killed_cluster_come_back_with_their_records(lab_directory: Path) -> None:
    with KafkaCluster(lab_directory, "lasting") as cluster:
        create_topic(cluster.bootstrap, "letters", 2)
        produce(cluster.bootstrap, "letters", RECORDS)
        cluster.stop()
        cluster.start()
        assert len(read_all(cluster.bootstrap, "letters")) == len(RECORDS)
        cluster.kill()
        cluster.start()
        assert len(read_all(cluster.bootstrap, "letters")) == len(RECORDS)


def test_reading_all_ends_before_an_open_transaction_and_passes_an_aborted_one(
    source: KafkaCluster, topic_names: TopicNames
) -> None:
    topic = topic_names("open")
    create_topic(source.bootstrap, topic)
    produce(source.bootstrap, topic, [Record(b"a")])
    producer = Producer({**settings(source.bootstrap), "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, key=b"b", partition=0)
    producer.flush(30)
    assert [record.key for record in read_all(source.bootstrap, topic)] == [b"a"]
    assert [record.key for record in read_all(source.bootstrap, topic, "read_uncommitted")] == [b"a", b"b"]
    producer.abort_transaction(30)
    wait_until(lambda: ends(source.bootstrap, topic) == {0: (0, 3)}, 30, "the abort marker")
    assert [record.key for record in read_all(source.bootstrap, topic)] == [b"a"]


def test_a_registry_speaks_the_confluent_api_and_is_gone_after_kill(lab_directory: Path) -> None:
    with Registry(lab_directory, "alone") as registry:
        schema = {"schema": '{"type": "string"}'}
        registered = httpx.post(f"{registry.url}/subjects/letters-value/versions", json=schema).raise_for_status()
        found = httpx.get(f"{registry.url}/schemas/ids/{registered.json()['id']}").raise_for_status()
        assert '"string"' in found.json()["schema"]
        registry.kill()
        assert not registry.answers()


def test_a_lab_is_up_once_and_leaves_nothing_when_down(directory: Path) -> None:
    # What a power cut leaves: a lab's mark, and records of processes that are no more.
    (directory / "run").mkdir(parents=True)
    (directory / "lab.json").write_text("{}")
    stat = Path("/proc/self/stat").read_text()
    (directory / "run" / "source-broker-0").write_text(stat.replace(stat.split()[21], "1"))
    started = lab.up(directory, security=Security(Protocol.SASL_SSL, Mechanism.SCRAM_SHA_512))
    read_back(started.source)
    read_back(started.destination)
    assert started.source_registry.answers()
    assert started.destination_registry.answers()
    with pytest.raises(Refused, match=f"already up in {directory}"):
        lab.up(directory)
    now = lab.status(directory)
    assert now.up
    assert now.configuration == started.configuration
    assert {part.name for part in now.parts} == {
        "source-broker-0",
        "destination-broker-0",
        "source-registry",
        "destination-registry",
    }
    assert load(started.configuration).clusters["source"].bootstrap == started.source.bootstrap
    assert all(file.stat().st_mode & 0o077 == 0 for file in directory.glob("*/password"))
    identities = recorded(directory)
    assert lab.down(directory)
    assert not any(identity.alive() for identity in identities)
    assert not directory.exists()
    assert not lab.down(directory)
    assert not lab.status(directory).up


def test_a_start_that_fails_half_way_leaves_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.lab.registry.JVM_OPTIONS", ("-XX:NoSuchOption",))
    with pytest.raises(Unavailable, match="registry ended while starting"):
        lab.up(directory)
    assert not directory.exists()
    assert processes_of(directory) == []


def test_a_start_that_is_killed_leaves_nothing(directory: Path) -> None:
    script = "import sys; from pathlib import Path; from barnabas.lab import lab; lab.up(Path(sys.argv[1]))"
    starting = subprocess.Popen([sys.executable, "-c", script, str(directory)])
    wait_until(lambda: len(recorded(directory)) >= 2, 60, "the lab to be half started")
    starting.kill()
    starting.wait(10)
    wait_until(lambda: not directory.exists(), 30, "the guard to remove the directory")
    wait_until(lambda: processes_of(directory) == [], 10, "the guard itself to end")


def test_a_directory_with_foreign_files_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("dear diary")
    with pytest.raises(Refused, match="holds files that are not a lab's"):
        lab.up(tmp_path)
    assert not lab.down(tmp_path)
    assert (tmp_path / "diary.txt").read_text() == "dear diary"


def processes_of(directory: Path) -> list[str]:
    """The commands of all living processes on this machine that name the directory."""
    found = []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = command.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if str(directory) in line:
            found.append(line)
    return found

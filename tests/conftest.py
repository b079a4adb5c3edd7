"""What every test may ask for. Whatever a test run started is gone at its end, even if that end is SIGKILL."""

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.registry import Registry
from tests.kafka_io import delete_topics

TopicNames = Callable[[str], str]
PLACE = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Every temporary file of the run, ours and pytest's, lies in one directory."""
    config.stash[PLACE] = Path(tempfile.mkdtemp(prefix="barnabas-tests-"))
    os.environ["TMPDIR"] = tempfile.tempdir = str(config.stash[PLACE])


@pytest.hookimpl(trylast=True)  # fixtures of the session end before
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """It is gone when all went well; after a failure what the runs said is worth reading."""
    place = session.config.stash[PLACE]
    if exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        shutil.rmtree(place, ignore_errors=True)
    else:
        print(f"\nwhat the runs left is in {place}")


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A TMPDIR for one run, with a short name: the path of a socket in it may have 107 characters."""
    with tempfile.TemporaryDirectory(prefix="b-") as name:
        yield Path(name)


@pytest.fixture
def readable() -> Iterator[Path]:
    """A directory that another user may enter, as /etc is."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="barnabas-hosts-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def lab_directory() -> Iterator[Path]:
    """A directory for clusters and registries; what runs there ends with the test run."""
    directory = Path(tempfile.mkdtemp(prefix="barnabas-tests-"))
    guard = Guard(directory)
    yield directory
    guard.end()


@pytest.fixture(scope="session")
def source(lab_directory: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(lab_directory, "source") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def destination(lab_directory: Path) -> Iterator[KafkaCluster]:
    with KafkaCluster(lab_directory, "destination") as cluster:
        yield cluster


@pytest.fixture(scope="session")
def source_registry(lab_directory: Path) -> Iterator[Registry]:
    with Registry(lab_directory, "source") as registry:
        yield registry


@pytest.fixture(scope="session")
def destination_registry(lab_directory: Path) -> Iterator[Registry]:
    with Registry(lab_directory, "destination") as registry:
        yield registry


@pytest.fixture
def topic_names(source: KafkaCluster, destination: KafkaCluster) -> Iterator[TopicNames]:
    """Unique topic names, `topic_names("orders")`.

    Topics of these names, and of any name that a mirror makes of them (renamed, ledger), are deleted in both clusters
    when the test ends.
    """
    names: list[str] = []

    def unique(stem: str) -> str:
        names.append(f"{stem}-{secrets.token_hex(4)}")
        return names[-1]

    yield unique
    for cluster in (source, destination):
        if cluster.pids == [None]:
            continue
        existing = cluster.admin().list_topics(timeout=30).topics
        delete_topics(cluster.bootstrap, [topic for topic in existing if any(name in topic for name in names)])

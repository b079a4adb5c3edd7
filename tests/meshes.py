"""Clusters that all copy each to each, what is born in them, and the comparison record by record."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml

from barnabas.lab.cluster import KafkaCluster
from barnabas.provenance import ORIGIN
from tests.barnabas_runs import QUICK, end_of
from tests.kafka_io import Record, create_topic, read_each

HEAP = 256  # megabytes of a broker
PARTITIONS = 2

Born = dict[str, list[Record]]  # by cluster


@contextmanager
def clusters_of(directory: Path, names: Iterable[str]) -> Iterator[dict[str, KafkaCluster]]:
    with ExitStack() as stack:
        yield {name: stack.enter_context(KafkaCluster(directory, name, heap_megabytes=HEAP)) for name in names}


def mesh_file(file: Path, clusters: Mapping[str, KafkaCluster], topics: Sequence[str], mark: str = "m") -> Path:
    """A configuration in which every cluster has a mirror of the topics from every other one."""
    mirrors = [
        {"name": f"{mark}-{source}-{destination}", "source": source, "destination": destination, "from": list(topics)}
        for source, destination in itertools.permutations(clusters, 2)
    ]
    group = {"name": "mesh", "provenance": "direct", "merge": True, "mirrors": mirrors}
    known = {name: {"bootstrap": cluster.bootstrap} for name, cluster in clusters.items()}
    file.write_text(yaml.safe_dump({"clusters": known, "groups": [group], "spark": QUICK}))
    return file


def create_everywhere(clusters: Mapping[str, KafkaCluster], *topics: str) -> None:
    for cluster, topic in itertools.product(clusters.values(), topics):
        create_topic(cluster.bootstrap, topic, partitions=PARTITIONS)


def born(cluster: str, numbers: Iterable[int]) -> list[Record]:
    """Records that say where they were born and how many came before."""
    return [
        Record(
            b"key %d" % (number % 100),
            b"%s %d" % (cluster.encode(), number),
            (("from", cluster.encode()), ("empty", None)),
            1_700_000_000_000 + number,
            number % PARTITIONS,
        )
        for number in numbers
    ]


def differences(cluster: KafkaCluster, name: str, topic: str, everywhere: Born) -> list[str]:
    """What is wrong with a topic that must hold every record that was born anywhere, once, each partition in the order
    of its birth: at home as it was, elsewhere with one stamp instead of those that an application handed on."""
    wrong: list[str] = []
    wanted = Counter(
        record if home == name else without_stamps(record) for home, records in everywhere.items() for record in records
    )
    births = {record.value: (home, at) for home, records in everywhere.items() for at, record in enumerate(records)}
    order: dict[tuple[str, int], list[int]] = {}
    for read in read_each(cluster.bootstrap, topic, seconds=300):
        record = read._replace(offset=-1)
        home, at = births.get(record.value, ("nowhere", -1))
        order.setdefault((home, record.partition), []).append(at)
        if home != name:
            stamps = [value or b"" for header, value in record.headers if header == ORIGIN]
            if len(stamps) != 1 or not stamps[0].endswith(b"/" + topic.encode()):
                wrong.append(f"{name}/{topic}: {record.value!r} has the stamps {stamps}")
            record = without_stamps(record)
        wanted[record] -= 1
    wrong += [f"{name}/{topic}: {record.value!r} {1 - left} times" for record, left in wanted.items() if left]
    wrong += [f"{name}/{topic}: {place} out of order" for place, found in order.items() if found != sorted(found)]
    return wrong[:10]


def without_stamps(record: Record) -> Record:
    return record._replace(headers=tuple(header for header in record.headers if header[0] != ORIGIN))


def wait_for_all(clusters: Mapping[str, KafkaCluster], topic: str, records: int, wait: Any) -> None:
    """Until each cluster holds so many; more than that is found when they are compared."""
    for name, cluster in clusters.items():
        wait(lambda c=cluster: _holds(c, topic, records), f"{records} records at {name}/{topic}")


def _holds(cluster: KafkaCluster, topic: str, records: int) -> bool:
    """Offsets count the ends of transactions too: records are counted only where there may be enough of them."""
    if end_of(cluster.bootstrap, topic) < records:
        return False
    return sum(1 for _ in read_each(cluster.bootstrap, topic, seconds=300)) >= records

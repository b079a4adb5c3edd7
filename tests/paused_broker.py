"""A broker of a cluster that is paused while the others go on, and what its clients wait for."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from barnabas.lab.cluster import KafkaCluster


def without(cluster: KafkaCluster, number: int | None) -> str:
    """The addresses of the other brokers."""
    return ",".join(address for broker, address in enumerate(cluster.bootstrap.split(",")) if broker != number)


def leader(cluster: KafkaCluster, topic: str, paused: int | None = None) -> int:
    """The leader of a topic's first partition, as the brokers that are not paused have it."""
    client = AdminClient({"bootstrap.servers": without(cluster, paused), "log_level": 0})
    try:
        return int(client.list_topics(topic, timeout=5).topics[topic].partitions[0].leader)
    except KafkaException:
        return -1


def unread(port: int) -> int:
    """Bytes that wait in the sockets of a broker's listener, proc(5): state 1 is an established connection."""
    tables = [Path(f"/proc/net/{name}").read_text() for name in ("tcp", "tcp6")]  # Java's sockets stand in either
    rows = [line.split() for table in tables for line in table.splitlines()[1:]]
    return sum(int(r[4].split(":")[1], 16) for r in rows if int(r[1].split(":")[1], 16) == port and int(r[3], 16) == 1)

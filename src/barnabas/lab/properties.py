"""The server properties of a lab's brokers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from barnabas.lab.ports import LOOPBACK

CLIENT, INTERNAL, CONTROLLER = "CLIENT", "INTERNAL", "CONTROLLER"
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Node:
    """Where one broker, which is also a controller, listens; clients are told `host`."""

    number: int
    host: str
    client_port: int
    internal_port: int
    controller_port: int
    data: Path


def server_properties(
    node: Node, nodes: list[Node], protocol: str, security: Mapping[str, str], extra: Mapping[str, str]
) -> str:
    """The text of server.properties; `extra` wins over everything."""
    properties = {**_identity(node, nodes, protocol), **_topics(len(nodes)), **_pace(), **security, **extra}
    return "".join(f"{key}={_escaped(value)}\n" for key, value in properties.items())


def _identity(node: Node, nodes: list[Node], protocol: str) -> dict[str, str]:
    # Brokers speak with each other, and the lab with them, in the clear on a listener of their own: passwords,
    # certificates and advertised names may then be as broken as a test wants them.
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.number),
        "controller.quorum.voters": ",".join(f"{it.number}@{LOOPBACK}:{it.controller_port}" for it in nodes),
        "controller.listener.names": CONTROLLER,
        "inter.broker.listener.name": INTERNAL,
        "listeners": (
            f"{CLIENT}://{LOOPBACK}:{node.client_port},{INTERNAL}://{LOOPBACK}:{node.internal_port},"
            f"{CONTROLLER}://{LOOPBACK}:{node.controller_port}"
        ),
        "advertised.listeners": (
            f"{CLIENT}://{node.host}:{node.client_port},{INTERNAL}://{LOOPBACK}:{node.internal_port}"
        ),
        "listener.security.protocol.map": f"{CLIENT}:{protocol},{INTERNAL}:PLAINTEXT,{CONTROLLER}:PLAINTEXT",
        "log.dirs": str(node.data),
    }


def _topics(brokers: int) -> dict[str, str]:
    replicas, in_sync = (str(min(3, brokers)), "2" if brokers > 1 else "1")
    return {
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": in_sync,
        "offsets.topic.num.partitions": "4",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "4",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": in_sync,
        # Tests choose timestamps of any age, which retention by time would delete: bound partitions by size.
        "log.retention.ms": "-1",
        "log.retention.bytes": str(8192 * MEBIBYTE),
        "log.retention.check.interval.ms": "30000",
        "log.segment.bytes": str(256 * MEBIBYTE),
        "log.segment.delete.delay.ms": "1000",
        # Its default of 128 MiB is a quarter of our heap.
        "log.cleaner.dedupe.buffer.size": str(8 * MEBIBYTE),
    }


def _pace() -> dict[str, str]:
    return {
        "group.initial.rebalance.delay.ms": "0",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        # Two cores carry two clusters, Spark and its Python workers.
        "num.network.threads": "2",
        "num.io.threads": "4",
        "background.threads": "2",
        "num.recovery.threads.per.data.dir": "2",
        "socket.send.buffer.bytes": str(MEBIBYTE),
        "socket.receive.buffer.bytes": str(MEBIBYTE),
        # A killed broker is noticed in 6 s, not 9.
        "broker.session.timeout.ms": "6000",
        "broker.heartbeat.interval.ms": "1000",
    }


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")

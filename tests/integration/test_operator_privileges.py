"""The privileges that SECURITY.md lists are enough: a mirror copies, and keeps settings in step, with no others."""

import signal
from pathlib import Path
from typing import Any

import yaml
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourcePatternType,
    ResourceType,
)

from barnabas.lab.cluster import KafkaCluster
from barnabas.lab.guard import Guard
from barnabas.lab.security import Mechanism, Protocol, Security
from tests.barnabas_runs import QUICK, Run, ran
from tests.kafka_io import Record, create_topic, produce, read_all, wait_until

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:chief",  # ANONYMOUS: the brokers' own listener
}
LITERAL, PREFIXED = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
TOPIC, IDS, CLUSTER = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID, ResourceType.BROKER
LOOK = (AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
MAKE = (*LOOK, AclOperation.CREATE, AclOperation.ALTER, AclOperation.WRITE)


def allow(cluster: KafkaCluster, kind: ResourceType, name: str, pattern: Any, *operations: AclOperation) -> None:
    admin = cluster.admin()
    rules = [AclBinding(kind, name, pattern, "User:carrier", "*", each, AclPermissionType.ALLOW) for each in operations]
    for future in admin.create_acls(rules).values():
        future.result(30)


def test_a_mirror_copies_with_the_privileges_that_are_listed_and_says_what_it_lacks_without(tmp_path: Path) -> None:
    guard = Guard(tmp_path / "lab")
    users = {"chief": "chief-secret", "carrier": "carrier-secret"}
    security = Security(Protocol.SASL_PLAINTEXT, Mechanism.PLAIN, users)
    (tmp_path / "password").write_text(users["carrier"])
    with (
        KafkaCluster(tmp_path / "lab", "orange", security=security, properties=AUTHORIZER) as orange,
        KafkaCluster(tmp_path / "lab", "grape", security=security, properties=AUTHORIZER) as grape,
    ):
        sasl = {"mechanism": "PLAIN", "username": "carrier", "password": f"file:{tmp_path / 'password'}"}
        clusters = {it.name: {"bootstrap": it.bootstrap, "sasl": sasl} for it in (orange, grape)}
        mirror = {"name": "m", "from": "orders", "to": "{topic}.copy", "topics": {"keep_in_step": True}}
        group = {"name": "g", "source": "orange", "destination": "grape", "mirrors": [mirror]}
        file = tmp_path / "c.yaml"
        file.write_text(yaml.safe_dump({"clusters": clusters, "groups": [group], "spark": QUICK}))
        create_topic(orange.client_settings(), "orders", partitions=2)
        produce(orange.client_settings(), "orders", [Record(b"k", b"%d" % i, (), 0, i % 2) for i in range(100)])
        code, refused = ran(tmp_path, "plan", "-c", file)
        assert code == 1 and "Traceback" not in refused.messages
        assert "orders" in refused.messages
        allow(orange, TOPIC, "orders", LITERAL, *LOOK, AclOperation.READ)
        for name in ("orders.copy", "_barnabas."):
            allow(grape, TOPIC, name, PREFIXED, *MAKE)
        allow(grape, TOPIC, "_barnabas.", PREFIXED, AclOperation.READ)
        allow(grape, TOPIC, "orders.copy", PREFIXED, AclOperation.ALTER_CONFIGS)
        allow(grape, IDS, "barnabas.", PREFIXED, AclOperation.DESCRIBE, AclOperation.WRITE)
        allow(grape, ResourceType.GROUP, "barnabas-reader", LITERAL, AclOperation.READ)
        allow(grape, CLUSTER, "kafka-cluster", LITERAL, AclOperation.IDEMPOTENT_WRITE)
        with Run(tmp_path, "-v", "run", "-c", file) as run:
            run.wait_says("m: copying")
            wait_until(
                lambda: run.ended or len(read_all(grape.client_settings(), "orders.copy")) == 100, 120, "the copy"
            )
            entry = ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET)
            resource, admin = ConfigResource(TOPIC, "orders", incremental_configs=[entry]), orange.admin()
            [future] = admin.incremental_alter_configs([resource]).values()
            future.result(30)
            run.wait_says("settings of orders.copy follow the source")
            run.signal(signal.SIGTERM)
            assert run.wait() == 0, run.messages
        assert "copied 100 records" in run.output and "0 restarts" in run.output
        code, status = ran(tmp_path, "status", "-c", file)
        assert code == 0, status.messages
    guard.end()

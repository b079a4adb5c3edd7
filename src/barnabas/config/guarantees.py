"""Client settings that may not be set, because a promise hangs on each of them. The reason is the error's text."""

from __future__ import annotations

from typing import TypeVar

from pydantic_core import PydanticCustomError

Value = TypeVar("Value")

_FUNCTION = "it is a function, and a file holds none"
_ELSEWHERE = "has its own place in the configuration: `{place}`"

GUARDED: dict[str, str] = {
    "isolation.level": "Barnabas reads committed records only",
    "enable.idempotence": "exactly once needs an idempotent producer",
    "transactional.id": "writers are fenced by their transactional ids, which Barnabas chooses",
    "transaction.timeout.ms": "the take-over of a mirror depends on it",
    "acks": "a commit must be on all in-sync replicas",
    "request.required.acks": "a commit must be on all in-sync replicas",
    "enable.auto.commit": "positions live in the ledger, not in a consumer group",
    "enable.auto.offset.store": "positions live in the ledger, not in a consumer group",
    "auto.offset.reset": "a missing offset is a loss to be told, never a reason to jump; use `start` and `on_loss`",
    "group.id": "positions live in the ledger, not in a consumer group",
    "group.instance.id": "positions live in the ledger, not in a consumer group",
    "partitioner": "partitions are kept; use `partitioning`",
    "partitioner.class": "partitions are kept; use `partitioning`",
    "max.in.flight": "the order of records hangs on it",
    "max.in.flight.requests.per.connection": "the order of records hangs on it",
    "retries": "a retry must not end before the transaction does",
    "message.send.max.retries": "a retry must not end before the transaction does",
    "retry.backoff.ms": "how long the client waits before it asks again tells whether a commit was sent twice",
    "retry.backoff.max.ms": "how long the client waits before it asks again tells whether a commit was sent twice",
    "delivery.timeout.ms": "time limits are chosen together: socket < message < transaction",
    "message.timeout.ms": "time limits are chosen together: socket < message < transaction",
    "socket.timeout.ms": "time limits are chosen together: socket < message < transaction",
    "allow.auto.create.topics": "topics are created by the rules under `topics`",
    "enable.partition.eof": "the ledger's reader needs it",
    "check.crcs": "records are copied byte for byte, so they are checked",
    "key.deserializer": "records are copied byte for byte, without decoding",
    "value.deserializer": "records are copied byte for byte, without decoding",
    "key.serializer": "records are copied byte for byte, without encoding",
    "value.serializer": "records are copied byte for byte, without encoding",
    "interceptor.classes": "records are copied byte for byte",
    "delivery.report.only.error": "every record's delivery must be told",
    "on_delivery": _FUNCTION,
    "on_commit": _FUNCTION,
    "logger": _FUNCTION,
    "default.topic.config": "its settings stand beside the others here",
    "minpartitions": "one source partition must stay in one task, or its order is lost",
    "maxrecordsperpartition": "one source partition must stay in one task, or its order is lost",
    "failondataloss": "a loss is never silent; use `on_loss`",
    "startingoffsets": "positions come from the ledger; use `start`",
    "subscribe": "topics are chosen with `from`",
    "subscribepattern": "topics are chosen with `from`",
    "assign": "topics are chosen with `from`",
    "bootstrap.servers": _ELSEWHERE.format(place="clusters.NAME.bootstrap"),
    "metadata.broker.list": _ELSEWHERE.format(place="clusters.NAME.bootstrap"),
    "security.protocol": "follows from `sasl` and `tls`",
    "enable.ssl.certificate.verification": "an unverified broker could be anybody",
    "ssl.endpoint.identification.algorithm": "an unverified broker could be anybody",
}
GUARDED_PREFIXES: dict[str, str] = {
    "sasl.": _ELSEWHERE.format(place="clusters.NAME.sasl"),
    "ssl.": _ELSEWHERE.format(place="clusters.NAME.tls"),
}
_AUTHENTICATED = "Spark's ports are open to every user of the machine, so each run has a secret of its own"
GUARDED_SPARK: dict[str, str] = {
    "spark.task.maxFailures": "a task is tried once; a retry is a new epoch",
    "spark.stage.maxConsecutiveAttempts": "a stage is tried once; a retry is a new epoch",
    "spark.speculation": "a second copy of a task would write a range twice",
    "spark.sql.session.timeZone": "timestamps are copied as they are, in UTC",
    "spark.driver.extraJavaOptions": "the JVM's clock must be in UTC; use `spark.driver.defaultJavaOptions`",
    "spark.jars": "the connector's jars are listed with their checksums",
    "spark.ui.killEnabled": "the UI has no password, so nobody stops a mirror there",
    "spark.python.unix.domain.socket.dir": "workers trust whoever connects: their sockets are in a private directory",
    "spark.master": "has its own place in the configuration: `spark.master`",
}


def refuse_guarded(settings: dict[str, Value]) -> dict[str, Value]:
    """The settings as they are, or an error that says which one may not be set and why."""
    for name in settings:
        plain = name.lower().removeprefix("kafka.")
        reason = GUARDED.get(plain) or next(
            (why for prefix, why in GUARDED_PREFIXES.items() if plain.startswith(prefix)),
            _FUNCTION if plain.endswith("_cb") else None,
        )
        if reason:
            raise PydanticCustomError("guarded", "`{key}` may not be set: {why}", {"key": name, "why": reason})
    return settings


def refuse_guarded_spark(settings: dict[str, Value]) -> dict[str, Value]:
    """The same for the settings of the Spark session."""
    for name in settings:
        reason = _AUTHENTICATED if name.startswith("spark.authenticate") else GUARDED_SPARK.get(name)
        if reason:
            raise PydanticCustomError("guarded", "`{key}` may not be set: {why}", {"key": name, "why": reason})
    return settings

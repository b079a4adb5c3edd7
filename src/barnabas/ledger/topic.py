"""The ledger as a topic: made, checked, read and folded."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message

from barnabas.errors import Refused
from barnabas.kafka.admin import Admin, eventually
from barnabas.kafka.reader import PartitionReader
from barnabas.ledger.state import LedgerState
from barnabas.model import Connection, Partition, TopicDescription

# Compaction removes a tombstone and a transaction's marker `delete.retention.ms` after it has met them, and not before
# its next round. A tombstone must outlive one reading of the ledger, no more.
AT_MOST = {
    "delete.retention.ms": 10 * 60 * 1000,
    "segment.ms": 3600 * 1000,
    "max.compaction.lag.ms": 3600 * 1000,  # old markers are removed also where little is written
}
EXACTLY = {
    "unclean.leader.election.enable": "false",  # else a ledger may lose its tail, and with it who must be fenced
    "message.timestamp.type": "LogAppendTime",  # signs of life are judged by the broker's clock
    "min.cleanable.dirty.ratio": "0.01",
}
SETTINGS = {
    "cleanup.policy": "compact",
    "segment.bytes": str(8 * 1024 * 1024),  # only closed segments are compacted: small ones keep start-up short
    "retention.ms": "-1",
    "max.message.bytes": str(1024 * 1024),
    **{key: str(value) for key, value in AT_MOST.items()},
    **EXACTLY,
}
SAFE_REPLICATION = 3  # from here on a write needs two replicas

log = logging.getLogger(__name__)


def prepared(admin: Admin, topic: str, replication: int, *, least: int | None = None) -> TopicDescription:
    """The ledger's topic, made if it is not there, refused if it cannot be a ledger.

    `replication`: what a new ledger gets, and an old one must have unless `least` says less.
    """
    if topic not in admin.topics([topic]):
        _make(admin, topic, replication)
    description = eventually(lambda: admin.topics([topic]).get(topic), 30, f"{admin.where}: ledger {topic}")
    checked(admin, description)
    if description.replication < (replication if least is None else least):
        raise Refused(
            f"{admin.where}: ledger {topic} has {description.replication} replicas where {replication} are possible; "
            f"it may lose its tail with one broker, and records would be copied twice: add replicas with "
            f"kafka-reassign-partitions, or set `ledger: {{replication: {description.replication}}}` to accept that"
        )
    _kept_small_and_safe(admin, topic, description.replication)
    return description


def _make(admin: Admin, topic: str, replication: int) -> None:
    try:
        admin.create(topic, 1, replication, {**SETTINGS, **_safe(replication)})
    except Refused as refused:  # some services fix settings; what a ledger cannot do without is one
        log.info("%s: ledger %s is made with the cluster's own settings: %s", admin.where, topic, refused)
        admin.create(topic, 1, replication, {"cleanup.policy": "compact"})


def checked(admin: Admin, description: TopicDescription) -> None:
    policy = description.settings.get("cleanup.policy", "delete")
    if description.partitions != 1 or policy != "compact":
        raise Refused(
            f"{admin.where}: ledger {description.name} has {description.partitions} partitions and cleanup.policy="
            f"{policy}; it must have 1 and compact, or positions would be lost: mend or delete the topic"
        )


def _safe(replication: int) -> dict[str, str]:
    return {"min.insync.replicas": "2"} if replication >= SAFE_REPLICATION else {}


def _kept_small_and_safe(admin: Admin, topic: str, replication: int) -> None:
    """Gives an older ledger today's settings; refused where it may lose its tail and we may not change that."""
    now = admin.settings(topic)
    wanted = _differing(now, replication)
    if not wanted:
        return
    try:
        admin.change(topic, wanted)
    except Refused as error:
        if now.get("unclean.leader.election.enable") == "true":
            raise Refused(
                f"{admin.where}: ledger {topic} has unclean.leader.election.enable=true and may lose its tail; it "
                f"could not be changed: set it to false, or grant alter-configs on {topic} ({error})"
            ) from None
        log.warning("%s: ledger %s keeps settings that let it grow or lose records: %s", admin.where, topic, error)


def _differing(now: Mapping[str, str], replication: int) -> dict[str, str]:
    """What must change. A smaller number is the operator's choice and stays."""
    large = {key: str(most) for key, most in AT_MOST.items() if int(now.get(key, most)) > most}
    other = {key: value for key, value in EXACTLY.items() if now.get(key, value) != value}
    unsafe = {key: least for key, least in _safe(replication).items() if int(now.get(key, least)) < int(least)}
    return large | other | unsafe


def read_state(connection: Connection, topic: str, until: int, *, first: int = 0, committed: bool) -> LedgerState:
    """The ledger's records in [first, until), folded."""
    state = LedgerState(topic, read_to=first)
    read_on(connection, state, until, committed=committed)
    return state


def read_on(connection: Connection, state: LedgerState, until: int, *, committed: bool) -> None:
    """Folds into the state what stands between the offset it was read to and `until`."""
    if until <= state.read_to:
        return
    reader = PartitionReader(connection, state.topic, committed=committed)
    try:
        fold(state, reader.read(state.read_to, until))
        state.read_to = until
        state.read_records += reader.records
        state.read_bytes += reader.bytes
    finally:
        reader.close()


def fold(state: LedgerState, messages: Iterable[Message]) -> None:
    for message in messages:
        kind, millis = message.timestamp()
        appended = millis if kind == TIMESTAMP_LOG_APPEND_TIME else None
        state.add(message.offset() or 0, message.key(), message.value(), appended)


def ledger_partition(topic: str) -> Partition:
    return Partition(topic, 0)

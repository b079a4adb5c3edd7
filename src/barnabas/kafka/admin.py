"""What a cluster says of its topics and offsets, and the few things we ask it to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from barnabas.errors import BarnabasError, ConfigError, Refused, Unavailable
from barnabas.kafka import effective
from barnabas.kafka.access import SURE_SECONDS, Access
from barnabas.kafka.errors import explained
from barnabas.model import Connection, Ends, Offsets, Partition, TopicDescription
from barnabas.stopping import in_thread

Key = TypeVar("Key")
Result = TypeVar("Result")

ANSWER_SECONDS = 30.0
LOOK_SECONDS = 0.1
SILENCE = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
OLDEST_BROKER = "2.8"
NO_ID = str(Uuid(0, 0))
DYNAMIC_TOPIC_CONFIG = 1  # ConfigSource: set on the topic itself, not a default of the broker


class Admin:
    """Admin calls of one cluster, each with a time limit, each error naming the cluster."""

    def __init__(self, connection: Connection) -> None:
        self.cluster = connection.cluster
        self.where = f'cluster "{connection.cluster}" ({connection.bootstrap})'
        self._access = Access(connection)
        try:
            settings: dict[str, Any] = {**connection.properties, "error_cb": self._access.note}
            self._client = AdminClient(settings)
        except KafkaException as error:
            raise ConfigError(
                f"{self.where}: a client cannot be made with its settings: {error.args[0].str()}"
            ) from None

    def cluster_id(self) -> str:
        future = self._client.describe_cluster(request_timeout=ANSWER_SECONDS)
        return str(self._answer(future, "describe cluster").cluster_id)

    def broker_count(self) -> int:
        return len(
            self._answer(self._client.describe_cluster(request_timeout=ANSWER_SECONDS), "describe cluster").nodes
        )

    def topic_names(self, seconds: float | None = None) -> list[str]:
        listing = in_thread(lambda: self._client.list_topics(timeout=seconds or ANSWER_SECONDS))
        return sorted(self._answer(listing, "list topics").topics)

    def topics(self, names: Iterable[str]) -> dict[str, TopicDescription]:
        """Those of the named topics that exist, with the settings made on them."""
        wanted = sorted(set(names))
        if not wanted:
            return {}
        described = self._client.describe_topics(TopicCollection(wanted), request_timeout=ANSWER_SECONDS)
        found = {name: self._answer(f, f"describe {name}", absent=True) for name, f in described.items()}
        found = {name: description for name, description in found.items() if description is not None}
        entries = self._entries(found)
        return {
            name: TopicDescription(
                name=name,
                topic_id=_id_of(description.topic_id, f"{self.where}: topic {name}"),
                partitions=len(description.partitions),
                replication=len(description.partitions[0].replicas) if description.partitions else 0,
                settings={k: e.value for k, e in entries[name].items() if e.source == DYNAMIC_TOPIC_CONFIG},
                largest=effective.largest(entries[name]),
                ahead=effective.distance(entries[name], "message.timestamp.after.max.ms"),
                behind=effective.distance(entries[name], "message.timestamp.before.max.ms"),
                keeps_deletions=effective.keeps_deletions(entries[name]),
            )
            for name, description in found.items()
            if name in entries  # else it was deleted in between
        }

    def _entries(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Every setting that has a value, of those of these topics that are still there."""
        resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
        if not resources:
            return {}
        described = self._client.describe_configs(resources, request_timeout=ANSWER_SECONDS)
        answers = {r.name: self._answer(f, f"settings of {r.name}", absent=True) for r, f in described.items()}
        there = {name: all_ for name, all_ in answers.items() if all_ is not None}
        return {name: {k: e for k, e in all_.items() if e.value is not None} for name, all_ in there.items()}

    def settings(self, topic: str) -> dict[str, str]:
        """Every setting that takes effect for the topic, whoever made it."""
        return {key: str(entry.value) for key, entry in self._entries([topic]).get(topic, {}).items()}

    def offsets(self, partitions: Iterable[Partition]) -> dict[Partition, Offsets]:
        """First and last stable offset of each partition, and the epoch of the leader that answered."""
        wanted = list(partitions)
        first = self._listed(wanted, OffsetSpec.earliest())
        end = self._leaders_listed(wanted, OffsetSpec.latest())
        return {p: Offsets(first[p], *end[p]) for p in wanted}

    def offsets_at(self, partitions: Iterable[Partition], millis: int) -> dict[Partition, int]:
        """The first offset at or after a moment; the end where there is none."""
        wanted = list(partitions)
        found = self._listed(wanted, OffsetSpec.for_timestamp(millis))
        late = [p for p in wanted if found[p] < 0]
        return found | self._listed(late, OffsetSpec.latest())

    def high_watermarks(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        """The offset past the last record of each, committed or not. A leader that was deposed may give an old one."""
        return self._listed(list(partitions), OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)

    def ends(self, partitions: Iterable[Partition], seconds: float) -> dict[Partition, Ends]:
        """Both ends of each partition that answers within so many seconds: one without a leader is left out."""
        latest = {TopicPartition(p.topic, p.number): OffsetSpec.latest() for p in partitions}
        if not latest:
            return {}
        stable, last = (
            self._client.list_offsets(latest, isolation_level=isolation, request_timeout=seconds)
            for isolation in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
        )
        limit = time.monotonic() + seconds + LOOK_SECONDS
        stables, lasts = self._in_time(stable, limit), self._in_time(last, limit)
        both = {p: (*stables[p], lasts[p][0]) for p in stables if p in lasts}
        return {p: Ends(end, max(end, last_of_all), epoch) for p, (end, epoch, last_of_all) in both.items()}

    def _listed(
        self, partitions: list[Partition], spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[Partition, int]:
        return {p: offset for p, (offset, _) in self._leaders_listed(partitions, spec, isolation).items()}

    def _leaders_listed(
        self, partitions: list[Partition], spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[Partition, tuple[int, int]]:
        """For each partition the offset and a leader epoch: of the leader itself when the end is asked for."""
        if not partitions:
            return {}
        asked = {TopicPartition(p.topic, p.number): spec for p in partitions}
        futures = self._client.list_offsets(asked, isolation_level=isolation, request_timeout=ANSWER_SECONDS)
        return self._offsets(futures)

    def _offsets(self, futures: Mapping[TopicPartition, Future[Any]]) -> dict[Partition, tuple[int, int]]:
        """Offset and leader epoch of each partition."""
        return {
            Partition(tp.topic, tp.partition): _offset(self._answer(future, f"offsets of {tp.topic}-{tp.partition}"))
            for tp, future in futures.items()
        }

    def _in_time(self, futures: Mapping[TopicPartition, Future[Any]], limit: float) -> dict[Partition, tuple[int, int]]:
        """Those of the partitions that answer before the limit; why others do not is not asked: that takes time."""
        found = {}
        for tp, future in futures.items():
            with suppress(TimeoutError, KafkaException, ValueError):
                answer = future.result(timeout=max(0.0, limit - time.monotonic()))
                found[Partition(tp.topic, tp.partition)] = _offset(answer)
        self._client.poll(0)  # error callbacks run in it
        if found:
            self._access.answered()
        return found

    def create(self, name: str, partitions: int, replication: int, settings: Mapping[str, str]) -> None:
        """Creates the topic; one that exists already is left as it is."""
        topic = NewTopic(name, num_partitions=partitions, replication_factor=replication, config=dict(settings))
        futures = self._client.create_topics([topic], operation_timeout=ANSWER_SECONDS)
        self._answer(futures[name], f"create topic {name}", fine=(KafkaError.TOPIC_ALREADY_EXISTS,))

    def grow(self, name: str, partitions: int) -> None:
        """Adds partitions; a topic that somebody else made large enough meanwhile is left as it is."""
        futures = self._client.create_partitions([NewPartitions(name, partitions)], operation_timeout=ANSWER_SECONDS)
        try:
            self._answer(futures[name], f"grow topic {name} to {partitions} partitions")
        except Refused:
            there = self.topics([name]).get(name)
            if there is None or there.partitions < partitions:
                raise

    def change(self, name: str, settings: Mapping[str, str | None]) -> None:
        """Sets what has a value and takes back what is None."""
        entries = [
            ConfigEntry(
                key,
                value or "",
                incremental_operation=AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET,
            )
            for key, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        futures = self._client.incremental_alter_configs([resource], request_timeout=ANSWER_SECONDS)
        self._answer(futures[resource], f"change settings of {name}")

    def delete(self, name: str) -> None:
        futures = self._client.delete_topics([name], operation_timeout=ANSWER_SECONDS)
        self._answer(futures[name], f"delete topic {name}", fine=(KafkaError.UNKNOWN_TOPIC_OR_PART,))

    def _answer(self, future: Future[Any], what: str, *, absent: bool = False, fine: tuple[int, ...] = ()) -> Any:
        """The future's result. `absent`: None for a topic that is not there; `fine`: errors that change nothing."""
        began = time.monotonic()
        try:
            answer = self._awaited(future, what, began)
        except KafkaException as error:
            code = error.args[0].code()
            if code in SILENCE:
                raise self._silent(error, what, began) from None
            self._access.answered()
            if code in fine or (absent and code == KafkaError.UNKNOWN_TOPIC_OR_PART):
                return None
            raise explained(error, f"{self.where}: {what}") from None
        except ValueError as error:
            raise Unavailable(f"{self.where}: {what}: {error}") from None
        self._access.answered()
        return answer

    def _awaited(self, future: Future[Any], what: str, began: float) -> Any:
        """The future's result; ends at once when it is certain that the cluster does not let us in."""
        while (waited := time.monotonic() - began) < ANSWER_SECONDS + 5:
            with suppress(TimeoutError):
                return future.result(timeout=LOOK_SECONDS)
            self._refuse_denied(waited)
        raise Unavailable(f"{self.where}: {what}: no answer in {ANSWER_SECONDS:.0f} s")

    def _refuse_denied(self, waited: float) -> None:
        self._client.poll(0)  # error callbacks run in it
        denied = self._access.denied(self.where, waited)
        if denied is not None:
            raise denied

    def _silent(self, error: KafkaException, what: str, began: float) -> BarnabasError:
        """Why nothing was answered: what the client reports of its connections says more than the call does."""
        while time.monotonic() - began < SURE_SECONDS + LOOK_SECONDS:
            self._client.poll(LOOK_SECONDS)
        self._refuse_denied(time.monotonic() - began)
        last = f"; {self._access.last}" if self._access.last else ""
        return explained(error, f"{self.where}: {what}{last}")


def _offset(answer: Any) -> tuple[int, int]:
    """The offset and the leader epoch of an answer."""
    return answer.offset, -1 if answer.leader_epoch is None else answer.leader_epoch


def _id_of(found: object, where: str) -> str:
    """A topic's id; Refused where the cluster gives topics none. A client is not told a broker's version, and topic
    ids are the newest that Barnabas needs of it."""
    if str(found) == NO_ID:
        raise Refused(
            f"{where}: it has no topic id, so the brokers are older than Kafka {OLDEST_BROKER}, or their "
            f"`inter.broker.protocol.version` is: raise it, because ids tell a topic made anew from the old one"
        )
    return str(found)


def eventually(ask: Callable[[], Result | None], seconds: float, what: str) -> Result:
    """The first answer that is not None; brokers learn of a new topic a moment after it was made."""
    limit = time.monotonic() + seconds
    while True:
        answer = ask()
        if answer is not None:
            return answer
        if time.monotonic() > limit:
            raise Unavailable(f"{what}: not there after {seconds:.0f} s")
        time.sleep(0.05)

"""Before a query starts: topics and ledger made ready, the mirror taken over, its first positions written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from barnabas.config.mirror import Mirror
from barnabas.errors import Refused, Unavailable
from barnabas.kafka.admin import eventually
from barnabas.kafka.producer import THROUGHPUT
from barnabas.ledger import records, topic
from barnabas.ledger.takeover import Epoch, take_over
from barnabas.ledger.witness import Witness
from barnabas.lessons import Lessons
from barnabas.losses import Doubts
from barnabas.model import ANY_TIME, USUAL_LARGEST, Followed, Partition, Position, Properties, TopicDescription
from barnabas.plan import Plan, Survey, found_losses, planned
from barnabas.spoke import Spoke
from barnabas.survey import Surveyor
from barnabas.worker.task import Limits, WriteTask
from barnabas.worker.writer import write_all

COMPRESSION = ("compression.type", "compression.codec")  # two names of one setting
CLIENT_BYTES = 128  # what the client counts of a record beside its key, value and headers
KEY_PARTITIONER = {"partitioner": "murmur2_random"}  # the Java client's choice for records with a key


@dataclass(frozen=True)
class Prepared:
    """A mirror that may be copied now."""

    plan: Plan
    epoch: Epoch
    task: WriteTask
    ledger_id: str
    seen: Mapping[Partition, Followed]  # what the ledger says of the partitions
    keeps: Mapping[str, int | None]  # topic → for how long it keeps deletions, if it is compacted

    def positions(self, committed: Mapping[Partition, int]) -> dict[Partition, Position]:
        """These offsets as positions of this epoch."""
        ids = {route.source: route.topic_id for route in self.plan.routes}
        return {p: Position(at, ids[p.topic], self.epoch.number) for p, at in committed.items() if p.topic in ids}


def prepare(
    surveyor: Surveyor, survey: Survey, lessons: Lessons, *, run: str, witness: Witness, doubts: Doubts
) -> Prepared:
    """Makes ready what the plan asks for and takes the mirror over. `witness`: what this run knows of the ledger."""
    mirror, survey = surveyor.mirror, replace(survey, goes_on=witness.epoch is not None)
    plan = _plan(mirror, survey, doubts, lessons.hub.met)
    ledger_now = _ledger(surveyor, witness)
    made = _make_topics(surveyor, plan)
    epoch = take_over(
        surveyor.to_destination,
        mirror.ledger_topic,
        run=run,
        source_id=plan.source_id,
        known=survey.ledger,
        after=witness.epoch,
    )
    witness.refuse_lost(epoch.state)
    survey = surveyor.surveyed_again(survey, epoch.state)
    plan = _plan(mirror, survey, doubts, lessons.hub.met)
    back = survey.source if mirror.kind == "demux" else {}  # what a replay may put back
    task = _task(surveyor, plan, epoch, {**back, **survey.destination, **made}, lessons)
    known = epoch.state.takes, epoch.state.spread
    fresh = _seen_first(plan, survey)
    seen = {**epoch.state.followed, **fresh}
    _note_beginnings(task, plan, fresh, mirror.takes if known != (mirror.takes, plan.spread) else None)
    return Prepared(plan, epoch, task, ledger_now, seen, {t.name: t.keeps_deletions for t in survey.source.values()})


def _task(
    surveyor: Surveyor, plan: Plan, epoch: Epoch, topics: Mapping[str, TopicDescription], lessons: Lessons
) -> WriteTask:
    """What the writers of this epoch must know; `topics` are those that they may write to."""
    mirror = surveyor.mirror
    return WriteTask(
        mirror=mirror.name,
        ledger=mirror.ledger_topic,
        epoch=epoch.number,
        run=epoch.run,
        looked_to=epoch.state.read_to,
        destination=surveyor.to_destination,
        routes={route.number: route for route in plan.routes},
        producer=_producer(mirror, topics.values()),
        partitioning=mirror.partitioning,
        zero_timestamps=mirror.zero_timestamps,
        spread=plan.spread,
        spoke=_spoke(surveyor, plan) if mirror.kind == "mux" else None,
        demuxed={route.destination: route for route in plan.demuxed} if mirror.kind == "demux" else None,
        declined=lessons.hub.declined,
        on_bad_record=mirror.on_bad_record,
        limits=_limits(surveyor, topics, lessons),
        schemas=surveyor.translation(plan.demuxed if mirror.kind == "demux" else plan.routes),
        on_bad=mirror.on_bad_schema,
        quarantine=mirror.quarantine_topic,
        selects=bool(mirror.where or mirror.provenance),
    )


def _plan(mirror: Mirror, survey: Survey, doubts: Doubts, met: Mapping[str, tuple[str, int]] | None) -> Plan:
    """The plan, once nothing is lost or it is sure what."""
    doubts.settle(found_losses(survey).values(), f'mirror "{mirror.name}"')
    return planned(mirror, survey, met)


def _seen_first(plan: Plan, survey: Survey) -> dict[Partition, Followed]:
    """What is known of partitions that begin here: deletions count from now on."""
    found = {}
    for partition, stretch in plan.stretches.items():
        if not stretch.known:
            at, log = stretch.position, survey.offsets[partition]
            epoch = log.leader_epoch if at.next <= log.end else -1
            found[partition] = Followed(at.next, at.topic_id, epoch, survey.at)
    return found


def _spoke(surveyor: Surveyor, plan: Plan) -> Spoke:
    mirror = surveyor.mirror
    return Spoke(mirror.identifier or "", surveyor.to_source.bootstrap, plan.source_id, mirror.intermediate_topic)


def _producer(mirror: Mirror, topics: Iterable[TopicDescription]) -> Properties:
    by_key = KEY_PARTITIONER if mirror.partitioning == "key" else {}
    return {**_batches(topics), **mirror.producer, **by_key}


def _batches(topics: Iterable[TopicDescription]) -> dict[str, int]:
    """librdkafka has one batch size for all topics, and splits no batch that a topic refuses: the narrowest counts."""
    narrowest = min((topic.largest for topic in topics), default=USUAL_LARGEST) * 9 // 10
    return {"batch.size": max(1, narrowest)} if narrowest < int(THROUGHPUT["batch.size"]) else {}


def _limits(surveyor: Surveyor, topics: Mapping[str, TopicDescription], lessons: Lessons) -> Limits:
    """What the topics take. Where the producer compresses, only the broker knows of sizes, until it refused one."""
    mirror = surveyor.mirror
    settings = {**THROUGHPUT, **surveyor.to_destination.properties, **mirror.producer}
    queue = int(settings["queue.buffering.max.kbytes"]) * 1024
    client = min(queue, int(settings["message.max.bytes"])) - CLIENT_BYTES
    compresses = {str(settings.get(key, "none")) for key in COMPRESSION} != {"none"}
    largest = {name: there.largest for name, there in topics.items()}
    times = {name: (lessons.nearer(there.behind), lessons.nearer(there.ahead)) for name, there in topics.items()}
    compacted = frozenset(name for name, there in topics.items() if there.keeps_deletions is not None)
    aside, (behind, _) = largest.pop(mirror.quarantine_topic, client), times.pop(mirror.quarantine_topic, (ANY_TIME, 0))
    narrowest = min([client, *largest.values()])
    limits = Limits(largest, narrowest, client, min(client, aside), times, behind, compresses, compacted)
    return limits if lessons.strict or not compresses else limits.lenient()


def _ledger(surveyor: Surveyor, witness: Witness) -> str:
    mirror, admin = surveyor.mirror, surveyor.destination
    if witness.topic_id is not None:
        there = admin.topics([mirror.ledger_topic]).get(mirror.ledger_topic)
        if witness.is_missing(there is not None):
            raise Unavailable(f"{admin.where}: there is no ledger {mirror.ledger_topic} now; asking once more")
        if there is None or there.topic_id != witness.topic_id:
            raise Refused(
                f'{admin.where}: ledger {mirror.ledger_topic} was deleted while mirror "{mirror.name}" ran; going on '
                f"would copy everything again: set positions by hand, or start again to begin as `start` says"
            )
    least = None if witness.topic_id is None else 1  # brokers that came while the mirror ran do not end it
    return topic.prepared(admin, mirror.ledger_topic, surveyor.ledger_replication(), least=least).topic_id


def _make_topics(surveyor: Surveyor, plan: Plan) -> dict[str, TopicDescription]:
    """Makes and grows what the plan says; those topics as they are now."""
    admin = surveyor.destination
    for creation in plan.creations:
        admin.create(creation.topic, creation.partitions, creation.replication, creation.settings)
    for growth in plan.growths:
        admin.grow(growth.topic, growth.to)
    wanted = {c.topic: c.partitions for c in plan.creations} | {g.topic: g.to for g in plan.growths}

    def ready() -> dict[str, TopicDescription] | None:
        there = admin.topics(wanted)
        whole = all(name in there and there[name].partitions >= count for name, count in wanted.items())
        return there if whole else None

    return eventually(ready, 30, f"{admin.where}: new topics and partitions {sorted(wanted)}")


def _note_beginnings(
    task: WriteTask, plan: Plan, fresh: Mapping[Partition, Followed], takes: Mapping[str, Any] | None
) -> None:
    """Writes where partitions without a position begin: one that starts at the end and dies must not jump again.

    `takes`: the mirror's `from`, where it is not what the ledger knows.
    """
    lines: list[tuple[bytes, bytes | None]] = [
        (records.loss_key(loss), records.loss_value(loss)) for loss in plan.losses
    ]
    lines += [(records.takes_key(), records.takes_value(takes, plan.spread))] if takes else []
    for partition, seen in fresh.items():
        position = replace(plan.stretches[partition].position, epoch=task.epoch)
        lines.append((records.position_key(partition), records.position_value(position)))
        lines.append((records.position_key(partition, "advance"), None))
        lines.append((records.followed_key(partition), records.followed_value(seen)))
    write_to_ledger(task, lines)


def advance(task: WriteTask, plan: Plan, positions: dict[Partition, int]) -> None:
    """Moves positions past aborted, compacted or filtered records at the end of a range, which no task ever sees."""
    ids = {route.source: route.topic_id for route in plan.routes}
    write_to_ledger(
        task,
        [
            (
                records.position_key(partition, "advance"),
                records.position_value(Position(to, ids[partition.topic], task.epoch)),
            )
            for partition, to in positions.items()
        ],
    )


def write_to_ledger(task: WriteTask, lines: Iterable[tuple[bytes, bytes | None]]) -> None:
    """One transaction of the driver's own writer, fenced like any other (B)."""
    wanted = [(task.ledger, value, key, 0) for key, value in lines]
    if wanted:
        write_all(task, wanted, f'mirror "{task.mirror}": write to the ledger')

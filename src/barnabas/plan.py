"""Pure: a mirror's rules + descriptions of both clusters + its ledger → what a run will create and copy."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from barnabas.config.mirror import Mirror
from barnabas.copied_settings import QUARANTINE_SETTINGS, carrying_settings, wanted_settings
from barnabas.errors import Lost, Refused
from barnabas.ledger.state import LedgerState
from barnabas.losses import FoundLoss, found_loss
from barnabas.model import Loss, Offsets, Partition, Position, Route, TopicDescription
from barnabas.naming import drawn_name


@dataclass(frozen=True)
class Survey:
    """What both clusters and the ledger said, for one mirror."""

    source_id: str
    destination_id: str
    source: Mapping[str, TopicDescription]
    offsets: Mapping[Partition, Offsets]
    starts: Mapping[Partition, int]  # where partitions without a position begin
    restarts: Mapping[Partition, int]  # where `start` says that any partition begins
    destination: Mapping[str, TopicDescription]
    ledger: LedgerState | None
    cuts: Mapping[Partition, int] = field(default_factory=dict)  # where leader epochs end that had our positions
    at: int = 0  # milliseconds when it was made
    seen: frozenset[str] | None = None  # the topics that were there when this process began
    goes_on: bool = False  # an epoch of this process went before
    ledger_replication: int = 1  # of the ledger and of the quarantine


@dataclass(frozen=True)
class Creation:
    topic: str
    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True)
class Growth:
    topic: str
    partitions: int
    to: int


@dataclass(frozen=True)
class Stretch:
    """What is to be copied of one partition: from its position to the end as it is now."""

    position: Position
    end: int
    known: bool  # the position comes from the ledger

    @property
    def records(self) -> int:
        return max(0, self.end - self.position.next)


@dataclass(frozen=True)
class Plan:
    mirror: str
    source_id: str
    destination_id: str
    routes: tuple[Route, ...]
    creations: tuple[Creation, ...]
    growths: tuple[Growth, ...]
    stretches: Mapping[Partition, Stretch]
    losses: tuple[Loss, ...] = ()
    absent: tuple[str, ...] = field(default=())
    gone: tuple[Route, ...] = ()  # copied before, to a topic that somebody has deleted since
    demuxed: tuple[Route, ...] = ()  # of a demux: topics that its records were found to belong to
    spread: int = 0  # of a mux: partitions of the intermediate topic

    @property
    def records(self) -> int:
        """At most: offsets of aborted or compacted records count too."""
        return sum(stretch.records for stretch in self.stretches.values())

    def last_or_next(self, records: int) -> dict[Partition, int]:
        """Where so many records stand that wait, or came last where none waits. Partitions with most to copy first."""
        filled = [(p, s) for p, s in self.stretches.items() if s.end]
        filled.sort(key=lambda one: one[1].records, reverse=True)
        return {p: max(0, min(s.position.next, s.end - records)) for p, s in filled}


def planned(mirror: Mirror, survey: Survey, met: Mapping[str, tuple[str, int]] | None = None) -> Plan:
    """The plan; Refused or Lost when a run may not start like this.

    `met`: what a demux has met so far, destination topic → source topic and its partitions.
    """
    _refuse_other_source(mirror, survey)
    routes = tuple(_route(mirror, topic) for topic in survey.source.values())
    known = survey.ledger.positions() if survey.ledger else {}
    demuxed = tuple(_demuxed_route(name, *origin) for name, origin in sorted((met or {}).items()))
    _refuse_ambiguous(mirror, (*routes, *(replace(route, source=route.destination) for route in demuxed)))
    creations, growths = _preparations(mirror, demuxed if mirror.kind == "demux" else routes, survey, known)
    if mirror.sets_aside and mirror.quarantine_topic not in survey.destination:
        quarantine = Creation(mirror.quarantine_topic, 1, survey.ledger_replication, QUARANTINE_SETTINGS)
        creations = (*creations, quarantine)
    stretches: dict[Partition, Stretch] = {}
    found = found_losses(survey)
    for route in routes:
        for number in range(route.partitions):
            partition = Partition(route.source, number)
            lost = found.get(partition)
            stretches[partition] = _stretch(mirror, route, partition, survey, known.get(partition), lost)
    return Plan(
        mirror=mirror.name,
        source_id=survey.source_id,
        destination_id=survey.destination_id,
        routes=routes,
        creations=creations,
        growths=growths,
        stretches=stretches,
        losses=tuple(it.loss for it in found.values()),
        absent=tuple(name for name in mirror.select.names if name not in survey.source),
        gone=tuple(r for r in routes if mirror.kind != "demux" and _is_gone(r, survey, known)),
        demuxed=demuxed,
        spread=_spread(mirror, survey, creations),
    )


def _is_gone(route: Route, survey: Survey, known: Mapping[Partition, Position]) -> bool:
    copied = (known.get(Partition(route.source, number)) for number in range(route.partitions))
    return route.destination not in survey.destination and any(at is not None and at.next > 0 for at in copied)


def _route(mirror: Mirror, topic: TopicDescription) -> Route:
    return Route(
        number=route_number(topic.name),
        source=topic.name,
        topic_id=topic.topic_id,
        destination=drawn_name(mirror, topic.name),
        partitions=topic.partitions,
    )


def _demuxed_route(destination: str, source: str, partitions: int) -> Route:
    return Route(route_number(destination), source, "", destination, partitions)


def _spread(mirror: Mirror, survey: Survey, creations: tuple[Creation, ...]) -> int:
    if mirror.kind != "mux":
        return 0
    there = survey.destination.get(mirror.intermediate_topic)
    now = there.partitions if there else max((creation.partitions for creation in creations), default=1)
    first = survey.ledger.spread if survey.ledger else 0
    return min(first or now, now)  # over more, a source partition would go on elsewhere, and overtake itself


def route_number(topic: str) -> int:
    """The same number that Spark SQL's crc32 gives: eight bytes a record, and no look-up in the data path."""
    return zlib.crc32(topic.encode())


def _refuse_other_source(mirror: Mirror, survey: Survey) -> None:
    if mirror.kind == "mirror" and survey.source_id == survey.destination_id:
        raise Refused(
            f'mirror "{mirror.name}": "{mirror.source}" and "{mirror.destination}" are one cluster, '
            f"{survey.source_id}; records would be copied onto themselves: change `source` or `destination`"
        )
    before = survey.ledger.source_cluster if survey.ledger else ""
    if before and before != survey.source_id:
        raise Refused(
            f'mirror "{mirror.name}": ledger {mirror.ledger_topic} belongs to source cluster {before} and "'
            f'{mirror.source}" is {survey.source_id}; its offsets mean nothing there: give the mirror another name'
        )


def _refuse_ambiguous(mirror: Mirror, routes: tuple[Route, ...]) -> None:
    by_number: dict[int, str] = {}
    by_destination: dict[str, str] = {}
    for route in routes:
        twin = by_number.setdefault(route.number, route.source)
        if twin != route.source:
            raise Refused(
                f'mirror "{mirror.name}": {twin} and {route.source} have the same route number {route.number}; '
                f"move one of them to a mirror of its own"
            )
        other = by_destination.setdefault(route.destination, route.source)
        if other != route.source and not mirror.merge and mirror.kind == "mirror":
            raise Refused(
                f'mirror "{mirror.name}": {other} and {route.source} both become {route.destination}; '
                f"say `merge: true` if that is wanted"
            )


def _preparations(
    mirror: Mirror, routes: tuple[Route, ...], survey: Survey, known: Mapping[Partition, Position]
) -> tuple[tuple[Creation, ...], tuple[Growth, ...]]:
    creations: dict[str, Creation] = {}
    growths: dict[str, Growth] = {}
    for route in routes:
        there = survey.destination.get(route.destination)
        if there is None:
            made = _creation(mirror, route, survey)
            twin = creations.get(made.topic)
            if twin is None or twin.partitions < made.partitions:
                creations[made.topic] = made
        elif there.partitions < route.partitions and mirror.partitioning == "keep" and mirror.kind != "mux":
            began = mirror.kind == "demux" or Partition(route.source, 0) in known
            grown = _growth(mirror, route, there, began=began)
            twin_growth = growths.get(grown.topic)
            if twin_growth is None or twin_growth.to < grown.to:
                growths[grown.topic] = grown
    return tuple(creations.values()), tuple(growths.values())


def _model_topic(route: Route, survey: Survey) -> TopicDescription:
    """What a new topic is modelled on. A demux never sees the original: its partitions it knows, its settings not."""
    if route.source in survey.source:
        return survey.source[route.source]
    replication = max((topic.replication for topic in survey.source.values()), default=1)
    return TopicDescription(route.source, "", route.partitions, replication)


def _creation(mirror: Mirror, route: Route, survey: Survey) -> Creation:
    source = _model_topic(route, survey)
    if not mirror.topics.create:
        raise Refused(
            f'mirror "{mirror.name}": destination "{mirror.destination}" has no topic {route.destination} and '
            f"`topics.create` is false: create it with at least {route.partitions} partitions"
        )
    partitions = mirror.topics.partitions.of(source.partitions)
    if partitions < source.partitions and mirror.partitioning == "keep" and mirror.kind != "mux":
        raise Refused(
            f'mirror "{mirror.name}": {route.destination} would get {partitions} partitions and {route.source} has '
            f"{source.partitions}; set `partitioning: key` if records may move between partitions"
        )
    return Creation(
        route.destination,
        partitions,
        mirror.topics.replication.of(source.replication),
        carrying_settings(mirror, survey.source.values()) if mirror.kind == "mux" else wanted_settings(mirror, source),
    )


def _growth(mirror: Mirror, route: Route, there: TopicDescription, *, began: bool) -> Growth:
    """The source grew after we began: the destination follows. One that was smaller before is not ours to grow."""
    if mirror.topics.create and began:
        return Growth(there.name, there.partitions, route.partitions)
    raise Refused(
        f'mirror "{mirror.name}": {there.name} at "{mirror.destination}" has {there.partitions} partitions and '
        f"{route.source} has {route.partitions}; add partitions, or set `partitioning: key` to spread by key"
    )


def found_losses(survey: Survey) -> dict[Partition, FoundLoss]:
    """What is gone of each partition with a position, as the survey shows it."""
    if survey.ledger is None:
        return {}
    positions, seen = survey.ledger.positions(), survey.ledger.evidence()
    found = {
        partition: found_loss(
            partition,
            positions[partition],
            survey.source[partition.topic],
            log,
            seen=seen[partition],
            cut=survey.cuts.get(partition),
            now=survey.at,
            goes_on=survey.goes_on,
        )
        for partition, log in survey.offsets.items()
        if partition in positions
    }
    return {partition: lost for partition, lost in found.items() if lost is not None}


def _stretch(
    mirror: Mirror,
    route: Route,
    partition: Partition,
    survey: Survey,
    known: Position | None,
    lost: FoundLoss | None,
) -> Stretch:
    log = survey.offsets[partition]
    if known is None:
        return Stretch(Position(survey.starts[partition], route.topic_id), log.end, known=False)
    if lost is None:
        return Stretch(known, log.end, known=True)
    if mirror.on_loss == "stop":
        raise Lost(
            f'mirror "{mirror.name}": {partition} position {known.next}, log [{log.first}, {log.end}): '
            f"{lost.loss.reason}; set `on_loss: record` to note it and go on, or `restart` to begin as `start` says"
        )
    # never below: what a cut-off log still has was copied before it was cut
    begin = max(survey.restarts[partition], lost.onward) if lost.begins_anew(mirror.on_loss) else lost.onward
    return Stretch(Position(begin, route.topic_id), log.end, known=False)

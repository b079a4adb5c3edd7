"""Asks both clusters and the ledger what a plan must know. Reads only."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from barnabas.beginning import refuse_outside
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.config.schemas import registry_settings
from barnabas.config.start import Start
from barnabas.errors import BarnabasError, ConfigError, Refused, Unavailable
from barnabas.kafka.admin import Admin
from barnabas.kafka.epoch_ends import epoch_ends
from barnabas.kafka.producer import refuse_unknown
from barnabas.kafka.settings import connection
from barnabas.ledger.former import former_ledgers
from barnabas.ledger.records import now
from barnabas.ledger.state import LedgerState
from barnabas.ledger.topic import ledger_partition, read_state
from barnabas.model import Connection, Offsets, Partition, Route, TopicDescription
from barnabas.naming import destination_name, selected
from barnabas.plan import Survey
from barnabas.schemas.settings import TopicRoute, TranslationSettings
from barnabas.topology import refuse_circles_and_collisions, rivals

OTHERS_SECONDS = 5.0

log = logging.getLogger(__name__)


class Surveyor:
    """The two clusters of one mirror, reached with the secrets as they are now."""

    def __init__(self, configuration: Configuration, mirror: Mirror) -> None:
        self.mirror = mirror
        self._together = configuration.together()
        clusters = self._clusters = configuration.clusters
        self.to_source: Connection = connection(mirror.source, clusters[mirror.source])
        self.to_destination: Connection = connection(mirror.destination, clusters[mirror.destination])
        self.source, self.destination = (
            _admin(to, configuration.places.get(to.cluster, "")) for to in (self.to_source, self.to_destination)
        )
        refuse_unknown(self.to_destination, mirror.producer, f'{mirror.place}: mirror "{mirror.name}"')

    def survey(self, seen: frozenset[str] | None = None, met: Iterable[str] = ()) -> Survey:
        """`seen`: the topics that were there when this process began; a later one is copied from its first record.

        `met`: the destination topics that a demux has met so far.
        """
        source = self.topics()
        refuse_circles_and_collisions(self._together, self._names(source), of=self.mirror.name)
        found = self.source_and_ledger(source)
        offsets, ledger = found.offsets, found.ledger
        demux = self.mirror.kind == "demux"
        destinations = list(met) if demux else [destination_name(self.mirror, name) for name in source]
        if self.mirror.sets_aside:
            destinations.append(self.mirror.quarantine_topic)
        return replace(
            found,
            source_id=self.source.cluster_id(),
            destination_id=self.destination.cluster_id(),
            starts=self._starts(offsets, ledger, seen),
            seen=seen,
            restarts=self.starting_at(self.mirror.start, offsets) if self.mirror.on_loss == "restart" else {},
            destination=self.destination.topics(destinations),
            ledger_replication=self.ledger_replication() if self.mirror.sets_aside else 1,
        )

    def source_and_ledger(self, source: Mapping[str, TopicDescription]) -> Survey:
        """The part of a survey that tells what was copied, and what is lost. Positions first: ends only grow."""
        ledger = self.ledger()
        if ledger is None:
            self._warn_of_former_ledgers(source)
        offsets = self.source.offsets([Partition(t.name, n) for t in source.values() for n in range(t.partitions)])
        cuts = self._cuts(ledger, source, offsets)
        return Survey("", "", source, offsets, {}, {}, {}, ledger, cuts, now())

    def surveyed_again(self, survey: Survey, ledger: LedgerState) -> Survey:
        """The same with the ledger as it is after fencing (C), and the source's logs as they are after that.

        Until then an older run copied on, past the ends that `survey` has: its last records would look cut off.
        """
        logs = self.source.offsets(survey.offsets)
        cuts = self._cuts(ledger, survey.source, logs)
        starts = self._starts_again(survey, ledger, logs)
        return replace(survey, ledger=ledger, offsets=logs, cuts=cuts, starts=starts, at=now())

    def _starts_again(
        self, survey: Survey, ledger: LedgerState, logs: Mapping[Partition, Offsets]
    ) -> Mapping[Partition, int]:
        """Where partitions begin, if the ledger knows more than the survey was told: an old answer may hide some."""
        known = survey.ledger or LedgerState(ledger.topic)
        if known.takes == ledger.takes and known.positions().keys() == ledger.positions().keys():
            return survey.starts
        return self._starts(logs, ledger, survey.seen)

    def _cuts(
        self, ledger: LedgerState | None, source: Mapping[str, TopicDescription], offsets: Mapping[Partition, Offsets]
    ) -> dict[Partition, int]:
        """Where the leader epochs end now that had our positions, for logs that end before those positions.

        While a partition's leader is the one of then nothing was cut off, and nothing is asked.
        """
        evidence = {
            partition: seen
            for partition, seen in (ledger.evidence() if ledger else {}).items()
            if partition in offsets
            and seen.topic_id == source[partition.topic].topic_id
            and 0 <= seen.leader_epoch < offsets[partition].leader_epoch
        }
        ends = epoch_ends(self.to_source, {p: seen.leader_epoch for p, seen in evidence.items()})
        return {partition: end for partition, end in ends.items() if end < evidence[partition].next}

    def topics(self) -> dict[str, TopicDescription]:
        """The source topics the mirror takes, as they are now."""
        by_name = not self.mirror.select.match
        names = self.mirror.select.names if by_name else selected(self.mirror, self.source.topic_names())
        return self.source.topics(names)

    def _names(self, own: Iterable[str]) -> dict[str, set[str]]:
        """Our topics, and all names of the clusters whose topics others copy to our destination: two may become one.

        A cluster that does not answer holds nobody up but its own mirrors.
        """
        names = {self.mirror.source: set(own)}
        for cluster in rivals(self._together, self.mirror):
            try:
                admin = self.source
                if cluster != self.mirror.source:
                    admin = Admin(connection(cluster, self._clusters[cluster]))
                names[cluster] = names.get(cluster, set()) | set(admin.topic_names(OTHERS_SECONDS))
            except BarnabasError as error:
                log.info('mirror "%s": not compared with the topics of others: %s', self.mirror.name, error)
        return names

    def translation(self, routes: Iterable[Route]) -> TranslationSettings | None:
        """What workers need to translate schema ids; None where schemas do not matter. Secrets are read now."""
        mirror, clusters = self.mirror, self._clusters
        if mirror.schemas is None:
            return None
        name, source = mirror.source_registry(clusters)
        destination = clusters[mirror.destination].registry
        assert destination  # the configuration was refused otherwise
        return TranslationSettings(
            mirror=mirror.name,
            source=registry_settings(name, source),
            destination=registry_settings(mirror.destination, destination),
            rules=mirror.schemas.rules(mirror.on_bad_schema),
            routes=tuple(TopicRoute(route.number, route.source, route.destination) for route in routes),
        )

    def ledger_replication(self) -> int:
        """Of the ledger and of the quarantine: as configured, or three where there are so many brokers."""
        if self.mirror.ledger.replication:
            return self.mirror.ledger.replication
        # A broker that is down is not counted. What the cluster made for itself tells how many there should be.
        there = self.destination.broker_count()
        with suppress(Refused):  # not allowed to describe them
            own = self.destination.topics(["__transaction_state", "__consumer_offsets"]).values()
            there = max(there, *(topic.replication for topic in own), 1)
        return min(3, there)

    def ledger(self) -> LedgerState | None:
        """The ledger as its committed records tell, or None when there is none yet.

        The end may be an old answer: good enough to plan with, and a take-over reads on from there.
        """
        topic = self.mirror.ledger_topic
        if topic not in self.destination.topics([topic]):
            return None
        end = self.destination.offsets([ledger_partition(topic)])[ledger_partition(topic)].end
        return read_state(self.to_destination, topic, end, committed=True)

    def _warn_of_former_ledgers(self, source: Mapping[str, TopicDescription]) -> None:
        known = {mirror.ledger_topic for mirror in (*self._together, self.mirror)}
        ids = {topic.topic_id for topic in source.values()}
        former = former_ledgers(self.to_destination, self.destination, known, ids)
        if former:
            log.warning(
                'mirror "%s" has no ledger yet; %s at "%s" holds positions of the same topics: was the mirror renamed? '
                "Everything is copied again, as `start` says; give it its old name to go on where it was",
                self.mirror.name,
                " and ".join(former),
                self.mirror.destination,
            )

    def _starts(
        self, offsets: Mapping[Partition, Offsets], ledger: LedgerState | None, seen: frozenset[str] | None
    ) -> dict[Partition, int]:
        """Where partitions without a position begin: as `start` says, but a new one at its first record.

        New is what came while the mirror ran, or was down.
        """
        known = ledger.positions() if ledger else {}  # these begin again only by `on_loss: restart`, as `start` says
        begun = {partition.topic for partition in known}
        came = self.came_later(ledger)
        late = {p for p in offsets if came or p.topic in begun or (seen is not None and p.topic not in seen)}
        new = late - known.keys()
        rest = {p: log for p, log in offsets.items() if p not in new}
        refuse_outside(self.mirror, {p: log for p, log in rest.items() if p not in known})
        return {p: offsets[p].first for p in new} | self.starting_at(self.mirror.start, rest)

    def came_later(self, ledger: LedgerState | None) -> bool:
        """Whether a topic without a position came after the mirror's last run: all that was there then has one. Not so
        one that is there for long and was added to `from` since."""
        return ledger is not None and ledger.takes == self.mirror.takes

    def starting_at(self, start: Start, offsets: Mapping[Partition, Offsets]) -> dict[Partition, int]:
        """A starting point as an offset of each partition, within what its log has."""
        if start.at == "timestamp":
            return self.source.offsets_at(offsets, start.millis or 0)
        if start.at == "latest":
            return {p: log.end for p, log in offsets.items()}
        chosen = {p: start.offsets.get(p.topic, {}).get(p.number, log.first) for p, log in offsets.items()}
        return {p: min(max(at, offsets[p].first), offsets[p].end) for p, at in chosen.items()}


def surveyor_anew(configuration: Configuration, mirror: Mirror) -> Surveyor:
    """For a mirror that has run: where its settings make no clients now, a file they name is being replaced."""
    try:
        return Surveyor(configuration, mirror)
    except ConfigError as error:
        raise Unavailable(str(error)) from None


def _admin(to: Connection, place: str) -> Admin:
    """An admin client; where the cluster's settings allow none, the error says where they stand."""
    try:
        return Admin(to)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}" if place else str(error)) from None

"""Runs a mirror: survey, plan, take over, stream, watch, and again under a new epoch when something broke.

The only place that retries.
"""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas import failures, query, session
from barnabas.board import MirrorBoard
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError, Refused, TopicsNeeded, Unavailable
from barnabas.follower import Follower
from barnabas.kafka.sample import RECORDS_OF_EACH, mean_record_bytes
from barnabas.ledger.alive import give_one
from barnabas.ledger.takeover import Epoch, release
from barnabas.losses import Doubts
from barnabas.model import Partition
from barnabas.patience import Patience
from barnabas.plan import Plan, Survey
from barnabas.preparation import Prepared, advance, prepare
from barnabas.receipts import ReceiptListener
from barnabas.schemas.resolver import Resolver, made_of
from barnabas.survey import Surveyor, surveyor_anew
from barnabas.topology import is_written
from barnabas.watch import Watch

LOOK_SECONDS = 0.2
SAMPLE_SECONDS = 1.0
LAST_SECONDS = 4.0  # a clean stop is over in ten
HEALTHY_SECONDS = 600.0  # an epoch that lasted so long was a good one, whether or not there was anything to copy

log = logging.getLogger(__name__)


class Replication:
    """One mirror from its first survey to its end."""

    def __init__(
        self,
        spark: SparkSession,
        configuration: Configuration,
        mirror: Mirror,
        *,
        board: MirrorBoard,
        listener: ReceiptListener,
        stop: threading.Event,
        until_caught_up: bool,
        run: str,
    ) -> None:
        self.spark = spark
        self.configuration = configuration
        self.mirror = mirror
        self.board = board
        self.listener = listener
        self.stop = stop
        self.until_caught_up = until_caught_up
        self.run_name = run
        self.where = f'mirror "{mirror.name}"'
        self._ledger_id: str | None = None
        self._topics_seen: frozenset[str] | None = None
        self._absent: list[str] = []
        self._last_epoch: int | None = None
        self._held: tuple[Surveyor, Epoch] | None = None  # the last epoch, and how its clusters were reached
        self._queries = 0
        self._positions: dict[Partition, int] = {}
        self._moved = False  # whether they have, since the epoch before
        self._resolver: Resolver | None = None
        self._record_bytes: float | None = None  # of one, by a sample
        self._doubts = Doubts()
        self._weighs = False  # whether its records are so large that batches of them are weighed
        self._met: dict[str, tuple[str, int]] = {}  # by a demux: destination topic → source topic, partitions

    def run(self) -> None:
        """Copies until stopped, done or refused. Every failure in between ends an epoch and begins the next."""
        patience = Patience(gives_up=self.until_caught_up)
        while not self.stop.is_set():
            before, began, self._moved = self.board.records, time.monotonic(), False
            try:
                if self._copy_for_an_epoch():
                    break
            except Exception as error:  # noqa: BLE001 - named below, by the table of failures
                failure = failures.named(error, self.where)
                if self.stop.is_set():
                    break
                if session.ended(self.spark):
                    failure = Refused(f"{self.where}: Spark's JVM is gone: killed, or out of memory? Start again")
                if isinstance(failure, TopicsNeeded):
                    self._met |= failure.needed()
                    continue
                if isinstance(failure, failures.BatchTooLarge) and not self._weighs and session.can_weigh(self.spark):
                    log.info("%s; from here on batches are weighed", failure)
                    self._weighs = True
                    continue
                well = self._moved or self.board.records > before or time.monotonic() - began > HEALTHY_SECONDS
                pause = patience.after(failure, well=well)
                if pause is None:
                    self._release(ends=True)
                    self.board.change("refused", failure)
                    return
                self.board.change("waiting", failure)
                self._wait(pause)
        self.board.change("stopped" if self.stop.is_set() else "done")
        if self._held is not None:  # it was stopped while it waited, perhaps for a cluster that does not answer
            last = threading.Thread(target=self._release, kwargs={"ends": True}, daemon=True)
            last.start()
            last.join(LAST_SECONDS)

    def _copy_for_an_epoch(self) -> bool:
        """One epoch: True when nothing is left to do, False when the topics changed and a new epoch is due."""
        surveyor = (Surveyor if self._last_epoch is None else surveyor_anew)(self.configuration, self.mirror)
        survey = surveyor.survey(self._topics_seen, self._met)
        self._tell_absent(survey)
        if not survey.source:
            return self._no_topic()
        self.board.see(survey.offsets)
        self._hold_for_registries(surveyor)
        if self._last_epoch is not None:
            surveyor.refuse_newer_epoch(self._last_epoch, self.run_name)
        prepared = prepare(
            surveyor, survey, run=self.run_name, ledger_id=self._ledger_id, doubts=self._doubts, met=self._met
        )
        self._last_epoch, self._ledger_id = prepared.epoch.number, prepared.ledger_id
        self._topics_seen = self._topics_seen or frozenset(survey.source)
        positions = {partition: stretch.position.next for partition, stretch in prepared.plan.stretches.items()}
        self._moved, self._positions = positions != self._positions, positions  # a failed epoch may have committed
        self._tell_gone(prepared.plan)
        self.board.begin(prepared.plan, prepared.epoch.number)
        watch = Watch(surveyor, prepared)
        self._held, over = (surveyor, prepared.epoch), False
        try:
            if self._record_bytes is None:
                self._record_bytes = self._sampled(surveyor, prepared)
                self._weighs = session.too_large(self.spark, self._record_bytes)
            over = self._stream(prepared, watch, Follower(surveyor, prepared))
            return over
        except BarnabasError as failure:
            if self._resolver is not None:
                self._resolver.count(failure)
            raise
        finally:
            watch.close()
            self._release(ends=over or self.stop.is_set())

    def _hold_for_registries(self, surveyor: Surveyor) -> None:
        """Unavailable while a registry does not answer: nothing untranslated passes, so nothing flows."""
        settings = surveyor.translation(())
        if settings is None:
            return
        if self._resolver is None or self._resolver.made_of != made_of(settings):
            self._resolver = Resolver(settings)
            self.board.breakers = self._resolver.breakers
        self._resolver.hold()
        self._resolver.ping()

    def _sampled(self, surveyor: Surveyor, prepared: Prepared) -> float:
        """Bytes of a record, by a few that wait, or came last where none does; of the partitions with most to copy."""
        filled = [(p, s) for p, s in prepared.plan.stretches.items() if s.end]
        filled.sort(key=lambda one: one[1].records, reverse=True)
        positions = {p: max(0, min(s.position.next, s.end - RECORDS_OF_EACH)) for p, s in filled}
        return mean_record_bytes(surveyor.to_source, positions, SAMPLE_SECONDS) or 0.0

    def _release(self, *, ends: bool) -> None:
        """Leaves no transaction open; where that fails, the next take-over or the broker's time limit sees to it."""
        if self._held is None:
            return
        surveyor, epoch = self._held
        self._held = None if ends else self._held
        try:
            release(surveyor.to_destination, surveyor.destination, self.mirror.ledger_topic, epoch, ends=ends)
        except Exception as error:  # noqa: BLE001 - the failure that led here counts, not this one
            log.info("%s: writers are not released yet: %s", self.where, failures.named(error, self.where))

    def _wait(self, seconds: float) -> None:
        """Pauses between two epochs; a mirror that waits runs, and gives signs of life."""
        until = time.monotonic() + seconds
        while not self.stop.is_set() and (left := until - time.monotonic()) > 0:
            if self._held is not None:
                with suppress(Exception):  # one that cannot be given is none; the mirror goes on waiting
                    surveyor, epoch = self._held
                    give_one(surveyor.to_destination, self.mirror.ledger_topic, epoch.run, epoch.number)
            self.stop.wait(min(left, Watch.ALIVE_SECONDS))

    def _tell_absent(self, survey: Survey) -> None:
        """Says once which of the named topics are missing; Refused for one never seen if what is there is all.

        Not for one that another mirror makes: its name is right, and perhaps there was nothing to put into it yet.
        """
        absent = [name for name in self.mirror.select.names if name not in survey.source]
        seen = {partition.topic for partition in survey.ledger.positions()} if survey.ledger and survey.source else ()
        sentence = f'{self.where}: source "{self.mirror.source}" has no topic {", ".join(absent)}'
        others = self.configuration.together()
        unknown = [n for n in absent if n not in seen and not is_written(others, (self.mirror.source, n))]
        if self.until_caught_up and unknown:
            raise Refused(f"{sentence}: is the name right?")
        if survey.source and absent and absent != self._absent:
            log.warning("%s: is the name right, or was it deleted?", sentence)
        self._absent = absent if survey.source else []

    def _tell_gone(self, plan: Plan) -> None:
        for name in dict.fromkeys(route.destination for route in plan.gone):
            log.warning(
                '%s: "%s" has no topic %s, to which this mirror has copied: was it deleted, or has `to` changed? It is '
                "made anew and gets what is copied from here on; `position set` brings older records again",
                self.where,
                self.mirror.destination,
                name,
            )

    def _no_topic(self) -> bool:
        """No topic is there yet: wait for one, unless only what is there was asked for."""
        what = ", ".join((*self.mirror.select.names, *self.mirror.select.match))
        sentence = f'{self.where}: source "{self.mirror.source}" has no topic {what} yet'
        if not self.until_caught_up:
            self._topics_seen = self._topics_seen or frozenset()
            self.board.hold(Unavailable(sentence))
            self.stop.wait(Watch.TOPIC_SECONDS)
        else:
            log.warning("%s: there is nothing to copy", sentence)
        return self.until_caught_up

    def _stream(self, prepared: Prepared, watch: Watch, follower: Follower) -> bool:
        """Starts the query and looks after it until it ends, is stopped, or the topics change."""
        with tempfile.TemporaryDirectory(prefix="barnabas-query-", ignore_cleanup_errors=True) as place:
            self._queries += 1
            name = f"{self.mirror.name}#{self._queries}"
            self.listener.follow(name, self.board)
            running = self._started(prepared, name, Path(place) / "checkpoint")
            try:
                over = self._look_after(running, prepared, watch, follower)
            finally:
                self._stop(running)
                self.listener.forget(name)
            follower.look_last(self.board)
            return over

    def _look_after(self, running: StreamingQuery, prepared: Prepared, watch: Watch, follower: Follower) -> bool:
        batches = self.board.batches
        while not self.stop.wait(LOOK_SECONDS):
            if self._resolver is not None and self.board.batches > batches:
                self._resolver.settle()
            if not running.isActive:
                failed = running.exception()
                if failed is not None:
                    raise failures.explained(str(failed), self.where)
                self.listener.catch_up(running)
                behind = {partition: left.next for partition, left in self.board.behind_plan().items()}
                advance(prepared.task, prepared.plan, behind)
                self.board.advanced(behind)
                return self.until_caught_up
            watch.give_sign_of_life()
            watch.refuse_newer_epoch()
            if watch.topics_changed():
                return False
            follower.look(self.board)
            stale = watch.stale(self.board.behind_plan())
            if stale:
                advance(prepared.task, prepared.plan, stale)
                self.board.advanced(stale)
        return True

    def _started(self, prepared: Prepared, name: str, checkpoint: Path) -> StreamingQuery:
        return query.started(
            self.spark,
            self.configuration.clusters[self.mirror.source],
            self.mirror,
            prepared,
            name=name,
            checkpoint=checkpoint,
            until_caught_up=self.until_caught_up,
            record_bytes=self._record_bytes or 0.0,
            weighs=self._weighs,
        )

    def _stop(self, running: StreamingQuery) -> None:
        """Stops the query and counts all it did; one that ended by itself, or whose Spark is gone, needs no stop."""
        try:
            running.stop()
            self.listener.catch_up(running)
        except Exception as error:  # noqa: BLE001 - py4j raises what the dying JVM leaves it
            log.debug("stopping the query: %s", error)

"""Runs a mirror: survey, plan, take over, stream, watch, and again under a new epoch when something broke.

The only place that retries.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from barnabas import failures, missing, query, session, unreadable
from barnabas.board import MirrorBoard
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError, Refused, Unavailable
from barnabas.follower import Follower
from barnabas.kafka.sample import RECORDS_OF_EACH, mean_record_bytes
from barnabas.ledger.alive import give_one
from barnabas.ledger.takeover import Epoch, refuse_taken, release
from barnabas.ledger.witness import Witness
from barnabas.lessons import Lessons
from barnabas.losses import Doubts
from barnabas.model import Partition
from barnabas.patience import Patience
from barnabas.plan import Survey
from barnabas.preparation import Prepared, advance, prepare
from barnabas.receipts import ReceiptListener
from barnabas.schemas.resolver import Resolver, made_of
from barnabas.stopping import Abandoned, unless_stopped
from barnabas.survey import Surveyor, surveyor_anew
from barnabas.watch import Watch

Result = TypeVar("Result")

LOOK_SECONDS = 0.2
SAMPLE_SECONDS = 1.0
LAST_SECONDS = 3.0  # a clean stop is over in ten
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
        self._topics_seen: frozenset[str] | None = None
        self._absent: list[str] = []
        self._witness = Witness()
        self._held: tuple[Surveyor, Epoch] | None = None  # the last epoch, and how its clusters were reached
        self._queries = 0
        self._positions: dict[Partition, int] = {}
        self._moved = False  # whether they have, since the epoch before
        self._resolver: Resolver | None = None
        self._record_bytes: float | None = None  # of one, by a sample
        self._doubts = Doubts()
        self._lessons = Lessons(mirror)

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
                if self._lessons.learn(failure, can_weigh=partial(session.can_weigh, self.spark)):
                    continue
                well = self._moved or self.board.records > before or time.monotonic() - began > HEALTHY_SECONDS
                pause = patience.after(failure, well=well)
                if pause is None:
                    self.board.change("refused", failure)
                    self._at_last(partial(self._release, ends=True))
                    return
                self.board.change("waiting", failure)
                self._wait(pause)
        self.board.change("stopped" if self.stop.is_set() else "done")
        if self._held is not None:  # it was stopped while it waited, perhaps for a cluster that does not answer
            self._at_last(partial(self._release, ends=True))

    def _copy_for_an_epoch(self) -> bool:
        """One epoch: True when nothing is left to do, False when the topics changed and a new epoch is due."""
        surveyor = (Surveyor if self._witness.epoch is None else surveyor_anew)(self.configuration, self.mirror)
        survey = self._asked(lambda: surveyor.survey(self._topics_seen, self._lessons.hub.names))
        self._lessons.hub.admit(survey.destination)
        self._absent = missing.told(survey, self._absent, self.configuration, self.mirror, ends=self.until_caught_up)
        if not survey.source:
            return self._no_topic()
        self.board.see(survey.offsets)
        self._asked(lambda: self._hold_for_registries(surveyor))
        prepared = self._asked(lambda: self._prepared(surveyor, survey))
        self._witness.epoch, self._witness.topic_id = prepared.epoch.number, prepared.ledger_id
        self._topics_seen = self._topics_seen or frozenset(survey.source)
        positions = {partition: stretch.position.next for partition, stretch in prepared.plan.stretches.items()}
        self._moved, self._positions = positions != self._positions, positions  # a failed epoch may have committed
        missing.tell_gone(self.mirror, prepared.plan)
        self.board.begin(prepared.plan, prepared.epoch.number)
        self.board.ledger(prepared.epoch.state.read_records, prepared.epoch.state.read_bytes)
        watch: Watch | None = (watching := Watch(surveyor, prepared))
        self._held, over = (surveyor, prepared.epoch), False
        try:
            if self._record_bytes is None:
                self._record_bytes = self._asked(lambda: self._sampled(surveyor, prepared))
                self._lessons.weighs = session.too_large(self.spark, self._record_bytes)
            if self._asked(lambda: unreadable.passed(surveyor.to_source, prepared, self._lessons)):
                return False
            over = self._stream(prepared, watching, Follower(surveyor, prepared)) and not self._lessons.unread
            return over
        except Abandoned:  # a thread of ours still uses the watch
            watch = None
            raise
        except BarnabasError as failure:
            if self._resolver is not None:
                self._resolver.count(failure)
            raise
        finally:
            self._witness.positions = prepared.positions(self.board.committed)
            self._at_last(lambda: self._end_epoch(watch, over=over))

    def _prepared(self, surveyor: Surveyor, survey: Survey) -> Prepared:
        if survey.ledger is not None:
            refuse_taken(survey.ledger, run=self.run_name, after=self._witness.epoch)
        prepared = prepare(
            surveyor, survey, self._lessons, run=self.run_name, witness=self._witness, doubts=self._doubts
        )
        return unreadable.bounded(prepared, self._lessons.unread)

    def _end_epoch(self, watch: Watch | None, *, over: bool) -> None:
        if watch is not None:
            watch.close()
        self._release(ends=over or self.stop.is_set())

    def _asked(self, ask: Callable[[], Result]) -> Result:
        """What a cluster answers; a run that is to stop does not wait for it."""
        return unless_stopped(ask, self.stop)

    def _at_last(self, end: Callable[[], None]) -> None:
        """What is left to do, for a run that stops as far as the clusters let us."""
        try:
            unless_stopped(end, self.stop, LAST_SECONDS)
        except Abandoned:
            log.info("%s: left without an answer; the next run or the broker ends what is open", self.where)

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
        positions = prepared.plan.last_or_next(RECORDS_OF_EACH)
        return mean_record_bytes(surveyor.to_source, positions, SAMPLE_SECONDS) or 0.0

    def _release(self, *, ends: bool) -> None:
        """Leaves no transaction open; where that fails, the next take-over or the broker's time limit sees to it."""
        if self._held is None:
            return
        surveyor, epoch = self._held
        self._held = None if ends else self._held
        try:
            release(surveyor.to_destination, self.mirror.ledger_topic, epoch, ends=ends)
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
        with session.query_directory(self.spark) as place:
            self._queries += 1
            name = f"{self.mirror.name}#{self._queries}"
            self.listener.follow(name, self.board)
            running = self._started(prepared, name, Path(place) / "checkpoint")
            try:
                over = self._look_after(running, prepared, watch, follower)
            finally:
                with suppress(Abandoned):
                    self._asked(lambda: self._stop(running))
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
                if failed is None or self._lessons.unread:
                    self.listener.catch_up(running)
                    self._asked(lambda: self._advance(prepared, self._behind()))
                if failed is not None:
                    raise failures.explained(str(failed), self.where)
                return self.until_caught_up
            watch.tail.refuse_newer_epoch()
            self.board.ledger(watch.tail.records, watch.tail.bytes)
            if watch.is_due() and self._asked(lambda: self._topics_changed(prepared, watch, follower)):
                return False
        return True

    def _topics_changed(self, prepared: Prepared, watch: Watch, follower: Follower) -> bool:
        """All that the driver looks at while a query runs."""
        watch.give_sign_of_life()
        if watch.topics_changed():
            return True
        follower.look(self.board)
        self._advance(prepared, watch.stale(self.board.behind_plan()))
        return False

    def _behind(self) -> dict[Partition, int]:
        return {partition: left.next for partition, left in self.board.behind_plan().items()}

    def _advance(self, prepared: Prepared, to: dict[Partition, int]) -> None:
        if to:
            advance(prepared.task, prepared.plan, to)
            self.board.advanced(to)

    def _started(self, prepared: Prepared, name: str, checkpoint: Path) -> StreamingQuery:
        return query.started(
            self.spark,
            self.configuration.clusters[self.mirror.source],
            unreadable.up_to(self.mirror, prepared, self._lessons.unread),
            prepared,
            name=name,
            checkpoint=checkpoint,
            until_caught_up=self.until_caught_up or bool(self._lessons.unread),
            record_bytes=self._record_bytes or 0.0,
            weighs=self._lessons.weighs,
        )

    def _stop(self, running: StreamingQuery) -> None:
        """Stops the query and counts all it did; one that ended by itself, or whose Spark is gone, needs no stop."""
        try:
            running.stop()
            self.listener.catch_up(running)
        except Exception as error:  # noqa: BLE001 - py4j raises what the dying JVM leaves it
            log.debug("stopping the query: %s", error)

"""`barnabas run`: copies until stopped, or until caught up."""

from __future__ import annotations

import argparse
import logging
import threading
import time
from collections.abc import Sequence

from barnabas import jvm
from barnabas.board import MirrorBoard
from barnabas.commands.choose import chosen
from barnabas.commands.failed import told
from barnabas.commands.signals import stopped_by_signals
from barnabas.commands.view import summary, watch
from barnabas.config.load import Configuration
from barnabas.config.metrics import MetricRules
from barnabas.config.mirror import Mirror
from barnabas.errors import BarnabasError, Refused
from barnabas.metrics import Collector, report, serve
from barnabas.replicator import Replicator
from barnabas.session import session
from barnabas.warmup import warm_up

STOP_SECONDS = 8.0

log = logging.getLogger("barnabas")


def run(args: argparse.Namespace, configuration: Configuration) -> int:
    started = time.monotonic()
    with stopped_by_signals() as stop:
        boards = copy(configuration, chosen(args, configuration), until_caught_up=args.until_caught_up, stop=stop)
    for board in boards:
        print(summary(board, time.monotonic() - started), flush=True)
    return told([error for board in boards if (error := failure(board)) is not None])


def failure(board: MirrorBoard) -> BarnabasError | None:
    """Why a mirror did not end as it should; None for one that is done, or was stopped."""
    if board.state in ("done", "stopped"):
        return None
    if board.state == "refused" and board.error is not None:
        return board.error
    return Refused(
        f'mirror "{board.name}" was still {board.state} {STOP_SECONDS:.0f} s after it was told to stop: '
        f"it was left; what it had not committed, the next run copies"
    )


def copy(
    configuration: Configuration, mirrors: Sequence[Mirror], *, until_caught_up: bool, stop: threading.Event
) -> list[MirrorBoard]:
    """Runs the mirrors in one Spark session and shows them; returns when all have ended.

    The metrics' port first: one that is taken ends this run before it has taken over anything.
    """
    with session(configuration.spark, len(mirrors)) as spark:
        log.info("Spark UI at %s", spark.sparkContext.uiWebUrl)
        warm_up(spark)
        replicator = Replicator(spark, configuration, stop=stop, until_caught_up=until_caught_up)
        publish(configuration.metrics, Collector(replicator.boards.values, lambda: jvm.measured(spark)), stop)
        replicator.start(mirrors)
        boards = list(replicator.boards.values())
        try:
            watch(boards, lambda: replicator.running() and not stop.is_set(), progress=until_caught_up)
        finally:
            stop.set()
            replicator.wait(STOP_SECONDS)
            replicator.close()
        return boards


def publish(rules: MetricRules, collector: Collector, stop: threading.Event) -> None:
    """Opens the Prometheus page and starts the console report, as configured."""
    if rules.prometheus:
        serve(collector, rules.prometheus.host, rules.prometheus.port)
        log.info("metrics at http://%s:%d/metrics", rules.prometheus.host, rules.prometheus.port)
    if rules.console:
        seconds = rules.console.every_seconds

        def reporting() -> None:
            while not stop.wait(seconds):
                log.info("%s", report(collector))

        threading.Thread(target=reporting, name="metrics-console", daemon=True).start()

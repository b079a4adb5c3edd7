"""All mirrors of a run, side by side in one Spark session."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import threading
import time
from collections.abc import Iterable, Sequence

from pyspark.sql import SparkSession

from barnabas.board import MirrorBoard
from barnabas.config.load import Configuration
from barnabas.config.mirror import Mirror
from barnabas.ending import note_refusal
from barnabas.receipts import ReceiptListener
from barnabas.replicate import LOOK_SECONDS, Replication
from barnabas.topology import feeders

log = logging.getLogger(__name__)


def run_name() -> str:
    """Who we are, for the ledger and for the one who is told to stop because of us."""
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return f"{platform.node()} pid {os.getpid()} since {since} ({secrets.token_hex(2)})"


class Replicator:
    """All mirrors of a run, each in a thread of its own: one that is refused leaves the others alone."""

    def __init__(
        self, spark: SparkSession, configuration: Configuration, *, stop: threading.Event, until_caught_up: bool
    ) -> None:
        self.stop = stop
        self.boards: dict[str, MirrorBoard] = {}
        self._spark = spark
        self._configuration = configuration
        self._until_caught_up = until_caught_up
        self._listener = ReceiptListener()
        self._listener.attach(spark)
        self._threads: list[threading.Thread] = []

    def start(self, mirrors: Sequence[Mirror]) -> None:
        """Starts them all; if they are to catch up, each one waits for those whose copies it takes on."""
        run, before = run_name(), feeders(mirrors) if self._until_caught_up else {}
        ended = {mirror.name: threading.Event() for mirror in mirrors}
        for mirror in mirrors:
            board = self.boards[mirror.name] = MirrorBoard(mirror.name)
            replication = Replication(
                self._spark,
                self._configuration,
                mirror,
                board=board,
                listener=self._listener,
                stop=self.stop,
                until_caught_up=self._until_caught_up,
                run=run,
            )
            turns = [ended[name] for name in before.get(mirror.name, ())], ended[mirror.name]
            thread = threading.Thread(
                target=self._run, args=(replication, *turns), name=f"mirror-{mirror.name}", daemon=True
            )
            self._threads.append(thread)
            thread.start()

    def _run(self, replication: Replication, before: Iterable[threading.Event], ended: threading.Event) -> None:
        try:
            for other in before:
                while not other.wait(LOOK_SECONDS) and not self.stop.is_set():
                    pass
            replication.run()
            board, mirror = replication.board, replication.mirror
            if board.state == "refused" and board.error is not None:
                note_refusal(self._configuration, mirror, replication.run_name, board.error)
        finally:
            ended.set()

    def running(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait(self, seconds: float) -> None:
        limit = time.monotonic() + seconds
        for thread in self._threads:
            thread.join(max(0.0, limit - time.monotonic()))

    def close(self) -> None:
        """Leaves the Spark session as it was."""
        try:
            self._listener.detach(self._spark)
        except Exception as error:  # noqa: BLE001 - py4j raises what a dying JVM leaves it
            log.debug("removing the listener: %s", error)

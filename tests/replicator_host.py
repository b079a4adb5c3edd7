"""Many runs in one Spark session, in a process of their own: what takes ten seconds as a process takes two here.

The process reads orders as JSON lines, {"id": 1, "configuration": FILE, "until_caught_up": true}, {"look": 1} and
{"stop": 1}, and answers {"id": 1, "mirrors": {…}} when a run has ended. Only for promises that are not
about the process itself.
"""

import faulthandler
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from barnabas import losses
from barnabas.config.load import load
from barnabas.config.spark import SparkRules
from barnabas.replicator import Replicator
from barnabas.session import session
from tests.barnabas_runs import QUICK, SECONDS, write_configuration
from tests.kafka_io import wait_until

Mirrors = dict[str, dict[str, Any]]
MOST_STACKS = 20_000  # characters


class HostedRun:
    """A run inside the host."""

    def __init__(self, host: "Host", number: int) -> None:
        self._host = host
        self.number = number

    @property
    def ended(self) -> bool:
        return self.number in self._host.answers

    def wait(self, seconds: float = SECONDS) -> Mirrors:
        """What became of each mirror: state, error, records, lag, restarts."""
        self.wait_until(lambda: self.ended, seconds, f"run {self.number} to end")
        return self._host.answers[self.number]

    def wait_until(self, predicate: Callable[[], bool], seconds: float, what: str) -> None:
        """Like any other wait, and says what the mirrors do when the time is over."""
        try:
            wait_until(predicate, seconds, what)
        except AssertionError as late:
            raise AssertionError(f"{late}; {self._host.diagnosis(self)}") from None

    def stop(self) -> Mirrors:
        self._host.order({"stop": self.number})
        return self.wait()


class Host:
    """The test's end of the host process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.answers: dict[int, Mirrors] = {}
        self._looks: dict[int, dict[str, list[str]]] = {}
        self._count = 0
        with (directory / "host.stderr").open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.replicator_host"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=Path(__file__).parent.parent,
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._listen, daemon=True).start()

    def start(
        self, source: str, destination: str, mirrors: Sequence[Mapping[str, Any]], *, until_caught_up: bool = False
    ) -> HostedRun:
        self._count += 1
        file = write_configuration(self.directory / f"{self._count}.yaml", source, destination, mirrors)
        self.order({"id": self._count, "configuration": str(file), "until_caught_up": until_caught_up})
        return HostedRun(self, self._count)

    def catch_up(self, source: str, destination: str, *mirrors: Mapping[str, Any]) -> Mirrors:
        return self.start(source, destination, mirrors, until_caught_up=True).wait()

    def order(self, line: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        print(json.dumps(line), file=self._process.stdin, flush=True)

    def states(self, run: HostedRun) -> dict[str, list[str]]:
        """What each mirror of a run does now, and the error it met last."""
        self.order({"look": run.number})
        wait_until(lambda: run.number in self._looks, 30, "the host to look")
        return self._looks.pop(run.number)

    def diagnosis(self, run: HostedRun) -> str:
        """Why a run may be late: its mirrors, and where the host's threads are."""
        try:
            states: object = self.states(run)
        except (AssertionError, OSError) as silent:
            states = silent
        os.kill(self._process.pid, signal.SIGUSR1)
        time.sleep(1.0)
        stacks = (self.directory / "host.stderr").read_text(errors="replace")[-MOST_STACKS:]
        return f"its mirrors: {states}\n{stacks}"

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(60)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if "states" in answer:
                self._looks[answer["id"]] = answer["states"]
            else:
                self.answers[answer["id"]] = answer["mirrors"]


def main() -> None:
    """The host process: orders on stdin until it is closed."""
    faulthandler.register(signal.SIGUSR1)
    losses.LASTING_SECONDS = 2.0  # a minute outside of tests
    orders: queue.Queue[dict[str, Any] | None] = queue.Queue()
    answers, sys.stdout = sys.stdout, sys.stderr
    threading.Thread(target=_read_orders, args=(orders,), daemon=True).start()
    runs: dict[int, Replicator] = {}
    with session(SparkRules.model_validate(QUICK)) as spark:
        while (order := orders.get()) is not None:
            if "stop" in order:
                runs[order["stop"]].stop.set()
            elif "look" in order:
                states = {
                    name: (board.state, str(board.error or "")) for name, board in runs[order["look"]].boards.items()
                }
                print(json.dumps({"id": order["look"], "states": states}), file=answers, flush=True)
            else:
                configuration = load(Path(order["configuration"]))
                caught_up = order["until_caught_up"]
                run = Replicator(spark, configuration, stop=threading.Event(), until_caught_up=caught_up)
                run.start(configuration.enabled())
                runs[order["id"]] = run
                threading.Thread(target=_tell_end, args=(order["id"], run, answers), daemon=True).start()
        for run in runs.values():
            run.stop.set()


def _read_orders(orders: "queue.Queue[dict[str, Any] | None]") -> None:
    for line in sys.stdin:
        orders.put(json.loads(line))
    orders.put(None)


def _tell_end(number: int, run: Replicator, answers: TextIO) -> None:
    while run.running():
        run.wait(0.2)
    run.close()
    mirrors = {
        name: {
            "state": board.state,
            "error": str(board.error or ""),
            "records": board.records,
            "lag": board.lag(),
            "restarts": board.restarts,
            "undecided": sum(board.undecided.values()),
        }
        for name, board in run.boards.items()
    }
    print(json.dumps({"id": number, "mirrors": mirrors}), file=answers, flush=True)


if __name__ == "__main__":
    main()

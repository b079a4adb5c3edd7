"""What is done to a run. Spark puts its Python workers into a process group of their own: they outlive their driver."""

import os
import random
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from tests.barnabas_runs import Run
from tests.kafka_io import wait_until


def kill_group(run: Run) -> None:
    """SIGKILL to the process group: driver and JVM are gone at once, workers may write a moment longer."""
    run.signal(signal.SIGKILL, group=True)
    run.wait()


def kill_everything(run: Run) -> None:
    """As a power cut: no process of the run lives on."""
    run.end()


def kill_worker(run: Run, chance: random.Random) -> None:
    """SIGKILL to Python workers, one after the other, until one was at work: Spark does not miss an idle one."""
    before = run.messages.count(": waiting")

    def missed() -> bool:
        if run.workers():
            _signalled(run, chance, signal.SIGKILL)
        return run.messages.count(": waiting") > before

    wait_until(missed, 240, "a worker to be missed")


def kill_jvm(run: Run) -> None:
    with suppress(ProcessLookupError):
        os.kill(run.jvm(), signal.SIGKILL)


def pause_worker(run: Run, chance: random.Random) -> int:
    """SIGSTOP to one Python worker: it lives, holds what it holds, and does nothing."""
    return _signalled(run, chance, signal.SIGSTOP)


def delete_checkpoint(directory: Path) -> None:
    """Takes away what Spark keeps of the query of a run whose TMPDIR this is."""
    (checkpoint,) = directory.glob("barnabas-spark-*/query-*/checkpoint")
    shutil.rmtree(checkpoint)


def resume(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


def _signalled(run: Run, chance: random.Random, number: signal.Signals) -> int:
    wait_until(lambda: bool(run.workers()), 240, "a Python worker")
    while True:
        pid = chance.choice(run.workers())
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            return pid

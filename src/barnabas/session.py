"""The only SparkSession."""

from __future__ import annotations

import logging
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from barnabas import archive
from barnabas.callbacks import let_only_us_call_back
from barnabas.config.spark import SparkRules
from barnabas.errors import Refused
from barnabas.java_options import JAVA_OPTIONS, USUAL_HEAP, default_options, tunables
from barnabas.lab.jars import spark_jars
from barnabas.private_file import write_private
from barnabas.run_directory import run_directory, socket_directory
from barnabas.slots import lanes_of, slots_for

log = logging.getLogger(__name__)

_JAVA_OPTIONS = "spark.driver.defaultJavaOptions"
_MIRRORS, _OURS = "spark.barnabas.mirrors", "spark.barnabas.slots"
_DIRECTORY = "spark.barnabas.directory"
_BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
SETTINGS = {
    "spark.python.unix.domain.socket.enabled": "true",  # over TCP each batch stalls for 40 ms
    "spark.buffer.size": str(1024 * 1024),
    _BATCH_ROWS: "8000",
    # To weigh a batch after each row takes a third of a task's time with small records, so batches are weighed only if
    # records are large, as a sample tells or a task that failed for want of memory: see `batches_for`.
    _BATCH_BYTES: str(2**31 - 1),
    "spark.executor.killOnFatalError.depth": "0",
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": USUAL_HEAP,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.task.maxFailures": "1",  # a retry is a new epoch (D)
    "spark.stage.maxConsecutiveAttempts": "1",
    "spark.speculation": "false",
    "spark.authenticate": "true",  # its ports are open to every user of this machine
    "spark.ui.killEnabled": "false",  # the UI has no password
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stopTimeout": "5s",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.scheduler.mode": "FAIR",  # each mirror has a pool: one that is busy must not hold up the others
    "spark.log.level": "OFF",
    # Workers give the memory of a batch back to the system and take it again for the next, page by page, unless told
    # to keep it: that alone was most of what a record of 1 KB cost them.
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(256 * 1024 * 1024),
    "spark.executorEnv.MALLOC_TOP_PAD_": str(64 * 1024 * 1024),
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
}
_SAID_ALWAYS = ("Picked up ", "NOTE:", "WARNING:", "Setting ", "To adjust ", "Error: Could not create the Java Virtual")
JVM_SECONDS = 10.0
DAEMON = "barnabas.worker.pyspark.daemon"  # of Python workers
ANY_CORES = "local[*]"
# Bytes: about what a core's own cache holds, a little less than a power of two for the reason below. But not of fewer
# rows than those, because a batch costs something whatever is in it.
GOOD_BATCH, FEWEST_ROWS = 2_000_000, 1_500
# Bytes. Buffers grow by doubling, for a moment to three times what they hold, and all of one is zeroed for each batch:
# past a power of two that is twice as much.
LARGE_BATCH = 15_000_000

for _noisy in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j.java_gateway", "py4j.clientserver"):
    logging.getLogger(_noisy).disabled = True  # what they say comes as an exception too
logging.getLogger().addFilter(lambda record: record.module != "java_gateway")  # py4j speaks as the root logger too


@contextmanager
def session(rules: SparkRules, mirrors: int = 1) -> Iterator[SparkSession]:
    """A session for so many mirrors. Its every file lies in one directory that is gone at the end."""
    slots = slots_for(mirrors, _cores())
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"  # the UI listens where this points
    os.environ.pop("SPARK_HOME", None)  # the Spark that pip installed, not another on this machine
    with ExitStack() as stack:
        directory = stack.enter_context(run_directory())
        os.environ["SPARK_CONF_DIR"] = str(_conf_directory(rules.master, directory))
        settings = _settings(rules, directory, slots)
        settings |= {_MIRRORS: str(mirrors), _OURS: str(rules.master == ANY_CORES).lower()}
        is_javas = f"-Djava.io.tmpdir={directory}" in settings[_JAVA_OPTIONS]
        sockets = stack.enter_context(socket_directory(directory, is_javas=is_javas))
        settings |= {} if sockets is None else {"spark.python.unix.domain.socket.dir": str(sockets)}
        builder = SparkSession.builder.master(_master(rules.master, slots)).appName("barnabas")
        for key, value in settings.items():
            builder = builder.config(key, value)
        with _stderr_to(directory / "spark.log"), _interrupts_kept():
            spark = builder.getOrCreate()
        _silence(spark)
        _forked_by_ours(spark)
        let_only_us_call_back(SparkContext._gateway)
        making = archive.is_making(settings[_JAVA_OPTIONS])
        try:
            yield spark
        finally:
            _stop(spark, archive.WRITE_SECONDS if making else JVM_SECONDS)


def _settings(rules: SparkRules, directory: Path, slots: int) -> dict[str, str]:
    """Ours, the operator's over them, and what lies in the run's directory."""
    settings = SETTINGS | {"spark.local.dir": str(directory / "local")}
    settings |= {"spark.sql.warehouse.dir": str(directory / "warehouse")}
    settings |= {"spark.driver.extraJavaOptions": " ".join((*JAVA_OPTIONS, archive.in_use())).rstrip()}
    settings |= {"spark.executorEnv.GLIBC_TUNABLES": tunables(os.environ.get("GLIBC_TUNABLES", ""))}
    settings |= {key: str(value) for key, value in rules.settings.items()}
    settings |= {_DIRECTORY: str(directory)}
    settings |= archive.connector(spark_jars(), rules.master, settings.get(archive.CLASS_PATH, ""))
    options = settings.get(_JAVA_OPTIONS, ""), settings["spark.driver.memory"], directory
    return settings | {_JAVA_OPTIONS: default_options(*options, slots)}


def _conf_directory(master: str, directory: Path) -> Path:
    """Spark's configuration directory. In one JVM Spark makes the secret of its ports by itself; processes of a
    `local-cluster` must be told, by a file, because a command line can be read by everybody."""
    if not master.startswith("local-cluster"):
        return archive.empty_directory(otherwise=directory / "conf")
    write_private(directory / "conf" / "spark-defaults.conf", f"spark.authenticate.secret {secrets.token_hex(32)}\n")
    return directory / "conf"


def query_directory(spark: SparkSession) -> tempfile.TemporaryDirectory[str]:
    """A directory for one query, in the run's private one."""
    place = _as_begun(spark, _DIRECTORY)
    return tempfile.TemporaryDirectory(prefix="query-", dir=place, ignore_cleanup_errors=True)


def _forked_by_ours(spark: SparkSession) -> None:
    """Our daemon, unless the operator has one. Only here: on other machines two PySparks might not be the same. And
    only now: in the JVM's command line its name would make the JVM look like a daemon."""
    context: Any = spark.sparkContext
    if context.master.startswith("local"):
        context._jsc.sc().conf().setIfMissing("spark.python.daemon.module", DAEMON)


def _silence(spark: SparkSession) -> None:
    """PySpark's accumulator server prints a traceback when the JVM goes in the middle of a word."""
    server: Any = getattr(spark.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None


def _as_begun(spark: SparkSession, name: str) -> str:
    """A setting as the session began with it, whatever another mirror's start has set for a moment."""
    return str(spark.sparkContext._conf.get(name))


def can_weigh(spark: SparkSession) -> bool:
    """False when the operator has said how large a batch may be."""
    return _as_begun(spark, _BATCH_BYTES) == SETTINGS[_BATCH_BYTES]


def too_large(spark: SparkSession, record_bytes: float) -> bool:
    """Whether batches of such records might be, by their number of rows alone: they are to be weighed."""
    return record_bytes * int(_as_begun(spark, _BATCH_ROWS)) > LARGE_BATCH


def batch_rows(begun: str, record_bytes: float) -> int:
    """Rows of a batch of such records, unless the operator has said how many."""
    if begun != SETTINGS[_BATCH_ROWS]:
        return int(begun)
    return int(min(int(begun), max(FEWEST_ROWS, GOOD_BATCH / max(1.0, record_bytes))))


@contextmanager
def batches_for(spark: SparkSession, record_bytes: float, *, weighs: bool) -> Iterator[None]:
    """A query that starts in this block has batches for records of this size, bounded in bytes too if it weighs."""
    begun = {name: _as_begun(spark, name) for name in (_BATCH_ROWS, _BATCH_BYTES)}
    spark.conf.set(_BATCH_ROWS, batch_rows(begun[_BATCH_ROWS], record_bytes))
    if weighs and can_weigh(spark):
        spark.conf.set(_BATCH_BYTES, LARGE_BATCH)
    try:
        yield
    finally:
        for name, value in begun.items():
            spark.conf.set(name, value)


def ended(spark: SparkSession) -> bool:
    """True when the JVM is gone: killed, or out of memory. It cannot be had back in this process."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    return process is not None and process.poll() is not None


def _stop(spark: SparkSession, jvm_seconds: float) -> None:
    """Stops Spark; a JVM that is gone, or goes meanwhile because a signal reached it too, needs none."""
    try:
        spark.stop()
    except Exception as error:  # noqa: BLE001 - py4j raises what the dying JVM leaves it
        log.debug("stopping Spark: %s", error)
    _end_jvm(jvm_seconds)


def _end_jvm(seconds: float) -> None:
    """Waits for the JVM to be gone: who starts us must find nothing of ours when we have ended."""
    gateway: Any = SparkContext._gateway
    SparkContext._gateway = SparkContext._jvm = None
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    with suppress(OSError):
        process.stdin.close()  # the JVM ends when its standard input does
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    with suppress(Exception):
        gateway.shutdown()


def lanes(spark: SparkSession) -> int:
    """How many tasks a micro-batch has: as many as there are cores, or fewer where many mirrors share the slots."""
    slots, ours = spark.sparkContext.defaultParallelism, _as_begun(spark, _OURS) == "true"
    return lanes_of(slots, int(_as_begun(spark, _MIRRORS)), _cores() if ours else slots)


def _master(master: str, slots: int) -> str:
    """`local[*]` with our number of slots; another of the operator's as it is."""
    return f"local[{slots}]" if master == ANY_CORES else master


def _cores() -> int:
    return max(2, os.cpu_count() or 1)


@contextmanager
def _interrupts_kept() -> Iterator[None]:
    """Spark takes SIGINT for itself, to raise KeyboardInterrupt; ours stops the mirrors cleanly."""
    ours = signal.getsignal(signal.SIGINT)
    yield
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, ours)


@contextmanager
def _stderr_to(file: Path) -> Iterator[None]:
    """The JVM and its Python daemons inherit stderr at their birth: theirs is a file, ours stays clean."""
    sys.stderr.flush()
    ours = os.dup(2)
    with file.open("wb") as sink:
        os.dup2(sink.fileno(), 2)
    try:
        yield
    except Exception as error:
        told = getattr(error, "java_exception", None)  # of a JVM that runs; one that ended has said it in the file
        raise Refused(f"Spark does not start: {told or _first_words(file) or error}") from error
    finally:
        os.dup2(ours, 2)
        os.close(ours)


def _first_words(file: Path) -> str:
    """Why a JVM did not start: the first thing it said that not every one says."""
    lines = (line.strip() for line in file.read_text(errors="replace").splitlines())
    return next((line for line in lines if line and not line.startswith(_SAID_ALWAYS)), "")

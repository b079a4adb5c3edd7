"""`barnabas` as its users run it: a process of its own, with a configuration file, its output, its end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.kafka_io import Record, ends, read_all, wait_until

BARNABAS = Path(sys.executable).with_name("barnabas")
SECONDS = 240.0  # for what takes ten on an idle machine
# Most runs of a test are over before Java's second compiler pays; without it they need less of two cores.
QUICK = {"settings": {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}}


def write_configuration(file: Path, source: str, destination: str, mirrors: Sequence[Mapping[str, Any]]) -> Path:
    """A configuration of two plain clusters and one group with these mirrors."""
    group = {"name": "tests", "source": "source", "destination": "destination", "mirrors": list(mirrors)}
    clusters = {"source": {"bootstrap": source}, "destination": {"bootstrap": destination}}
    file.parent.mkdir(parents=True, exist_ok=True)
    document = {"clusters": clusters, "groups": [group], "spark": QUICK}
    file.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
    return file


class Run:
    """One `barnabas` process in a session of its own; whatever it started ends with the `with` block."""

    def __init__(self, directory: Path, *arguments: str | Path, **environment: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        number = len(list(directory.glob("run-*.stdout")))
        self._stdout, self._stderr = directory / f"run-{number}.stdout", directory / f"run-{number}.stderr"
        with self._stdout.open("wb") as out, self._stderr.open("wb") as err:
            self._process = subprocess.Popen(
                [str(BARNABAS), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=directory,
                env={**os.environ, **environment},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def output(self) -> str:
        return self._stdout.read_text(errors="replace")

    @property
    def messages(self) -> str:
        return self._stderr.read_text(errors="replace")

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def answer(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.output)

    def wait(self, seconds: float = SECONDS) -> int:
        """Its exit code; fails, with what it said, when it does not end in time."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"barnabas still runs after {seconds:g} s; it said: {self.messages}") from None

    def wait_says(self, words: str, seconds: float = SECONDS) -> None:
        def said() -> bool:
            assert not self.ended or words in self.messages, f"ended before {words!r}: {self.messages}"
            return words in self.messages

        wait_until(said, seconds, f"{words!r} from barnabas")

    def signal(self, number: signal.Signals, *, group: bool = False) -> None:
        with suppress(ProcessLookupError):
            (os.killpg if group else os.kill)(self.pid, number)

    def processes(self) -> dict[int, str]:
        """Every live process of its session, whatever its parent or group, with its command line."""
        return {pid: command for pid, session, command in _processes() if session == self.pid}

    def workers(self) -> list[int]:
        """Spark's Python workers: forked from a daemon that has the same command line."""
        daemons = {pid for pid, command in self.processes().items() if "pyspark.daemon" in command}
        return sorted(pid for pid in daemons if _parent(pid) in daemons)

    def jvm(self) -> int:
        (found,) = (pid for pid, command in self.processes().items() if "org.apache.spark" in command)
        return found

    def end(self) -> None:
        """Ends what is left of it at once."""
        for pid in [self.pid, *self.processes()]:
            if pid != self.pid or not self.ended:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self._process.wait(SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()


def ran(directory: Path, *arguments: str | Path, **environment: str) -> tuple[int, Run]:
    """A run from its start to its end, and its exit code."""
    with Run(directory, *arguments, **environment) as run:
        return run.wait(), run


def within(seconds: float) -> float:
    """A promised time, longer on a machine that has several times more to do than it can."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def records_of(bootstrap: str, topic: str) -> list[Record]:
    """Committed records, without the offsets, which no copy can keep."""
    return [record._replace(offset=-1) for record in read_all(bootstrap, topic)]


def count_of(bootstrap: str, topic: str) -> int:
    """Committed records of a topic that may not be there yet."""
    return _once_there(lambda: len(read_all(bootstrap, topic)))


def end_of(bootstrap: str, topic: str) -> int:
    """The ends of all partitions together, for a topic that may not be there yet: more when something was written."""
    return _once_there(lambda: sum(end for _, end in ends(bootstrap, topic).values()))


def partitions_of(bootstrap: str, topic: str) -> int:
    """How many partitions a topic has, all of them with leaders that know of it."""
    return _once_there(lambda: len(ends(bootstrap, topic)))


def _once_there(ask: Callable[[], int]) -> int:
    """0 for a topic or partition that brokers do not know yet."""
    try:
        return ask()
    except KafkaException as error:
        if error.args[0].code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.NOT_LEADER_FOR_PARTITION):
            return 0
        raise


def mentioning(text: str) -> dict[int, str]:
    """Every live process whose command line holds the text."""
    return {pid: command for pid, _, command in _processes() if text in command}


def copied(source: str, destination: str, topic: str, to: str | None = None) -> int:
    """The number of records, after both topics were read and found equal."""
    there, here = records_of(source, topic), records_of(destination, to or topic)
    assert len(there) == len(here), f"{topic}: {len(there)} records at the source, {len(here)} at the destination"
    for number, (original, copy) in enumerate(zip(there, here, strict=True)):
        assert original == copy, f"{topic}: record {number} is {str(original)[:300]} and became {str(copy)[:300]}"
    return len(here)


def no_open_transaction(bootstrap: str, *topics: str) -> bool:
    """Whether everything in the topics is decided: the last stable offset is the end of every partition."""
    return all(ends(bootstrap, topic) == marks(bootstrap, topic) for topic in topics)


def marks(bootstrap: str, topic: str) -> dict[int, tuple[int, int]]:
    """First and next offset of each partition, undecided records included."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "tests", "isolation.level": "read_uncommitted"})
    try:
        partitions = consumer.list_topics(topic, timeout=SECONDS).topics[topic].partitions
        found = {n: consumer.get_watermark_offsets(TopicPartition(topic, n), timeout=SECONDS) for n in partitions}
        return dict(sorted(found.items()))
    finally:
        consumer.close()


def unanswered(port: int) -> int:
    """Connections to a local server that has not even read what was sent to it."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    established = [row for row in rows if row[3] == "01" and int(row[1].rpartition(":")[2], 16) == port]
    return sum(int(row[4].rpartition(":")[2], 16) > 0 for row in established)


def _processes() -> list[tuple[int, int, str]]:
    """Pid, session and command line of every live process."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                fields = (directory / "stat").read_text().rpartition(")")[2].split()
                command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if fields[0] not in "ZX":
                    found.append((int(directory.name), int(fields[3]), command))
    return found


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0

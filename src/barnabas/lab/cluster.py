"""A real Kafka cluster of one or more brokers on free loopback ports, in KRaft mode."""

import base64
import dataclasses
import secrets
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from barnabas.errors import Refused, Unavailable
from barnabas.lab.certificates import Certificates, make_certificates, write_private
from barnabas.lab.jars import broker_jars
from barnabas.lab.java import java
from barnabas.lab.ports import LOOPBACK, answers, free_ports
from barnabas.lab.process import Process
from barnabas.lab.properties import CLIENT, Node, server_properties
from barnabas.lab.security import Mechanism, Security

START_SECONDS = 90.0
FORMAT_SECONDS = 60.0
STOP_SECONDS = 10.0
ADMIN_SECONDS = 30.0
POLL_SECONDS = 0.05
SCRAM_ITERATIONS = 4096
LOG4J = Path(__file__).with_name("log4j2.xml")
JVM_OPTIONS = ("-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-Djava.awt.headless=true", "-Duser.timezone=UTC")
FORMAT_OPTIONS = ("-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class KafkaCluster:
    """Brokers 0, 1, …, each also a controller; data and secrets below `directory/name`.

    `hosts` are the names that clients are told, one per broker; TLS certificates are good for them too.
    """

    def __init__(
        self,
        directory: Path,
        name: str,
        *,
        brokers: int = 1,
        security: Security | None = None,
        hosts: Sequence[str] = (),
        heap_megabytes: int = 640,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.directory = directory / name
        self.security = security or Security()
        self._properties = dict(properties or {})
        self._heap = heap_megabytes
        self._cluster_id = base64.urlsafe_b64encode(b"B" + secrets.token_bytes(15)).decode().rstrip("=")
        # One per broker and no more: names beyond the brokers would be told to nobody.
        names = list(hosts) or ["localhost" if self.security.tls else LOOPBACK] * brokers
        if len(names) != brokers:
            raise Refused(f'lab: cluster "{name}" has {brokers} brokers but {len(names)} host names: give one for each')
        ports = iter(free_ports(3 * brokers))
        self._nodes = [
            Node(i, names[i], next(ports), next(ports), next(ports), self.directory / f"broker-{i}")
            for i in range(brokers)
        ]
        self._directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)
        self._processes = [Process(directory, f"{name}-broker-{i}") for i in range(brokers)]
        self.certificates: Certificates | None = None

    @property
    def bootstrap(self) -> str:
        """Where clients begin, by the names they are told."""
        return ",".join(f"{node.host}:{node.client_port}" for node in self._nodes)

    @property
    def ports(self) -> list[int]:
        """The clients' port of each broker, on 127.0.0.1."""
        return [node.client_port for node in self._nodes]

    @property
    def pids(self) -> list[int | None]:
        """The process of each broker; None for one that does not run."""
        return [process.pid for process in self._processes]

    def addresses(self) -> dict[str, str]:
        """Where clients find each of the cluster's processes."""
        return {
            process.name: f"{node.host}:{node.client_port}"
            for process, node in zip(self._processes, self._nodes, strict=True)
        }

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """A complete configuration, in librdkafka's names, of a client that is let in."""
        settings = self.security.client_settings(self.certificates, user)
        return {"bootstrap.servers": self.bootstrap, **settings}

    def admin(self) -> AdminClient:
        """An admin client on the brokers' own listener, which asks for no credentials."""
        internal = ",".join(f"{LOOPBACK}:{node.internal_port}" for node in self._nodes)
        return AdminClient({"bootstrap.servers": internal, "log_level": 0})

    def start(self) -> Self:
        """Starts every broker and waits until all answer and users can log in."""
        if self.security.tls and self.certificates is None:
            names = ["localhost", LOOPBACK, *(node.host for node in self._nodes)]
            self.certificates = make_certificates(self.directory / "tls", names)
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(self._format, self._nodes))
        for node in self._nodes:
            self._launch(node)
        self.wait_until_up()
        if self.security.scram:
            for user, password in self.security.users.items():
                self._upsert_scram(user, password)
        return self

    def stop(self) -> None:
        """Ends every broker cleanly; the data stays and `start()` finds it."""
        with ThreadPoolExecutor(len(self._nodes)) as pool:
            list(pool.map(lambda process: process.stop(STOP_SECONDS), self._processes))

    def kill(self) -> None:
        """Ends every broker as a power cut would; the data stays."""
        for process in self._processes:
            process.kill()

    def kill_broker(self, number: int) -> None:
        self._processes[number].kill()

    def stop_broker(self, number: int) -> None:
        self._processes[number].stop(STOP_SECONDS)

    def start_broker(self, number: int) -> None:
        """Starts one broker again, on the same ports and data, and waits until the cluster counts it as alive."""
        self._launch(self._nodes[number])
        self.wait_until_up([number])

    def set_password(self, user: str, password: str) -> None:
        """Changes or adds a user's password; with SASL/PLAIN, whose users stand in a file, brokers restart in turn."""
        if not self.security.sasl:
            raise Refused(f'lab: cluster "{self.name}" has no users: it is {self.security.protocol}')
        self.security = dataclasses.replace(self.security, users={**self.security.users, user: password})
        if self.security.scram:
            self._upsert_scram(user, password)
            return
        for node in self._nodes:
            self.stop_broker(node.number)
            self.start_broker(node.number)

    def wait_until_up(self, numbers: Sequence[int] | None = None, seconds: float = START_SECONDS) -> None:
        """Waits until the named brokers, by default all, accept connections and the cluster says they are alive."""
        deadline = time.monotonic() + seconds
        numbers = range(len(self._nodes)) if numbers is None else numbers
        for number in numbers:
            listening = partial(answers, self._nodes[number].client_port)
            self._processes[number].wait_until(listening, deadline - time.monotonic())
        admin = self.admin()
        while not set(numbers) <= self._alive(admin):
            if time.monotonic() > deadline:
                raise Unavailable(f'lab: cluster "{self.name}" has not all of brokers {list(numbers)} in {seconds:g} s')
            time.sleep(POLL_SECONDS)

    def _alive(self, admin: AdminClient) -> set[int]:
        try:
            return set(admin.list_topics(timeout=2).brokers)
        except KafkaException:
            return set()

    def _format(self, node: Node) -> None:
        if (node.data / "meta.properties").exists():
            return
        process = Process(self._directory, f"{self.name}-format-{node.number}")
        tool = ["kafka.tools.StorageTool", "format", "--cluster-id", self._cluster_id, "--config"]
        file = self._write_properties(node)
        process.start([java(), *FORMAT_OPTIONS, *self._java_arguments(), *tool, str(file)])
        if process.wait(FORMAT_SECONDS) != 0:
            raise Unavailable(f'lab: cluster "{self.name}" cannot be formatted: {process.log_tail()}')

    def _launch(self, node: Node) -> None:
        file = self._write_properties(node)
        memory = [f"-Xms{self._heap // 2}m", f"-Xmx{self._heap}m", *self.security.jvm_options()]
        command = [java(), *memory, *JVM_OPTIONS, *self._java_arguments(), "kafka.Kafka", str(file)]
        self._processes[node.number].start(command)

    def _java_arguments(self) -> list[str]:
        class_path = ":".join(str(jar) for jar in broker_jars())
        return [f"-Dlog4j2.configurationFile={LOG4J}", f"-Djava.io.tmpdir={self.directory}", "-cp", class_path]

    def _write_properties(self, node: Node) -> Path:
        file = self.directory / f"broker-{node.number}.properties"
        security = self.security.broker_properties(CLIENT, self.certificates)
        text = server_properties(node, self._nodes, self.security.protocol, security, self._properties)
        write_private(file, text.encode())
        return file

    def _upsert_scram(self, user: str, password: str) -> None:
        mechanisms = {
            Mechanism.SCRAM_SHA_256: ScramMechanism.SCRAM_SHA_256,
            Mechanism.SCRAM_SHA_512: ScramMechanism.SCRAM_SHA_512,
        }
        credential = ScramCredentialInfo(mechanisms[self.security.mechanism], SCRAM_ITERATIONS)
        change = UserScramCredentialUpsertion(user, credential, password.encode())
        admin = self.admin()  # named, or it would be destroyed before it has the answer
        for future in admin.alter_user_scram_credentials([change]).values():
            future.result(ADMIN_SECONDS)

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.kill()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

"""A schema registry (Apicurio, in memory) on a free loopback port."""

from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from barnabas.lab.jars import registry_home
from barnabas.lab.java import java
from barnabas.lab.ports import LOOPBACK, free_ports
from barnabas.lab.process import Process

START_SECONDS = 90.0
STOP_SECONDS = 10.0
# A registry is idle most of its life: start fast, stay small.
JVM_OPTIONS = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.timezone=UTC")


class Registry:
    """One registry; what it holds is gone when it stops."""

    def __init__(self, directory: Path, name: str) -> None:
        [self.port] = free_ports(1)
        self.name = name
        self._process = Process(directory, f"{name}-registry")

    @property
    def url(self) -> str:
        """The address of the Confluent-compatible API."""
        return f"http://{LOOPBACK}:{self.port}/apis/ccompat/v7"

    def addresses(self) -> dict[str, str]:
        return {self._process.name: self.url}

    def start(self) -> Self:
        """Starts it and waits until it answers."""
        [runner] = registry_home().glob("*-runner.jar")
        environment = {
            "QUARKUS_HTTP_HOST": LOOPBACK,
            "QUARKUS_HTTP_PORT": str(self.port),
            "QUARKUS_HTTP_ACCESS_LOG_ENABLED": "false",
            "QUARKUS_LOG_LEVEL": "WARN",
            "APICURIO_LOG_LEVEL": "WARN",
            "QUARKUS_BANNER_ENABLED": "false",
        }
        place = f"-Djava.io.tmpdir={self._process.directory}"
        self._process.start([java(), *JVM_OPTIONS, place, "-jar", str(runner)], environment)
        self._process.wait_until(self.answers, START_SECONDS)
        return self

    def stop(self) -> None:
        self._process.stop(STOP_SECONDS)

    def kill(self) -> None:
        self._process.kill()

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/subjects", timeout=5, trust_env=False).is_success
        except httpx.TransportError:
            return False

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

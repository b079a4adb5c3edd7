"""What the figures were taken on."""

import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

from barnabas.lab.jars import JarSet, locked
from barnabas.lab.java import java

PACKAGES = ("barnabas", "pyspark", "confluent-kafka", "pyarrow")


def described() -> list[tuple[str, str]]:
    """What and which, in the order of a reader's questions."""
    said = subprocess.run([java(), "-version"], capture_output=True, text=True, check=True).stderr.splitlines()
    [mm2] = {jar.artifact.version for jar in locked(JarSet.MIRRORMAKER) if jar.artifact.module == "connect-mirror"}
    kafka = {jar.artifact.version for jar in locked(JarSet.BROKER) if jar.artifact.module.startswith("kafka_")}
    return [
        ("when", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())),
        (
            "machine",
            f"{_processor()}, {os.cpu_count()} cores, {_memory_gigabytes():.0f} GB, brokers on the same machine",
        ),
        ("system", f"{platform.system()} {platform.release()}"),
        ("load before", ", ".join(f"{load:.1f}" for load in os.getloadavg())),
        ("commit", _commit()),
        ("packages", ", ".join(f"{name} {version(name)}" for name in PACKAGES)),
        ("Python", platform.python_version()),
        ("Java", said[0]),
        ("brokers", f"Apache Kafka {', '.join(kafka)}, one each, KRaft"),
        ("MirrorMaker 2", f"{mm2}, exactly-once support on"),
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _memory_gigabytes() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent)
    return found.stdout.strip() or "unknown"

"""Who copies: Barnabas, MirrorMaker 2 as it comes and tuned, and a plain loop in Python. All exactly once."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from barnabas.lab.jars import mirrormaker_jars
from barnabas.lab.java import java
from barnabas.lab.ports import free_ports
from bench.ground import Ground
from bench.processes import Program

CORES = os.cpu_count() or 1
ROOT = Path(__file__).parent.parent
BARNABAS = Path(sys.executable).with_name("barnabas")
LOG4J = ROOT / "src" / "barnabas" / "lab" / "log4j2.xml"


@dataclass(frozen=True)
class Errand:
    """What to copy, and where a contender may keep its files. `mirror` and `clusters` are Barnabas' own settings."""

    ground: Ground
    topic: str
    directory: Path
    mirror: Mapping[str, Any] = field(default_factory=dict)
    clusters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    spark: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """`start` begins to copy the errand's topic into `copy` at the destination."""

    name: str
    says: str
    start: Callable[[Errand], Program]
    copy: Callable[[str], str]
    translates: bool = False  # whether it puts the destination's schema ids into records


def barnabas(errand: Errand) -> Program:
    """`barnabas run`, its defaults but for what the errand says."""
    return barnabas_with(errand, [{"name": "bench", "from": errand.topic, "to": "{topic}.copy", **errand.mirror}])


def barnabas_with(errand: Errand, mirrors: list[dict[str, Any]], *arguments: str) -> Program:
    """`barnabas run` with these mirrors between the ground's clusters."""
    ground = errand.ground
    clusters = {
        "source": {"bootstrap": ground.source.bootstrap, **errand.clusters.get("source", {})},
        "destination": {"bootstrap": ground.destination.bootstrap, **errand.clusters.get("destination", {})},
    }
    group = {"name": "bench", "source": "source", "destination": "destination", "mirrors": mirrors}
    document: dict[str, Any] = {"clusters": clusters, "groups": [group]}
    if errand.spark:
        document["spark"] = {"settings": dict(errand.spark)}
    file = errand.directory / "barnabas.yaml"
    file.write_text(json.dumps(document, indent=1))  # JSON is YAML
    return Program("barnabas", [str(BARNABAS), "run", "-c", str(file), *arguments], errand.directory)


MM2_AS_IT_COMES = {"offset-syncs.topic.replication.factor": "1"}  # clusters of one broker have no room for three
MM2_TUNED = {
    "tasks.max": str(CORES),
    "destination.producer.batch.size": "500000",
    "destination.producer.linger.ms": "20",
    "destination.producer.max.request.size": "10000000",
    "destination.producer.buffer.memory": "134217728",
    "source.consumer.max.poll.records": "20000",
    "source.consumer.max.partition.fetch.bytes": "5242880",
    "source.consumer.fetch.max.bytes": "52428800",
}

# Off is what it does beside copying records, such as what lets consumers change clusters.
MM2_BARE = {
    "emit.heartbeats.enabled": "false",
    "emit.checkpoints.enabled": "false",
    "emit.offset-syncs.enabled": "false",
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    "sync.group.offsets.enabled": "false",
    "refresh.groups.enabled": "false",
}


def mirrormaker(errand: Errand, tuning: Mapping[str, str]) -> Program:
    """MirrorMaker 2 in its dedicated mode, with exactly-once support."""
    [port] = free_ports(1)
    settings = {
        "clusters": "source, destination",
        "source.bootstrap.servers": errand.ground.source.bootstrap,
        "destination.bootstrap.servers": errand.ground.destination.bootstrap,
        "source->destination.enabled": "true",
        "source->destination.topics": errand.topic,
        "destination->source.enabled": "false",
        # Exactly once: transactions on this side, committed records only from the other.
        "destination.exactly.once.source.support": "enabled",
        "source.consumer.isolation.level": "read_committed",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        "replication.factor": "1",
        **{f"{topic}.replication.factor": "1" for topic in _MM2_TOPICS},
        **tuning,
    }
    file = errand.directory / "mm2.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    class_path = ":".join(str(jar) for jar in mirrormaker_jars())
    # The memory and collector of its own start script, connect-mirror-maker.sh.
    options = ["-Xms256M", "-Xmx2G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"]
    options += ["-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"]
    options += [f"-Djava.io.tmpdir={errand.directory}"]
    main = "org.apache.kafka.connect.mirror.MirrorMaker"
    command = [java(), *options, f"-Dlog4j2.configurationFile={LOG4J}", "-cp", class_path, main, str(file)]
    return Program("mirrormaker", command, errand.directory)


_MM2_TOPICS = (
    "config.storage",
    "offset.storage",
    "status.storage",
    "heartbeats.topic",
    "checkpoints.topic",
)


def loop(errand: Errand) -> Program:
    """The plain loop, one process for each core."""
    ground = errand.ground
    command = [sys.executable, "-m", "bench.loop", "--processes", str(CORES)]
    command += ["--from", ground.source.bootstrap, "--to", ground.destination.bootstrap]
    command += ["--topic", errand.topic, "--copy", f"{errand.topic}.copy"]
    return Program("loop", command, ROOT)


def _copied(topic: str) -> str:
    return f"{topic}.copy"


def _renamed(topic: str) -> str:
    return f"source.{topic}"


CONTENDERS = {
    it.name: it
    for it in (
        Contender("barnabas", "Barnabas, its defaults", barnabas, _copied, translates=True),
        Contender(
            "mm2-tuned",
            f"MirrorMaker 2, batch 500 kB, linger 20 ms, poll 20,000, fetch 5 MB, {CORES} tasks",
            lambda errand: mirrormaker(errand, {**MM2_AS_IT_COMES, **MM2_TUNED}),
            _renamed,
        ),
        Contender(
            "mm2-bare",
            "MirrorMaker 2, tuned as well, and with everything off that it does beside copying records",
            lambda errand: mirrormaker(errand, {**MM2_TUNED, **MM2_BARE}),
            _renamed,
        ),
        Contender("mm2", "MirrorMaker 2, its defaults", lambda errand: mirrormaker(errand, MM2_AS_IT_COMES), _renamed),
        Contender("loop", f"a Python loop in {CORES} processes", loop, _copied),
    )
}

"""One mirror under load, its witness, the runs that come and go, and the history they leave."""

import os
import random
from pathlib import Path

from barnabas.lab.cluster import KafkaCluster
from tests.barnabas_runs import Run, no_open_transaction, ran, write_configuration
from tests.fault.history import History, Witness, log_of, positions_of
from tests.fault.workload import Workload
from tests.kafka_io import create_topic

PARTITIONS = 3


def seed_of_this_run(usual: int) -> int:
    """Chosen by BARNABAS_SEED; said in every failure, so that a run can be had again."""
    return int(os.environ.get("BARNABAS_SEED", usual))


class Scene:
    """Made with its topics; `history` heals and ends it."""

    def __init__(
        self, source: KafkaCluster, destination: KafkaCluster, topic: str, directory: Path, seed: int, batch: int = 2000
    ) -> None:
        self.topic, self.name, self.directory = topic, f"m-{topic}", directory
        self.source, self.destination = source.bootstrap, destination.bootstrap
        self.chance = random.Random(seed)
        for cluster in (source, destination):
            create_topic(cluster.bootstrap, topic, partitions=PARTITIONS)
        mirror = {"name": self.name, "from": topic, "batch": {"records": batch}}
        self.file = write_configuration(directory / "c.yaml", self.source, self.destination, [mirror])
        self.workload = Workload(self.source, topic, PARTITIONS, seed)
        self.witness = Witness(self.destination, topic, PARTITIONS)
        self.runs: list[Run] = []

    def run(self, **environment: str) -> Run:
        """One more `barnabas run` of the mirror."""
        self.runs.append(Run(self.directory, "run", "-c", self.file, **environment))
        return self.runs[-1]

    def end(self) -> None:
        """Whatever came of it, nothing of it lives on."""
        for run in self.runs:
            run.end()

    def history(self) -> History:
        """Ends the load, lets a last run heal what is left, and reads everything."""
        written = self.workload.stop()
        self.end()
        code, last = ran(self.directory, "run", "-c", self.file, "--until-caught-up")
        assert code == 0, last.messages
        (status,) = ran(self.directory, "status", "-c", self.file, "--format", "json")[1].answer()["mirrors"]
        ledger = f"_barnabas.{self.name}"
        final = log_of(self.destination, self.topic)
        return History(
            source=log_of(self.source, self.topic),
            final=final,
            seen=self.witness.stop(sum(map(len, final.values()))),
            positions=positions_of(self.destination, ledger),
            written=written,
            lag=status["lag"],
            open_transactions=[t for t in (self.topic, ledger) if not no_open_transaction(self.destination, t)],
            outputs=[run.output + run.messages for run in [*self.runs, last]],
        )

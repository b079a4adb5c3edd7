"""What a run found, kept as it grows: a run that is broken off has still said what it knew."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench import machine, picture, table
from bench.contenders import CONTENDERS
from bench.latency import Latency
from bench.race import Result

RESULTS = Path(__file__).with_name("results")


@dataclass
class Report:
    """Written anew after each result."""

    name: str
    races: list[Result] = field(default_factory=list)
    latencies: list[Latency] = field(default_factory=list)
    sections: dict[str, str] = field(default_factory=dict)
    described: list[tuple[str, str]] = field(default_factory=machine.described)

    def write(self) -> Path:
        RESULTS.mkdir(exist_ok=True)
        file = RESULTS / f"{self.name}.md"
        if self.races:
            (RESULTS / f"{self.name}.svg").write_text(
                picture.bars(self.races, "Copying between two clusters, exactly once")
            )
        file.write_text(self.text())
        figures = {"races": [asdict(it) for it in self.races], "latencies": [asdict(it) for it in self.latencies]}
        (RESULTS / f"{self.name}.json").write_text(json.dumps(figures, indent=1) + "\n")
        return file

    def text(self) -> str:
        parts = ["# Measured side by side", table.rows(("", ""), self.described)]
        if self.races:
            parts += ["## Throughput", f"![records a second]({self.name}.svg)", table.races(self.races), EXPLAINED]
            parts += ["\n".join(f"- {it.name}: {it.says}" for it in CONTENDERS.values())]
        if self.latencies:
            parts += ["## Latency at 1,000 records/s over 4 partitions", table.latencies(self.latencies)]
        for title, text in self.sections.items():
            parts += [f"## {title}", text]
        return "\n\n".join(part.strip() for part in parts) + "\n"


EXPLAINED = """
Records/s are those of the steady part: after the warm-up, which is half of the course at most, before the last
twentieth, by the last stable offsets of the copy, less the markers of transactions. CPU is that of the contender's own
processes, JVM and Python workers included, in seconds for a million records; peak memory is their proportional set
size. "Elsewhere" is what everybody else on the machine had of a core meanwhile, our own meter included: where it is
large, compare ratios only. MirrorMaker 2 has the memory and the collector of its own start script. Each course begins
with a rehearsal that does not count, the first one with a rehearsal by everybody: fresh brokers are slow.
"""

"""A course is laid once for each shape and partition count, raced over by all, and taken away."""

import itertools
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from barnabas.lab.registry import Registry
from bench.contenders import Contender, Errand
from bench.ground import Ground, delete, refuse_small_disk
from bench.race import Course
from bench.registries import prepared
from bench.shapes import Shape
from bench.workload import fill

# More than any contender copies in a second, so that a course lasts for warm-up and steady part. Where the bound in
# gigabytes is reached first, half of it is warm-up.
FASTEST_BYTES, FASTEST_RECORDS = 450_000_000, 900_000
TURNS = itertools.count()


@dataclass(frozen=True)
class Lane:
    """A course with what contenders need to know of it."""

    ground: Ground
    course: Course
    registries: tuple[Registry, Registry] | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    def errand(self, contender: Contender, *, translate: bool = True) -> Errand:
        """A turn on this course; one that translates schema ids is told where the registries are."""
        directory = self.ground.directory / f"turn-{next(TURNS)}-{contender.name}"
        directory.mkdir()
        if not (self.registries and translate and contender.translates):
            return Errand(self.ground, self.course.topic, directory)
        clusters = {
            name: {"registry": {"url": registry.url}}
            for name, registry in zip(("source", "destination"), self.registries, strict=True)
        }
        return Errand(self.ground, self.course.topic, directory, mirror=TRANSLATING, clusters=clusters)


TRANSLATING = {"schemas": {"value": "registry", "mode": "lenient"}}


@contextmanager
def laid(ground: Ground, shape: Shape, partitions: int, *, seconds: float, gigabytes: float) -> Iterator[Lane]:
    """Fills a source topic that lasts for `seconds`, within `gigabytes`; Avro records get registries and ids too."""
    most = min(gigabytes * 1e9, FASTEST_BYTES * seconds) / shape.record_bytes
    records = int(min(most, FASTEST_RECORDS * seconds))
    refuse_small_disk(records * shape.record_bytes)
    topic = f"bench-{shape.name.replace('+', '-')}-{partitions}"
    with ExitStack() as stack:
        registries = stack.enter_context(ground.registries()) if shape.avro else None
        number = prepared(*registries, topic) if registries else 0
        stack.callback(lambda: delete(ground.source.admin(), [topic]))
        total = fill(ground, topic, shape, partitions=partitions, records=records, schema_id=number)
        os.sync()  # or the disk would still be busy with it while the first contender runs
        yield Lane(ground, Course(topic, shape, partitions, total, number), registries)

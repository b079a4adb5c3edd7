"""A race: one contender copies one source topic into a fresh copy while a meter looks on."""

import time
from dataclasses import dataclass

from bench.contenders import Contender, Errand
from bench.ground import Ground
from bench.meter import Meter, Steady, records_per_offset, steady
from bench.processes import Program
from bench.shapes import Shape, schema_id

START_SECONDS = 180.0  # a crowded machine starts a JVM slowly
STALL_SECONDS = 30.0


@dataclass(frozen=True)
class Course:
    """What is raced over: a source topic with its records."""

    topic: str
    shape: Shape
    partitions: int
    records: int
    schema_id: int = 0


@dataclass(frozen=True)
class Result:
    """How one contender did on one course. `note` says what went wrong, or what to know about the figures."""

    contender: str
    shape: str
    partitions: int
    first_record_seconds: float = 0.0
    steady: Steady | None = None
    peak_memory: int = 0
    note: str = ""


def race(errand: Errand, contender: Contender, course: Course, *, warm_seconds: float, seconds: float) -> Result:
    """Runs the contender until its steady part is `seconds` long, everything is copied, or nothing moves any more."""
    copy = contender.copy(course.topic)
    result = Result(contender.name, course.shape.name, course.partitions)
    try:
        with contender.start(errand) as program:
            meter = metered(errand.ground, program, copy, course.partitions)
            try:
                _wait(program, meter, course.records, warm_seconds + seconds)
            finally:
                meter.stop()
        per_offset, value = records_per_offset(errand.ground.destination, copy, course.partitions)
        return Result(
            contender.name,
            course.shape.name,
            course.partitions,
            first_record_seconds=_first(meter) - program.started,
            steady=steady(meter.samples, warm_seconds=warm_seconds, total=course.records, per_offset=per_offset),
            peak_memory=meter.peak_memory,
            note=_note(contender, course, value),
        )
    except RuntimeError as error:
        return Result(result.contender, result.shape, result.partitions, note=str(error))
    finally:
        errand.ground.swept(keep=course.topic)


def metered(ground: Ground, program: Program, copy: str, partitions: int) -> Meter:
    meter = Meter(program, ground.destination, copy, partitions, ground.broker_pids())
    meter.start()
    return meter


def _wait(program: Program, meter: Meter, total: int, seconds: float) -> None:
    """Until the copy has grown for that long, or holds everything."""
    moved, before, began = time.monotonic(), 0, 0.0
    while meter.offsets < total and (not began or time.monotonic() - began < seconds):
        time.sleep(0.1)
        program.refuse_ended()
        if meter.failure:
            raise RuntimeError(f"{program.name}: cannot be measured: {meter.failure}")
        if meter.offsets > before:
            moved, before = time.monotonic(), meter.offsets
            began = began or moved
        limit = STALL_SECONDS if began else START_SECONDS
        if time.monotonic() - moved > limit:
            raise RuntimeError(f"{program.name}: nothing copied for {limit:g} s; it said: {program.said}")


def _first(meter: Meter) -> float:
    return next((sample.at for sample in meter.samples if sample.offsets > 0), 0.0)


def _note(contender: Contender, course: Course, value: bytes) -> str:
    """Whether schema ids are the destination's: a contender that leaves them saves itself that work."""
    if not course.shape.avro or not value:
        return ""
    translated = schema_id(value) != course.schema_id
    return "" if translated else ("ids NOT translated" if contender.translates else "does not translate ids")

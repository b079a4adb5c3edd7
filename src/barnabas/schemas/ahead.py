"""Schemas before the records: what a mirror would register, and doing it. Behind `barnabas schemas plan|copy`.

Only subjects that are named after topics are certain before a record is read; with record-name or a fixed
subject the records tell, and the plan is empty.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from barnabas.schemas.mirroring import Mirroring
from barnabas.schemas.registry import RegistryClient
from barnabas.schemas.settings import TranslationSettings
from barnabas.schemas.subjects import known_ahead


@dataclass(frozen=True)
class SubjectPlan:
    """What copying one subject would do; `problem` says why it would be refused instead."""

    source: str
    destination: str
    there: tuple[int, ...]
    missing: tuple[int, ...]
    level: str | None
    problem: str


@dataclass(frozen=True)
class CopiedSubject:
    """One subject after it was copied: source version number → id at the destination."""

    source: str
    destination: str
    ids: dict[int, int]


def plan(settings: TranslationSettings) -> tuple[SubjectPlan, ...]:
    """What `copy` would do, references before what refers to them; writes nothing."""
    planned: dict[str, SubjectPlan] = {}
    with _prepared(settings) as (mirroring, pairs):
        for source, destination in pairs:
            for each in _planned(mirroring, source, destination, None):
                known = planned.get(each.source)
                if known is None or len(known.missing) < len(each.missing):
                    planned[each.source] = each
    return tuple(planned.values())


def copy(settings: TranslationSettings) -> tuple[CopiedSubject, ...]:
    """Copy every subject that is certain; stops at the first one that is refused."""
    with _prepared(settings) as (mirroring, pairs):
        return tuple(
            CopiedSubject(source, destination, mirroring.copy_all(source, destination)) for source, destination in pairs
        )


@contextmanager
def _prepared(settings: TranslationSettings) -> Iterator[tuple[Mirroring, list[tuple[str, str]]]]:
    with (
        closing(RegistryClient(settings.source)) as source,
        closing(RegistryClient(settings.destination)) as destination,
    ):
        pairs = known_ahead(settings.rules, settings.renames, source.subjects())
        mirroring = Mirroring(source, destination, settings.rules, settings.renames)
        yield mirroring, [(pair.source, pair.destination) for pair in pairs if pair.source is not None]


def _planned(mirroring: Mirroring, source: str, destination: str, through: int | None) -> Iterator[SubjectPlan]:
    comparison = mirroring.compare(source, destination)
    missing = tuple(number for number in comparison.missing if through is None or number <= through)
    for version in mirroring.source.history(source):
        if version.number in missing:
            for referred, subject in mirroring.referred(version.schema):
                yield from _planned(mirroring, referred.subject, subject, referred.number)
    level = mirroring.wanted_level(source, destination)
    yield SubjectPlan(source, destination, tuple(comparison.there), missing, level, comparison.problem)

"""Two histories of a subject held against each other. Pure.

    strict    the destination's versions are the source's, in order; it may be behind, never beside
    lenient   the source's versions are there in the same relative order; others may stand between them
    ids       no order: whatever is there is fine

New versions can only be appended, so in both strict and lenient the versions that are there already must be
the source's first ones: a version missing before one that is there could never get its place.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.schemas.settings import Mode


@dataclass(frozen=True)
class Entry:
    """One version. Two entries, of either history, are the same schema exactly if their keys are equal."""

    number: int
    id: int
    key: str

    def __str__(self) -> str:
        return f"{self.number} (id {self.id}, {hashlib.sha256(self.key.encode()).hexdigest()[:8]})"


@dataclass(frozen=True)
class Comparison:
    """What is there: source version number → destination entry; what is missing; and what is wrong, if anything."""

    there: dict[int, Entry]
    missing: tuple[int, ...]
    problem: str


def compared(mode: Mode, source: Sequence[Entry], destination: Sequence[Entry]) -> Comparison:
    """Hold the histories against each other.

    A schema that stands twice in one history counts where it stands first: two workers that register at
    the same moment, or a version deleted and registered again, make such doubles.
    """
    placed = {entry.key: entry for entry in _firsts(destination)}
    there = {entry.number: placed[entry.key] for entry in source if entry.key in placed}
    missing = tuple(entry.number for entry in _firsts(source) if entry.number not in there)
    return Comparison(there, missing, "" if mode == "ids" else _problem(mode, source, destination))


def described(entries: Sequence[Entry]) -> str:
    """A history in an error sentence; the last word of each version is equal where the schema is."""
    return ", ".join(map(str, entries)) or "no version"


def _problem(mode: Mode, source: Sequence[Entry], destination: Sequence[Entry]) -> str:
    wanted, found = _firsts(source), _firsts(destination)
    known = {entry.key for entry in wanted}
    extra = [entry for entry in found if entry.key not in known]
    if mode == "strict" and extra:
        return f"version {extra[0]} of the destination is not at the source"
    ours = [entry for entry in found if entry.key in known]
    for entry, place in zip(wanted, ours, strict=False):
        if entry.key != place.key:
            return f"where the source has version {entry} the destination has version {place}"
    return ""


def _firsts(entries: Sequence[Entry]) -> list[Entry]:
    firsts: dict[str, Entry] = {}
    for entry in entries:
        firsts.setdefault(entry.key, entry)
    return list(firsts.values())

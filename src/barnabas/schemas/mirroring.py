"""Copies subjects from one registry to another, as a mirror's mode wants it.

Copying one subject
1. Read both histories and hold them against each other; a history that the mode forbids is refused.
2. Set the level of compatibility, the source's or the forced one, before anything is registered.
3. For each missing version in order: copy what it refers to, then register it.
4. Read the destination again: only what is seen there counts.

Several workers do this for the same subject at once and need no lock. Registering a schema again changes
nothing, and everyone registers a version only after the one before it is there, so the order holds; step 4
finds what a stranger put in between. A registry that answers "conflict" to two who do the same at once is
asked what stands there now.

A reference is copied with its subject's history up to the version referred to, not further: versions refer
to older versions only, so this ends, while whole subjects may refer to each other in a circle.
"""

from collections.abc import Mapping

from barnabas.errors import Refused, Unavailable
from barnabas.schemas.answers import Conflict
from barnabas.schemas.history import Comparison, Entry, compared, described
from barnabas.schemas.registry import RegistryClient
from barnabas.schemas.schema import Reference, Schema, Version
from barnabas.schemas.settings import SchemaRules
from barnabas.schemas.subjects import Pair, renamed


class Mirroring:
    """Brings schemas of a source registry to a destination registry. Keeps nothing between calls."""

    def __init__(
        self, source: RegistryClient, destination: RegistryClient, rules: SchemaRules, renames: Mapping[str, str]
    ) -> None:
        self.source = source
        self.destination = destination
        self.rules = rules
        self._renames = dict(renames)

    def destination_id(self, pair: Pair, schema: Schema, number: int | None) -> int | None:
        """Bring the schema a record was written with to the destination; its id there.

        `number` is its id at the source, None where only the schema is known. None comes back where the
        pair's source subject has no such version, so that the record does not belong under it.
        """
        if self.rules.mode == "ids" or pair.source is None:
            return self.copy_schema(pair, schema)[1]
        history = self.source.history(pair.source)
        wanted = [version for version in history if version.id == number] or [
            version for version in history if version.schema.canonical() == schema.canonical()
        ]
        if not wanted:
            return None
        place = self.copy_subject(pair.source, pair.destination).get(wanted[0].number)
        return None if place is None else place.id

    def copy_all(self, source: str, destination: str) -> dict[int, int]:
        """Copy every version of a subject, as the mode wants it; source version number → destination id."""
        if self.rules.mode != "ids":
            return {number: entry.id for number, entry in self.copy_subject(source, destination).items()}
        pair = Pair(source, destination)
        return {each.number: self.copy_schema(pair, each.schema)[1] for each in self.source.history(source)}

    def copy_subject(self, source: str, destination: str, through: int | None = None) -> dict[int, Entry]:
        """Copy a subject's versions, all or those `through` a number; where each source version stands now."""
        comparison = self.compare(source, destination)
        self._accept(comparison, source, destination)
        missing = _through(comparison.missing, through)
        self._set_level(source, destination)
        for number in missing:
            version = self._referred(Reference("", source, number))
            self._register(destination, self._brought(version.schema))
        if missing:
            comparison = self.compare(source, destination)
            self._accept(comparison, source, destination)
            if left := _through(comparison.missing, through):
                raise Unavailable(
                    f'{self.destination.title}: subject "{destination}" does not show versions {_listed(left)} of '
                    f'"{source}" that were just registered: it may be behind, and is asked again'
                )
        return comparison.there

    def copy_schema(self, pair: Pair, schema: Schema) -> tuple[int, int]:
        """Copy one schema and what it refers to, without its subject's history; its (version, id) there."""
        brought = self._brought(schema)
        found = self._found(pair.destination, brought)
        if found is not None:
            return found
        if pair.source is not None or self.rules.compatibility != "source":
            self._set_level(pair.source or "", pair.destination)
        number = self._register(pair.destination, brought)
        found = self._found(pair.destination, brought)
        if found is None:
            raise Unavailable(
                f'{self.destination.title}: subject "{pair.destination}" does not show the schema just registered with '
                f"id {number}: it may be behind, and is asked again"
            )
        return found

    def compare(self, source: str, destination: str) -> Comparison:
        """Hold a subject's two histories against each other; reads only."""
        # The destination first: what another worker copies in between is then in the source's history too.
        ours = self.destination.history(destination)
        entries, placed = self._entries(self.source.history(source), ours)
        comparison = compared(self.rules.mode, entries, placed)
        if not comparison.problem:
            return comparison
        return Comparison(
            comparison.there,
            comparison.missing,
            f'{self.destination.title}: subject "{destination}" is not the history of "{source}" of '
            f"{self.source.title}, as mode {self.rules.mode} wants it: {comparison.problem}; source versions: "
            f"{described(entries)}; destination versions: {described(placed)}; {_remedy(self.rules)}",
        )

    def wanted_level(self, source: str, destination: str) -> str | None:
        """The level of compatibility that the destination's subject has yet to get, None where it has it."""
        forced = self.rules.compatibility
        level = self.source.compatibility(source) if forced == "source" else forced
        return None if self.destination.compatibility(destination) == level else level

    def referred(self, schema: Schema) -> tuple[tuple[Version, str], ...]:
        """The versions a schema refers to, each with the subject it is to stand under at the destination."""
        return tuple((self._referred(each), self._renamed(each.subject)) for each in schema.references)

    def _accept(self, comparison: Comparison, source: str, destination: str) -> None:
        if comparison.problem:
            raise Refused(comparison.problem)
        if not comparison.there and not comparison.missing:
            raise Refused(f'{self.source.title}: subject "{source}", to be copied to "{destination}", has no version')

    def _set_level(self, source: str, destination: str) -> None:
        level = self.wanted_level(source, destination)
        if level is None:
            return
        try:
            self.destination.set_compatibility(destination, level)
        except Conflict as error:
            if self.wanted_level(source, destination) is not None:
                raise Unavailable(f"{error}; somebody else may be setting it at this moment: tried again") from error

    def _register(self, subject: str, schema: Schema) -> int:
        try:
            return self.destination.register(subject, schema)
        except Conflict:
            found = self._found(subject, schema)
            if found is None:
                raise
            return found[1]  # somebody else registered it at this moment

    def _brought(self, schema: Schema) -> Schema:
        """The schema as it is to stand at the destination, everything it refers to copied."""
        references = []
        for each, (version, subject) in zip(schema.references, self.referred(schema), strict=True):
            if self.rules.mode == "ids":
                place, _ = self.copy_schema(Pair(each.subject, subject), version.schema)
            else:
                place = self.copy_subject(each.subject, subject, each.version)[each.version].number
            references.append(Reference(each.name, subject, place))
        return schema.referring(tuple(references))

    def _placed(self, schema: Schema) -> Schema | None:
        """The same without copying anything: None where something it refers to is not there yet."""
        references = []
        for each in schema.references:
            place = self._place(each)
            if place is None:
                return None
            references.append(Reference(each.name, self._renamed(each.subject), place))
        return schema.referring(tuple(references))

    def _place(self, reference: Reference) -> int | None:
        """The destination's version of what a reference of the source means."""
        placed = self._placed(self._referred(reference).schema)
        found = None if placed is None else self._found(self._renamed(reference.subject), placed)
        return None if found is None else found[0]

    def _found(self, subject: str, schema: Schema) -> tuple[int, int] | None:
        """The (version, id) of a schema in the destination's subject, also where it was formatted otherwise there."""
        found = self.destination.lookup(subject, schema)
        if found is None:
            wanted = schema.canonical()
            same = (each for each in self.destination.history(subject) if each.schema.canonical() == wanted)
            found = next(((each.number, each.id) for each in same), None)
        return found

    def _entries(
        self, source: tuple[Version, ...], destination: tuple[Version, ...]
    ) -> tuple[list[Entry], list[Entry]]:
        """Both histories with keys that are equal where the schemas are.

        Where the canonical forms differ on both sides the destination has the last word: it may have
        rewritten a schema when it was registered, and still knows it when asked.
        """
        placed = [Entry(each.number, each.id, each.schema.canonical()) for each in destination]
        keys = {entry.number: entry.key for entry in placed}
        entries: list[Entry] = []
        unclaimed = set(keys.values())
        asked: list[tuple[int, Schema]] = []
        for version in source:
            schema = self._placed(version.schema)
            key = version.schema.canonical() if schema is None else schema.canonical()
            if schema is not None and key not in unclaimed:
                asked.append((len(entries), schema))
            entries.append(Entry(version.number, version.id, key if schema is not None else f"not yet {key}"))
        unclaimed -= {entry.key for entry in entries}
        for index, schema in asked if unclaimed else ():
            found = self.destination.lookup(destination[0].subject, schema)
            if found is not None and found[0] in keys:
                entries[index] = Entry(entries[index].number, entries[index].id, keys[found[0]])
        return entries, placed

    def _referred(self, reference: Reference) -> Version:
        version = self.source.version(reference.subject, reference.version)
        if version is None:
            raise Refused(
                f'{self.source.title}: version {reference.version} of subject "{reference.subject}" is gone, but a '
                "schema refers to it: was it deleted?"
            )
        return version

    def _renamed(self, subject: str) -> str:
        return renamed(subject, self.rules.strategy, self._renames)


def _through(numbers: tuple[int, ...], last: int | None) -> tuple[int, ...]:
    return tuple(number for number in numbers if last is None or number <= last)


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _remedy(rules: SchemaRules) -> str:
    if rules.mode == "strict":
        return "mend the destination's subject, or use mode: lenient where additional versions are meant to be there"
    return "mend the destination's subject, or use mode: ids where the order does not matter"

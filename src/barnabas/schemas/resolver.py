"""From a schema id or GUID of the source to the destination, remembered.

What was found is kept until a registry fails to answer: it may come back empty, so everything is then
looked up again. What was not found is asked again after some seconds, as a schema may be added later.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from barnabas.errors import BarnabasError, Refused, Unavailable
from barnabas.schemas.answers import NoSuchPath
from barnabas.schemas.breaker import BreakerState, Clock
from barnabas.schemas.fields import LARGEST_ID
from barnabas.schemas.mirroring import Mirroring
from barnabas.schemas.registry import RegistryClient
from barnabas.schemas.schema import Schema
from barnabas.schemas.settings import Side, TopicRoute, TranslationSettings
from barnabas.schemas.subjects import Nameless, Pair, subject_pair

Key = tuple[int, Side, int | str]
MOST_UNRESOLVED = 100_000


@dataclass(frozen=True)
class Unresolved:
    """A record's schema cannot be brought to the destination. `known`: the source at least has it."""

    reason: str
    known: bool


def made_of(settings: TranslationSettings) -> tuple[object, ...]:
    """What a resolver is made of: where it changes, a new one is due. Files count as they are, not by their names."""
    files = [file for side in (settings.source, settings.destination) for file in side.files]
    return settings, *(Path(file).stat().st_mtime_ns if Path(file).exists() else 0 for file in files)


class Resolver:
    """Answers where a schema stands at the destination, and brings it there first where it is not.

    Raises `Unavailable` while a registry does not answer, `Refused` where a registry or the mode forbids it.
    """

    def __init__(self, settings: TranslationSettings, *, clock: Clock = time.monotonic) -> None:
        self.settings = settings
        self.made_of = made_of(settings)
        self._clock = clock
        self._source = RegistryClient(settings.source, clock=clock)
        self._destination = RegistryClient(settings.destination, clock=clock)
        self._mirroring = Mirroring(self._source, self._destination, settings.rules, settings.renames)
        self._routes = {route.number: route for route in settings.routes}
        self._resolved: dict[Key, int] = {}
        self._unresolved: dict[Key, tuple[float, Unresolved]] = {}

    def destination_id(self, route: int, side: Side, number: int) -> int | Unresolved:
        """The destination's id of the source's schema `number` in records of a route."""
        if number > LARGEST_ID:  # four bytes of something else: a registry would not even understand the question
            return self._unknown(f"schema id {number}")
        return self._remembered((route, side, number), lambda: self._bring_id(route, side, number))

    def bring_guid(self, route: int, side: Side, guid: str) -> Unresolved | None:
        """See to it that the schema with this GUID, which stays in its header, is at the destination."""
        found = self._remembered((route, side, guid), lambda: self._bring_guid(route, side, guid))
        return found if isinstance(found, Unresolved) else None

    def ping(self) -> None:
        """Raises where one of the registries does not answer: the driver holds its mirror by this."""
        self.ping_source()
        self.ping_destination()

    def hold(self) -> None:
        """Raises `Unavailable` while a breaker is open that the failures of workers have opened."""
        self._source.hold()
        self._destination.hold()

    def count(self, failure: BarnabasError) -> None:
        """A worker's failure: its own breakers live no longer than an epoch, those here as long as the run."""
        for client in (self._source, self._destination):
            if failure.details.get("registry") == client.settings.name:
                client.count(failure.details["operation"], failure.details["failures"], str(failure))

    def settle(self) -> None:
        """Workers have got all their answers."""
        self._source.settle()
        self._destination.settle()

    def ping_source(self) -> None:
        self._source.ping()

    def ping_destination(self) -> None:
        self._destination.ping()

    def breakers(self) -> dict[str, dict[str, BreakerState]]:
        """The breakers' states by cluster name and operation."""
        return {client.settings.name: client.breakers() for client in (self._source, self._destination)}

    def close(self) -> None:
        """Give the connections back."""
        self._source.close()
        self._destination.close()

    def _remembered(self, key: Key, bring: Callable[[], int | Unresolved]) -> int | Unresolved:
        found = self._resolved.get(key)
        if found is not None:
            return found
        until, unresolved = self._unresolved.get(key, (None, None))
        if unresolved is not None and until is not None and self._clock() < until:
            return unresolved
        try:
            answer = bring()
        except Unavailable:
            self._resolved.clear()
            raise
        except Refused as error:  # by a name of errors.py, by which Spark brings it to the driver
            raise Refused(str(error)) from error
        if isinstance(answer, int):
            self._unresolved.pop(key, None)
            self._resolved[key] = answer
        else:
            if len(self._unresolved) >= MOST_UNRESOLVED:
                self._unresolved.clear()
            self._unresolved[key] = (self._clock() + self.settings.reask_seconds, answer)
        return answer

    def _bring_id(self, route: int, side: Side, number: int) -> int | Unresolved:
        schema = self._source.schema(number)
        if schema is None:
            return self._unknown(f"schema id {number}")
        pair = self._pair(route, side, schema)
        if isinstance(pair, Unresolved):
            return pair
        found = self._mirroring.destination_id(pair, schema, number)
        return self._misplaced(f"schema id {number}", pair, number) if found is None else found

    def _bring_guid(self, route: int, side: Side, guid: str) -> int | Unresolved:
        try:
            schema = self._source.schema_of_guid(guid)
        except NoSuchPath:
            return self._bring_topic(route, side, guid)
        if schema is None:
            return self._unknown(f"schema GUID {guid}")
        pair = self._pair(route, side, schema)
        if isinstance(pair, Unresolved):
            return pair
        found = self._mirroring.destination_id(pair, schema, None)
        if found is None:
            return self._misplaced(f"schema GUID {guid}", pair, None)
        try:
            there = self._destination.schema_of_guid(guid)
        except NoSuchPath:
            return found
        if there is not None:
            return found
        return Unresolved(
            f'schema GUID {guid} stands in subject "{pair.destination}" of the {self._destination.title} with id '
            f"{found}, but under another GUID: its references or its metadata differ there",
            known=True,
        )

    def _bring_topic(self, route: int, side: Side, guid: str) -> int | Unresolved:
        """Where the source cannot be asked by GUID, its schema is among the versions of the topic's subject."""
        topics = self._route(route)
        subject, strategy = f"{topics.source}-{side}", self.settings.rules.strategy
        if strategy != "topic-name" or not self._source.history(subject):
            return Unresolved(
                f"schema GUID {guid} cannot be looked up: the {self._source.title} cannot be asked by GUID, and with "
                f'subjects: {strategy} there is no subject "{subject}" to copy instead',
                known=False,
            )
        return max(self._mirroring.copy_all(subject, f"{topics.destination}-{side}").values())

    def _pair(self, route: int, side: Side, schema: Schema) -> Pair | Unresolved:
        topics = self._route(route)
        try:
            return subject_pair(self.settings.rules, topics, side, schema)
        except Nameless as error:
            return Unresolved(str(error), known=True)

    def _unknown(self, what: str) -> Unresolved:
        return Unresolved(f"{what} is unknown to the {self._source.title}", known=False)

    def _route(self, number: int) -> TopicRoute:
        if number not in self._routes:
            raise Refused(f'mirror "{self.settings.mirror}": a record has route {number}, which is not in the plan')
        return self._routes[number]

    def _misplaced(self, what: str, pair: Pair, number: int | None) -> Unresolved:
        places = () if number is None else self._source.places(number)
        stands = ", ".join(f'"{subject}" version {version}' for subject, version in places) or "no subject"
        return Unresolved(
            f'{what} is no version of subject "{pair.source}" at the {self._source.title} but stands under {stands}: '
            "was the version deleted, or is another way to name subjects meant?",
            known=True,
        )

"""Which topics a record reaches when all mirrors run together. Pure functions of names.

A mirror with `provenance` leaves records out here as its transform does (provenance.py). A mux is followed into its
intermediate topic and out of it again: the demux behind it gives the topic its name back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError
from barnabas.naming import destination_name, selected

Place = tuple[str, str]  # cluster and topic
# Of one record. Mirrors that take and rename the topics of each other in all directions reach more than can be counted.
MOST_PLACES, MOST_OF_A_MIRROR = 1_000, 4
TURNS = 3  # names that come back so often under new names will do so again


@dataclass(frozen=True)
class Hop:
    """One topic on its way through one mirror."""

    mirror: Mirror
    source: Place
    destination: Place


Path = tuple[Hop, ...]


@dataclass
class Reach:
    """What records that are born at one place reach."""

    paths: list[Path] = field(default_factory=list)  # the first one to each place
    doubles: list[tuple[Path, Path]] = field(default_factory=list)  # two to the same place
    circles: list[tuple[Path, Path]] = field(default_factory=list)  # a path, and the end of it that is a circle


def by_source(mirrors: Sequence[Mirror]) -> dict[str, list[Mirror]]:
    found: dict[str, list[Mirror]] = {}
    for mirror in mirrors:
        found.setdefault(mirror.source, []).append(mirror)
    return found


def reached(mirrors: Mapping[str, Sequence[Mirror]], place: Place, of: str | None) -> Reach:
    """Every path from a place on; none goes on from where another one has been, or from the end of a circle.

    `mirrors` by source. A name that cannot be is told if it is that of the mirror `of`, or if `of` is None.
    """
    reach, first = Reach(), dict[Place, Path]()
    most = MOST_PLACES + MOST_OF_A_MIRROR * sum(map(len, mirrors.values()))
    waiting: deque[Path] = deque([()])
    while waiting:
        before = waiting.popleft()
        for hop in _hops(mirrors, before[-1].destination if before else place, before, of):
            path = (*before, hop)
            if circle := _circle(path):
                reach.circles.append((path, circle))
            elif hop.destination in first:
                reach.doubles.append((first[hop.destination], path))
            elif len(first) < most:
                first[hop.destination] = path
                waiting.append(path)
            elif of in (None, *(h.mirror.name for h in path)):
                raise ConfigError(
                    f'{hop.mirror.place}: mirror "{hop.mirror.name}": {place[1]} of "{place[0]}" would become more '
                    f"than {most:,} topics on its way through all mirrors: change their `from` or `to`"
                )
    reach.paths = list(first.values())
    return reach


def _hops(mirrors: Mapping[str, Sequence[Mirror]], place: Place, path: Path, of: str | None) -> Iterator[Hop]:
    """The mirrors that take the topic on; a demux only where the path tells which topic was put into this one."""
    for mirror in mirrors.get(place[0], ()):
        if _leaves_out_copies(mirror, path) or not selected(mirror, [place[1]]):
            continue
        try:
            hop = _hop(mirror, place, path)
        except ConfigError:
            if of in (None, mirror.name):
                raise
            continue
        if hop and not _returns(path, hop):
            yield hop


def _hop(mirror: Mirror, place: Place, path: Path) -> Hop | None:
    original, identifier = place[1], ""
    if mirror.kind == "demux":
        carried = next((hop for hop in reversed(path) if hop.mirror.kind == "mux"), None)
        if not carried:
            return None
        original, identifier = carried.source[1], carried.mirror.identifier or ""
    return Hop(mirror, place, (mirror.destination, destination_name(mirror, original, identifier)))


def _leaves_out_copies(mirror: Mirror, path: Path) -> bool:
    """A direct mirror takes only what was born at its source; a copy without a stamp looks as if it were."""
    return mirror.provenance == "direct" and bool(path) and bool(path[-1].mirror.provenance)


def _returns(path: Path, hop: Hop) -> bool:
    """Whether a mirror with provenance skips the record there: the stamps tell where it has been."""
    stamped = takewhile(lambda before: before.mirror.provenance, reversed(path))
    return bool(hop.mirror.provenance) and any(before.source == hop.destination for before in stamped)


def growing(mirrors: Mapping[str, Sequence[Mirror]], of: Mirror, place: Place) -> Path:
    """A path on which a mirror takes what it has renamed time and again; empty where there is none.

    A direct mirror leaves out the copies in a topic, but it makes a topic for them all the same.
    """
    path: Path = ()
    for _ in range(TURNS if selected(of, [place[1]]) else 0):
        path = _taken_on(mirrors, of, path, place)
        if not path:
            return ()
    return path


def _taken_on(mirrors: Mapping[str, Sequence[Mirror]], by: Mirror, path: Path, place: Place) -> Path:
    """The shortest way on to where this mirror takes the topic to yet another one, whatever provenance leaves out."""
    seen, waiting = {place, *(hop.destination for hop in path)}, deque([path])
    while waiting and len(seen) < MOST_PLACES:
        before = waiting.popleft()
        here = before[-1].destination if before else place
        for mirror in mirrors.get(here[0], ()):
            try:
                hop = _hop(mirror, here, before) if selected(mirror, [here[1]]) else None
            except ConfigError:
                continue  # told where records would take it
            if hop and hop.destination not in seen:
                if mirror.name == by.name:
                    return (*before, hop)
                seen.add(hop.destination)
                waiting.append((*before, hop))
    return ()


def _circle(path: Path) -> Path:
    """The end of the path that leads back to where it began: to the same topic, or one that its mirror takes again."""
    place = path[-1].destination
    for at, hop in enumerate(path):
        if hop.source == place or (hop.source[0] == place[0] and _takes(hop.mirror, place, path)):
            return path[at:]
    return ()


def _takes(mirror: Mirror, place: Place, path: Path) -> bool:
    if _leaves_out_copies(mirror, path) or not selected(mirror, [place[1]]):
        return False
    try:
        hop = _hop(mirror, place, path)
    except ConfigError:
        return True
    return hop is not None and not _returns(path, hop)

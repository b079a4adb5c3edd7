"""Where records can travel when all mirrors run together: circles, and many into one. Pure functions of names.

A mux is followed into its intermediate topic and out of it again: the demux behind it gives the topic its name back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError
from barnabas.naming import destination_name, selected

Place = tuple[str, str]  # cluster and topic


@dataclass(frozen=True)
class Hop:
    """One topic on its way through one mirror."""

    mirror: Mirror
    source: Place
    destination: Place


Path = tuple[Hop, ...]


def refuse_circles_and_collisions(
    mirrors: Sequence[Mirror], topics: Mapping[str, Iterable[str]] | None = None, of: str | None = None
) -> None:
    """ConfigError for mirrors that cannot run together.

    `topics` are the names that exist in each cluster; without them only topics that are given by name are followed.
    `of`: only what the mirror of this name has a part in is refused; the others are told for themselves.
    """
    known = {cluster: set(names) for cluster, names in (topics or {}).items()}
    for mirror in mirrors:
        known.setdefault(mirror.source, set()).update(mirror.select.names)
    places = [(cluster, name) for cluster, names in known.items() for name in sorted(names)]
    paths = [path for place in places for path in _paths(mirrors, place, of)]
    for path in paths:
        _refuse_circle(path, of)
    hops = [path[-1] for path in paths] + [_unread(mux) for mux in mirrors if mux.kind == "mux" and mux.select.match]
    _refuse_collisions(hops, of)


def rivals(mirrors: Sequence[Mirror], of: Mirror) -> list[str]:
    """The source clusters of other mirrors into the same cluster that choose their topics by regular expression."""
    into = [mirror for mirror in mirrors if mirror.name != of.name and mirror.destination == of.destination]
    return sorted({mirror.source for mirror in into if mirror.select.match})


def feeders(mirrors: Sequence[Mirror]) -> dict[str, set[str]]:
    """For each mirror those whose copies it takes on, or may; of two that feed each other neither counts for the other.

    What is certain by names goes before what may be: a mirror by regular expression may feed any.
    """
    certain, possible = (
        {mirror.name: {other.name for other in mirrors if _feeds(other, mirror, may)} for mirror in mirrors}
        for may in (False, True)
    )
    return {mirror.name: _not_fed(certain, mirror.name) | _not_fed(possible, mirror.name) for mirror in mirrors}


def is_written(mirrors: Sequence[Mirror], place: Place) -> bool:
    """Whether one of the mirrors is known to make this topic."""
    cluster, topic = place
    return any(mirror.destination == cluster and topic in (_written(mirror) or ()) for mirror in mirrors)


def _feeds(one: Mirror, other: Mirror, may: bool) -> bool:
    names = _written(one)
    return one.destination == other.source and (may if names is None else bool(selected(other, names)))


def _written(mirror: Mirror) -> list[str] | None:
    """The topics that a mirror writes; None where only its source tells."""
    if mirror.kind == "mux":
        return [mirror.intermediate_topic]
    if mirror.kind == "demux" or mirror.select.match:
        return None
    return [destination_name(mirror, name) for name in mirror.select.names]


def _not_fed(direct: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """Those that feed this mirror directly and whom its own copies do not reach."""
    return {other for other in direct[name] if name not in _all_behind(direct, other)}


def _all_behind(direct: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """All mirrors whose copies reach this one, on whatever way."""
    found: set[str] = set()
    waiting = list(direct[name])
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += direct[one]
    return found


def _paths(mirrors: Sequence[Mirror], place: Place, of: str | None) -> Iterator[Path]:
    """Every way a topic takes from its place on, each with all its beginnings; none goes on from where it has been.

    Of ways through the same places that all skip what came from there, one is followed: where clusters copy each to
    each, there are too many.
    """
    waiting: list[Path] = [(hop,) for hop in _hops(mirrors, place, (), of)]
    followed: set[Hashable] = set()
    while waiting:
        path = waiting.pop()
        yield path
        if all(hop.mirror.provenance and hop.mirror.kind == "mirror" for hop in path):
            way = path[-1].destination, frozenset((hop.source, hop.mirror.select) for hop in path)
            if way in followed:
                continue
            followed.add(way)
        if not _circle(path) and (_stays(path[-1]) or path[-1].destination[0] not in _visited(path)):
            waiting += [(*path, hop) for hop in _hops(mirrors, path[-1].destination, path, of)]


def _stays(hop: Hop) -> bool:
    """A mux or a demux may write where it reads: that is a step on the way, no coming back."""
    return hop.source[0] == hop.destination[0] and hop.source != hop.destination


def _visited(path: Path) -> set[str]:
    return {path[0].source[0], *(hop.destination[0] for hop in path[:-1])}


def _hops(mirrors: Sequence[Mirror], place: Place, path: Path, of: str | None) -> Iterator[Hop]:
    """The mirrors that take the topic on; a demux only where the path tells which topic was put into this one."""
    cluster, topic = place
    carried = next((hop for hop in reversed(path) if hop.mirror.kind == "mux"), None)
    for mirror in mirrors:
        if mirror.source != cluster or not selected(mirror, [topic]) or (mirror.kind == "demux" and not carried):
            continue
        original, identifier = topic, ""
        if mirror.kind == "demux" and carried:
            original, identifier = carried.source[1], carried.mirror.identifier or ""
        try:
            name = destination_name(mirror, original, identifier)
        except ConfigError:
            if of in (None, mirror.name):
                raise
            continue
        yield Hop(mirror, place, (mirror.destination, name))


def _unread(mux: Mirror) -> Hop:
    """A mux by regular expression writes into one topic, whatever it will read."""
    return Hop(mux, (mux.source, " ".join(mux.select.match)), (mux.destination, mux.intermediate_topic))


def _refuse_collisions(hops: Iterable[Hop], of: str | None) -> None:
    """Two sources of one topic must both say that this is wanted; copies of one topic under one name are a mistake."""
    by_source: dict[tuple[Place, Place], Hop] = {}
    by_mirror: dict[Place, dict[str, Hop]] = {}
    for hop in hops:
        twin = by_source.setdefault((hop.source, hop.destination), hop)
        others = by_mirror.setdefault(hop.destination, {})
        others.setdefault(hop.mirror.name, hop)
        for other in [twin, *others.values()]:
            if of in (None, hop.mirror.name, other.mirror.name):
                _refuse_pair(other, hop)


def _refuse_pair(other: Hop, hop: Hop) -> None:
    """Both lead to one topic. Demuxes share the hub's topics, and a mux puts all of its topics into one."""
    if (other.mirror.name, other.source) == (hop.mirror.name, hop.source):
        return
    names = f'{hop.mirror.place}: mirrors "{other.mirror.name}" and "{hop.mirror.name}"'
    where = f'{hop.destination[1]} at "{hop.destination[0]}"'
    if other.source == hop.source:
        raise ConfigError(f"{names} both copy {hop.source[1]} to {where}: every record would be there twice")
    kinds = {other.mirror.kind, hop.mirror.kind}
    meant = kinds == {"demux"} or (kinds == {"mux"} and other.mirror.name == hop.mirror.name)
    if not meant and not (hop.mirror.merge and other.mirror.merge):
        sources = f'{other.source[1]} of "{other.source[0]}" and {hop.source[1]} of "{hop.source[0]}"'
        raise ConfigError(f"{names}: {sources} both become {where}; say `merge: true` on both if that is wanted")


def _refuse_circle(path: Path, of: str | None) -> None:
    """Coming back to a cluster may mean that records travel in a circle."""
    circle = _circle(path)
    if not circle or of not in (None, *(hop.mirror.name for hop in path)):
        return
    first = circle[0]
    if first.source == first.destination:
        raise ConfigError(
            f'{first.mirror.place}: mirror "{first.mirror.name}": topic {first.source[1]} of "{first.source[0]}" '
            f"would be copied onto itself: change `from`, `to` or `destination`"
        )
    if all(hop.mirror.provenance for hop in circle):
        return
    places = [first.source, *(hop.destination for hop in circle)]
    steps = " → ".join(f"{cluster}/{topic}" for cluster, topic in places)
    names = ", ".join(dict.fromkeys(f'"{hop.mirror.name}"' for hop in circle))
    raise ConfigError(
        f"{first.mirror.place}: mirrors {names}: records would travel in a circle: {steps}; "
        f"set `provenance: true` on them, to skip what came from there, or change `from` or `to`"
    )


def _circle(path: Path) -> Path:
    """The end of the path that leads back to where it began: to the same topic, or one that its mirror takes again."""
    cluster, topic = path[-1].destination
    for at, hop in enumerate(path):
        if hop.source[0] == cluster and (hop.source[1] == topic or selected(hop.mirror, [topic])):
            return path[at:]
    return ()

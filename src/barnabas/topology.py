"""Mirrors that cannot run together: circles, two ways to one topic, many topics into one. Pure functions of names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile

from barnabas.config.mirror import Mirror
from barnabas.errors import ConfigError
from barnabas.hops import Hop, Path, Place, Reach, by_source, growing, reached
from barnabas.naming import destination_name, selected


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
    takers = by_source(mirrors)
    places = [(cluster, name) for cluster, names in known.items() for name in sorted(names)]
    reaches = [reached(takers, place, of) for place in places]
    for reach in reaches:
        for path, circle in reach.circles:
            _refuse_circle(path, circle, of)
    _refuse_growing(mirrors, places, of)
    for reach in reaches:
        _refuse_two_ways(reach, of)
    hops = [path[-1] for reach in reaches for path in (*reach.paths, *(second for _, second in reach.doubles))]
    _refuse_collisions(hops + [_unread(mux) for mux in mirrors if mux.kind == "mux" and mux.select.match], of)


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
    if one.provenance and other.provenance == "direct":
        return False
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
    alone = other.mirror.name == hop.mirror.name
    named = f'mirror "{hop.mirror.name}"' if alone else f'mirrors "{other.mirror.name}" and "{hop.mirror.name}"'
    names = f"{hop.mirror.place}: {named}"
    where = f'{hop.destination[1]} at "{hop.destination[0]}"'
    if other.source == hop.source:
        raise ConfigError(f"{names} both copy {hop.source[1]} to {where}: every record would be there twice")
    kinds = {other.mirror.kind, hop.mirror.kind}
    meant = kinds == {"demux"} or (kinds == {"mux"} and other.mirror.name == hop.mirror.name)
    if not meant and not (hop.mirror.merge and other.mirror.merge):
        sources = f'{other.source[1]} of "{other.source[0]}" and {hop.source[1]} of "{hop.source[0]}"'
        raise ConfigError(
            f"{names}: {sources} both become {where}; say `merge: true`{'' if alone else ' on both'} if that is wanted"
        )


def _refuse_two_ways(reach: Reach, of: str | None) -> None:
    """All pairs of paths to one place: each has its own condition, or they are refused."""
    ways: dict[Place, list[Path]] = {}
    shared = {second[-1].destination for _, second in reach.doubles}
    for first, second in reach.doubles:
        others = ways.setdefault(second[-1].destination, [first])
        for other in others:
            if not _are_parted(other, second, shared):
                _refuse_pair_of_ways(other, second, of)
        others.append(second)


def _are_parted(first: Path, second: Path, shared: Collection[Place]) -> bool:
    """Whether the operator has parted the records: each way has a `where` that the other lacks, and both merge.

    Only what comes after the last place of both counts. A way through another shared topic stands for several.
    """
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    ends = first[common:], second[common:]
    if not all(ends) or any(hop.destination in shared for end in ends for hop in end[:-1]):
        return False
    one, other = ({hop.mirror.where for hop in end if hop.mirror.where is not None} for end in ends)
    return bool(one - other and other - one) and all(end[-1].mirror.merge for end in ends)


def _refuse_pair_of_ways(first: Path, second: Path, of: str | None) -> None:
    """A record that arrives on two ways arrives twice. Two mirrors that copy one topic are told as such."""
    if first[-1].source == second[-1].source or of not in (None, *(hop.mirror.name for hop in (*first, *second))):
        return
    (cluster, topic), (to, name) = first[0].source, first[-1].destination
    raise ConfigError(
        f"{second[-1].mirror.place}: mirrors {_names((*first, *second))}: two ways lead from {topic} of "
        f'"{cluster}" to {name} at "{to}", {_steps(first)} and {_steps(second)}: every record would be there twice; '
        f"leave out one of them, or mirror each pair of clusters directly, with `provenance: direct`, or give each way "
        f"a `where` of its own that takes other records, with `merge: true` where they meet"
    )


def _refuse_circle(path: Path, circle: Path, of: str | None) -> None:
    """Records would come back to a topic that they come from, or that is taken once more."""
    if of not in (None, *(hop.mirror.name for hop in path)):
        return
    first = circle[0]
    if first.source == first.destination:
        raise ConfigError(
            f'{first.mirror.place}: mirror "{first.mirror.name}": topic {first.source[1]} of "{first.source[0]}" '
            f"would be copied onto itself: change `from`, `to` or `destination`"
        )
    remedy = "set `provenance: true` on them, to skip what came from there"
    if all(hop.mirror.provenance for hop in circle):
        remedy = "leave the names of copies out of `from` with `except`"
    raise ConfigError(
        f"{first.mirror.place}: mirrors {_names(circle)}: records would travel in a circle: {_steps(circle)}; "
        f"{remedy}, or change `from` or `to`"
    )


def _refuse_growing(mirrors: Sequence[Mirror], places: Iterable[Place], of: str | None) -> None:
    """Direct mirrors leave copies out and records travel in no circle, but names of topics may."""
    renaming = [mirror for mirror in mirrors if mirror.to != "{topic}"]
    if not renaming or all(mirror.provenance != "direct" for mirror in mirrors):
        return
    takers = by_source(mirrors)
    for mirror in [mirror for mirror in mirrors if mirror.name == of] if of else renaming:
        for place in places:
            if place[0] == mirror.source and (path := growing(takers, mirror, place)):
                raise ConfigError(
                    f"{mirror.place}: mirrors {_names(path)}: topics of copies would be copied under new names at "
                    f"every turn: {_steps(path)}; leave the names of copies out of `from` with `except`"
                )


def _names(hops: Iterable[Hop]) -> str:
    return ", ".join(dict.fromkeys(f'"{hop.mirror.name}"' for hop in hops))


def _steps(path: Path) -> str:
    places = [path[0].source, *(hop.destination for hop in path)]
    return " → ".join(f"{cluster}/{topic}" for cluster, topic in places)

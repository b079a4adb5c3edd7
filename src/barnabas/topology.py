"""Where records can travel when all mirrors run together: circles, and many into one. Pure functions of names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def refuse_circles_and_collisions(mirrors: Sequence[Mirror], topics: Mapping[str, Iterable[str]] | None = None) -> None:
    """ConfigError for mirrors that cannot run together.

    `topics` are the names that exist in each cluster; without them only topics that are given by name are followed.
    """
    mirrors = [mirror for mirror in mirrors if mirror.kind == "mirror"]  # what a demux writes, only its records tell
    known = {cluster: set(names) for cluster, names in (topics or {}).items()}
    for mirror in mirrors:
        known.setdefault(mirror.source, set()).update(mirror.select.names)
    hops = [hop for cluster, names in known.items() for name in names for hop in _hops(mirrors, (cluster, name))]
    _refuse_collisions(hops)
    for hop in hops:
        _refuse_circle(mirrors, hop)


def _hops(mirrors: Sequence[Mirror], place: Place) -> list[Hop]:
    cluster, topic = place
    return [
        Hop(mirror, place, (mirror.destination, destination_name(mirror, topic)))
        for mirror in mirrors
        if mirror.source == cluster and selected(mirror, [topic])
    ]


def _refuse_collisions(hops: Iterable[Hop]) -> None:
    """Two sources of one topic must both say that this is wanted; copies of one topic under one name are a mistake."""
    first: dict[Place, Hop] = {}
    for hop in hops:
        if hop.source == hop.destination:
            raise ConfigError(
                f'{hop.mirror.place}: mirror "{hop.mirror.name}": topic {hop.source[1]} of "{hop.source[0]}" '
                f"would be copied onto itself: change `to` or `destination`"
            )
        other = first.setdefault(hop.destination, hop)
        if other == hop:
            continue
        names = f'{hop.mirror.place}: mirrors "{other.mirror.name}" and "{hop.mirror.name}"'
        where = f'{hop.destination[1]} at "{hop.destination[0]}"'
        if other.source == hop.source:
            raise ConfigError(f"{names} both copy {hop.source[1]} to {where}: every record would be there twice")
        if not (hop.mirror.merge and other.mirror.merge):
            sources = f'{other.source[1]} of "{other.source[0]}" and {hop.source[1]} of "{hop.source[0]}"'
            raise ConfigError(f"{names}: {sources} both become {where}; say `merge: true` on both if that is wanted")


def _refuse_circle(mirrors: Sequence[Mirror], first: Hop) -> None:
    """Follows a topic through all mirrors; coming back to a cluster may mean that its records travel in a circle."""
    paths = [[first]]
    while paths:
        path = paths.pop()
        circle = _circle(path)
        if circle and not all(hop.mirror.provenance for hop in circle):
            places = [circle[0].source, *(hop.destination for hop in circle)]
            steps = " → ".join(f"{cluster}/{topic}" for cluster, topic in places)
            names = ", ".join(dict.fromkeys(f'"{hop.mirror.name}"' for hop in circle))
            raise ConfigError(
                f"{circle[0].mirror.place}: mirrors {names}: records would travel in a circle: {steps}; "
                f"set `provenance: true` on them, to skip what came from there, or change `from` or `to`"
            )
        visited = {first.source[0], *(hop.destination[0] for hop in path[:-1])}
        if path[-1].destination[0] not in visited:
            paths += [[*path, hop] for hop in _hops(mirrors, path[-1].destination)]


def _circle(path: list[Hop]) -> list[Hop]:
    """The end of the path that leads back to where it began: to the same topic, or one that its mirror takes again."""
    cluster, topic = path[-1].destination
    for at, hop in enumerate(path):
        if hop.source[0] == cluster and (hop.source[1] == topic or selected(hop.mirror, [topic])):
            return path[at:]
    return []

"""Searches the model of the take-over: every world that can be reached, or the shortest way to a broken one."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from tests.unit.takeover_model import Bounds, Driver, Protocol, Worker, World, broken, position, steps


class Search(NamedTuple):
    worlds: int
    broken: str | None
    path: tuple[str, ...]
    finished: int  # worlds in which everything is copied


def searched(protocol: Protocol, bounds: Bounds) -> Search:
    """All worlds that can be reached, or the shortest way to one that is broken."""
    first = World((), (0,) * bounds.writers, (Driver(),) * bounds.drivers, (Worker(),) * bounds.drivers)
    came: dict[World, tuple[World, str] | None] = {first: None}
    waiting = deque([first])
    finished = 0
    while waiting:
        world = waiting.popleft()
        what = broken(world, protocol)
        if what:
            return Search(len(came), what, path_to(world, came), finished)
        finished += position(world.ledger, protocol) == bounds.records
        for step, after in steps(world, protocol, bounds):
            if after not in came:
                came[after] = (world, step)
                waiting.append(after)
    return Search(len(came), None, (), finished)


def path_to(world: World, came: dict[World, tuple[World, str] | None]) -> tuple[str, ...]:
    path: list[str] = []
    before = came[world]
    while before is not None:
        path.append(before[1])
        before = came[before[0]]
    return tuple(reversed(path))

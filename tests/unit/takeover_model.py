"""The take-over of a mirror, searched exhaustively: every order in which drivers, workers and brokers may act.

A small world with one ledger, a few drivers that take the mirror over from each other, one worker each, and few
transactional ids that they share. Nobody has to die: who is never chosen to act again is dead, and who acts after a
successor took over is a zombie. After every step the destination must hold the source's records once and in order, and
positions must follow them (A, E); nobody may write once a later driver copies (B, C).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple, TypeVar


class Batch(NamedTuple):
    """A transaction of one record and the position past it, in the ledger's order."""

    record: int
    writer: int
    outcome: str  # open, done or undone


class Entry(NamedTuple):
    """A plain line of the ledger: an epoch, a writer's registration, its tombstone, or a position by itself."""

    kind: str
    writer: int = -1
    epoch: int = -1


class Driver(NamedTuple):
    phase: str = "idle"  # idle → named → fencing → fenced → marked → copying ⇄ waiting, and then releasing → gone
    epoch: int = -1
    todo: tuple[tuple[int, int], ...] = ()
    fenced: tuple[tuple[int, int], ...] = ()
    mark: int = -1
    position: int = -1


class Worker(NamedTuple):
    phase: str = "none"  # none → born → held → noted → begin ⇄ ready, or over; begin → open → ready
    writer: int = -1
    grip: int = -1  # the producer epoch it was given
    noted: int = -1  # where its registration stands


Ledger = tuple[Batch | Entry, ...]
Value = TypeVar("Value")


class World(NamedTuple):
    ledger: Ledger
    grips: tuple[int, ...]  # the broker's producer epoch of each transactional id
    drivers: tuple[Driver, ...]
    workers: tuple[Worker, ...]


class Protocol(NamedTuple):
    """The protocol as it is, and what may be left out of it."""

    fences: bool = True
    scans: bool = True
    reads_after_fencing: bool = True
    together: bool = True  # a record and its position are in one transaction
    tombstones_name_epochs: bool = True
    release_strikes_out: bool = False  # a driver that gives up strikes out its own writers, as a successor does


class Bounds(NamedTuple):
    drivers: int = 2
    writers: int = 2
    records: int = 2
    gives_up: bool = False  # a driver may end by itself, and a worker need a new producer: many more worlds


def put(values: tuple[Value, ...], at: int, value: Value) -> tuple[Value, ...]:
    return (*values[:at], value, *values[at + 1 :])


def decided(ledger: Ledger, writer: int, outcome: str) -> Ledger:
    """The ledger with the open transaction of an id ended."""
    return tuple(
        line._replace(outcome=outcome)
        if isinstance(line, Batch) and line.writer == writer and line.outcome == "open"
        else line
        for line in ledger
    )


def position(ledger: Ledger, protocol: Protocol) -> int:
    """The next record to copy, as a read_committed reader of this ledger finds it."""
    if protocol.together:
        return max(
            (line.record + 1 for line in ledger if isinstance(line, Batch) and line.outcome == "done"), default=0
        )
    return max((line.epoch for line in ledger if isinstance(line, Entry) and line.kind == "position"), default=0)


def registered(ledger: Ledger, until: int, protocol: Protocol) -> tuple[tuple[int, int], ...]:
    """Writers noted before `until`. A later tombstone hides them wherever it is: compaction may have been there."""
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for at, line in enumerate(ledger):
        if isinstance(line, Entry):
            key = (line.writer, line.epoch if protocol.tombstones_name_epochs else -1)
            if line.kind == "writer" and at < until:
                found[key] = (line.writer, line.epoch)
            elif line.kind == "tombstone":
                found.pop(key, None)
    return tuple(sorted(found.values()))


def steps(world: World, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    """Everything that may happen next."""
    for at in range(bounds.drivers):
        yield from driver_steps(world, at, protocol, bounds)
        yield from worker_steps(world, at, protocol)
    for line in world.ledger:
        if isinstance(line, Batch) and line.outcome == "open":
            yield f"broker: time is up for id {line.writer}", fenced(world, line.writer)


def fenced(world: World, writer: int) -> World:
    """The broker gives the id a new producer epoch and aborts what was open."""
    grips = put(world.grips, writer, world.grips[writer] + 1)
    return world._replace(ledger=decided(world.ledger, writer, "undone"), grips=grips)


def driver_steps(world: World, at: int, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    driver, ledger = world.drivers[at], world.ledger

    def turned(after: World = world, **changes: object) -> World:
        return after._replace(drivers=put(after.drivers, at, driver._replace(**changes)))  # type: ignore[arg-type]

    if driver.phase == "idle" and (at == 0 or world.drivers[at - 1].phase != "idle"):
        after = world._replace(ledger=(*ledger, Entry("epoch")))
        yield f"driver {at}: begins an epoch", turned(after, phase="named", epoch=len(ledger))
    elif driver.phase == "named":
        todo = registered(ledger, driver.epoch, protocol) if protocol.fences else ()
        early = -1 if protocol.reads_after_fencing else position(ledger, protocol)
        yield f"driver {at}: finds {todo}", turned(phase="fencing", todo=todo, fenced=todo, position=early)
    elif driver.phase == "fencing" and driver.todo:
        writer = driver.todo[0][0]
        yield f"driver {at}: fences id {writer}", turned(fenced(world, writer), todo=driver.todo[1:])
    elif driver.phase == "fencing":
        tombstones = tuple(Entry("tombstone", writer, epoch) for writer, epoch in driver.fenced)
        yield f"driver {at}: strikes out", turned(world._replace(ledger=ledger + tombstones), phase="fenced", fenced=())
    elif driver.phase == "fenced":
        yield f"driver {at}: takes the mark", turned(phase="marked", mark=len(ledger))
    elif driver.phase == "releasing":
        yield releasing_step(world, at, protocol)
    elif driver.phase == "marked":
        known = ledger[: driver.mark]
        waiting = any(isinstance(line, Batch) and line.outcome == "open" for line in known)
        if not waiting:
            found = position(known, protocol) if protocol.reads_after_fencing else driver.position
            yield f"driver {at}: copies from {found}", turned(phase="copying", position=found, mark=-1)
    else:
        yield from copying_steps(world, at, bounds)
        copies = driver.phase in ("copying", "waiting")
        if bounds.gives_up and copies and Entry("epoch") not in ledger[driver.epoch + 1 :]:
            ours = registered(ledger, len(ledger), protocol)
            yield f"driver {at}: gives up", turned(phase="releasing", todo=ours, fenced=ours)


def releasing_step(world: World, at: int, protocol: Protocol) -> tuple[str, World]:
    """No transaction is left open; its workers may not know yet that it is over."""
    driver = world.drivers[at]
    if driver.todo:
        after = fenced(world, driver.todo[0][0])
        fencing = put(after.drivers, at, driver._replace(todo=driver.todo[1:]))
        return f"driver {at}: fences id {driver.todo[0][0]}", after._replace(drivers=fencing)
    struck = tuple(Entry("tombstone", *each) for each in driver.fenced) if protocol.release_strikes_out else ()
    gone = put(world.drivers, at, driver._replace(phase="gone", fenced=()))
    return f"driver {at}: is gone", world._replace(ledger=world.ledger + struck, drivers=gone)


def copying_steps(world: World, at: int, bounds: Bounds) -> Iterator[tuple[str, World]]:
    """Each range is handed to one worker, once (D)."""
    driver, worker = world.drivers[at], world.workers[at]
    if driver.phase == "copying" and driver.position < bounds.records:
        waiting = put(world.drivers, at, driver._replace(phase="waiting"))
        ids = range(bounds.writers) if worker.phase == "none" else ()
        for writer in ids:
            born = put(world.workers, at, Worker("born", writer))
            yield f"driver {at}: starts a worker on id {writer}", world._replace(drivers=waiting, workers=born)
        if worker.phase == "ready":
            begun = put(world.workers, at, worker._replace(phase="begin"))
            yield f"driver {at}: next task", world._replace(drivers=waiting, workers=begun)
        if worker.phase == "ready" and bounds.gives_up:
            born = put(world.workers, at, Worker("born", worker.writer))
            yield f"driver {at}: next task, for a new producer", world._replace(drivers=waiting, workers=born)
    elif driver.phase == "waiting" and worker.phase == "ready":
        told = driver._replace(phase="copying", position=driver.position + 1)
        yield f"driver {at}: receipt", world._replace(drivers=put(world.drivers, at, told))


def worker_steps(world: World, at: int, protocol: Protocol) -> Iterator[tuple[str, World]]:
    worker, driver, ledger = world.workers[at], world.drivers[at], world.ledger
    held = worker.writer >= 0 and world.grips[worker.writer] == worker.grip

    def turned(phase: str, after: World = world, **changes: int) -> World:
        return after._replace(workers=put(after.workers, at, worker._replace(phase=phase, **changes)))

    if worker.phase == "born":
        after = fenced(world, worker.writer)
        yield f"worker {at}: init", turned("held", after, grip=after.grips[worker.writer])
    elif worker.phase == "held":
        after = world._replace(ledger=(*ledger, Entry("writer", worker.writer, driver.epoch)))
        yield f"worker {at}: registers", turned("noted", after, noted=len(ledger))
    elif worker.phase == "noted":
        newer = any(isinstance(x, Entry) and x.kind == "epoch" for x in ledger[driver.epoch + 1 : worker.noted])
        yield f"worker {at}: looks", turned("over" if newer and protocol.scans else "begin", noted=-1)
    elif worker.phase == "begin":
        after = world._replace(ledger=(*ledger, Batch(driver.position, worker.writer, "open")) if held else ledger)
        yield f"worker {at}: writes {driver.position}", turned("open" if held else "over", after)
    elif worker.phase == "open":
        after = world._replace(ledger=decided(ledger, worker.writer, "done") if held else ledger)
        phase = "over" if not held else "ready" if protocol.together else "positionless"
        yield f"worker {at}: commits {driver.position}" if held else f"worker {at}: is fenced", turned(phase, after)
    elif worker.phase == "positionless":
        after = world._replace(ledger=(*ledger, Entry("position", worker.writer, driver.position + 1)))
        yield f"worker {at}: notes the position", turned("ready", after)


def broken(world: World, protocol: Protocol) -> str | None:
    """What is wrong in this world, or None."""
    copied = [line.record for line in world.ledger if isinstance(line, Batch) and line.outcome == "done"]
    if copied != list(range(len(copied))):
        return f"the destination holds {copied}"
    if protocol.together and position(world.ledger, protocol) != len(copied):
        return f"position {position(world.ledger, protocol)} does not follow {copied}"
    latest = max((d.epoch for d in world.drivers if d.phase in ("copying", "waiting")), default=-1)
    for driver, worker in zip(world.drivers, world.workers, strict=True):
        if worker.phase == "open" and world.grips[worker.writer] == worker.grip and driver.epoch < latest:
            return f"epoch {driver.epoch} can still commit after epoch {latest} read its positions"
    return None


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

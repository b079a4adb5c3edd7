"""The take-over of a mirror, searched exhaustively: every order in which drivers, workers and brokers may act.

A small world with one ledger, a few drivers that take the mirror over from each other, one worker each, and few
transactional ids that they share. Nobody has to die: who is never chosen to act again is dead, and who acts after a
successor took over is a zombie. A broker may answer with an end of the ledger that is old, and a network may deliver an
epoch record late. After every step the destination must hold the source's records once and in order, and positions must
follow them (A, E); nobody may write once a later driver copies (B, C); no late record may stop a run that is younger.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar


class Batch(NamedTuple):
    """A transaction of one record and the position past it, in the ledger's order."""

    record: int
    writer: int
    outcome: str  # open, done or undone


class Entry(NamedTuple):
    """A plain line of the ledger: an epoch, a registration, its tombstone, a barrier, or a position by itself."""

    kind: str
    writer: int = -1  # or the driver of an epoch record
    epoch: int = -1  # or, of an epoch record, how far its driver had read the ledger


class Driver(NamedTuple):
    # idle → composed → named → fencing → fenced → marked → copying ⇄ waiting, and then releasing → gone
    phase: str = "idle"
    seen: int = -1  # how far it had read the ledger when it composed its epoch record
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
    late: tuple[Entry, ...] = ()  # epoch records that a network still holds and their drivers gave up
    given_up: int = 0
    wronged: bool = False  # a writer stopped because of a record that was composed before its own run began


class Protocol(NamedTuple):
    """The protocol as it is, and what may be left out of it."""

    fences: bool = True
    scans: bool = True
    reads_after_fencing: bool = True
    together: bool = True  # a record and its position are in one transaction
    tombstones_name_epochs: bool = True
    mark_is_own_write: bool = True  # positions are read up to an acknowledged write, not up to what a broker says
    late_epochs_are_void: bool = True
    release_strikes_out: bool = False  # a driver that gives up strikes out its own writers, as a successor does


class Bounds(NamedTuple):
    drivers: int = 2
    writers: int = 2
    records: int = 2
    gives_up: bool = False  # a driver may end by itself, and a worker need a new producer: many more worlds
    late: int = 0  # so many epoch records may be delivered late


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


def current_epoch(ledger: Ledger, protocol: Protocol, first: int = 0, current: int = -1) -> int:
    """The epoch that runs, as a reader finds it who begins at `first` and knows the one before."""
    for at, line in enumerate(ledger[first:], first):
        if isinstance(line, Entry) and line.kind == "epoch":
            current = at if line.epoch > current or not protocol.late_epochs_are_void else current
    return current


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
    for record in world.late:
        rest = tuple(other for other in world.late if other is not record)
        yield f"network: delivers {record} late", world._replace(ledger=(*world.ledger, record), late=rest)


def fenced(world: World, writer: int) -> World:
    """The broker gives the id a new producer epoch and aborts what was open."""
    grips = put(world.grips, writer, world.grips[writer] + 1)
    return world._replace(ledger=decided(world.ledger, writer, "undone"), grips=grips)


def driver_steps(world: World, at: int, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    driver, ledger = world.drivers[at], world.ledger

    def turned(after: World = world, **changes: object) -> World:
        return after._replace(drivers=put(after.drivers, at, driver._replace(**changes)))  # type: ignore[arg-type]

    if driver.phase in ("idle", "composed") or is_void(ledger, driver, protocol):
        yield from epoch_steps(world, at, protocol, bounds)
    elif driver.phase == "named":
        todo = registered(ledger, driver.epoch, protocol) if protocol.fences else ()
        early = -1 if protocol.reads_after_fencing else position(ledger, protocol)
        yield f"driver {at}: finds {todo}", turned(phase="fencing", todo=todo, fenced=todo, position=early)
    elif driver.phase == "fencing" and driver.todo:
        writer = driver.todo[0][0]
        yield f"driver {at}: fences id {writer}", turned(fenced(world, writer), todo=driver.todo[1:])
    elif driver.phase == "fencing":
        tombstones = tuple(Entry("tombstone", writer, epoch) for writer, epoch in driver.fenced)
        longer = (*ledger, *tombstones, Entry("barrier"))
        phase, mark = ("marked", len(longer)) if protocol.mark_is_own_write else ("fenced", -1)
        after = world._replace(ledger=longer)
        yield f"driver {at}: strikes out, and notes where", turned(after, phase=phase, mark=mark, fenced=())
    elif driver.phase == "fenced":
        for mark in range(len(ledger) + 1):  # a deposed leader answers with an end that is old
            yield f"driver {at}: is told that the ledger ends at {mark}", turned(phase="marked", mark=mark)
    elif driver.phase == "releasing":
        yield releasing_step(world, at, protocol)
    elif driver.phase == "marked":
        known = ledger[: driver.mark]
        if not has_open_transaction(known):
            found = position(known, protocol) if protocol.reads_after_fencing else driver.position
            yield f"driver {at}: copies from {found}", turned(phase="copying", position=found, mark=-1)
    else:
        yield from copying_steps(world, at, bounds)
        copies = driver.phase in ("copying", "waiting")
        runs = current_epoch(ledger, protocol, driver.epoch + 1, driver.epoch) == driver.epoch
        if bounds.gives_up and copies and runs:
            ours = registered(ledger, len(ledger), protocol)
            yield f"driver {at}: gives up", turned(phase="releasing", todo=ours, fenced=ours)


def has_open_transaction(ledger: Ledger) -> bool:
    return any(isinstance(line, Batch) and line.outcome == "open" for line in ledger)


def is_void(ledger: Ledger, driver: Driver, protocol: Protocol) -> bool:
    """Another epoch began between the driver's look and its record."""
    return driver.phase == "named" and current_epoch(ledger[: driver.epoch + 1], protocol) != driver.epoch


def epoch_steps(world: World, at: int, protocol: Protocol, bounds: Bounds) -> Iterator[tuple[str, World]]:
    """A driver appends its epoch record. Where records may be late, others may act between composing and appending."""
    driver, ledger = world.drivers[at], world.ledger
    if driver.phase == "named":
        newest = ledger[current_epoch(ledger[: driver.epoch + 1], protocol)]
        composed = driver._replace(phase="composed", seen=driver.epoch + 1, epoch=-1)
        turned = composed if newest.writer == at else driver._replace(phase="gone")  # who began meanwhile wins
        yield f"driver {at}: finds its record void", world._replace(drivers=put(world.drivers, at, turned))
        return
    if driver.phase == "idle":
        if at > 0 and world.drivers[at - 1].phase == "idle":
            return
        driver = driver._replace(phase="composed", seen=len(ledger))
        if bounds.late:
            yield f"driver {at}: composes", world._replace(drivers=put(world.drivers, at, driver))
            return
    record = Entry("epoch", at, driver.seen)
    begun = put(world.drivers, at, driver._replace(phase="named", seen=-1, epoch=len(ledger)))
    yield f"driver {at}: appends its epoch record", world._replace(ledger=(*ledger, record), drivers=begun)
    if bounds.late > world.given_up:
        again = put(world.drivers, at, driver._replace(seen=len(ledger)))
        after = world._replace(drivers=again, late=(*world.late, record), given_up=world.given_up + 1)
        yield f"driver {at}: gives its record up, composes another", after


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
        newest = current_epoch(ledger[: worker.noted], protocol, driver.epoch + 1, driver.epoch)
        stops = newest != driver.epoch and protocol.scans
        record = ledger[newest]
        composed_before = isinstance(record, Entry) and record.epoch <= driver.epoch
        after = world._replace(wronged=world.wronged or (stops and composed_before))
        yield f"worker {at}: looks", turned("over" if stops else "begin", after, noted=-1)
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
    if world.wronged:
        return "a writer stops because of an epoch record that is older than its run"
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

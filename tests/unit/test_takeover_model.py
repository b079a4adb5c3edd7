"""The take-over holds in every order of events, and the search finds what breaks when a step is left out."""

from __future__ import annotations

import pytest

from tests.unit.takeover_model import Bounds, Driver, Protocol, Worker, World, broken, steps
from tests.unit.takeover_search import searched


@pytest.mark.parametrize(
    ("bounds", "at_least"),
    [
        (Bounds(drivers=2, writers=2, records=3), 5_000),
        (Bounds(drivers=3, writers=1, records=1), 25_000),
        (Bounds(drivers=2, writers=1, records=2, gives_up=True), 5_000),
        (Bounds(drivers=2, writers=1, records=1, late=1), 5_000),
        pytest.param(Bounds(drivers=3, writers=2, records=1), 100_000, marks=pytest.mark.slow),
        pytest.param(Bounds(drivers=3, writers=1, records=2), 100_000, marks=pytest.mark.slow),
    ],
)
def test_no_order_of_events_loses_or_doubles_a_record(bounds: Bounds, at_least: int) -> None:
    search = searched(Protocol(), bounds)
    assert search.broken is None, search.path
    assert search.worlds > at_least, "the search did not go far enough to prove anything"
    assert search.finished > 0, "in no world was everything copied"


@pytest.mark.parametrize(
    ("protocol", "found"),
    [
        (Protocol(fences=False), "can still commit"),
        (Protocol(scans=False), "can still commit"),
        (Protocol(reads_after_fencing=False), "the destination holds [0, 0]"),
        (Protocol(together=False), "the destination holds [0, 0]"),
        (Protocol(release_strikes_out=True), "can still commit"),
        (Protocol(mark_is_own_write=False), "the destination holds [0, 0]"),
        (Protocol(late_epochs_are_void=False), "older than its run"),
    ],
    ids=[
        "nobody is fenced",
        "the writer does not look",
        "positions are read first",
        "positions travel alone",
        "who gives up strikes out what its own workers say anew",
        "positions are read up to the end that a broker tells",
        "an epoch record that arrives late counts",
    ],
)
def test_a_protocol_with_a_step_too_few_or_too_many_is_found_to_be_broken(protocol: Protocol, found: str) -> None:
    bounds = Bounds(gives_up=protocol.release_strikes_out, late=0 if protocol.late_epochs_are_void else 1)
    search = searched(protocol, bounds)
    assert search.broken is not None and found in search.broken
    assert len(search.path) > 10


def test_a_late_tombstone_of_an_old_epoch_hides_a_new_writer_unless_it_names_its_epoch() -> None:
    """Driver 1 fences and falls asleep; 2 takes over and its worker registers under the same id; 1 strikes out."""
    order = [("driver 0", 6), ("worker 0", 2), ("driver 1", 3), ("driver 2", 7), ("worker 2", 2), ("driver 1", 1)]
    order += [("worker 2", 1), ("driver 3", 5), ("worker 2", 1), ("driver 3", 1)]
    ended = led(Protocol(tombstones_name_epochs=False), order)
    assert "can still commit" in (broken(ended, Protocol()) or "")
    assert broken(led(Protocol(), order), Protocol()) is None


def led(protocol: Protocol, order: list[tuple[str, int]]) -> World:
    """The world after each of the actors has acted so often, as far as it can."""
    bounds = Bounds(drivers=4, writers=1, records=1)
    world = World((), (0,), (Driver(),) * 4, (Worker(),) * 4)
    for actor, times in order:
        for _ in range(times):
            world = next((w for step, w in steps(world, protocol, bounds) if step.startswith(actor)), world)
    return world

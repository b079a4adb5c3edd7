"""Places for unfinished handshakes: a newcomer gets one, and whoever holds most loses the oldest."""

import asyncio
from typing import cast

import pytest

from barnabas.tunnel.refusals import Reason, TurnedAway
from barnabas.tunnel.room import Room, source_of


async def inside(room: Room, source: str) -> None:
    with room.place(source, cast("asyncio.Task[None]", asyncio.current_task())):
        await asyncio.Event().wait()


async def entered(room: Room, *sources: str) -> list["asyncio.Task[None]"]:
    tasks = []
    for source in sources:
        tasks.append(asyncio.create_task(inside(room, source)))
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def test_the_oldest_of_the_source_that_holds_most_makes_room() -> None:
    async def scene() -> None:
        room = Room(5)
        tasks = await entered(room, "one", "many", "many", "many", "two", "three", "many")
        assert [task.done() for task in tasks] == [False, True, True, False, False, False, False]
        for task in tasks[1:3]:
            error = task.exception()
            assert isinstance(error, TurnedAway)
            assert error.reason is Reason.DISPLACED
        assert len(room) == 5
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks[3:])
        assert len(room) == 0

    asyncio.run(scene())


def test_a_place_is_free_again_when_its_block_has_ended() -> None:
    async def scene() -> None:
        room = Room(1)
        task = cast("asyncio.Task[None]", asyncio.current_task())
        for _ in range(3):
            with room.place("one", task):
                assert len(room) == 1
        assert len(room) == 0

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("2001:db8:1:2:3::4", "2001:db8:1:2:5::6", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2%eth0", True),
    ],
)
def test_a_source_is_an_address_of_version_4_or_a_network_of_version_6(one: str, other: str, same: bool) -> None:
    assert (source_of(one) == source_of(other)) is same

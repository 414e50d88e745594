"""Online tests without people: every part is an agent's, and no time passes but the tests' own."""

from __future__ import annotations

import asyncio

from judging.study.online.quotas import next_cell
from judging.study.online.state import OnlineTest
from judging.study.online.tests import HeldTests


async def hold_tests(held: HeldTests, number: int, at_once: int) -> tuple[int, int]:
    """Hold tests until the study has ``number`` that are not void, ``at_once`` together, those first that were begun
    and not ended; returns how many it has, and how many became void now. What became void is not held again: the same
    call does that."""
    held.is_simulated = True
    room = asyncio.Semaphore(at_once)
    under_way: set[asyncio.Task[None]] = set()

    async def hold(test: OnlineTest) -> None:
        try:
            await held.hold(test)
        finally:
            room.release()

    async def begin(test: OnlineTest) -> None:
        under_way.add(asyncio.create_task(hold(test)))

    counted = held.tests.counted()
    open_ones = [test for test in counted if not test.is_over() and held.state.judges.keys().isdisjoint(test.people)]
    before = {test.id for test in held.tests.by_id.values() if test.void is not None}
    try:
        for test in open_ones:
            await room.acquire()
            await begin(test)
        for _ in range(number - len(counted)):
            await room.acquire()
            begun = len(held.tests.by_id)
            cell = next_cell(held.settings.tests, held.tests.counted(), held.chance(f"cell {begun}"))
            await begin(await held.begin(cell, []))
        await asyncio.gather(*under_way)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    void = {test.id for test in held.tests.by_id.values() if test.void is not None}
    return sum(test.is_over() for test in held.tests.counted()), len(void - before)

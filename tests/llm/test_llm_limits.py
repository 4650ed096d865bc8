"""The limiter: never more holders than the limit, fewer after a 429, nothing lost when a waiter is cancelled."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from kbgym.agents.llm.limits import Limiter


@given(st.integers(1, 9), st.lists(st.sampled_from(["ok", "limited", "cancel"]), max_size=60))
def test_never_more_than_the_limit_and_nothing_is_lost(most: int, fates: list[str]) -> None:
    limiter = Limiter(most)
    running = 0
    finished = 0

    async def one(fate: str) -> None:
        nonlocal running, finished
        async with limiter.slot() as since:
            running += 1
            try:
                assert running <= most
                await asyncio.sleep(0)
            finally:
                running -= 1
            if fate == "limited":
                limiter.throttled(since)
            else:
                limiter.succeeded()
            finished += 1

    async def all_of_them() -> None:
        tasks = [asyncio.create_task(one(fate)) for fate in fates]
        await asyncio.sleep(0)
        for task, fate in zip(tasks, fates, strict=True):
            if fate == "cancel" and not task.done():
                task.cancel()
        ended = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
        assert all(end is None or isinstance(end, asyncio.CancelledError) for end in ended), ended

    asyncio.run(all_of_them())
    assert limiter.active == running == 0
    assert finished >= sum(fate != "cancel" for fate in fates)
    assert 1 <= limiter.limit <= most


def test_a_429_halves_once_for_all_that_were_under_way() -> None:
    async def scene() -> Limiter:
        limiter = Limiter(16)
        async with limiter.slot() as first, limiter.slot() as second:
            limiter.throttled(first)
            limiter.throttled(second)
        assert limiter.limit == 8
        async with limiter.slot() as third:
            limiter.throttled(third)
        return limiter

    limiter = asyncio.run(scene())
    assert limiter.limit == 4


def test_it_grows_again_by_one_a_round() -> None:
    limiter = Limiter(16)
    limiter.limit = 4.0
    for _ in range(4):
        limiter.succeeded()
    assert 4.8 < limiter.limit < 5.1
    for _ in range(1000):
        limiter.succeeded()
    assert limiter.limit == 16


def served(advanced: list[int]) -> list[int]:
    """The order in which requests are let in, one at a time, that all come while the first is held."""

    async def scene() -> list[int]:
        limiter, order = Limiter(1), []

        async def one(number: int) -> None:
            async with limiter.slot(advanced[number]):
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*(one(number) for number in range(len(advanced))))
        return order

    return asyncio.run(scene())


def test_first_come_first_served() -> None:
    assert served([0] * 8) == list(range(8))


def test_among_those_waiting_the_least_advanced_goes_first() -> None:
    assert served([9, 5, 3, 5, 1]) == [0, 4, 2, 1, 3]

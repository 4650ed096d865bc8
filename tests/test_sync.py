"""Asynchronous work from ordinary code: with and without a running loop, with its errors, and when interrupted."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from kbgym.sync import run_sync

WHO = contextvars.ContextVar("WHO", default="nobody")


async def work(value: int) -> tuple[int, str]:
    await asyncio.sleep(0)
    return value, WHO.get()


def test_without_a_loop_it_is_asyncio_run():
    assert run_sync(work(3)) == (3, "nobody")


def test_inside_a_loop_it_is_waited_for_in_a_thread_that_knows_the_context():
    async def cell():
        WHO.set("the cell")
        return run_sync(work(4))

    threads = threading.active_count()
    assert asyncio.run(cell()) == (4, "the cell")
    assert threading.active_count() == threads


@pytest.mark.parametrize("inside", [False, True])
def test_an_error_comes_out_as_it_is(inside):
    async def failing():
        raise ValueError("no")

    async def cell():
        run_sync(failing())

    with pytest.raises(ValueError, match="no"):
        asyncio.run(cell()) if inside else run_sync(failing())


def test_interrupting_the_wait_stops_the_work_and_lets_it_clean_up(monkeypatch):
    begun, cleaned = threading.Event(), []

    async def endless():
        try:
            begun.set()
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    def interrupted(future, timeout=None):
        begun.wait()
        raise KeyboardInterrupt

    async def cell():
        with monkeypatch.context() as patched:
            patched.setattr("concurrent.futures.Future.result", interrupted)
            with pytest.raises(KeyboardInterrupt):
                run_sync(endless())

    asyncio.run(cell())
    assert cleaned == [True]

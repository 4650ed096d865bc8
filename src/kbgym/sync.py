"""Run coroutines from synchronous code, even inside a running event loop such as a notebook's."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine and return its result; inside a running loop, in a thread with a loop of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    under_way: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def cancellable() -> T:
        under_way.append((asyncio.get_running_loop(), asyncio.current_task()))
        return await work

    with ThreadPoolExecutor(1, "kbgym") as thread:
        done = thread.submit(contextvars.copy_context().run, asyncio.run, cancellable())
        try:
            return done.result()
        except BaseException:
            # Interrupted while waiting: cancel the work; leaving the block waits until it has stopped.
            for loop, task in under_way:
                if task is not None and not done.done():
                    loop.call_soon_threadsafe(task.cancel)
            raise

"""Whose turn it is: within this process always, and among all processes where the store is shared.

`async with turn:` waits for the others in this process and, where the store is in a database, for the other processes;
what they committed is followed before the block begins, and what the block commits is durable when it ends. Waiting and
writing happen in a thread. It knows an appender and three functions of the store's owner, and nothing else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, suppress
from typing import Any

from kbgym.errors import KbgymError
from kbgym.trace.events import Event
from kbgym.trace.place import Appender

Batch = Sequence[tuple[list[Event], "asyncio.Future[None]"]]


class Turn:
    """An asynchronous context manager, used again and again. Without an appender it is a lock."""

    def __init__(
        self,
        lock: asyncio.Lock,
        writer: Appender | None,
        thread: Executor,
        follow: Callable[[Sequence[Event]], Awaitable[None]],
        written: Callable[[], None],
        give_up: Callable[[Batch, Exception], None],
    ) -> None:
        self._lock, self._writer, self._thread = lock, writer, thread
        self._follow, self._written, self._give_up = follow, written, give_up
        self._held: AbstractContextManager[tuple[Event, ...]] | None = None
        self._batch: list[tuple[list[Event], asyncio.Future[None]]] = []

    @property
    def looking(self) -> AbstractAsyncContextManager[None]:
        """A turn in this process only, for what changes nothing; the news are followed first."""
        return self._looking()

    @asynccontextmanager
    async def _looking(self) -> AsyncIterator[None]:
        async with self._lock:
            await self._news()
            yield

    async def _news(self) -> None:
        if self._writer is not None:
            news = await asyncio.get_running_loop().run_in_executor(self._thread, self._writer.news)
            if news:
                await self._follow(news)

    def commit(self, events: list[Event], durable: asyncio.Future[None]) -> None:
        """To be written when this turn ends."""
        if self._held is None:
            raise RuntimeError("a shared store is changed in a turn")
        self._batch.append((events, durable))

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            # Most of the news are followed before the others are held up.
            await self._news()
            if self._writer is not None:
                await self._take(self._writer)
        except BaseException:
            self._lock.release()
            raise

    async def _take(self, writer: Appender) -> None:
        held = writer.turn()
        taking = asyncio.get_running_loop().run_in_executor(self._thread, held.__enter__)
        try:
            news = await asyncio.shield(taking)
            self._held = held
            await self._follow(news)
        except BaseException as error:
            # Also where nobody waits any more: the thread takes the turn in any case, and then gives it back.
            if taking.cancelled() or not taking.done() or taking.exception() is None:
                self._thread.submit(_leave, held, error)
            self._held = None
            raise

    async def __aexit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._held is None:
            self._lock.release()
            return
        # A caller that goes away in this moment must not leave the turn half ended.
        await asyncio.shield(asyncio.get_running_loop().create_task(self._end(error)))

    async def _end(self, error: BaseException | None) -> None:
        held, self._held = self._held, None
        batch, self._batch = self._batch, []
        assert held is not None and self._writer is not None
        loop = asyncio.get_running_loop()
        try:
            if error is not None:
                await loop.run_in_executor(self._thread, _leave, held, error)
                if batch:
                    self._give_up(batch, KbgymError(str(error)))
                return
            if batch:
                self._writer.commit([event for events, _ in batch for event in events])
                self._written()
            try:
                await loop.run_in_executor(self._thread, held.__exit__, None, None, None)
            except KbgymError as trouble:
                self._give_up(batch, trouble)
            else:
                for _, durable in batch:
                    durable.set_result(None)
        finally:
            self._lock.release()


def _leave(held: AbstractContextManager[Any], error: BaseException) -> None:
    """End a turn with nothing written."""
    with suppress(BaseException):
        held.__exit__(type(error), error, error.__traceback__)

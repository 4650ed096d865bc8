"""Connections belong to the event loop they were made in: one set a loop, made when first needed, closed with the loop.

A verb may train in one `asyncio.run` and examine in the next with the same models.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class _Closable(Protocol):
    def close(self) -> Awaitable[None]: ...


T = TypeVar("T", bound=_Closable)


class PerLoop(Generic[T]):
    """What `make` makes, anew for every event loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._keeper: AsyncGenerator[None, None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def now(self) -> T:
        loop = asyncio.get_running_loop()
        if self._made is None or self._loop is not loop:
            made = self._make()
            self._made, self._loop, self._keeper = made, loop, _kept(made)
            await anext(self._keeper)
        return self._made

    async def close(self) -> None:
        """Close it early; a loop that ends has closed its own already."""
        keeper, self._made, self._keeper = self._keeper, None, None
        if keeper is not None and self._loop is asyncio.get_running_loop():
            await keeper.aclose()


async def _kept(made: _Closable) -> AsyncGenerator[None, None]:
    """Closes what was made when this generator is closed, which an event loop does before it ends."""
    try:
        yield
    finally:
        await made.close()

"""Connections belong to the event loop they were made in: one SDK client a loop, made when it is first needed.

A verb may train in one `asyncio.run` and examine in the next with the same models.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar


class _Closable(Protocol):
    def close(self) -> Awaitable[None]: ...


T = TypeVar("T", bound=_Closable)


class PerLoop(Generic[T]):
    """What `make` makes, anew for every event loop."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: T | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def now(self) -> T:
        loop = asyncio.get_running_loop()
        if self._made is None or self._loop is not loop:
            self._made, self._loop = self._make(), loop
        return self._made

    async def close(self) -> None:
        """Close what belongs to this loop; what belongs to a loop that has ended cannot be closed any more."""
        made, self._made = self._made, None
        if made is not None and self._loop is asyncio.get_running_loop():
            await made.close()

"""The worker that learns in the background; it survives failures, reports them and stops when told.

Transient failures, such as a full disk, are retried with exponential backoff. A lesson that fails for a reason of its
own is set aside with that reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import msgspec

from kbgym.errors import Failed

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0
_logger = logging.getLogger("kbgym.learning")


class WorkerState(msgspec.Struct, frozen=True):
    """The state of the worker: consecutive `failures` and the last error."""

    running: bool
    failures: int = 0
    error: str = ""


class Worker:
    """Teach one lesson after another while `next_lesson` returns one."""

    def __init__(
        self,
        next_lesson: Callable[[], str | None],
        teach: Callable[[str], Awaitable[object]],
        set_aside: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._next, self._teach, self._set_aside = next_lesson, teach, set_aside
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._failures, self._error = 0, ""

    @property
    def state(self) -> WorkerState:
        running = self._task is not None and not self._task.done()
        return WorkerState(running, self._failures, self._error)

    def wake(self) -> None:
        self._wake.set()

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _work(self) -> None:
        while True:
            self._wake.clear()
            lesson = self._next()
            if lesson is None:
                await self._wake.wait()
                continue
            try:
                await self.attempt(lesson)
            except Exception as error:  # learning continues after any error
                self._failures += 1
                self._error = f"{type(error).__name__}: {error}"
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self._failures - 1))
                _logger.warning("learning from %s failed, tried again in %.1f s: %s", lesson, pause, self._error)
                await asyncio.sleep(pause)
            else:
                if self._failures:
                    _logger.warning("learning resumed after %d failures", self._failures)
                self._failures, self._error = 0, ""

    async def attempt(self, lesson: str) -> None:
        """Teach a lesson. Raise transient failures; set the lesson aside for any other."""
        try:
            await self._teach(lesson)
        except (Failed, OSError):
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            _logger.error("the lesson of %s is set aside: %s", lesson, reason)
            await self._set_aside(lesson, reason)

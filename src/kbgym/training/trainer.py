"""The trainer of a run: the session and, if set, the gate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from kbgym.progress import ProgressCallback
from kbgym.trace.backend import ConnectionLost
from kbgym.training.gate import Gate, gated_curate
from kbgym.training.lessons import Lesson
from kbgym.training.loop import Curate, curate_directly, train
from kbgym.training.session import Session

RETRIES = 20  # attempts to resume after a lost database connection


class Trainer(Session):
    """A session that trains with the settings of its run."""

    async def train(self, tick: ProgressCallback | None = None, lessons: Sequence[Lesson] | None = None) -> None:
        """Teach every pending lesson, or those of `lessons`, and close the store."""
        self.tick = tick
        settings, world = self.settings, self.run.world
        curate: Curate = curate_directly
        if settings.gate:
            budget, memory = settings.forward_budget, settings.memory
            reader = None if settings.reader == "general" else self.agents.reader  # its answers are not a measure
            curate = gated_curate(Gate(settings.gate, world.split("eval"), reader, settings.seed, budget, memory))
        try:
            for attempt in range(RETRIES + 1):
                try:
                    return await train(world, settings, self.agents, self, curate, lessons)
                except ConnectionLost:  # the last transaction was not committed: resume at the end of the trace
                    if attempt == RETRIES:
                        raise
                    await asyncio.sleep(0.1 * attempt)
        finally:
            await self.live.close()

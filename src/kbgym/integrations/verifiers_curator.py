"""The curator's pass as a verifiers environment: `vf-eval kbgym-curator --model MODEL`.

Worlds, questions and splits are those of the reader's environment: training has even seeds, evaluation odd ones.
The reference reader reads a question on the flat store, the model edits a copy of it, and the reward is what readers of
fresh questions gain by that (`integrations/curator_gain.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import verifiers.v1 as vf

from kbgym.agents.llm.prompting import skill_of
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import embedder_named
from kbgym.baselines.arm import flat_store
from kbgym.integrations.curator_gain import Curation, CuratorLesson, Gain
from kbgym.integrations.tool_calls import PassByCalls, told
from kbgym.integrations.verifiers_reader import (
    ReaderData,
    ReaderHarness,
    ReaderTaskConfig,
    ReaderTasksetConfig,
    drawn_by,
    reader_budget,
    world_made,
)
from kbgym.search.factory import live_engine_for
from kbgym.search.live import LiveEngine
from kbgym.sync import run_sync
from kbgym.training.run import Settings
from kbgym.worlds.kinds import description_for_prompt
from kbgym.worlds.world import Question

_GAIN = "kbgym_gain"
_KEPT = 4  # worlds in memory


class CuratorTasksetConfig(ReaderTasksetConfig):
    fresh: int = 8
    """Questions that are read before and after the edits."""


class CuratorData(ReaderData):
    fresh: int


class CuratorTask(vf.Task[CuratorData, vf.State, ReaderTaskConfig]):
    @vf.reward
    async def readers_gain(self, trace: vf.Trace) -> float:
        return msgspec.convert(trace.info[_GAIN], Gain).reward(self.config.price)

    @vf.metric
    async def measures(self, trace: vf.Trace) -> dict[str, float]:
        return {name: float(value) for name, value in trace.info[_GAIN].items()}


class CuratorTaskset(vf.Taskset[CuratorTask, CuratorTasksetConfig]):
    def load(self) -> Iterator[CuratorTask]:
        config = self.config
        for drawn, question, world in drawn_by(config):
            curation = _curation(drawn["world"], config.embedder, config.fresh)
            lesson = run_sync(curation.lesson(question))
            skill = skill_of("curator", about=description_for_prompt(world))
            prompt = {"prompt": told(lesson.task, lesson.remaining), "system_prompt": skill.text}
            yield CuratorTask(CuratorData(**drawn, **prompt, fresh=config.fresh), config.task)


@lru_cache(_KEPT)
def _curation(made: tuple[int, int, bool], embedder: str, fresh: int) -> Curation:
    world = world_made(*made)
    store = flat_store(world.documents).freeze()
    engine = live_engine_for(store, embedder_named(embedder))
    assert isinstance(engine, LiveEngine)  # it was asked for
    return Curation(world, store, engine, ReferenceReader, Settings(forward_budget=reader_budget(world)), fresh)


class CuratorHarness(ReaderHarness):
    """Plays a curator's pass, and leaves what readers gain by it in the trace."""

    async def begun(self, question: Question, data: Any) -> PassByCalls:
        return await _curation(data.world, data.embedder, data.fresh).lesson(question)

    async def outcome(self, question: Question, data: Any, played: PassByCalls) -> dict[str, Any]:
        assert isinstance(played, CuratorLesson)
        gain = await _curation(data.world, data.embedder, data.fresh).gain(played, data.world[1])
        return {_GAIN: msgspec.to_builtins(gain)}

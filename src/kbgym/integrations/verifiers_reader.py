"""The reader's pass as a verifiers environment: `vf-eval kbgym-reader --model MODEL`, and for training by its reward.

Worlds are made by seed: training takes the even ones and evaluation the odd ones, so that the two never meet, whatever
is asked for. The reward is the answer's F1 less a price for every action; F1, exact match, evidence, actions and
characters are kept as metrics, and the exam's row in the trace. The loop runs in this process: every request goes to
the endpoint verifiers hands out, every call is one more action of the pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from random import Random
from typing import Any, Literal

import msgspec

from kbgym.agents.llm.policy import ALLOWANCE, correction
from kbgym.agents.llm.prompting import skill_of
from kbgym.api.factory import embedder_named
from kbgym.baselines.arm import flat_store
from kbgym.errors import Missing
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Forward
from kbgym.gym.tools import openai_tools
from kbgym.integrations.tool_calls import PassByCalls, told
from kbgym.search.factory import engine_for
from kbgym.training.exam import Row, row_of
from kbgym.training.run import Settings
from kbgym.worlds.kinds import budget_of, description_for_prompt
from kbgym.worlds.people import generate
from kbgym.worlds.world import Question, World

try:
    import openai
    import verifiers.v1 as vf
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise Missing("the verifiers environment needs verifiers 0.4: pip install 'kbgym[verifiers]'.") from error

_ROW = "kbgym_row"
_KEPT = 4  # worlds in memory


class ReaderTaskConfig(vf.TaskConfig):
    price: float = 0.01
    """The price of an action, subtracted from the reward."""


class ReaderTasksetConfig(vf.TasksetConfig):
    task: ReaderTaskConfig = ReaderTaskConfig()
    split: Literal["train", "eval"] = "train"
    """Training takes worlds of even seeds, evaluation of odd ones."""
    first: int = 0
    """The first world; the next ones follow it."""
    worlds: int = 1
    questions: int = 100
    """Questions of a world, drawn by its seed; 0 is all it has."""
    people: int = 500
    hard: bool = False
    """Larger classes, and eight actions instead of fifteen."""
    embedder: str = Settings().embedder


class ReaderData(vf.TaskData):
    question: dict[str, Any]
    world: tuple[int, int, bool]
    """People, seed and whether it is hard: with these it is made again anywhere."""
    embedder: str


class ReaderTask(vf.Task[ReaderData, vf.State, ReaderTaskConfig]):
    @vf.reward
    async def f1_less_actions(self, trace: vf.Trace) -> float:
        row = msgspec.convert(trace.info[_ROW], Row)
        return float((row.f1 or 0.0) - self.config.price * row.actions)

    @vf.metric
    async def measures(self, trace: vf.Trace) -> dict[str, float]:
        row = msgspec.convert(trace.info[_ROW], Row)
        share = row.evidence.share if row.evidence is not None else None
        known = {"f1": row.f1, "em": row.em, "evidence": share, "actions": row.actions, "characters": row.characters}
        return {name: float(value) for name, value in known.items() if value is not None}


class ReaderTaskset(vf.Taskset[ReaderTask, ReaderTasksetConfig]):
    def load(self) -> Iterator[ReaderTask]:
        for drawn, question, world in drawn_by(self.config):
            skill = skill_of("reader", about=description_for_prompt(world, keys=False))
            prompt = told(Forward(question.text), reader_budget(world))
            yield ReaderTask(ReaderData(**drawn, prompt=prompt, system_prompt=skill.text), self.config.task)


def drawn_by(config: ReaderTasksetConfig) -> Iterator[tuple[dict[str, Any], Question, World]]:
    """Yield every question the settings ask for, with its world and the data of its task."""
    for number in range(config.first, config.first + config.worlds):
        seed = 2 * number + (config.split == "eval")
        world = world_made(config.people, seed, config.hard)
        asked = list(world.questions)
        if config.questions:
            asked = Random(f"{seed}:questions").sample(asked, min(config.questions, len(asked)))
        for question in asked:
            drawn = {"id": f"{config.people}-{seed}-{question.id}", "question": msgspec.to_builtins(question)}
            yield {**drawn, "world": (config.people, seed, config.hard), "embedder": config.embedder}, question, world


@lru_cache(_KEPT)
def world_made(people: int, seed: int, hard: bool) -> World:
    return generate(people, seed, hard=hard)


@lru_cache(_KEPT)
def _environment(world: tuple[int, int, bool], embedder: str) -> Environment:
    store = flat_store(world_made(*world).documents).freeze()
    return Environment(store, engine_for(store, embedder_named(embedder)))


def reader_budget(world: World) -> int:
    return budget_of(world) or Settings().forward_budget


class ReaderHarnessConfig(vf.HarnessConfig):
    pass


class ReaderHarness(vf.Harness[ReaderHarnessConfig]):
    """Plays a pass with the model behind an endpoint, one call a turn, and leaves its row in the trace."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: ReaderData,
    ) -> vf.ProgramResult:
        question = msgspec.convert(data.question, Question)
        played = await self.begun(question, data)
        messages: list[Any] = [
            {"role": "system", "content": data.system_prompt},
            {"role": "user", "content": data.prompt},
        ]
        model: Any = openai.AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0)
        try:
            async with model:
                while not played.over:
                    reply = await model.chat.completions.create(
                        model=ctx.model,
                        messages=messages,
                        tools=openai_tools(played.role),
                        tool_choice="required",
                        parallel_tool_calls=False,
                    )
                    messages += await _answered(played, reply.choices[0].message, messages)
        finally:  # whatever ended it, a limit of turns or tokens too, there is something to score
            trace.info.update(await self.outcome(question, data, played))
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def begun(self, question: Question, data: ReaderData) -> PassByCalls:
        """Return the pass before its first call."""
        budget = reader_budget(world_made(*data.world))
        return PassByCalls(_environment(data.world, data.embedder), "reader", Forward(question.text), budget)

    async def outcome(self, question: Question, data: ReaderData, played: PassByCalls) -> dict[str, Any]:
        """Return what the trace keeps for scoring."""
        return {_ROW: msgspec.to_builtins(row_of(question, played.transcript))}


async def _answered(played: PassByCalls, said: Any, messages: list[Any]) -> list[Any]:
    """Return the model's message and the replies to it. The pass fails after too many messages without a call."""
    if said.tool_calls:
        calls = [(one.id, one.function) for one in said.tool_calls]
        shown = [
            {"role": "tool", "tool_call_id": id, "content": await played.call(call.name, call.arguments)}
            for id, call in calls
        ]
    else:
        shown = [{"role": "user", "content": correction("the reply was text without a call.", played.role)}]
        if sum(message["role"] == "user" for message in messages) > ALLOWANCE:
            played.fail("no valid call after the last correction.")
    return [said.model_dump(exclude_none=True), *shown]


class ReaderPassEnvConfig(vf.SingleAgentEnvConfig):
    agent: vf.AgentConfig = vf.AgentConfig(runtime=vf.SubprocessConfig())


class ReaderPassEnv(vf.SingleAgentEnv, vf.Env[ReaderPassEnvConfig]):
    """An environment with one agent and no sandbox, because nothing the model says is executed."""

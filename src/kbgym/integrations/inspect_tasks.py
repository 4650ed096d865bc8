"""Exams as Inspect tasks: `inspect eval kbgym/exam -T world=runs/r0 --model MODEL`.

`begin` gives any solver the question and the reader's tools; a tool call is an action of the pass, with its budget.
`reader` is the solver of kbgym's own models: one call a turn, with a few corrections. The scorer returns the fields of
an exam's row and stores the row, so that `rows` can read an exam from a log.
"""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from kbgym.agents.llm.policy import ALLOWANCE, correction
from kbgym.agents.llm.prompting import skill_of
from kbgym.api import Workspace, open
from kbgym.errors import BadInput, Missing
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Forward
from kbgym.gym.tools import Tool as KbgymTool
from kbgym.gym.tools import tools_of
from kbgym.integrations.tool_calls import PassByCalls, told
from kbgym.training.exam import Row, row_of
from kbgym.worlds.world import Question

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, execute_tools, get_model
    from inspect_ai.scorer import Score, Scorer, Target, grouped, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.tool import Tool, ToolDef, ToolParams
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise Missing("the Inspect tasks need the extra: pip install 'kbgym[inspect]'.") from error

_ROW = "kbgym_row"
_passes: dict[str, _SamplesPass] = {}  # in progress, by the sample's uuid


@task
def exam(
    world: str,
    set: str = "test_in",
    embedder: str | None = None,
    budget: int | None = None,
    observations: str | None = None,
) -> Task:
    """Evaluate a set of questions on a frozen store: a world, a run, a run at an iteration or a store folder."""
    return _task(world, (set,), embedder, budget, observations)


@task
def gradient(
    world: str, embedder: str | None = None, budget: int | None = None, observations: str | None = None
) -> Task:
    """Evaluate every group of questions that `kbgym probe` drew for a run, each with its own mean."""
    run = open(world).run
    groups = sorted(file.stem for file in (run.folder / "probe").glob("*.jsonl")) if run is not None else []
    if not groups:
        raise BadInput(f"{world} has no question groups: it must be a run, and `kbgym probe` draws them.")
    return _task(world, tuple(groups), embedder, budget, observations, metrics={"*": [grouped(mean(), "group")]})


def rows(log: str | Path) -> list[Row]:
    """Return the rows of an exam that Inspect ran, in the order of the questions, as `kbgym exam` writes them."""
    samples = read_eval_log(str(log)).samples or ()
    return [msgspec.convert(sample.scores["graded"].metadata["row"], Row) for sample in samples if sample.scores]


def _task(world: str, sets: tuple[str, ...], *changes: Any, metrics: Any = None) -> Task:
    questions = [(name, question) for name in sets for question in _opened(world, *changes).questions(name)]
    return Task(
        dataset=[_sample(question, name) for name, question in questions],
        setup=begin(world, *changes),
        solver=reader(),
        scorer=graded(),
        metrics=metrics,
        cleanup=_forget,
    )


@cache
def _opened(world: str, embedder: str | None, budget: int | None, observations: str | None) -> Workspace:
    return open(world, embedder=embedder, forward_budget=budget, observations=observations)


def _sample(question: Question, group: str) -> Sample:
    return Sample(
        id=question.id,
        input=question.text,
        target=list(question.golds),
        metadata={"group": group, "question": msgspec.to_builtins(question), "class": question.class_}
        | {"template": question.template, "keys": [f"{key.kind}: {key.value}" for key in question.keys]},
    )


@solver
def begin(
    world: str, embedder: str | None = None, budget: int | None = None, observations: str | None = None
) -> Solver:
    """Give the model the question and the tools of a reader."""
    opened = _opened(world, embedder, budget, observations)
    settings = opened.settings
    skill = skill_of("reader", **opened.told)
    environment = Environment(opened.store, opened.engine, ranking=settings.ranking, observations=settings.observations)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        played = _passes[state.uuid] = _SamplesPass(environment, state, settings.forward_budget)
        asked = told(played.task, played.remaining)
        state.messages = [ChatMessageSystem(content=skill.text), ChatMessageUser(content=asked)]
        state.tools = [_tool(tool, played) for tool in tools_of("reader")]
        played.note()
        return state

    return solve


class _SamplesPass(PassByCalls):
    """A pass that writes its row to its sample's store after every action."""

    def __init__(self, environment: Environment, state: TaskState, budget: int) -> None:
        self._question = msgspec.convert(state.metadata["question"], Question)
        super().__init__(environment, "reader", Forward(self._question.text), budget)
        self._shown, self._state = (environment.ranking, environment.observations), state

    def note(self) -> None:
        self._state.store.set(_ROW, msgspec.to_builtins(row_of(self._question, self.transcript, *self._shown)))
        self._state.completed = self.over


def _tool(tool: KbgymTool, played: _SamplesPass) -> Tool:
    async def call(**arguments: Any) -> str:
        shown = await played.call(tool.name, arguments)
        played.note()
        return shown

    return ToolDef(call, tool.name, tool.description, ToolParams(**tool.schema), max_output=0).as_tool()


@solver
def reader() -> Solver:
    """Play one call a turn until the pass is over; a model that sends no call is corrected, then fails."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        played, malformed = _passes[state.uuid], 0
        one = GenerateConfig(parallel_tool_calls=False)
        while not played.over:
            before = played.remaining
            state.output = await get_model().generate(state.messages, state.tools, tool_choice="any", config=one)
            state.messages.append(state.output.message)
            if state.output.message.tool_calls:
                state.messages += (await execute_tools(state.messages, state.tools)).messages
            else:
                state.messages.append(
                    ChatMessageUser(content=correction("the reply was text without a call.", "reader"))
                )
            malformed += played.remaining == before
            if malformed > ALLOWANCE:
                played.fail("no valid call after the last correction.")
                played.note()
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def graded() -> Scorer:
    """Return F1, exact match, the share of the evidence shown, actions and characters; no values for failed agents."""

    async def score(state: TaskState, target: Target) -> Score:
        row = msgspec.convert(state.store.get(_ROW), Row)
        about = {"row": msgspec.to_builtins(row)}
        kept: dict[str, Any] = {"answer": row.answer, "explanation": row.outcome, "metadata": about}
        if row.f1 is None:
            return Score.unscored(**kept)
        evidence = row.evidence.share if row.evidence is not None else None
        value = {"f1": row.f1, "em": row.em, "evidence": math.nan if evidence is None else evidence}
        return Score(value=value | {"actions": row.actions, "characters": row.characters}, **kept)

    return score


async def _forget(state: TaskState) -> None:
    _passes.pop(state.uuid, None)

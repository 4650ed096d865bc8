"""Training as an Inspect task: `inspect eval kbgym/train -T world=worlds-out/w0 -T out=runs/inspect --model MODEL`.

A sample is a whole training with a seed, since its lessons change one store one after the other. The model under
evaluation plays reader and curator through kbgym's own trainer, so that what is left is a run folder like any other:
trace, snapshots, and resumed when the same task is evaluated again. Inspect's log has every request.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from kbgym.agents.llm.cassette import Role
from kbgym.agents.llm.client import ModelClient
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.export import chat
from kbgym.agents.llm.prices import Prices
from kbgym.agents.llm.values import Call, ModelSettings, Reply, Request
from kbgym.api.factory import agents_named, training_settings
from kbgym.api.training import trainer_for
from kbgym.canonical import decode
from kbgym.errors import BadInput, Missing
from kbgym.sanitize import number_in
from kbgym.trace.events import Acted, Graded
from kbgym.trace.folder import StoreFolder
from kbgym.training.run import Run
from kbgym.worlds.world import World

try:
    from inspect_ai import Task, task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ChatMessage, GenerateConfig, get_model
    from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
    from inspect_ai.solver import Generate, Solver, TaskState, solver
    from inspect_ai.tool import ToolInfo, ToolParams
    from pydantic import TypeAdapter
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise Missing("the Inspect tasks need the extra: pip install 'kbgym[inspect]'.") from error


@task
def train(
    world: str,
    out: str,
    seeds: int | str | list[int] = 0,
    questions: int | None = None,
    epochs: int | None = None,
    strategy: str | None = None,
    embedder: str | None = None,
    budget: int | None = None,
) -> Task:
    """Trainings of a store on a world's questions, a seed each, into out/seed-N; the rest is as in `kbgym train`."""
    given = {"questions": questions, "epochs": epochs, "strategy": strategy, "embedder": embedder}
    settings = {name: value for name, value in {**given, "forward_budget": budget}.items() if value is not None}
    listed = seeds if isinstance(seeds, list) else str(seeds).split(",")
    found = [number_in(str(seed)) for seed in listed]
    if None in found:
        raise BadInput(f"seeds are numbers such as 0,1,2, not {seeds!r}.")
    samples = [Sample(id=f"seed-{seed}", input=f"Train on {world}.", metadata={"seed": seed}) for seed in found]
    return Task(dataset=samples, solver=teaching(world, out, settings), scorer=learnt(out))


@solver
def teaching(world: str, out: str, settings: dict[str, Any]) -> Solver:
    """Every lesson that is left of a seed's training."""
    taught = World.load(Path(world))

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        folder = Path(out) / str(state.sample_id)
        name = f"llm:inspect/{get_model().name}"
        given = {"reader": name, "curator": name, "seed": state.metadata["seed"], **settings}
        chosen = training_settings(taught, folder, **given)
        run = Run.open_or_create(folder, taught, chosen)
        await trainer_for(run, agents_named(chosen, InspectModels(), world=taught)).train()
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def learnt(out: str) -> Scorer:
    """What the trace says: mean F1 and actions of the forward passes, how many, and the store's documents and links."""

    async def score(state: TaskState, target: Target) -> Score:
        folder = StoreFolder(Path(out) / str(state.sample_id))
        grades = [event for event in folder.events if isinstance(event, Graded)]
        store = folder.store()
        read = sum(isinstance(event, Acted) and event.phase == "forward" for event in folder.events)
        lessons = max(1, len(grades))
        value = {"f1": sum(grade.f1 for grade in grades) / lessons, "actions": read / lessons, "lessons": len(grades)}
        value |= {"documents": len(store), "links": store.links}
        return Score(value=value, metadata={"grades": msgspec.to_builtins(grades), "store": store.fingerprint})

    return score


class InspectModels(Models):
    """In place of kbgym's own models, the one that Inspect evaluates; keys, prices and retries are Inspect's."""

    def client(self, name: str, role: Role) -> tuple[ModelClient, ModelSettings]:
        return ModelClient(name, InspectsModel(), Prices("local", name)), ModelSettings(name, None, None, 0)


class InspectsModel:
    """A provider that asks the model under evaluation."""

    where = "Inspect"

    async def send(self, request: Request) -> Reply:
        said = [{"role": "system", "content": request.system}, *map(_inspects, chat(request.messages))]
        said[-1]["content"] = f"{said[-1]['content']}\n\n{request.tail}" if request.tail else said[-1]["content"]
        tools = [_tool(**tool["function"]) for tool in request.tools]
        one = GenerateConfig(parallel_tool_calls=False)
        output = await get_model().generate(_MESSAGES.validate_python(said), tools, tool_choice="any", config=one)
        calls = [Call(one.function, json.dumps(one.arguments), one.id) for one in output.message.tool_calls or ()]
        used = {"prompt": output.usage.input_tokens, "completion": output.usage.output_tokens} if output.usage else {}
        return Reply(output.message.text, tuple(calls), "length" if output.stop_reason == "max_tokens" else "", **used)

    async def close(self) -> None: ...


_MESSAGES = TypeAdapter(list[ChatMessage])


def _inspects(message: dict[str, Any]) -> dict[str, Any]:
    """A message of OpenAI's protocol as Inspect has it."""
    calls = [
        {"id": call["id"], "function": asked["name"], "arguments": decode(asked["arguments"], dict[str, Any])}
        for call in message.get("tool_calls", ())
        for asked in (call["function"],)
    ]
    return {**message, "content": message.get("content") or "", **({"tool_calls": calls} if calls else {})}


def _tool(name: str, description: str, parameters: dict[str, Any], **_: Any) -> ToolInfo:
    return ToolInfo(name=name, description=description, parameters=ToolParams(**parameters))

"""What verbs need to put a protocol together: engines, agents by name, question sets by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kbgym.agents.judge import LLMJudge
from kbgym.agents.llm import LLMAgent
from kbgym.agents.registry import make_agent, make_judge
from kbgym.canonical import read_lines
from kbgym.errors import BadInput
from kbgym.llm.connect import Models
from kbgym.protocol.lessons import schedule
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.train import STRATEGIES, Agents
from kbgym.search.choice import engine_of
from kbgym.search.embed import CachedEmbedder, HashEmbedder, default_embedder
from kbgym.search.engine import Engine
from kbgym.store import Store
from kbgym.worlds.world import Question, World

Tick = Callable[[int, int, str], None]


def embedder_named(name: str) -> CachedEmbedder:
    """An embedder by the name a trace or a setting gives it."""
    if name == "hash":
        return CachedEmbedder(HashEmbedder())
    if name in ("", "all-MiniLM-L6-v2"):
        return default_embedder()
    raise BadInput(f"there is no embedder {name!r}; use all-MiniLM-L6-v2, or hash for tests.")


def engine_for(store: Store, embedder: CachedEmbedder, tick: Tick | None = None) -> Engine:
    """A search engine that holds every document of a store."""
    return engine_of(((record.id, record.text) for record in store), embedder, tick)


def agents_named(settings: Settings, models: Models | None = None) -> Agents:
    """Everybody a run's settings name; models, if there are any, share one client and one budget."""
    reader = make_agent(settings.reader, "reader", models)
    curator = make_agent(settings.curator, "curator", models, settings.strategy)
    judge = make_judge(settings.judge, models)
    described = {
        role: one.description
        for role, one in (("reader", reader), ("curator", curator), ("judge", judge))
        if isinstance(one, LLMAgent | LLMJudge)
    }
    return Agents(reader, curator, judge, described)


def check(settings: Settings, world: World, models: Models | None = None) -> None:
    """Refuse settings that cannot be carried out, before anything is written."""
    agents_named(settings, models)
    embedder_named(settings.embedder)
    if settings.strategy not in STRATEGIES:
        raise BadInput(f"there is no strategy {settings.strategy!r}; use {' or '.join(STRATEGIES)}.")
    if settings.admission < 0:
        raise BadInput("admission is a number of questions; 0 is off.")
    if settings.admission and settings.batch_size > 1:
        raise BadInput("admission judges one lesson at a time: use a batch size of 1.")
    schedule(world, settings)


def question_set(name: str, world: World, run: Run | None = None) -> tuple[Question, ...]:
    """A split of the world, a probe group of a run, or a file of questions."""
    if found := world.split(name):
        return found
    if run is not None and (run.folder / "probe" / f"{name}.jsonl").is_file():
        return tuple(read_lines(run.folder / "probe" / f"{name}.jsonl", Question))
    if Path(name).is_file():
        return tuple(read_lines(Path(name), Question))
    raise BadInput(
        f"there is no question set {name!r}: the world's splits are {', '.join(world.splits) or 'none'}; "
        "a probe group needs `kbgym probe` first; a file must exist."
    )

"""What verbs need to put a protocol together: engines, agents by name, question sets by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from kbgym.agents.judge import LLMJudge
from kbgym.agents.llm import LLMAgent
from kbgym.agents.registry import make_agenda, make_agent, make_judge
from kbgym.canonical import read_lines
from kbgym.errors import BadInput
from kbgym.llm.connect import Models
from kbgym.protocol.lessons import schedule
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.train import STRATEGIES, Agents
from kbgym.search.choice import engine_of, index_of
from kbgym.search.embed import CachedEmbedder, HashEmbedder, default_embedder
from kbgym.search.engine import Engine
from kbgym.search.live import Embedding, LiveEngine
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


def engine_for(
    store: Store, embedder: CachedEmbedder, tick: Tick | None = None, overlays: bool = False
) -> Engine | LiveEngine:
    """A search engine that holds every document of a store; with `overlays`, one that keeps views of the past."""
    items = ((record.id, record.text) for record in store)
    return (
        LiveEngine(index_of(items, embedder, tick), Embedding(embedder))
        if overlays
        else engine_of(items, embedder, tick)
    )


def agents_named(settings: Settings, models: Models | None = None) -> Agents:
    """Everybody a run's settings name; models, if there are any, share one client and one budget."""
    reader = make_agent(settings.reader, "reader", models)
    curator = make_agent(settings.curator, "curator", models, settings.strategy, settings.levels)
    judge = make_judge(settings.judge, models)
    described = {
        role: one.description
        for role, one in (("reader", reader), ("curator", curator), ("judge", judge))
        if isinstance(one, LLMAgent | LLMJudge)
    }
    return Agents(reader, curator, judge, described, make_agenda if settings.strategy == "class" else None)


def check(settings: Settings, world: World, models: Models | None = None) -> None:
    """Refuse settings that cannot be carried out, before anything is written."""
    agents_named(settings, models)
    embedder_named(settings.embedder)
    if settings.strategy not in STRATEGIES:
        raise BadInput(f"there is no strategy {settings.strategy!r}; use {' or '.join(STRATEGIES)}.")
    if settings.levels and settings.strategy != "class":
        raise BadInput("levels split the indexes of narrower keys, which only the strategy class builds.")
    if min(settings.levels, settings.admission) < 0:
        raise BadInput("levels and admission are numbers of documents and questions; 0 is off.")
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

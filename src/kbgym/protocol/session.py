"""What verbs need to put a protocol together: engines, agents by name, question sets by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from kbgym.agents.judge import LLMJudge
from kbgym.agents.llm import LLMAgent
from kbgym.agents.registry import make_agent, make_judge
from kbgym.canonical import decode, read_lines
from kbgym.errors import BadInput
from kbgym.llm.connect import Models
from kbgym.protocol.lessons import schedule
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.train import STRATEGIES, Agents
from kbgym.search.cache import VectorCache, cache_folder
from kbgym.search.choice import default_search, engine_of, search_named
from kbgym.search.embed import CachedEmbedder, HashEmbedder, NoEmbedder, default_embedder
from kbgym.search.engine import Engine
from kbgym.search.hybrid import SearchKind
from kbgym.search.ranking import Spread
from kbgym.search.wordllama import WordLlamaEmbedder
from kbgym.store import Store
from kbgym.tools import PAGE_SIZE
from kbgym.trace.place import Place
from kbgym.worlds.pages import pages_of
from kbgym.worlds.world import Document, Question, World

Tick = Callable[[int, int, str], None]


def embedder_named(name: str) -> CachedEmbedder:
    """An embedder by the name a trace or a setting gives it."""
    kind, _, size = name.partition("-")
    if kind == "hash" and (size.isdecimal() or not size):
        return CachedEmbedder(HashEmbedder(int(size or 256)))
    if name in ("", "all-MiniLM-L6-v2"):
        return default_embedder()
    if kind == "wordllama":
        return CachedEmbedder(WordLlamaEmbedder(), VectorCache(cache_folder()))
    if name == "none":
        return CachedEmbedder(NoEmbedder())
    raise BadInput(f"there is no embedder {name!r}; use all-MiniLM-L6-v2, wordllama, or hash for tests.")


def engine_for(
    store: Store,
    embedder: CachedEmbedder,
    tick: Tick | None = None,
    search: SearchKind = "vectors",
    spread: Spread | None = None,
) -> Engine:
    """A search engine that holds every document of a store."""
    return engine_of(((record.id, record.text) for record in store), embedder, tick, search, spread)


def search_of(place: Place, facts: Mapping[str, Any] | None = None) -> SearchKind:
    """What a store is searched by: as its trace says, or else as its arm or its world does (`facts`, if given)."""
    if place.genesis is not None:
        return search_named(place.genesis.settings.get("search", "vectors"))
    for name in ("arm.json", "world/world.json", "world.json") if place.folder else ():
        if place.folder and (file := place.folder / name).is_file():
            known = decode(file.read_bytes(), dict[str, Any])
            return search_named(known.get("engine") or "vectors") if name == "arm.json" else default_search(known)
    return default_search(facts or {})


def spread_over(documents: Iterable[Document], per_source: int) -> Spread | None:
    """At most so many documents of one page of the source on a page of results; none where any number may be."""
    return Spread(pages_of(documents).get, per_source, PAGE_SIZE) if per_source else None


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
    return Agents(reader, curator, judge, described)


def check(settings: Settings, world: World, models: Models | None = None) -> None:
    """Refuse settings that cannot be carried out, before anything is written."""
    agents_named(settings, models)
    embedder_named(settings.embedder)
    if settings.strategy not in STRATEGIES:
        raise BadInput(f"there is no strategy {settings.strategy!r}; use {' or '.join(STRATEGIES)}.")
    if settings.per_source < 0:
        raise BadInput("per_source is a number of documents; 0 is any number.")
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

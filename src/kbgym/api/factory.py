"""Factories for the parts of a run by their names in its settings: embedders, agents, question sets.

An agent may also be given as an object: a callable without arguments that returns a policy for one pass, or a function
from a view to an action.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kbgym.canonical import read_lines
from kbgym.errors import BadInput
from kbgym.gym.actions import Action
from kbgym.gym.policy import Agenda, Agent, View
from kbgym.gym.tools import Role
from kbgym.search.base import search_named
from kbgym.search.cache import cache_folder
from kbgym.search.embed import CachedEmbedder, HashEmbedder, NoEmbedder
from kbgym.search.engine import Beside
from kbgym.search.models import MINILM, open_embedder
from kbgym.training.run import STRATEGIES, Run, Settings
from kbgym.worlds.kinds import agent_for, budget_of, description_for_prompt, observations_of, ranking_of, search_of
from kbgym.worlds.world import Document, Question, World, source_pages

if TYPE_CHECKING:  # agents are loaded on use, to keep imports fast for search
    from kbgym.agents.llm.connect import Models
    from kbgym.training.session import Agents

CASSETTE = "cassette.jsonl"  # recorded model replies, beside the run's trace
Player = str | Callable[..., Any]  # a name, a callable that returns a policy, or a function of a view


def embedder_named(name: str) -> CachedEmbedder:
    """Return the embedder of this name; a process loads each model once."""
    kind, _, size = name.partition("-")
    if kind == "hash" and (size.isdecimal() or not size):
        return _hash_embedder(int(size or 256))
    if name == "none":
        return CachedEmbedder(NoEmbedder())
    return _opened_embedder(name or MINILM.name, cache_folder())


@cache
def _hash_embedder(dimensions: int) -> CachedEmbedder:
    return CachedEmbedder(HashEmbedder(dimensions))


_opened_embedder = cache(open_embedder)


def beside_on_page(documents: Iterable[Document]) -> Beside:
    """Return the documents before and after each document on its page of the source."""
    found: dict[str, tuple[str, ...]] = {}
    for page in source_pages(documents):
        ids = [document.id for document in page.documents]
        found |= {id: (*ids[max(0, at - 1) : at], *ids[at + 1 : at + 2]) for at, id in enumerate(ids)}
    return found


# -- agents ------------------------------------------------------------------------------------------------------------


class _FunctionPolicy:
    """A policy that calls a function of a view."""

    def __init__(self, function: Callable[[View], Any]) -> None:
        self._function = function

    async def act(self, view: View) -> Action:
        found = self._function(view)
        action: Action = await found if inspect.isawaitable(found) else found
        return action


def agent_of(who: Player, role: Role, models: Models | None = None, strategy: str = "paper", **told: Any) -> Agent:
    """Return a factory of policies for the passes of a role; `told` is passed to models."""
    if isinstance(who, str):
        from kbgym.agents.registry import make_agent

        return make_agent(who, role, models, strategy, **told)
    if not callable(who):
        raise BadInput(f"a {role} is a name, a function of a view, or a callable that gives a policy; not {who!r}.")
    try:
        inspect.signature(who).bind()
    except TypeError:
        return lambda: _FunctionPolicy(who)
    except ValueError:  # a callable written in C has no signature
        pass
    return who


def file_beside(rows: str | Path, name: str) -> Path:
    """Return the file of this name beside the rows of an exam."""
    return Path(rows).with_name(f"{Path(rows).stem}.{name}")


def name_of(who: Player) -> str:
    """Return the name of an agent in settings and traces."""
    if isinstance(who, str):
        return who
    return f"{getattr(who, '__module__', '')}:{getattr(who, '__qualname__', type(who).__qualname__)}"


def agents_named(
    settings: Settings,
    models: Models | None = None,
    reader: Player | None = None,
    curator: Player | None = None,
    world: World | None = None,
    kept: Path | None = None,
) -> Agents:
    """Make all agents that a run's settings name; models share one client and one budget.

    Prompts include the world's description of itself; the output of commands is kept in the file `kept`.
    """
    from kbgym.agents.llm.policy import LLMAgent, LLMJudge
    from kbgym.agents.registry import make_judge
    from kbgym.training.session import Agents

    about = {keys: description_for_prompt(world, keys) if world is not None else "" for keys in (False, True)}
    reads = agent_of(reader or settings.reader, "reader", models, about=about[False], kept=kept)
    curates = agent_of(curator or settings.curator, "curator", models, settings.strategy, about=about[True], kept=kept)
    judge = make_judge(settings.judge, models)
    roles = {"reader": reads, "curator": curates, "judge": judge}
    described = {role: one.description for role, one in roles.items() if isinstance(one, LLMAgent | LLMJudge)}
    agenda = agenda_for(settings, world) if settings.strategy == "class" else None
    return Agents(reads, curates, judge, described, agenda)


def agenda_for(settings: Settings, world: World | None) -> Callable[[], Agenda]:
    """Return the agenda of a curator: its own if it is built in, else that of the world's kind."""
    from kbgym.agents.registry import AGENDAS, make_agenda

    known = world is None or settings.curator in ("reference", *AGENDAS)
    name = settings.curator if known or world is None else agent_for(world)
    return lambda: make_agenda(name)


@contextmanager
def models_for(names: Iterable[str], models: Models | None = None, **options: Any) -> Iterator[Models | None]:
    """Yield the given models, or new ones that are closed at the end; None if no agent is a model."""
    from kbgym.agents.llm.connect import Models, Options, is_model
    from kbgym.sync import run_sync

    if models is not None or not any(is_model(name) for name in names):
        yield models
        return
    made = Models(Options(**options))
    try:
        yield made
    finally:
        run_sync(made.close())


# -- settings and questions -------------------------------------------------------------------------------------------


def settings_with(settings: Settings | None = None, **given: Any) -> Settings:
    """Return settings with some of them changed, checked; None leaves one as it is."""
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        made = msgspec.convert({**msgspec.to_builtins(settings or Settings()), **chosen}, Settings, strict=True)
    except msgspec.ValidationError as error:
        raise BadInput(f"bad settings: {error}.") from error
    if made.strategy not in STRATEGIES:
        raise BadInput(f"there is no strategy {made.strategy!r}; use {' or '.join(STRATEGIES)}.")
    if made.slots < 1:
        raise BadInput("slots is a number of indexes, at least 1.")
    if made.gate < 0:
        raise BadInput("gate is a number of questions; 0 is off.")
    if made.gate and made.batch_size > 1:
        raise BadInput("the gate judges one lesson at a time: use a batch size of 1.")
    return made


def settings_of(world: World) -> dict[str, Any]:
    """Return the settings that a world decides for any store of it."""
    search = search_named(search_of(world))
    return {"search": search, "ranking": ranking_of(world), "forward_budget": budget_of(world)}


# What an existing run keeps unless it is named again.
KEPT_SETTINGS = ("reader", "curator", "search", "observations", "ranking", "strategy", "gate")
GATE = 20  # held-out questions, and as many recently answered ones, by which edits are judged on real text


def training_settings(world: World, out: Path, **given: Any) -> Settings:
    """Return the settings of a training on a world, with defaults that suit the world.

    Agents, search engine and format of results follow from the kind of world, unless they are named; an existing run
    keeps its own.
    """
    from kbgym.training.lessons import schedule

    if not world.split("train"):
        raise BadInput(
            "this world has no training questions: import it with --questions FILE, or let a model draft some with "
            "`kbgym questions suggest`."
        )
    given = {name: value for name, value in given.items() if value is not None}
    if (out / "run.json").is_file():
        begun = Run(out).settings
        given = {name: getattr(begun, name) for name in KEPT_SETTINGS} | given
    who = agent_for(world)
    chosen = {"reader": who, "curator": who, **settings_of(world), **given}
    chosen.setdefault("questions", min(Settings().questions, len(world.split("train"))))
    # Link counts are shown on real text, and to agents that know no index wording.
    chosen.setdefault("observations", "rich" if chosen["reader"] == "general" else observations_of(world))
    if chosen["search"] == "words":
        chosen["embedder"] = chosen.get("embedder") or "none"
    if who == "general":  # on real text, questions judge the edits, and the curator completes fields
        chosen.setdefault("strategy", "class")
        chosen.setdefault("gate", GATE if chosen.get("batch_size", 1) == 1 else 0)
    made = settings_with(**chosen)
    embedder_named(made.embedder)
    schedule(world, made)
    return made


def question_set(name: str, world: World | None, run: Run | None = None) -> tuple[Question, ...]:
    """Return a split of the world, a probe group of a run, or a file of questions."""
    if world is not None and (found := world.split(name)):
        return found
    group = run.folder / "probe" / f"{name}.jsonl" if run is not None else None
    for file in (group, Path(name)):
        if file is not None and file.is_file():
            return tuple(read_lines(file, Question))
    splits = ", ".join(world.splits if world else ()) or "none"
    raise BadInput(
        f"there is no question set {name!r}: the world's splits are {splits}; "
        "a probe group needs `kbgym probe` first; a file must exist."
    )

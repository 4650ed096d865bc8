"""Setup of a store for serving: its trace listeners, agents and gate; and streams of questions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from kbgym.agents.external.agent import KEPT
from kbgym.agents.llm.connect import Models
from kbgym.agents.registry import make_agent, make_judge
from kbgym.api import open
from kbgym.api.factory import agenda_for, beside_on_page, embedder_named
from kbgym.canonical import digest_of, read_lines
from kbgym.errors import BadInput
from kbgym.gym.environment import Environment
from kbgym.gym.policy import Backward
from kbgym.progress import ProgressCallback
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.serving.learning.agenda import AgendaFollower
from kbgym.serving.learning.learner import Online, cooperative
from kbgym.serving.learning.question_log import QuestionLog
from kbgym.trace import is_url
from kbgym.trace.corrections import Corrections
from kbgym.trace.live import LiveStore
from kbgym.trace.replay import Listener
from kbgym.training.gate import Gate, ask, qa_pair
from kbgym.training.run import Settings
from kbgym.worlds.kinds import same_index_of
from kbgym.worlds.world import Key, Question


class Traffic(msgspec.Struct, frozen=True):
    """A line of a file of traffic: a question and its accepted answers; a world's questions fit too."""

    question: str = ""
    answers: tuple[str, ...] = ()
    id: str = ""
    text: str = ""
    golds: tuple[str, ...] = ()
    unanswerable: bool = False
    keys: tuple[Key, ...] = ()


def read_traffic(path: Path) -> list[Traffic]:
    """Read the questions of a file, each with a text and at least one answer."""
    found: list[Traffic] = []
    for number, row in enumerate(read_lines(path, Traffic), 1):
        text, golds = row.question or row.text, row.answers or row.golds
        if not text.strip() or not golds:
            raise BadInput(f'{path}, line {number}: {{"question": ..., "answers": [...]}} is wanted.')
        found.append(Traffic(text, golds, row.id, unanswerable=row.unanswerable, keys=row.keys))
    if not found:
        raise BadInput(f"{path} holds no question.")
    return found


def held_out_questions(place: str | Path, given: Path | None) -> Sequence[Question]:
    """Return the questions of a file, else the eval split of the store's own world, never a test split."""
    if given is not None:
        rows = read_traffic(given)
        return [qa_pair(r.id or f"held-{n}", r.question, r.answers, r.unanswerable) for n, r in enumerate(rows, 1)]
    world = open(place).world
    return world.split("eval") if world else []


def open_online(
    place: str | Path,
    settings: Settings,
    embedder: str | None = None,
    gate: int = 0,
    held_out: Path | None = None,
    tick: ProgressCallback | None = None,
    questions: QuestionLog | None = None,
    trusted: Collection[str] = (),
    models: Models | None = None,
    agenda: bool = False,
) -> Online:
    """Open a store for questions and edits; the caller closes its live store.

    The settings may come from the store's folder, so agents that are not built in run only if `trusted`. An agenda is
    kept if asked for, and for the strategy `class`, which learns from it.
    """
    questions, corrections = questions or QuestionLog(), Corrections()
    listeners: list[Listener] = [questions, corrections]
    follower: AgendaFollower | None = None
    if agenda or settings.strategy == "class":
        follower = AgendaFollower(agenda_for(settings, open(place).world))
        listeners.append(follower)
    kept = None if is_url(place) else Path(place) / KEPT
    reader = cooperative(make_agent(settings.reader, "reader", models, trusted=trusted, kept=kept))
    curator = cooperative(
        make_agent(settings.curator, "curator", models, settings.strategy, trusted=trusted, kept=kept)
    )
    budget, memory = settings.forward_budget, settings.memory
    panel = held_out_questions(place, held_out) if gate else []
    made = Gate(gate, panel, reader, budget=budget, memory=memory) if gate else None
    live = open_live(place, listeners, settings, embedder, tick, trusted=trusted, models=models)
    return Online(live, questions, corrections, reader, curator, settings, made, follower)


def open_live(
    place: str | Path,
    listeners: Sequence[Listener] = (),
    settings: Settings | None = None,
    embedder: str | None = None,
    tick: ProgressCallback | None = None,
    write: bool = True,
    trusted: Collection[str] = (),
    models: Models | None = None,
) -> LiveStore:
    """Open a store for serving, with the embedder its trace names unless another is given."""
    with open(place) as opened:
        settings = settings or opened.settings
        vectors = embedder_named(embedder or settings.embedder)
        beside = {} if is_url(place) else beside_on_page(opened.place.originals().values())
        same_index = same_index_of(opened.world)
    return LiveStore(
        place,
        lambda store: live_engine_for(store, vectors, tick, settings.search, beside),
        listeners,
        judge=make_judge(settings.judge, models, trusted),
        same_index=same_index,
        ranking=settings.ranking,
        observations=settings.observations,
        embedder="hash" if vectors.name.startswith("hash-") else vectors.name,
        settings=msgspec.to_builtins(settings),
        write=write,
    )


class StreamRow(msgspec.Struct, frozen=True):
    """One question of a stream, answered before the store learnt from it, and on the flat store."""

    id: str
    f1: float
    actions: int
    flat_f1: float
    flat_actions: int


async def learn_traffic(
    online: Online, rows: Sequence[Traffic], tick: ProgressCallback | None = None
) -> list[StreamRow]:
    """Ask, grade and learn from every question in order. Questions of an earlier call are not repeated."""
    flat = flat_environment(online.live)
    settings, learnt = online.settings, []
    for number, row in enumerate(rows, 1):
        id = row.id or f"t{number}-{digest_of([row.question, row.answers])[:8]}"
        asked = online.questions.asked.get(id)
        if asked is None:
            asked = await online.ask(row.question, "traffic", id)
        if not asked.golds and asked.outcome != "agent_failed":
            asked = await online.gold(id, row.answers)
        await online.learn()
        asking = qa_pair(id, row.question, row.answers, row.unanswerable)
        passed, on_flat = await ask(asking, flat, online.reader, settings.forward_budget, settings.memory)
        learnt.append(StreamRow(id, asked.f1 or 0.0, asked.actions, on_flat.f1, len(passed.steps)))
        if tick:
            recent = learnt[-20:]
            mean = sum(one.f1 for one in recent) / len(recent)
            tick(number, len(rows), f"F1 {mean:.2f}  links {online.live.store.links:,}")
    return learnt


def flat_environment(live: LiveStore) -> Environment:
    """Return an environment of the frozen initial store."""
    store, engine = live.initial.copy().freeze(), live.environment.engine
    flat = engine_for(store, engine.embedder, search=engine.kind, beside=engine.beside)
    return Environment(store, flat, ranking=live.environment.ranking)


async def curate_idle(online: Online, budget: int, tick: ProgressCallback | None = None) -> tuple[int, int]:
    """Curate until the budget of actions or the agenda is spent; return the passes and actions taken.

    A pass that changes nothing may still have read new pages; two in a row end the work.
    """
    passes = actions = barren = 0
    assert online.agenda is not None
    while budget - actions > 1 and barren < 2 and (index_tasks := online.agenda.index_tasks(online.live.store)):
        task, judged = Backward("", (), (), 1.0, "right", index_tasks), online.admitted + online.refused
        passed = await online.curate(task, "idle", budget=min(online.settings.backward_budget, budget - actions))
        passes += 1
        actions += len(passed.steps)
        barren = 0 if online.admitted + online.refused > judged else barren + 1
        if tick:
            tick(actions, budget, f"links {online.live.store.links:,}")
    return passes, actions

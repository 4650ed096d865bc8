"""Puts a served store together: the owner, what follows its trace, who reads and curates, and the gate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from kbgym.agents.registry import make_agent, make_judge
from kbgym.canonical import digest_of, read_lines
from kbgym.episode import play
from kbgym.errors import BadInput
from kbgym.grading import grade
from kbgym.online.agenda_follower import Desk
from kbgym.online.asked import Questions
from kbgym.online.learning import Online
from kbgym.policy import Backward, Forward
from kbgym.protocol.gate import MARGIN, Asking, Gate
from kbgym.protocol.run import Settings
from kbgym.protocol.session import embedder_named
from kbgym.search.choice import index_of
from kbgym.search.embed import Tick
from kbgym.search.live import LiveEngine
from kbgym.serve.owner import Owner, ServedEnvironment
from kbgym.trace.place import is_url
from kbgym.worlds.world import Question


class Traffic(msgspec.Struct, frozen=True):
    """A line of a file of traffic: a question and its accepted answers; a world's questions fit too."""

    question: str = ""
    answers: tuple[str, ...] = ()
    id: str = ""
    text: str = ""
    golds: tuple[str, ...] = ()
    unanswerable: bool = False


def read_traffic(path: Path) -> list[Traffic]:
    """The questions of a file, every one with a text and at least one answer."""
    found: list[Traffic] = []
    for number, row in enumerate(read_lines(path, Traffic), 1):
        text, golds = row.question or row.text, row.answers or row.golds
        if not text.strip() or not golds:
            raise BadInput(f'{path}, line {number}: {{"question": ..., "answers": [...]}} is wanted.')
        found.append(Traffic(text, golds, row.id, unanswerable=row.unanswerable))
    if not found:
        raise BadInput(f"{path} holds no question.")
    return found


def held_out(place: str | Path, given: Path | None) -> list[Asking]:
    """The questions of a file, else the eval split of the store's own world; the test splits are never touched."""
    if given is not None:
        rows = read_traffic(given)
        return [Asking(r.id or f"held-{n}", r.question, r.answers, r.unanswerable) for n, r in enumerate(rows, 1)]
    for file in () if is_url(place) else (Path(place) / "world" / "questions.jsonl", Path(place) / "questions.jsonl"):
        if file.is_file():
            return _askings(question for question in read_lines(file, Question) if question.split == "eval")
    return []


def _askings(questions: Iterable[Question]) -> list[Asking]:
    return [Asking(question.id, question.text, question.golds, question.unanswerable) for question in questions]


def open_online(
    place: str | Path,
    settings: Settings,
    embedder: str | None = None,
    gate: int = 0,
    margin: float = MARGIN,
    evidence: int = 0,
    held_out_file: Path | None = None,
    tick: Tick | None = None,
) -> Online:
    """A store open for questions and edits; whoever opened it closes its owner."""
    questions, desk = Questions(), Desk()
    reader = make_agent(settings.reader, "reader")
    curator = make_agent(settings.curator, "curator", strategy=settings.strategy)
    made = Gate(gate, held_out(place, held_out_file), reader, margin, evidence) if gate else None
    owner = Owner(
        place,
        [questions, desk],
        embedder_named(embedder) if embedder else None,
        msgspec.to_builtins(settings),
        judge=make_judge(settings.judge),
        tick=tick,
        ranking=settings.ranking,
    )
    return Online(owner, questions, desk, reader, curator, settings, made)


class Learnt(msgspec.Struct, frozen=True):
    """One question of a stream: as the online store answered it before learning from it, and as the flat one did."""

    id: str
    f1: float
    actions: int
    flat_f1: float
    flat_actions: int


async def learn_traffic(online: Online, rows: Sequence[Traffic], tick: Tick | None = None) -> list[Learnt]:
    """Every question in order: asked, then graded, then learnt from. What an earlier call did is not done again."""
    flat = flat_environment(online.owner)
    settings, learnt = online.settings, []
    for number, row in enumerate(rows, 1):
        id = row.id or f"t{number}-{digest_of([row.question, row.answers])[:8]}"
        asked = online.questions.asked.get(id)
        if asked is None:
            asked = await online.ask(row.question, "traffic", id)
        if not asked.golds and asked.outcome != "agent_failed":
            asked = await online.gold(id, row.answers)
        await online.learn()
        passed = await play(
            online.reader(), flat, "reader", Forward(row.question), settings.forward_budget, settings.memory
        )
        flat_f1 = grade(passed.answer, row.answers, row.unanswerable).f1 if passed.answer is not None else 0.0
        learnt.append(Learnt(id, asked.f1 or 0.0, asked.actions, flat_f1, len(passed.steps)))
        if tick:
            recent = learnt[-20:]
            mean = sum(one.f1 for one in recent) / len(recent)
            tick(number, len(rows), f"F1 {mean:.2f}  links {online.owner.store.links:,}")
    return learnt


def flat_environment(owner: Owner) -> ServedEnvironment:
    """The store as it began, frozen, with vectors of its own."""
    store = owner.initial.copy().freeze()
    index = index_of(((record.id, record.text) for record in store), owner.embedding.embedder)
    return ServedEnvironment(store, LiveEngine(index, owner.embedding), ranking=owner.environment.ranking)


async def curate_idle(online: Online, budget: int, tick: Tick | None = None) -> tuple[int, int]:
    """Idle passes until the budget of actions or the agenda is spent; gives how many passes and actions that took.

    A pass that changes nothing may still have looked at a page nobody had seen; two in a row are the end.
    """
    passes = actions = barren = 0
    while budget - actions > 1 and barren < 2:
        errands = online.desk.errands(online.owner.store)
        if not errands:
            break
        task = Backward("", (), (), 1.0, "right", errands)
        made = await online.backward(task, "idle", "", "", min(online.settings.backward_budget, budget - actions))
        passes += 1
        actions += len(made.transcript.steps)
        barren = 0 if made.changed else barren + 1
        if tick:
            tick(actions, budget, f"links {online.owner.store.links:,}")
    return passes, actions

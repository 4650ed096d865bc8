"""The exam: a frozen store, an independent reader, many questions at once, one row a question.

Rows are written as they come and kept: run again, an exam asks only what has no row yet. The finished file is in the
questions' order whatever order they finished in. A pass in which the agent itself failed has no score.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbgym.actions import Action, Result
from kbgym.canonical import encode, write_lines
from kbgym.environment import Engine, Environment
from kbgym.episode import FORWARD_BUDGET, Outcome, Transcript, play
from kbgym.errors import BadInput, Damaged
from kbgym.grade import grade, set_f1
from kbgym.policy import Agent, Forward
from kbgym.store import Store
from kbgym.worlds.world import Question

Tick = Callable[[int, int, str], None]


class Shot(msgspec.Struct, frozen=True):
    """One action of a pass and its result, by id: the store gives the texts."""

    action: Action
    result: Result


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question of an exam. The scores are None when the agent failed: that is no wrong answer.

    `set_f1` compares what stands between commas, as PhantomWiki does; `f1` compares words.
    """

    id: str
    class_: str = msgspec.field(name="class")
    template: str
    question: str
    golds: tuple[str, ...]
    answer: str | None
    f1: float | None
    em: float | None
    actions: int
    characters: int
    outcome: Outcome
    shots: tuple[Shot, ...]
    failure: str | None = None
    set_f1: float | None = None
    usage: dict[str, Any] | None = None


def row_of(question: Question, transcript: Transcript) -> Row:
    """Grade a pass: out of budget scores 0, an agent's own failure scores nothing."""
    f1: float | None
    em: float | None
    sets: float | None
    f1, em, sets = 0.0, 0.0, 0.0
    if transcript.outcome == "answered":
        answer = transcript.answer or ""
        f1, em = grade(answer, question.golds, question.unanswerable)
        sets = f1 if question.unanswerable else max(set_f1(answer, gold) for gold in question.golds)
    elif transcript.outcome == "agent_failed":
        f1, em, sets = None, None, None
    return Row(
        id=question.id,
        class_=question.class_,
        template=question.template,
        question=question.text,
        golds=question.golds,
        answer=transcript.answer,
        f1=f1,
        em=em,
        actions=len(transcript.steps),
        characters=transcript.characters,
        outcome=transcript.outcome,
        shots=tuple(Shot(step.action, step.result) for step in transcript.steps),
        failure=transcript.failure,
        set_f1=sets,
        usage=transcript.usage,
    )


async def examine(
    store: Store,
    engine: Engine,
    questions: Sequence[Question],
    reader: Agent,
    out: Path | None = None,
    budget: int = FORWARD_BUDGET,
    concurrency: int = 16,
    tick: Tick | None = None,
) -> list[Row]:
    """Ask every question of a frozen store. With `out`, rows already there are kept and not asked again."""
    environment = Environment(store.freeze(), engine)
    rows = {row.id: row for row in _read_rows(out)} if out else {}
    wanted = {question.id: question for question in questions}
    if strangers := [id for id in rows if id not in wanted]:
        raise BadInput(f"{out} holds rows of another exam (question {strangers[0]}); choose another file.")
    waiting = asyncio.Semaphore(concurrency)
    file = out.open("ab") if out else None

    async def ask(question: Question) -> None:
        async with waiting:
            transcript = await play(reader(), environment, "reader", Forward(question.text), budget)
        row = row_of(question, transcript)
        rows[row.id] = row
        if file:
            file.write(encode(row) + b"\n")
            file.flush()
        if tick:
            tick(len(rows), len(wanted), _running(rows))

    try:
        async with asyncio.TaskGroup() as group:
            for question in questions:
                if question.id not in rows:
                    group.create_task(ask(question))
    except* Exception as failures:
        raise failures.exceptions[0] from None
    finally:
        if file:
            file.close()
    ordered = [rows[question.id] for question in questions]
    if out:
        scratch = out.with_name(f".{out.name}.tmp")
        write_lines(scratch, ordered)
        os.replace(scratch, out)
    return ordered


def _running(rows: dict[str, Row]) -> str:
    scored = [row.f1 for row in rows.values() if row.f1 is not None]
    actions = sum(row.actions for row in rows.values()) / len(rows)
    return f"F1 {sum(scored) / len(scored):.3f}  actions {actions:.2f}" if scored else ""


def _read_rows(path: Path) -> list[Row]:
    """The rows of an earlier, perhaps interrupted exam; a torn last line is cut off."""
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    rows: dict[str, Row] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            row = msgspec.json.decode(line, type=Row)
        except msgspec.DecodeError as error:
            raise Damaged(f"{path}, line {number}: {error}") from error
        if row.id in rows:
            raise Damaged(f"{path}, line {number}: question {row.id} has two rows.")
        rows[row.id] = row
    return list(rows.values())


class Summary(msgspec.Struct, frozen=True):
    """What an exam comes to. Means are over questions with a score; failures are counted apart in `outcomes`.

    `set_f1` compares comma-separated sets, as PhantomWiki does.
    """

    n: int
    f1: float
    em: float
    set_f1: float
    actions: float
    characters: float
    outcomes: dict[str, int]


def summarise(rows: Sequence[Row]) -> Summary:
    scored = [row for row in rows if row.f1 is not None]
    count = max(1, len(scored))
    outcomes: dict[str, int] = {}
    for row in rows:
        outcomes[row.outcome] = outcomes.get(row.outcome, 0) + 1
    return Summary(
        n=len(rows),
        f1=sum(row.f1 or 0.0 for row in scored) / count,
        em=sum(row.em or 0.0 for row in scored) / count,
        set_f1=sum(row.set_f1 or 0.0 for row in scored) / count,
        actions=sum(row.actions for row in scored) / count,
        characters=sum(row.characters for row in scored) / count,
        outcomes=dict(sorted(outcomes.items())),
    )

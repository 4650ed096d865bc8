"""Exams: an independent reader answers concurrent questions on a frozen store, with one result row per question.

Rows are written as questions finish, and a resumed exam asks only questions without a row. The finished file is in the
order of the questions. A pass in which the agent itself failed has no score.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from sys import intern
from typing import Any, cast

import msgspec

from kbgym.canonical import Decoder, encode, read_file, write_lines, write_whole
from kbgym.errors import BadInput, Damaged
from kbgym.gym.actions import Action, Result
from kbgym.gym.environment import Environment, Ranking
from kbgym.gym.episode import Outcome, Transcript, play
from kbgym.gym.grading import grade_question, set_f1
from kbgym.gym.observations import Observations
from kbgym.gym.policy import Agent, Forward
from kbgym.progress import ProgressCallback
from kbgym.search.embed import HashEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Store
from kbgym.training.evidence import Evidence, evidence_of, summarise_evidence
from kbgym.training.run import Settings
from kbgym.worlds.world import Question, World


class Shot(msgspec.Struct, frozen=True):
    """An action of a pass and its result by id; the texts are in the store."""

    action: Action
    result: Result


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one question. The scores are None if the agent failed, which is not a wrong answer.

    Attributes:
        id: The id of the question.
        class_: Its class, such as QC2 (`class` in files).
        template: Its template.
        question: Its text.
        golds: The expected answers.
        answer: The answer given, or None.
        f1: Token F1, the best over the expected answers.
        em: Exact match.
        actions: The number of actions.
        characters: The number of characters read.
        outcome: How the pass ended.
        shots: The actions with their results, as recorded.
        failure: Why the agent failed, if it did.
        set_f1: F1 over comma-separated elements, as PhantomWiki computes it.
        usage: Tokens and cost, if the reader reports them.
        ranking: The ranking of results during the exam.
        evidence: Which supporting documents were shown, and when; None if the supports are unknown.
        observations: The rendering of results during the exam.
        conversation: The conversation of an agent that remembers earlier questions; empty otherwise.
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
    ranking: Ranking = "paper"
    evidence: Evidence | None = None
    observations: Observations = "paper"
    conversation: str = ""


def row_of(
    question: Question,
    transcript: Transcript,
    ranking: Ranking = "paper",
    observations: Observations = "paper",
    conversation: str = "",
) -> Row:
    """Grade a pass; out of budget scores 0, and a failure of the agent has no score."""
    scores: dict[str, float | None] = dict.fromkeys(("f1", "em", "set_f1"), 0.0)
    if transcript.outcome == "answered":
        answer = transcript.answer or ""
        f1, em = grade_question(answer, question)
        sets = f1 if question.unanswerable else max(set_f1(answer, gold) for gold in question.golds)
        scores = {"f1": f1, "em": em, "set_f1": sets}
    elif transcript.outcome == "agent_failed":
        scores = dict.fromkeys(scores)
    return Row(
        id=question.id,
        class_=question.class_,
        template=question.template,
        question=question.text,
        golds=question.golds,
        answer=transcript.answer,
        actions=len(transcript.steps),
        characters=transcript.characters,
        outcome=transcript.outcome,
        shots=tuple(Shot(step.action, step.result) for step in transcript.steps),
        failure=transcript.failure,
        usage=transcript.usage,
        ranking=cast(Ranking, intern(ranking)),  # msgspec omits a default only if it is the same object
        evidence=evidence_of(transcript, question),
        observations=cast(Observations, intern(observations)),
        conversation=conversation,
        **scores,
    )


async def examine(
    store: Store,
    engine: Engine,
    questions: Sequence[Question],
    reader: Agent,
    out: Path | None = None,
    settings: Settings = Settings(),  # noqa: B008 - it cannot be changed
    concurrency: int = 16,
    tick: ProgressCallback | None = None,
    conversation: str = "",
) -> list[Row]:
    """Ask every question on the current store, under the settings' budget, memory and ranking.

    With `out`, questions that already have rows there are not asked again.
    """
    shown = settings.observations
    environment = Environment(store.as_frozen(), engine, ranking=settings.ranking, observations=shown)
    # An agent that starts a program for each pass sets the limit itself.
    waiting = asyncio.Semaphore(min(concurrency, getattr(reader, "at_once", concurrency)))
    budget, memory = settings.forward_budget, settings.memory

    async def ask(question: Question, sheet: ResultWriter) -> None:
        async with waiting:
            transcript = await play(reader(), environment, "reader", Forward(question.text), budget, memory)
        sheet.add(row_of(question, transcript, settings.ranking, shown, conversation))

    with ResultWriter(questions, out, tick, settings.ranking) as sheet:
        try:
            async with asyncio.TaskGroup() as group:
                for question in sheet.missing:
                    group.create_task(ask(question, sheet))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None
    return sheet.rows


class ResultWriter:
    """Writer of the rows of an exam, appended to a file as they come and put in order when complete."""

    def __init__(
        self,
        questions: Sequence[Question],
        out: Path | None,
        tick: ProgressCallback | None = None,
        ranking: Ranking = "paper",
    ) -> None:
        self._questions, self._out, self._tick = questions, out, tick
        self._rows = {row.id: row for row in read_rows(out)} if out else {}
        rows, wanted = self._rows, {question.id for question in questions}
        if strangers := [id for id in rows if id not in wanted]:
            raise BadInput(f"{out} holds rows of another exam (question {strangers[0]}); choose another file.")
        if other := [row.ranking for row in rows.values() if row.ranking != ranking]:
            raise BadInput(f"{out} holds rows of an exam with ranking {other[0]}, not {ranking}; choose another file.")
        self.missing = [question for question in questions if question.id not in rows]
        self._total = len(wanted)
        self._f1, self._actions, self._scored = 0.0, 0, 0
        for row in rows.values():
            self._count(row)
        self._file = out.open("ab") if out else None
        if self._file and out:
            self._file.truncate(len(_whole_lines(out)))  # the question of a torn line is asked again

    @property
    def rows(self) -> list[Row]:
        return [self._rows[question.id] for question in self._questions]

    def add(self, row: Row) -> None:
        self._rows[row.id] = row
        self._count(row)
        if self._file:
            self._file.write(encode(row) + b"\n")
            self._file.flush()
        if self._tick:
            f1, actions = self._f1 / max(1, self._scored), self._actions / len(self._rows)
            self._tick(len(self._rows), self._total, f"F1 {f1:.3f}  actions {actions:.2f}" if self._scored else "")

    def _count(self, row: Row) -> None:
        self._actions += row.actions
        if row.f1 is not None:
            self._scored += 1
            self._f1 += row.f1

    def __enter__(self) -> ResultWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._file:
            self._file.close()
        if self._out and kind is None:
            with write_whole(self._out) as scratch:
                write_lines(scratch, self.rows)


_decoder: Decoder[Row] = Decoder(Row)
_BEGINNING = b'{"actions":'


def read_rows(path: Path) -> list[Row]:
    """Read the rows of an exam, finished or in progress, without a torn last line."""
    rows: dict[str, Row] = {}
    for number, line in enumerate(_whole_lines(path).splitlines(), 1):
        try:
            row = _decoder.decode(line)
        except msgspec.DecodeError as error:
            raise Damaged(f"{path}, line {number}: {error}") from error
        if row.id in rows:
            raise Damaged(f"{path}, line {number}: question {row.id} has two rows.")
        rows[row.id] = row
    return list(rows.values())


def _whole_lines(path: Path) -> bytes:
    data = read_file(path) if path.exists() else b""
    whole = data[: data.rfind(b"\n") + 1]
    if not whole and not _BEGINNING.startswith(data[: len(_BEGINNING)]):
        raise Damaged(f"{path} is not an exam file; choose another --out.")
    return whole


class Summary(msgspec.Struct, frozen=True):
    """The summary of an exam. Means are over questions with a score; failures are counted in `outcomes`.

    `set_f1` compares comma-separated sets, as PhantomWiki does. `evidence` is the share of a question's supports that
    was shown, `evidence_all` the share of questions with all of them shown, `gold_seen` that with an accepted answer in
    the shown texts; None if undetermined. `first_page` is the share of the supports on the first page of results, over
    the `evidence_n` questions with known supports. Entry k of `f1_within` is F1 with a budget of k + 1 actions, that of
    `evidence_all_by_action` the share with all supports seen by then.
    """

    n: int
    f1: float
    em: float
    set_f1: float
    actions: float
    characters: float
    outcomes: dict[str, int]
    evidence_n: int = 0
    first_page: float | None = None
    evidence: float | None = None
    evidence_all: float | None = None
    gold_seen: float | None = None
    evidence_all_by_action: tuple[float, ...] = ()
    f1_within: tuple[float, ...] = ()


def summarise(rows: Sequence[Row]) -> Summary:
    """Return the means of the scored rows and the counts of all outcomes."""
    scored = [row for row in rows if row.f1 is not None]
    count = max(1, len(scored))
    most = max((row.actions for row in rows), default=0)
    measures = ("f1", "em", "set_f1", "actions", "characters")
    means: dict[str, Any] = {name: sum(getattr(row, name) or 0.0 for row in scored) / count for name in measures}
    return Summary(
        n=len(rows),
        **means,
        outcomes=dict(sorted(Counter(row.outcome for row in rows).items())),
        f1_within=tuple(
            round(sum(row.f1 or 0.0 for row in scored if row.actions <= k) / count, 6) for k in range(1, most + 1)
        ),
        **summarise_evidence((row.evidence for row in rows), most),
    )


# -- without a store --------------------------------------------------------------------------------------------------

NO_STORE = "nostore"


def is_public(world: World) -> bool:
    """Return True if the text is public; models may know it, so a score needs a no-store baseline."""
    return bool(world.facts.get("public_text"))


def no_store_file(out: Path) -> Path:
    """Return the file of the no-store rows, beside those with a store."""
    return out.with_name(f"{out.stem}.{NO_STORE}{out.suffix}")


async def examine_without(
    questions: Sequence[Question], reader: Agent, out: Path | None, settings: Settings, concurrency: int
) -> list[Row]:
    """Ask the same reader the same questions on an empty store; existing rows are kept."""
    file = no_store_file(out) if out else None
    return await examine(Store(), Engine(HashEmbedder()), questions, reader, file, of_no_store(settings), concurrency)


def of_no_store(settings: Settings) -> Settings:
    """Return settings for an empty store, which has nothing to rank."""
    return msgspec.structs.replace(settings, ranking="paper", embedder="hash")

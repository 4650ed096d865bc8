"""Question drafts by a model, for a person to approve.

Drafts are made from small groups of documents ("handfuls") and checked: the answer must occur verbatim in a supporting
document and not in the question, and the question must be new. Failed drafts are counted. The seed determines the
handfuls, so the same recording gives the same drafts.
"""

from __future__ import annotations

import asyncio
import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import msgspec

from kbgym.agents.llm.client import Asker, Flawed, ReadReply, read_call
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.prompting import as_data, prompt
from kbgym.agents.llm.retry import TooLong
from kbgym.agents.llm.values import Message, Reply, Request, object_schema, tool
from kbgym.canonical import digest
from kbgym.corpus.splits import near_duplicates, normalised, says
from kbgym.corpus.statements import clean
from kbgym.corpus.update import file_of
from kbgym.errors import Failed
from kbgym.progress import ProgressCallback
from kbgym.worlds.world import Document, World

EACH = 2  # drafts requested per handful
COMPLETION = 60 * EACH
MOST_ASKED = 3  # handfuls asked, as a multiple of those needed if every draft passed
LONGEST_QUESTION, LONGEST_ANSWER = 400, 120
COLUMNS = ("approve", "question", "answer", "support", "group", "quote")

_DRAFT = object_schema(
    {
        "question": {"type": "string"},
        "answer": {"type": "string", "description": "As a supporting sentence has it."},
        "supports": {"type": "array", "items": {"type": "string"}, "description": "Ids."},
    }
)
_TOOL = tool("suggest", "Give your drafts.", {"drafts": {"type": "array", "items": _DRAFT}})


class _Draft(msgspec.Struct, frozen=True):
    question: str
    answer: str
    supports: list[str]


class _Drafts(msgspec.Struct, frozen=True):
    drafts: list[_Draft]


class Suggested(msgspec.Struct, frozen=True):
    """A draft that passed every check, with its supporting documents. Drafts on the same document share a group."""

    question: str
    answer: str
    support: tuple[str, ...]
    quote: tuple[str, ...]
    group: str = ""


class Suggestions(msgspec.Struct, frozen=True):
    """The drafts, the number of handfuls asked about, and the reasons for dropping others."""

    drafts: tuple[Suggested, ...]
    asked: int
    dropped: dict[str, int]


def suggest(
    world: World,
    models: Models,
    name: str,
    n: int,
    seed: int = 0,
    concurrency: int = 16,
    confirm: Confirm | None = None,
    tick: ProgressCallback | None = None,
) -> Suggestions:
    """Return up to `n` drafts. `confirm` is called with all requests that may be needed."""
    writer = ModelWriter(models, name, concurrency)
    wanted = -(-n // EACH)
    groups = list(islice(handfuls(world.documents, seed), MOST_ASKED * wanted))
    if confirm is not None:
        confirm(writer.new([_request(writer, group) for group in groups]))
    sieve = _Sieve([question.text for question in world.questions])
    waiting, asked = iter(groups), 0
    while len(sieve.found) < n and (wave := list(islice(waiting, -(-(n - len(sieve.found)) // EACH)))):
        replies = writer.ask([(_request(writer, group), _read) for group in wave])
        for group, drafts in zip(wave, replies, strict=True):
            asked += 1
            sieve.take(group, drafts, n)
        if tick is not None:
            tick(len(sieve.found), n, f"{asked} of at most {len(groups)} handfuls")
    if not sieve.found:
        why = "; ".join(f"{count} {reason}" for reason, count in sieve.dropped.items()) or "the model gave none"
        raise Failed(f"{writer.name} drafted no question that can be used: {why}.")
    return Suggestions(tuple(sieve.found), asked, dict(sieve.dropped))


def written(drafts: Sequence[Suggested]) -> str:
    """Return the drafts as CSV with an empty column `approve`."""
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\n")
    lines.writerow(COLUMNS)
    for draft in drafts:
        lines.writerow(
            ("", draft.question, draft.answer, "|".join(draft.support), draft.group, " | ".join(draft.quote))
        )
    return out.getvalue()


# -- the model as a writer ---------------------------------------------------------------------------------------------

TRIES = 2
T = TypeVar("T")
Confirm = Callable[[Sequence[Request]], None]


Job: TypeAlias = tuple[Request, ReadReply[T]]


class ModelWriter(Asker):
    """One model in the role of a writer."""

    def __init__(self, models: Models, name: str, concurrency: int = 16) -> None:
        super().__init__(*models.client(name, "writer"))
        self._concurrency = concurrency

    def request(self, skill: str, text: str, tool: dict[str, Any]) -> Request:
        """Return a request: the prompt of a skill, the text to work on, and the only allowed call."""
        return self._settings.request(prompt(skill), (Message("user", text),), (tool,))

    def new(self, requests: Sequence[Request]) -> list[Request]:
        """Return the distinct requests that are not on the cassette."""
        cassette = self._client.cassette
        distinct = {request.hash: request for request in requests}
        return [request for hash, request in distinct.items() if cassette is None or not cassette.holds(hash)]

    def ask(self, jobs: Sequence[Job[T]], tick: ProgressCallback | None = None) -> list[T | None]:
        """Return the value read from each reply, or None where no reply was valid."""
        return asyncio.run(self._ask_all(jobs, tick or (lambda done, total, note: None)))

    async def _ask_all(self, jobs: Sequence[Job[T]], tick: ProgressCallback) -> list[T | None]:
        hashes = [request.hash for request, _ in jobs]
        distinct = dict(zip(hashes, jobs, strict=True))
        found: dict[str, T | None] = {}
        failures: list[Exception] = []

        async def work(waiting: Iterator[tuple[str, Job[T]]]) -> None:
            for hash, (request, read) in waiting:
                try:
                    found[hash] = await self._ask(request, read)
                except Exception as failure:
                    failures.append(failure)
                if failures:
                    return  # other requests in flight are paid for, so wait for and record them
                tick(len(found), len(distinct), "")

        waiting = iter(distinct.items())
        # Start more than the concurrency limit: the client enforces it.
        await asyncio.gather(*(work(waiting) for _ in range(min(len(distinct), 2 * self._concurrency))))
        if failures:
            raise failures[0]
        return [found[hash] for hash in hashes]

    async def _ask(self, request: Request, read: ReadReply[T]) -> T | None:
        call = request.tools[0]["function"]["name"]
        try:
            value = await self.until_valid(
                request,
                read,
                TRIES,
                lambda reason: f"That cannot be used: {reason} Call `{call}` once more, and nothing else.",
                quoted=600,
            )
        except TooLong:
            return None
        return None if isinstance(value, Flawed) else value


# -- checks -----------------------------------------------------------------------------------------------------------


class _Sieve:
    """Keeps drafts that pass the checks, and counts the others by reason."""

    def __init__(self, known: Sequence[str]) -> None:
        self.found: list[Suggested] = []
        self.dropped: Counter[str] = Counter()
        self._known = list(known)

    def take(self, group: Sequence[Document], drafts: Sequence[_Draft] | None, most: int) -> None:
        if drafts is None:
            self.dropped["replies without drafts"] += 1
            return
        texts = {document.id: document.text for document in group}
        for draft in drafts:
            if len(self.found) == most:
                return
            question, answer = clean(draft.question), clean(draft.answer)
            support = tuple(dict.fromkeys(draft.supports))
            if reason := self._flaw(question, answer, [texts.get(id) for id in support]):
                self.dropped[reason] += 1
                continue
            quote = tuple(f"[{id}] {texts[id]}" for id in support)
            self.found.append(Suggested(question, answer, support, quote, group=min(support)))

    def _flaw(self, question: str, answer: str, supports: Sequence[str | None]) -> str | None:
        if not normalised(question) or not normalised(answer):
            return "without a question or an answer"
        if len(question) > LONGEST_QUESTION or len(answer) > LONGEST_ANSWER:
            return "too long"
        if any(text[0] in "=+@-" and not text[1:2].isdigit() for text in (question, answer)):
            return "beginning like a formula"  # the file will be opened in a spreadsheet
        if "|" in answer:
            return "with an answer that holds a |"
        if not supports or None in supports:
            return "supported by no sentence that was shown"
        if not any(says(text or "", answer) for text in supports):
            return "with an answer that is not in their supports"
        if says(question, answer):
            return "that give their answer away"
        known = [*self._known, *(draft.question for draft in self.found), question]
        if any(pair.second == len(known) - 1 for pair in near_duplicates(known)):
            return "asked already"
        return None


def _request(writer: ModelWriter, group: Sequence[Document]) -> Request:
    shown = "\n".join(f"[{document.id}] {document.text}" for document in group)
    return writer.request("suggest", f"Draft up to {EACH} questions from these sentences:\n{as_data(shown)}", _TOOL)


def _read(reply: Reply) -> list[_Draft] | Flawed:
    given = read_call(reply, "suggest", _Drafts)
    return given if isinstance(given, Flawed) else given.drafts[: 2 * EACH]


# -- groups of related documents --------------------------------------------------------------------------------------

NEAR = 2  # neighbours on each side


def handfuls(documents: Sequence[Document], seed: int = 0) -> Iterator[tuple[Document, ...]]:
    """Yield each document with its neighbours in the file, in an order set by the seed; unused documents come first."""
    order = sorted(range(len(documents)), key=lambda place: digest(f"{seed}:{documents[place].id}".encode()))
    given: set[range] = set()
    held: set[int] = set()
    for brings_new in (True, False):
        for place in order:
            chosen = _around(documents, place)
            if chosen not in given and not (brings_new and place in held):
                given.add(chosen)
                held.update(chosen)
                yield tuple(documents[one] for one in chosen)


def _around(documents: Sequence[Document], place: int) -> range:
    """Return the positions of a document and its neighbours in the same file."""
    near = range(max(0, place - NEAR), min(len(documents), place + NEAR + 1))
    same = [one for one in near if file_of(documents[one]) == file_of(documents[place])]
    return range(same[0], same[-1] + 1)

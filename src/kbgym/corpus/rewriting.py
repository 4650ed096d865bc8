"""Rewrite sentences with a language model so that each stands alone, and check that no fact is added or lost.

A rewriting is checked by words: it may add no number, date or name that stands neither in the sentence nor around it,
and must keep the numbers and most words of the sentence. A flawed reply is corrected once; then the sentence stays what
it was. Equal passages give equal requests, so a cassette answers for everything that did not change.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from kbgym.agents.llm.client import Asker, Flawed, ReadReply, read_call
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.prompting import as_data, prompt
from kbgym.agents.llm.retry import TooLong
from kbgym.agents.llm.values import Message, Reply, Request, tool
from kbgym.corpus.sentences import MOST_TEXT, clean
from kbgym.corpus.statements import POINTING, Passage
from kbgym.progress import ProgressCallback

LEAST_KEPT = 0.5

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_WRITTEN_OUT = frozenset(
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion dozen"
    " january february march april june july august september october november december"
    " monday tuesday wednesday thursday friday saturday sunday".split()
)
_SMALL = POINTING | frozenset(
    "the a an of in on at to for is are was were has have had been be by with from as".split()
)


def flaw(text: str, passage: Passage) -> str | None:
    """What is wrong with a rewriting, as one sentence; None when nothing is."""
    if not text.strip():
        return "it is empty."
    if clean(text) != text.strip():
        return "it is not one plain line."
    most = min(MOST_TEXT, 3 * (len(passage.heading) + len(passage.lead) + len(passage.sentence)) + 200)
    if len(text) > most:
        return f"it is too long: {len(text):,} characters, at most {most:,} are allowed."
    known, said = passage.everything, passage.sentence
    if new := _numbers(text) - _numbers(known):
        return f"it adds {_first(new)}, a number that stands neither in the sentence nor around it."
    if new := (_words(text) & _WRITTEN_OUT) - _words(known):
        return f"it adds {_first(new)!r}, a number or date that stands neither in the sentence nor around it."
    if new := _names(text) - _words(known):
        return f"it adds {_first(new)!r}, a name that stands neither in the sentence nor around it."
    if lost := _numbers(said) - _numbers(text):
        return f"it loses {_first(lost)}, a number of the sentence."
    telling = _words(said) - _SMALL
    if len(telling & _words(text)) < LEAST_KEPT * len(telling):
        return "it says something else: more than half of the sentence's words are gone."
    return None


def _numbers(text: str) -> set[str]:
    return set(_NUMBER.findall(text))


def _words(text: str) -> set[str]:
    return {_plain(word) for word in _WORD.findall(text)}


def _names(text: str) -> set[str]:
    """Words written large, other than the first."""
    return {_plain(word) for word in _WORD.findall(text)[1:] if word[0].isupper()}


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'").removesuffix("'s").rstrip("'")


def _first(words: set[str]) -> str:
    return min(words)


COMPLETION = 60  # tokens of a usual reply, for the forecast

_TOOL = tool(
    "rewrite",
    "Give the sentence as it can stand alone.",
    {"sentence": {"type": "string", "description": "One sentence on one line."}},
)


class _Rewritten(msgspec.Struct, frozen=True):
    sentence: str


class Rewriter:
    """Asks a model for every passage; `confirm` is shown what will be sent before anything is."""

    def __init__(
        self,
        models: Models,
        name: str,
        concurrency: int = 16,
        confirm: Confirm | None = None,
        tick: ProgressCallback | None = None,
    ) -> None:
        self._writer = ModelWriter(models, name, concurrency)
        self._confirm = confirm
        self._tick = tick

    @property
    def name(self) -> str:
        return self._writer.name

    def __call__(self, passages: Sequence[Passage]) -> list[str | None]:
        requests = [self._writer.request("rewrite", shown(passage), _TOOL) for passage in passages]
        if self._confirm is not None:
            self._confirm(self._writer.new(requests))
        jobs = [(request, reading(passage)) for request, passage in zip(requests, passages, strict=True)]
        return self._writer.ask(jobs, self._tick)


def shown(passage: Passage) -> str:
    """A passage as a model sees it; all of it is data."""
    parts = {
        "The headings above it": passage.heading,
        "What introduces it": passage.lead,
        "The sentences before it": "\n".join(passage.before),
        "The sentence after it": "\n".join(passage.after),
        "The sentence to rewrite": passage.sentence,
    }
    return "\n\n".join(f"{what}:\n{as_data(text)}" for what, text in parts.items() if text)


def reading(passage: Passage) -> ReadReply[str]:
    """What reads a reply about this passage."""

    def read(reply: Reply) -> str | Flawed:
        given = read_call(reply, "rewrite", _Rewritten)
        if isinstance(given, Flawed):
            return given
        wrong = flaw(given.sentence, passage)
        return Flawed(wrong) if wrong else given.sentence.strip()

    return read


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
        """A prompt of ours, what is to be worked on, and the one call that is allowed."""
        return self._settings.request(prompt(skill), (Message("user", text),), (tool,))

    def new(self, requests: Sequence[Request]) -> list[Request]:
        """Those that will be sent to the model: each once, and none that is on the cassette."""
        cassette = self._client.cassette
        distinct = {request.hash: request for request in requests}
        return [request for hash, request in distinct.items() if cassette is None or not cassette.holds(hash)]

    def ask(self, jobs: Sequence[Job[T]], tick: ProgressCallback | None = None) -> list[T | None]:
        """What was read out of the reply to each request, None where no reply was of use."""
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
                    return  # what is under way elsewhere is paid for, so it is waited for and recorded
                tick(len(found), len(distinct), "")

        waiting = iter(distinct.items())
        # More at once than the limit that was asked for: the client holds requests to that.
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

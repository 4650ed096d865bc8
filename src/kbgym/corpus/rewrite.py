"""Sentences made to stand alone by a model: what `worlds.corpus` takes as a plain function.

What the model may not do is decided there (`rewriting.flaw`); here a flawed rewriting is put right once, and then the
sentence stays what it was. The same passage gives the same request, so a cassette answers for everything that did not
change.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbgym.agents.llm.asking import Flawed, ReadReply, read_call
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.prompting import as_data
from kbgym.agents.llm.values import Reply, tool
from kbgym.corpus.rewriting import Passage, flaw
from kbgym.corpus.writing import Confirm, ModelWriter
from kbgym.progress import ProgressCallback

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

"""Summaries written by a language model instead of a rule."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbgym.agents.llm.client import Flawed, read_call
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.prompting import as_data
from kbgym.agents.llm.values import Reply, tool
from kbgym.corpus.drafting import Confirm, ModelWriter
from kbgym.corpus.statements import clean
from kbgym.progress import ProgressCallback

COMPLETION = 120  # approximate tokens of a reply
MOST_SHOWN = 60  # sentences of one group
LONGEST = 400
_TOOL = tool("summarise", "Give your sentence.", {"summary": {"type": "string"}})


class _Summary(msgspec.Struct, frozen=True):
    summary: str


class Summariser:
    """A model that writes one summary per group of sentences, or None if it gave no valid one."""

    def __init__(
        self,
        models: Models,
        name: str,
        concurrency: int,
        confirm: Confirm | None = None,
        tick: ProgressCallback | None = None,
    ) -> None:
        self._writer = ModelWriter(models, name, concurrency)
        self._confirm, self._tick = confirm, tick

    @property
    def tokens(self) -> int:
        return self._writer.usage.tokens

    def __call__(self, groups: Sequence[Sequence[str]]) -> list[str | None]:
        shown = (as_data("\n".join(group[:MOST_SHOWN])) for group in groups)
        requests = [self._writer.request("summarise", f"Summarise these sentences:\n{one}", _TOOL) for one in shown]
        if self._confirm is not None:
            self._confirm(self._writer.new(requests))
        return self._writer.ask([(request, _read) for request in requests], self._tick)


def _read(reply: Reply) -> str | Flawed:
    given = read_call(reply, "summarise", _Summary)
    if isinstance(given, Flawed):
        return given
    text = clean(given.summary)
    return text if 0 < len(text) <= LONGEST else Flawed(f"it is empty or longer than {LONGEST} characters.")

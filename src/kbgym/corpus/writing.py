"""A model that is asked many single questions, each to be answered by one call: what rewriting and drafting share.

Every reply is read by a function that gives a value or says what is wrong with it. A flawed reply is answered with one
correction; if the next is flawed too, there is no value. An outage or a cap passes through. Equal
requests are made once, so that a recording plays back the same in whatever order the replies come.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from kbgym.agents.llm.asking import Asker, Flawed, ReadReply
from kbgym.agents.llm.connect import Models
from kbgym.agents.llm.prompting import prompt
from kbgym.agents.llm.retry import TooLong
from kbgym.agents.llm.values import Message, Request
from kbgym.progress import ProgressCallback

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

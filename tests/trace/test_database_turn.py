"""Turns at a shared store: what was missed is followed before one stands in the others' way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from kbgym.trace import write_lock as database_turn
from kbgym.trace.backend import ConnectionLost
from kbgym.trace.events import Event, Noted
from kbgym.trace.write_lock import WriteLock


class Writer:
    """Says in which order it is asked; each time somebody else has committed something."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def _say(self, what: str) -> tuple[Event, ...]:
        self._told.append(what)
        return (Noted(1, what, {}),)

    def new_events(self) -> tuple[Event, ...]:
        return self._say("news")

    @contextmanager
    def locked(self) -> Iterator[tuple[Event, ...]]:
        yield self._say("turn")
        self._told.append("over")


@pytest.mark.parametrize("thought", [True, False], ids=["thought for long", "looked just now"])
def test_who_thought_for_long_follows_before_it_lines_up(monkeypatch: pytest.MonkeyPatch, thought: bool) -> None:
    told: list[str] = []
    monkeypatch.setattr(database_turn, "LONG_AGO", -1.0 if thought else 1000.0)
    writer: Any = Writer(told)
    with ThreadPoolExecutor(1) as thread:

        async def follow() -> None:
            told.append(f"follow {len(turn.arrived)}")
            turn.arrived.clear()

        async def take() -> None:
            await turn.take()
            await turn.end([])

        turn = WriteLock(writer, thread, follow, lambda: None)
        asyncio.run(take())
    before = ["news", "follow 1"] if thought else []
    assert told == [*before, "turn", "follow 1", "over"]


class Losing(Writer):
    """A connection that breaks at first, and with it what was followed before is gone."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(told)
        self._lost = False

    def _say(self, what: str) -> tuple[Event, ...]:
        if not self._lost:
            self._lost = True
            self._told.append("lost")
            raise ConnectionLost("the server went down")
        return super()._say(what)


@pytest.mark.parametrize("take", [True, False], ids=["a turn", "news"])
def test_what_was_lost_is_read_anew(take: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_turn, "LONG_AGO", 1000.0)
    told: list[str] = []
    writer: Any = Losing(told)
    with ThreadPoolExecutor(1) as thread:

        async def follow() -> None:
            turn.arrived.clear()

        async def work() -> None:
            await (turn.take() if take else turn.refresh())
            if take:
                assert turn.held is not None
                await turn.end([])

        turn = WriteLock(writer, thread, follow, lambda: told.append("anew"))
        asyncio.run(work())
    assert told == (["lost", "anew", "turn", "over"] if take else ["lost", "anew"])

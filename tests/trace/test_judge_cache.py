"""The cache of verdicts: asked before the turn, used in it, and no more than it can hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from kbgym.gym.actions import Action, Add, Delete, Edit
from kbgym.gym.environment import Environment
from kbgym.store import Store, source
from kbgym.trace import live
from kbgym.trace.live import JudgeCache


class Asked:
    """Says yes to one text, and remembers every question."""

    name = "asked"

    def __init__(self, yes: str = "") -> None:
        self.yes = yes
        self.pairs: list[tuple[str, str]] = []

    async def duplicate(self, candidate: str, existing: str) -> bool:
        self.pairs.append((candidate, existing))
        return existing == self.yes


class Near:
    """A search whose neighbours are given."""

    trained = None

    def __init__(self, *hits: tuple[str, float]) -> None:
        self.hits = list(hits)

    async def prepare(self, texts: Iterable[str]) -> None: ...

    def search(self, query: str, offset: int, limit: int) -> list[tuple[str, float]]:
        return []

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]:
        return [hit for hit in self.hits if hit[0] not in exclude][:limit]

    def put(self, id: str, text: str) -> None: ...

    def remove(self, id: str) -> None: ...


def world(yes: str = "", *hits: tuple[str, float]) -> tuple[JudgeCache, Asked, Environment]:
    judge = Asked(yes)
    store = Store([source("a", "A."), source("b", "B."), source("c", "C."), source("d", "D.")])
    cache = JudgeCache(judge)
    assert cache.name == "asked"
    return cache, judge, Environment(store, Near(*hits), cache)


HITS = (("a", 0.99), ("b", 0.95), ("c", 0.92), ("d", 0.92))


@pytest.mark.parametrize("action", [Add("X."), Edit("d", "X.")])
def test_what_was_prepared_is_not_asked_again(action: Action) -> None:
    cache, judge, environment = world("", *HITS)
    asyncio.run(cache.prepare([action], environment))
    assert judge.pairs == [("X.", "A."), ("X.", "B."), ("X.", "C.")], "the three nearest"
    asyncio.run(environment.step(action, "curator"))
    assert len(judge.pairs) == 3


def test_a_neighbour_that_came_meanwhile_is_asked_about_in_another_round() -> None:
    cache, judge, environment = world("", ("a", 0.99))
    asked = judge.duplicate

    async def slow(candidate: str, existing: str) -> bool:
        environment.engine.hits = [("a", 0.99), ("b", 0.90), ("c", 0.91)]
        return await asked(candidate, existing)

    judge.duplicate = slow
    asyncio.run(cache.prepare([Add("X.")], environment))
    assert judge.pairs == [("X.", "A."), ("X.", "C.")], "b is not near enough"


def test_after_a_duplicate_the_rest_is_not_asked_about() -> None:
    cache, judge, environment = world("B.", *HITS)
    asyncio.run(cache.prepare([Add("X.")], environment))
    assert judge.pairs == [("X.", "A."), ("X.", "B.")]
    asyncio.run(cache.prepare([Edit("b", "X.")], environment))
    assert judge.pairs[2:] == [("X.", "C."), ("X.", "D.")], "b is not compared with itself"


def test_what_needs_no_judge_is_not_asked_about() -> None:
    cache, judge, environment = world("", *HITS)
    asyncio.run(cache.prepare([Add("a"), Edit("b", "A."), Delete("a")], environment))
    assert judge.pairs == []
    asyncio.run(cache.prepare([Edit("a", "A")], environment))
    assert judge.pairs, "its own text is no other document's"


def test_only_the_latest_verdicts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "_MAX_VERDICTS", 3)
    cache, judge, _ = world("A.")

    async def ask(*texts: str) -> list[bool]:
        return [await cache.duplicate(text, "A.") for text in texts]

    assert asyncio.run(ask("1", "2", "3", "1")) == [True] * 4 and len(judge.pairs) == 3
    asyncio.run(ask("4", "3", "1"))
    assert len(judge.pairs) == 4
    asyncio.run(ask("2"))
    assert judge.pairs[-1] == ("2", "A."), "the least recently used was evicted"
    assert asyncio.run(cache.duplicate("3", "B.")) is False

"""The cache of verdicts: asked before the turn, used in it, and no more than it can hold."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest

from kbgym.gym.actions import Action, Add, Delete, Edit
from kbgym.gym.environment import Environment
from kbgym.store import Store, source
from kbgym.trace import judge_cache
from kbgym.trace.judge_cache import JudgeCache


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
def test_what_was_considered_is_decided_and_not_asked_again(action: Action) -> None:
    cache, judge, environment = world("", *HITS)
    assert not cache.is_decided(action, environment)
    asyncio.run(cache.consider(action, environment))
    assert judge.pairs == [("X.", "A."), ("X.", "B."), ("X.", "C.")], "the three nearest"
    assert cache.is_decided(action, environment)
    asyncio.run(environment.step(action, "curator"))
    assert len(judge.pairs) == 3


def test_a_neighbour_that_came_since_is_not_decided() -> None:
    cache, judge, environment = world("", ("a", 0.99))
    asyncio.run(cache.consider(Add("X."), environment))
    environment.engine.hits.append(("b", 0.90))
    assert cache.is_decided(Add("X."), environment), "it is not near enough to be asked about"
    environment.engine.hits.append(("c", 0.91))
    assert not cache.is_decided(Add("X."), environment)
    assert not cache.is_decided(Add("Y."), environment) and not cache.is_decided(Edit("b", "Y."), environment)
    assert judge.pairs == [("X.", "A.")]


def test_after_a_duplicate_the_rest_need_not_be_decided() -> None:
    cache, judge, environment = world("B.", *HITS)
    asyncio.run(cache.consider(Add("X."), environment))
    assert judge.pairs == [("X.", "A."), ("X.", "B.")] and cache.is_decided(Add("X."), environment)
    assert not cache.is_decided(Edit("b", "X."), environment), "b is not compared with itself, so c counts"


def test_what_needs_no_judge_is_decided() -> None:
    cache, judge, environment = world("", *HITS)
    for action in (Add("a"), Edit("b", "A."), Delete("a")):
        assert cache.is_decided(action, environment)
        asyncio.run(cache.consider(action, environment))
    assert judge.pairs == []
    assert not cache.is_decided(Edit("a", "A"), environment), "its own text is no other document's"


def test_only_the_latest_verdicts_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_cache, "_MOST", 3)
    cache, judge, _ = world("A.")

    async def ask(*texts: str) -> list[bool]:
        return [await cache.duplicate(text, "A.") for text in texts]

    assert asyncio.run(ask("1", "2", "3", "1")) == [True] * 4 and len(judge.pairs) == 3
    asyncio.run(ask("4", "3", "1"))
    assert len(judge.pairs) == 4
    asyncio.run(ask("2"))
    assert judge.pairs[-1] == ("2", "A."), "the least recently used was evicted"
    assert asyncio.run(cache.duplicate("3", "B.")) is False

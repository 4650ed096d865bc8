"""One action on one store: `apply` is the whole effect, `Environment` is `apply` on a live store with search.

`apply` is pure state: no files, clock, network or model. What it cannot decide by itself (which documents a query is
nearest to, whether a sentence is a duplicate) is handed to it as advice: by the search engine and the guard when live,
by the trace when replayed. Both go through this one function, so a replay cannot drift from what happened.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, Protocol, get_args

import msgspec

from kbgym.gym.actions import (
    Action,
    Add,
    Added,
    Answer,
    Answered,
    Correct,
    Corrected,
    Delete,
    Deleted,
    Done,
    Edit,
    Edited,
    Error,
    Finished,
    Found,
    Invalid,
    Link,
    Linked,
    LinkMany,
    Merged,
    Observation,
    Opened,
    Read,
    Result,
    Search,
    Unlink,
    Unlinked,
    shown_by,
)
from kbgym.gym.observations import Observations, observe
from kbgym.gym.tools import PAGE_SIZE, Role, check
from kbgym.search.ranking import corrections_first, page_apart, whole_ranking
from kbgym.store import Refused, Store
from kbgym.store.guard import NEIGHBOURS, Judge, RuleJudge, Verdict, verdict


class Nearest(msgspec.Struct, frozen=True):
    """Advice for a search: the ids of one page."""

    ids: tuple[str, ...]


Advice = Nearest | Verdict | None

# How a page of results is filled. `paper`: the five best. `apart`: the five best that nobody authored, and in addition
# the authored ones ranked among them, at most so many a page: an index can then push no document out.
Ranking = Literal["paper", "apart"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)
MOST_APART = 5


class Step(msgspec.Struct, frozen=True):
    """An action, what was advised, what happened, and what the agent read."""

    action: Action
    result: Result
    observation: Observation
    verdict: Verdict | None = None


class SearchEngine(Protocol):
    """What an environment needs of a search engine. `prepare` makes ready for texts that will be searched or put."""

    async def prepare(self, texts: Iterable[str]) -> None: ...
    def search(self, query: str, offset: int, limit: int) -> list[tuple[str, float]]: ...
    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]: ...
    def put(self, id: str, text: str) -> None: ...
    def remove(self, id: str) -> None: ...


def texts_in(action: Action) -> tuple[str, ...]:
    """What an action searches for or writes: the texts a search engine must know vectors of."""
    match action:
        case Search(text) | Add(text) | Edit(_, text) | Correct(text):
            return (text,)
    return ()


def apply(store: Store, action: Action, advice: Advice = None) -> Result:
    """Carry out a checked action. An action that cannot be done changes nothing and says why."""
    try:
        return _apply(store, action, advice)
    except Refused as refusal:
        return Error(str(refusal))


def _apply(store: Store, action: Action, advice: Advice) -> Result:
    match action:
        case Search(_, page):
            ids = advice.ids if isinstance(advice, Nearest) else ()
            if not ids and page > 1:
                raise Refused(f"there is no page {page}; the results end before it.")
            return Found(tuple(store.get(id).id for id in ids), page)
        case Read(id):
            return Opened(id, store.get(id).links)
        case Answer():
            return Answered()
        case Add(text):
            duplicate = _duplicate(store, text, None, advice)
            if duplicate is not None and not store.frozen:
                return Merged(duplicate)
            return Added(store.add(text))
        case Edit(id, text):
            store.get(id)
            duplicate = _duplicate(store, text, id, advice)
            if duplicate is not None:
                store.merge(duplicate, id)
                return Merged(duplicate, gone=id)
            store.edit(id, text)
            return Edited(id)
        case Delete(id):
            store.delete(id)
            return Deleted(id)
        case Link(source, target):
            store.get(target)
            linking = store.link(source, (target,))
            if linking.itself:
                raise Refused("a document cannot link to itself.")
            if linking.already:
                raise Refused(f"{source} already links to {target}.")
            return Linked(source, linking.linked)
        case LinkMany(source, targets):
            linking = store.link(source, targets)
            return Linked(source, linking.linked, linking.unknown, linking.already, linking.itself)
        case Unlink(source, target):
            store.unlink(source, target)
            return Unlinked(source, target)
        case Correct(text, supersedes):
            if (same := store.same_text(text)) is not None:
                raise Refused(f"[{same}] says this already.")
            id = store.correct(text, supersedes)
            return Corrected(id, store[id].links)
        case Done():
            return Finished()
        case Invalid(_, reason):
            raise Refused(reason)


def _duplicate(store: Store, text: str, id: str | None, advice: Advice) -> str | None:
    """The document that already says this: equal text needs no judge, a judged one must still be there."""
    same = store.same_text(text, other_than=id)
    if same is not None:
        return same
    judged = advice.duplicate_of if isinstance(advice, Verdict) else None
    return judged if judged != id and judged in store else None


class Environment:
    """A live store: it takes actions, gives observations, and keeps the search engine up to date with every change."""

    def __init__(
        self,
        store: Store,
        engine: SearchEngine,
        judge: Judge | None = None,
        ranking: Ranking = "paper",
        observations: Observations = "paper",
    ) -> None:
        self.store = store
        self.engine = engine
        self.judge = judge or RuleJudge()
        self.ranking = ranking
        self.observations = observations

    @property
    def require_visible_ids(self) -> bool:
        """A pass may name only documents it was shown: where ids are codes, guessing one is no way of finding it."""
        return self.store.coded

    async def step(self, action: Action, role: Role) -> Step:
        """Check an action and carry it out."""
        return await self.carry_out(check(action, role))

    async def carry_out(self, action: Action) -> Step:
        """Advise, apply. A new or edited document is searchable by the very next action."""
        await self.engine.prepare(texts_in(action))
        advice = await self._advise(action)
        if isinstance(advice, Nearest):
            self.store.fetch(advice.ids)
        result = apply(self.store, action, advice)
        self.follow(result)
        judged = advice if isinstance(advice, Verdict) and advice.checks else None
        return Step(action, result, self.observed(result), judged)

    def observed(self, result: Result) -> Observation:
        """Return what an agent is given for a result."""
        self.store.fetch(shown_by(result))
        return observe(result, self.store.look, self.observations, self.store.superseded_by)

    def text_of(self, id: str) -> str:
        return self.store[id].text

    async def _advise(self, action: Action) -> Advice:
        match action:
            case Search(query, page):
                return Nearest(tuple(self.page(query, page)))
            case Add(text) if not self.store.frozen and self.store.same_text(text) is None:
                return await self._judged(text, ())
            case Edit(id, text) if not self.store.frozen and self.store.same_text(text, other_than=id) is None:
                return await self._judged(text, (id,))
        return None

    def page(self, query: str, page: int) -> list[str]:
        """Return the ids on a page of results."""
        if self.ranking == "paper":
            ids = [id for id, _ in self.engine.search(query, (page - 1) * PAGE_SIZE, PAGE_SIZE)]
        else:
            ranked = whole_ranking(lambda offset, limit: self.engine.search(query, offset, limit))
            ids = page_apart(ranked, self._is_authored, page, PAGE_SIZE, MOST_APART)
        return corrections_first(ids, self.store.superseded_by)

    def _is_authored(self, id: str) -> bool:
        return self.store[id].flag == "authored"

    async def _judged(self, text: str, exclude: tuple[str, ...]) -> Verdict:
        return await verdict(text, self.engine.nearest(text, NEIGHBOURS, exclude), self.text_of, self.judge)

    def sync_to(self, store: Store) -> None:
        """Take on another state of the store and bring the search up to date."""
        before, self.store = self.store, store
        for id in store.unlike(before):
            if id not in store:
                self.engine.remove(id)
            elif id not in before or before[id].text != store[id].text:
                self.engine.put(id, store[id].text)

    def follow(self, result: Result) -> None:
        """Bring the search up to date with what an action did to the store."""
        match result:
            case Added(id) | Edited(id) | Corrected(id):
                self.engine.put(id, self.text_of(id))
            case Deleted(id):
                self.engine.remove(id)
            case Merged(_, gone) if gone is not None:
                self.engine.remove(gone)

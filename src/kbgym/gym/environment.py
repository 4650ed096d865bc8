"""Actions on a store: the pure function `apply`, and `Environment`, which applies it to a live store with search.

`apply` uses no files, clock, network or model. Decisions it cannot make itself (the nearest documents of a query,
whether a sentence is a duplicate) are passed as advice: by the search engine and the guard when live, by the trace in a
replay. Both use the same function, so a replay cannot diverge from the original.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    Learnt,
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
    changed_in,
    shown_by,
)
from kbgym.gym.links import page_of_links
from kbgym.gym.observations import Observations, observe
from kbgym.gym.tools import PAGE_SIZE, Role, check
from kbgym.index_keys import RuleJudge, same_key
from kbgym.search.ranking import corrections_first, page_apart, whole_ranking
from kbgym.store import Refused, Store
from kbgym.store.guard import NEIGHBOURS, Judge, SameIndex, Verdict, verdict


class Nearest(msgspec.Struct, frozen=True):
    """Advice for a search: the ids of one page, and the indexes in its reserved slot."""

    ids: tuple[str, ...]
    learnt: tuple[Learnt, ...] = ()


Advice = Nearest | Opened | Verdict | None


def advice_of(result: Result, verdict: Verdict | None) -> Advice:
    """Return the advice that led to a recorded result."""
    match result:
        case Found(ids, _, learnt):
            return Nearest(ids, learnt)
        case Opened(pages=pages, near=near) if pages or near:
            return result
    return verdict


# How a page of results is filled. An index document is a document with links that an agent wrote.
# paper: the best five documents.
# apart: the best five source documents, plus authored ones ranked among them, up to MOST_APART per page.
# slot: the best five that are not index documents; the first page also shows the targets of the best matching index.
Ranking = Literal["paper", "apart", "slot"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)
MOST_APART = 5
SLOTS = 1  # indexes in the slot
CORRECTED = 3  # additional corrections in the slot
_EXAMINED = 20  # matches examined to fill the slot
SLOT_CHARACTERS = 2_000  # for the documents of an index in the slot; at least one is shown
MEMBERS = 5  # documents of an index shown in the slot
SLOT_THRESHOLD = 0.3  # score below which an index is not shown in the slot


class Step(msgspec.Struct, frozen=True):
    """An action, its advice, its result and its observation."""

    action: Action
    result: Result
    observation: Observation
    verdict: Verdict | None = None


class SearchEngine(Protocol):
    """The search engine of an environment. `prepare` embeds texts that will be searched or put.

    `trained` is the engine of the index documents under the ranking `slot`, made by `set_apart`. Its `match` returns
    the best of them with scores that are comparable between queries. `beside` are the documents before and after each
    document on its page of the source.
    """

    @property
    def trained(self) -> TrainedEngine | None: ...
    @trained.setter
    def trained(self, engine: None) -> None: ...
    @property
    def beside(self) -> Mapping[str, tuple[str, ...]]: ...

    async def prepare(self, texts: Iterable[str]) -> None: ...
    def search(self, query: str, offset: int, limit: int) -> list[tuple[str, float]]: ...
    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]: ...
    def put(self, id: str, text: str) -> None: ...
    def remove(self, id: str) -> None: ...
    def set_apart(self, texts: Sequence[tuple[str, str]]) -> None: ...


class TrainedEngine(Protocol):
    """The search engine of the index documents."""

    def match(self, query: str, limit: int) -> list[tuple[str, float]]: ...
    def put(self, id: str, text: str) -> None: ...
    def remove(self, id: str) -> None: ...
    def ids(self) -> Iterable[str]: ...
    def __contains__(self, id: object) -> bool: ...
    def __len__(self) -> int: ...


def texts_in(action: Action) -> tuple[str, ...]:
    """Return the texts of an action that need vectors: those it searches for or writes."""
    match action:
        case Search(text) | Add(text) | Edit(_, text) | Correct(text):
            return (text,)
    return ()


def apply(store: Store, action: Action, advice: Advice = None) -> Result:
    """Carry out a checked action. An action that fails changes nothing; its result gives the reason."""
    try:
        return _apply(store, action, advice)
    except Refused as refusal:
        return Error(str(refusal))


def _apply(store: Store, action: Action, advice: Advice) -> Result:
    match action:
        case Search(_, page):
            return _found(store, page, advice if isinstance(advice, Nearest) else Nearest(()))
        case Read(id, page):
            links = store.get(id).links
            if not isinstance(advice, Opened):
                if page > 1:
                    raise Refused(f"there is no page {page} of the links of {id}.")
                return Opened(id, links)
            if not set(links).issuperset(advice.links) or (links != advice.links and not advice.pages):
                raise Refused(f"{id} has no such links.")
            if not all(other in store for other in advice.near):
                raise Refused("a document beside it is gone.")
            return advice
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
            return _corrected(store, text, supersedes)
        case Done():
            return Finished()
        case Invalid(_, reason):
            raise Refused(reason)


def _corrected(store: Store, text: str, supersedes: tuple[str, ...]) -> Corrected:
    if (same := store.same_text(text)) is not None:
        raise Refused(f"[{same}] says this already.")
    id = store.correct(text, supersedes)
    return Corrected(id, store[id].links)


def _found(store: Store, page: int, near: Nearest) -> Found:
    if not near.ids and page > 1:
        raise Refused(f"there is no page {page}; the results end before it.")
    for one in near.learnt:
        _check_learnt(store, one)
    return Found(tuple(store.get(id).id for id in near.ids), page, near.learnt)


def learnt_from(store: Store, index: str) -> Learnt:
    """Return an index with its first members; corrections precede the documents they supersede."""
    links, first = store.get(index).links, list[str]()
    left = SLOT_CHARACTERS
    for id in links[:MEMBERS]:
        left -= len(store.get(id).text)
        if first and left < 0:
            break
        first.append(id)
    shown = [id for id in corrections_first(first, store.superseded_by) if id != index]
    return Learnt(index, tuple(shown), len(links) - len(first) + len(shown))


def _check_learnt(store: Store, learnt: Learnt) -> None:
    """Raise `Refused` if an index does not link to the documents that a slot shows."""
    links = set(store.get(learnt.index).links)
    added = set(learnt.targets) - links
    if learnt.total != len(links) + len(added) or not added <= set(store.corrections()):
        raise Refused(f"{learnt.index} has other links.")


def _duplicate(store: Store, text: str, id: str | None, advice: Advice) -> str | None:
    """Return the document that duplicates a text: one with equal text, else the judged one if it still exists."""
    same = store.same_text(text, other_than=id)
    if same is not None:
        return same
    judged = advice.duplicate_of if isinstance(advice, Verdict) else None
    return judged if judged != id and judged in store else None


class Environment:
    """A live store that takes actions, returns observations, and updates the search engine after each change."""

    def __init__(
        self,
        store: Store,
        engine: SearchEngine,
        judge: Judge | None = None,
        ranking: Ranking = "paper",
        observations: Observations = "paper",
        same_index: SameIndex = same_key,
    ) -> None:
        self.store = store
        self.engine = engine
        self.judge = judge or RuleJudge()
        self.ranking = ranking
        self.observations = observations
        self.same_index = same_index
        if ranking == "slot" and engine.trained is None:
            engine.set_apart([(id, store[id].text) for id in store.indexes])
        elif ranking != "slot" and engine.trained is not None:
            trained, engine.trained = engine.trained, None
            for id in trained.ids():
                engine.put(id, store[id].text)

    @property
    def require_visible_ids(self) -> bool:
        """Return True if a pass may name only documents it was shown, since ids are codes that could be guessed."""
        return self.store.coded

    async def step(self, action: Action, role: Role) -> Step:
        """Check an action and carry it out."""
        return await self.carry_out(check(action, role))

    async def carry_out(self, action: Action) -> Step:
        """Carry out a checked action. The next action can find a new or edited document."""
        await self.engine.prepare((*texts_in(action), *self._texts_moved(action)))
        advice = await self._advise(action)
        if isinstance(advice, Nearest):
            self.store.fetch((*advice.ids, *(one.index for one in advice.learnt)))
        result = apply(self.store, action, advice)
        self.update_index(result)
        judged = advice if isinstance(advice, Verdict) and advice.checks else None
        return Step(action, result, self.observed(result), judged)

    def observed(self, result: Result) -> Observation:
        """Return the observation of a result."""
        self.store.fetch(shown_by(result))
        return observe(result, self.store.look, self.observations, self.store.superseded_by)

    def text_of(self, id: str) -> str:
        """Return the text of a document."""
        return self.store[id].text

    async def _advise(self, action: Action) -> Advice:
        match action:
            case Search(query, page):
                return Nearest(tuple(self.page(query, page)), self.learnt(query) if page == 1 else ())
            case Read(id, page, about) if id in self.store and (self.observations == "rich" or page > 1 or about):
                found = page_of_links(self.store, id, page, about)
                near = tuple(other for other in self.engine.beside.get(id, ()) if other in self.store)
                if found is None and page == 1 and near:
                    found = Opened(id, self.store[id].links)
                return found and msgspec.structs.replace(found, near=near)
            case Add(text) if not self.store.frozen and self.store.same_text(text) is None:
                return await self._judged(text, ())
            case Edit(id, text) if not self.store.frozen and self.store.same_text(text, other_than=id) is None:
                return await self._judged(text, (id,))
        return None

    def page(self, query: str, page: int) -> list[str]:
        """Return the ids on a page of results."""
        if self.ranking != "apart":
            ids = [id for id, _ in self.engine.search(query, (page - 1) * PAGE_SIZE, PAGE_SIZE)]
        else:
            ranked = whole_ranking(lambda offset, limit: self.engine.search(query, offset, limit))
            ids = page_apart(ranked, self._is_authored, page, PAGE_SIZE, MOST_APART)
        return corrections_first(ids, self.store.superseded_by)

    def learnt(self, query: str) -> tuple[Learnt, ...]:
        """Return the indexes in the slot of the first page of results."""
        if self.engine.trained is None:
            return ()
        tuned = self.store.tuned
        slots, corrections = tuned.get("slots", SLOTS), self.store.corrections()
        hits = self.engine.trained.match(query, _EXAMINED if corrections else slots)
        least = tuned.get("slot_threshold", SLOT_THRESHOLD)
        found = [id for id, score in hits if score >= least]
        kept = {
            *[id for id in found if id not in corrections][:slots],
            *[id for id in found if id in corrections][:CORRECTED],
        }
        return tuple(learnt_from(self.store, id) for id in found if id in kept)

    def _is_authored(self, id: str) -> bool:
        return self.store[id].flag == "authored"

    async def _judged(self, text: str, exclude: tuple[str, ...]) -> Verdict:
        near = self.engine.nearest(text, NEIGHBOURS, exclude)
        return await verdict(text, near, self.text_of, self.judge, self.same_index)

    def sync_to(self, store: Store) -> None:
        """Replace the store with another state and update the search."""
        before, self.store = self.store, store
        for id in store.unlike(before):
            was, now = self._filed(before, id), self._filed(store, id)
            if was is not None and (now is None or was[0] is not now[0]):
                was[0].remove(id)
            if now is not None and was != now:
                now[0].put(id, now[1])

    def _filed(self, store: Store, id: str) -> tuple[SearchEngine | TrainedEngine, str] | None:
        """Return the engine that a document of a store belongs to, and its text."""
        if id not in store:
            return None
        trained = self.engine.trained
        return self.engine if trained is None or id not in store.indexes else trained, store[id].text

    def update_index(self, result: Result) -> None:
        """Update the search after an action."""
        match result:
            case Added(id) | Edited(id) | Corrected(id) if (filed := self._filed(self.store, id)) is not None:
                filed[0].put(id, self.text_of(id))
            case Deleted(gone) | Merged(_, str(gone)):
                trained = self.engine.trained
                (self.engine if trained is None or gone not in trained else trained).remove(gone)
        if self.engine.trained is not None:
            self._move(self.engine, self.engine.trained, result)

    def _move(self, main: SearchEngine, trained: TrainedEngine, result: Result) -> None:
        """Move documents between the engines if an action changed whether they are index documents."""
        indexes = self.store.indexes
        for id in changed_in(result):
            if id in indexes and id not in trained:
                main.remove(id)
                trained.put(id, self.text_of(id))
        if len(trained) > len(indexes):
            for id in [id for id in trained.ids() if id not in indexes]:
                trained.remove(id)
                main.put(id, self.text_of(id))

    def _texts_moved(self, action: Action) -> tuple[str, ...]:
        """Return the texts that an action may move between the engines."""
        if self.engine.trained is None or not isinstance(action, Link | LinkMany | Unlink):
            return ()
        return (self.text_of(action.source),) if action.source in self.store else ()

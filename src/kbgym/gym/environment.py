"""Actions on a store: the pure function `apply`, and `Environment`, which applies it to a live store with search.

`apply` uses no files, clock, network or model. Decisions it cannot make itself (the nearest documents of a query,
whether a sentence is a duplicate) are passed as advice: by the search engine and the guard when live, by the trace in a
replay. Both use the same function, so a replay cannot diverge from the original.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from kbgym.gym import actions
from kbgym.gym.actions import Action, Learnt, Observation, Opened, Result, changed_in, shown_by
from kbgym.gym.links import page_of_links
from kbgym.gym.observations import Observations, observe
from kbgym.gym.tools import PAGE_SIZE, Role, check
from kbgym.index_keys import RuleJudge, same_key
from kbgym.search.ranking import corrections_first, page_apart, whole_ranking
from kbgym.store import Refused, Store
from kbgym.store.guard import NEIGHBOURS, Judge, SameIndex, Verdict, verdict

if TYPE_CHECKING:  # replay uses this module without numpy
    from kbgym.search.engine import Engine


class Nearest(msgspec.Struct, frozen=True):
    """Advice for a search: the ids of one page, and the indexes in its reserved slot."""

    ids: tuple[str, ...]
    learnt: tuple[Learnt, ...] = ()


Advice = Nearest | Opened | Verdict | None


def advice_of(result: Result, verdict: Verdict | None) -> Advice:
    """Return the advice that led to a recorded result."""
    match result:
        case actions.Found(ids, _, learnt):
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


def texts_in(action: Action) -> tuple[str, ...]:
    """Return the texts of an action that need vectors: those it searches for or writes."""
    match action:
        case actions.Search(text) | actions.Add(text) | actions.Edit(_, text) | actions.Correct(text):
            return (text,)
    return ()


def apply(store: Store, action: Action, advice: Advice = None) -> Result:
    """Carry out a checked action. An action that fails changes nothing; its result gives the reason."""
    try:
        return _apply(store, action, advice)
    except Refused as refusal:
        return actions.Error(str(refusal))


def _apply(store: Store, action: Action, advice: Advice) -> Result:
    match action:
        case actions.Search(_, page):
            return _found(store, page, advice if isinstance(advice, Nearest) else Nearest(()))
        case actions.Read(id, page):
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
        case actions.Answer():
            return actions.Answered()
        case actions.Add(text):
            duplicate = _duplicate(store, text, None, advice)
            if duplicate is not None and not store.frozen:
                return actions.Merged(duplicate)
            return actions.Added(store.add(text))
        case actions.Edit(id, text):
            store.get(id)
            duplicate = _duplicate(store, text, id, advice)
            if duplicate is not None:
                store.merge(duplicate, id)
                return actions.Merged(duplicate, gone=id)
            store.edit(id, text)
            return actions.Edited(id)
        case actions.Delete(id):
            store.delete(id)
            return actions.Deleted(id)
        case actions.Link(source, target):
            store.get(target)
            linked = actions.Linked(source, *store.link(source, (target,)))
            if linked.itself:
                raise Refused("a document cannot link to itself.")
            if linked.already:
                raise Refused(f"{source} already links to {target}.")
            return linked
        case actions.LinkMany(source, targets):
            return actions.Linked(source, *store.link(source, targets))
        case actions.Unlink(source, target):
            store.unlink(source, target)
            return actions.Unlinked(source, target)
        case actions.Correct(text, supersedes):
            if (same := store.same_text(text)) is not None:
                raise Refused(f"[{same}] says this already.")
            id = store.correct(text, supersedes)
            return actions.Corrected(id, store[id].links)
        case actions.Done():
            return actions.Finished()
        case actions.Invalid(_, reason):
            raise Refused(reason)


def _found(store: Store, page: int, near: Nearest) -> actions.Found:
    if not near.ids and page > 1:
        raise Refused(f"there is no page {page}; the results end before it.")
    for one in near.learnt:
        links = set(store.get(one.index).links)
        added = set(one.targets) - links  # corrections of linked documents
        if one.total != len(links) + len(added) or not added <= set(store.corrections()):
            raise Refused(f"{one.index} has other links.")
    return actions.Found(tuple(store.get(id).id for id in near.ids), page, near.learnt)


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
        engine: Engine,
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
            case actions.Search(query, page):
                return Nearest(tuple(self.page(query, page)), self.learnt(query) if page == 1 else ())
            case actions.Read(id, page, about) if id in self.store:
                if self.observations != "rich" and page == 1 and not about:
                    return None
                found = page_of_links(self.store, id, page, about)
                near = tuple(other for other in self.engine.beside.get(id, ()) if other in self.store)
                if found is None and page == 1 and near:
                    found = Opened(id, self.store[id].links)
                return found and msgspec.structs.replace(found, near=near)
        return await self.judged(action)

    async def judged(self, action: Action) -> Verdict | None:
        """Return the guard's verdict on a sentence to be written; None for other actions and texts already stored."""
        match action:
            case actions.Add(text):
                exclude: tuple[str, ...] = ()
            case actions.Edit(id, text):
                exclude = (id,)
            case _:
                return None
        if self.store.frozen or self.store.same_text(text, *exclude) is not None:
            return None
        near = self.engine.nearest(text, NEIGHBOURS, exclude)
        return await verdict(text, near, self.text_of, self.judge, self.same_index)

    def page(self, query: str, page: int) -> list[str]:
        """Return the ids on a page of results."""
        if self.ranking != "apart":
            ids = [id for id, _ in self.engine.search(query, (page - 1) * PAGE_SIZE, PAGE_SIZE)]
        else:
            ranked = whole_ranking(lambda offset, limit: self.engine.search(query, offset, limit))
            ids = page_apart(ranked, lambda id: self.store[id].flag == "authored", page, PAGE_SIZE, MOST_APART)
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

    def sync_to(self, store: Store) -> None:
        """Replace the store with another state and update the search."""
        before, self.store = self.store, store
        for id in store.unlike(before):
            was = self._engine_of(before, id) if id in before else None
            now = self._engine_of(store, id) if id in store else None
            if was is not None and was is not now:
                was.remove(id)
            if now is not None and (was is not now or before[id].text != store[id].text):
                now.put(id, store[id].text)

    def _engine_of(self, store: Store, id: str) -> Engine:
        """Return the engine that a document of a store belongs to."""
        trained = self.engine.trained
        return self.engine if trained is None or id not in store.indexes else trained

    def update_index(self, result: Result) -> None:
        """Update the search after an action."""
        match result:
            case actions.Added(id) | actions.Edited(id) | actions.Corrected(id):
                self._engine_of(self.store, id).put(id, self.text_of(id))
            case actions.Deleted(gone) | actions.Merged(_, str(gone)):
                trained = self.engine.trained
                (self.engine if trained is None or gone not in trained else trained).remove(gone)
        if self.engine.trained is not None:
            self._move(self.engine, self.engine.trained, result)

    def _move(self, main: Engine, trained: Engine, result: Result) -> None:
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
        if self.engine.trained is None or not isinstance(action, actions.Link | actions.LinkMany | actions.Unlink):
            return ()
        return (self.text_of(action.source),) if action.source in self.store else ()

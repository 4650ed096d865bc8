"""The general curator: after the gold, it makes the way to the answer short, and knows no grammar and no world.

It finds where the answer stands (`hops.py`) from the reader's pass and searches of its own, and writes a bridge: an
index in the question's own words that links the documents of every page on the way. Where the reader had them within
two actions it writes nothing. With an agenda it then completes pages, fields and names, one after the other. An index
links only what its words claim, and one whose documents cannot all be found within the budget waits for another pass.
"""

from __future__ import annotations

from kbgym.agents.general.hops import Findings
from kbgym.agents.general.keys import (
    TextKey,
    bare,
    belongs,
    holds,
    index_text,
    key_of_question,
    names_in,
    page_of,
    plain,
    query_of,
    titled,
)
from kbgym.agents.general.text import content_words, look_at
from kbgym.gym.actions import Action, Add, Done, LinkMany, Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import Backward, IndexTask, Lookup, PlannedPolicy, Steps, View
from kbgym.gym.tools import MOST_TARGETS

SUFFICED = 2  # actions after which nothing is to be gained
PATIENCE = 1  # pages without a member that end a search
MOST_OF_PAGE = 15  # documents of one page that a bridge links
MOST_NAMES = 4  # names that are looked up for one question
MOST_SEARCHED = 4  # pages of results that one page of the source may take

Working = Steps[None]


class GeneralCurator(PlannedPolicy):
    """One pass: the bridge of its question, then the agenda where the task has one."""

    def __init__(self) -> None:
        super().__init__(self._plan_pass, lambda view: Done())
        self._remaining = 0

    async def act(self, view: View) -> Action:
        self._remaining = view.remaining
        return await super().act(view)

    def _plan_pass(self, view: View) -> Steps[Action]:
        task = view.task
        assert isinstance(task, Backward)
        yield from self._bridge(task)
        for index_task in task.agenda:
            if self._remaining <= index_task.cost:
                continue
            yield from self._complete(index_task)
        return Done()

    # -- the question's own way ---------------------------------------------------------------------------------------

    def _bridge(self, task: Backward) -> Working:
        found = Findings(task.question, task.golds)
        for turn in task.forward:
            found.take(turn)
        if (label := found.field()) is not None:
            yield from self._complete(_errand(TextKey("field", label), found))
            return
        if self._sufficed(found):
            return
        yield from self._look_up(found)
        hops = found.hops()
        for page in hops:
            yield from self._whole_page(page, found)
        members = self._evidence(found, hops)
        if len(members) > 1 and self._remaining > 2 + len(members) // MOST_TARGETS:
            yield from self._write(key_of_question(task.question), members)

    def _sufficed(self, found: Findings) -> bool:
        """Whether two actions showed all that was seen of the way and speaks of the question, and the gold."""
        pages, hops = found.pages(), found.hops()
        on_way = [id for page in hops for id in pages[page] if found.speaks(id)]
        golds = [id for id in on_way if found.has_gold(found.texts[id])]
        return bool(golds) and all(found.first[id] <= SUFFICED for id in on_way)

    def _look_up(self, found: Findings) -> Working:
        """Searches that may show the pages on the way: the question with its gold, its names, what those lead to."""
        gold = found.golds[0] if found.golds else ""
        if gold:
            yield from self._search(f"{found.question} {gold}", found)
            if not any(map(found.is_gold, found.pages())):
                yield from self._search(gold, found)
        named = found.named(found.pages())
        for name in found.asked_names[:MOST_NAMES]:
            if not any(holds(page, name) for page in named):
                yield from self._search(name, found)
        # Names that the beginning leads to and that have no page yet.
        for name in self._leads(found)[:MOST_NAMES]:
            left = [word for word in found.wanted if word not in content_words(name)][:5]
            yield from self._search(" ".join([name, *left]), found)

    def _leads(self, found: Findings) -> list[str]:
        pages = found.pages()
        known = {bare(page).casefold() for page in pages}
        asked = [frozenset(content_words(name)) for name in found.asked_names]
        worth: dict[str, float] = {}
        for page in found.hops():
            for id in pages[page]:
                text = found.texts[id]
                for name in names_in(look_at(text).body):
                    words = frozenset(content_words(name))
                    if name.casefold() not in known and words and not any(words <= one for one in asked):
                        worth[name] = max(worth.get(name, 0.0), found.relevance(look_at(text).words))
        return sorted(worth, key=lambda name: (-worth[name], name))

    def _search(self, query: str, found: Findings, page: int = 1) -> Steps[list[tuple[str, str]]]:
        if self._remaining <= 4:
            return []
        shown = documents((yield Search(query, page)))
        found.see(shown)
        return shown

    def _whole_page(self, page: str, found: Findings) -> Working:
        """See what else stands on a page."""
        for number in range(1, MOST_SEARCHED + 1):
            shown = yield from self._search(page, found, number)
            if not any(page_of(text) == page for _, text in shown):
                return

    def _evidence(self, found: Findings, hops: list[str]) -> list[str]:
        """The documents of the pages on the way, at most so many of each: those about the question first."""
        pages = found.pages()
        members: dict[str, None] = {}
        for page in hops:
            ranked = sorted(pages.get(page, ()), key=lambda id: -found.worth(id))
            kept = [
                id for id in ranked if titled(found.texts[id]) or found.speaks(id) or self._leads_on(id, hops, found)
            ]
            members.update(dict.fromkeys(kept[:MOST_OF_PAGE]))
        return list(members)

    def _leads_on(self, id: str, hops: list[str], found: Findings) -> bool:
        """Whether a document names another page on the way."""
        own = page_of(found.texts[id])
        return any(holds(found.texts[id], bare(page)) for page in hops if page != own)

    # -- writing ------------------------------------------------------------------------------------------------------

    def _write(self, text: str, members: list[str]) -> Working:
        shown = documents((yield Add(text)))
        if shown and shown[0][1] == text:
            yield from self._link(shown[0][0], members)

    def _link(self, index: str, members: list[str]) -> Working:
        members = [id for id in members if id != index]
        for start in range(0, len(members), MOST_TARGETS):
            if self._remaining > 1:
                yield LinkMany(index, tuple(members[start : start + MOST_TARGETS]))

    # -- the agenda ---------------------------------------------------------------------------------------------------

    def _complete(self, index_task: IndexTask) -> Working:
        key = TextKey(index_task.kind, index_task.value)  # type: ignore[arg-type]
        shown = dict(index_task.known)
        for lookup in index_task.lookups:
            number, empty = lookup.page, 0
            while empty < PATIENCE:
                if self._remaining <= 1:
                    return
                found = documents((yield Search(lookup.query, number)))
                new = [id for id, text in found if belongs(text, key) and id not in shown]
                shown.update((id, text) for id, text in found)
                empty = 0 if new else empty + 1
                number += 1
        members = [id for id, text in shown.items() if belongs(text, key) and id not in index_task.linked]
        if not members or self._remaining <= 2:
            return
        if index_task.index is not None:
            yield from self._link(index_task.index, members)
        elif len(members) > 1:
            yield from self._write(index_task.text, members)


def _errand(key: TextKey, found: Findings) -> IndexTask:
    """What is known of a key nobody has worked on, from one pass."""
    text = index_text(key)
    index = next((id for id, said in found.texts.items() if plain(said) == plain(text)), None)
    known = tuple((id, said) for id, said in found.texts.items() if belongs(said, key))
    return IndexTask(key.kind, key.value, "named", known, (Lookup(query_of(key)),), index, "", text)

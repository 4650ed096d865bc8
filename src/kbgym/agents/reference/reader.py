"""The reference reader: a rule-based reader that uses only what the tools return.

It parses the question, gathers the facts for each part, and answers from memory. To learn a set it searches with the
words of an index for it. If an index is among the results, it reads that and trusts it as complete; otherwise it pages
until a page contains no member. In stores whose sentences list all values ("The sons of X are A, B."), one page is
enough. With one action left it gives the best answer it has.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbgym.agents.reference.derived import far_side, first_step
from kbgym.agents.reference.language import ATTRIBUTES, Fact, facts, index_text, is_index
from kbgym.agents.reference.memory import Memory
from kbgym.agents.reference.questions import (
    Both,
    Count,
    CountEach,
    Either,
    Having,
    NamedPerson,
    Names,
    Oldest,
    People,
    Query,
    Related,
    Value,
    parse_question,
)
from kbgym.agents.reference.searching import listing_query, queries_about, query_for
from kbgym.gym.actions import Action, Answer, Read, Search
from kbgym.gym.observations import documents
from kbgym.gym.policy import PlannedPolicy, Steps, View
from kbgym.index_keys import IndexKey
from kbgym.index_keys.vocabulary import GENDERED, PATHS, words_of

# Up to this many candidates, looking up each one is cheaper than enumerating a second set.
FEW = 2
# Number of pages of one search to read before accepting an empty answer.
FAR = 3

Gathering = Steps[None]
Shown = tuple[str, str]
_SINGLE = {*ATTRIBUTES, "spouse", "husband", "wife", "father", "mother"}


class ReferenceReader(PlannedPolicy):
    def __init__(self) -> None:
        super().__init__(self._plan_pass, lambda view: Answer(self.best(view)))
        self.memory = Memory()
        self._read: set[str] = set()
        self._starting: set[str] = set()
        self._learnt: set[tuple[str, str]] = set()
        self._doubts: dict[tuple[str, str], int] = {}
        self._searched: set[tuple[str, int]] = set()
        self._headings: dict[tuple[str, ...], str] = {}  # results that state nothing, and where they may lead

    def _plan_pass(self, view: View) -> Steps[Action]:
        query = parse_question(view.task.question)
        if query is None:
            observation = yield Search(view.task.question)
            found = documents(observation)
            return Answer(found[0][1] if found else "unknown")
        yield from self._gather_query(query)
        yield from self._try_harder(query)
        return Answer(self._answer(query))

    def best(self, view: View) -> str:
        query = parse_question(view.task.question)
        return "unknown" if query is None else self._answer(query)

    # -- answering from memory ----------------------------------------------------------------------------------------

    def _answer(self, query: Query) -> str:
        memory = self.memory
        match query:
            case Names(of, joiner):
                people = memory.solve(of)
                if not people and isinstance(of, Both):
                    people = memory.solve(of.one)[:1]
                return joiner.join(sorted(people)) or "unknown"
            case Value(attribute, of):
                values = [value for one in memory.solve(of) for value in memory.related(attribute, one)]
                return ", ".join(sorted(set(values))) or "unknown"
            case Count(of):
                return str(len(memory.solve(of)))
            case CountEach(relation, of):
                people = memory.solve(of)
                learnt = [one for one in people if (relation, one) in self._learnt]
                counts = {str(len(memory.related(relation, one))) for one in learnt or people}
                return ", ".join(sorted(counts)) or "unknown"

    # -- gathering -----------------------------------------------------------------------------------------------------

    def _gather_query(self, query: Query) -> Gathering:
        if (step := first_step(query)) is not None:
            yield from self._gather(step[1])
            self._starting.update(self.memory.solve(step[1])[:FEW])
        yield from self._gather(query.of)
        match query:
            case Value(attribute, of):
                yield from self._each(attribute, self.memory.solve(of))
            case CountEach(relation, of):
                yield from self._each(relation, self.memory.solve(of))

    def _each(self, relation: str, people: Iterable[str], then: str = "") -> Gathering:
        for person in people:
            yield from self._lookup(relation, person, then)
            self._learnt.add((relation, person))

    def _gather(self, people: People, then: str = "") -> Gathering:
        """Find the people. `then` is the attribute asked of them next, which an index may give at once."""
        match people:
            case NamedPerson():
                return
            case Having(attribute, value):
                yield from self._enumerate(IndexKey(attribute, value, then))
            case Related(relation, of):
                yield from self._gather(of)
                yield from self._each(relation, self.memory.solve(of), then)
            case Both(one, other):
                yield from self._gather(one, other.attribute if isinstance(other, Having) else then)
                candidates = self.memory.solve(one)
                if candidates and isinstance(other, Having):
                    yield from self._narrow(candidates, IndexKey(other.attribute, other.value))
                elif candidates:
                    yield from self._gather(other)
            case Either(one, other):
                yield from self._gather(one)
                yield from self._gather(other)
            case Oldest(of):
                yield from self._gather(of, "born")
                yield from self._each("born", self.memory.solve(of))

    def _narrow(self, candidates: list[str], key: IndexKey) -> Gathering:
        """Find the candidates with an attribute: individually if they are few, else by enumerating the attribute."""
        unknown = [person for person in candidates if not self.memory.related(key.kind, person)]
        if len(unknown) <= FEW:
            yield from self._each(key.kind, unknown)
        else:
            yield from self._enumerate(key)

    def _enumerate(self, key: IndexKey) -> Gathering:
        """Find everyone with an attribute; an index that also gives the attribute asked next is read first."""
        further, key = key, key.base
        if key in self.memory.whole_keys:
            return
        page, query = 1, index_text(key) if key.kind == "born" else query_for(key)
        while True:
            found = yield from self._search(query, page)
            if further.then and (stated := (yield from self._read_index(found, further))):
                self.memory.credit(key, (fact.subject for fact in stated))
                break
            if not found or (yield from self._read_index(found, key)):
                break
            stated = _stated(found)
            member = any(fact.relation == key.kind and fact.value == key.value for fact in stated)
            # Indexes of other keys alone say nothing about the members; nor does a page before the first member.
            if stated and not member and self.memory.having(key):
                break
            if key.kind == "born":
                if member:  # people seldom share a birthday, and embeddings do not sort dates
                    break
                query, page = query_for(key), page if query == query_for(key) else 0
            page += 1
        self.memory.whole_keys.add(key)

    def _lookup(self, relation: str, person: str, then: str = "") -> Gathering:
        """Find everyone (or the value) related to a person."""
        derived = relation in PATHS
        if self._is_known(relation, person) or (yield from self._open_heading(relation, person, then)):
            return
        # Derived relations have indexes only where questions start from them; elsewhere a search is useless.
        pointless = derived and self.memory.lists and person not in self._starting
        for query in [] if pointless else queries_about(relation, person):
            page, more = 1, True
            while more:
                if self._is_known(relation, person):
                    return
                if self.memory.lists and not derived:
                    yield from self._look_once(relation, person)
                    return
                found = yield from self._search(query, page)
                if self._is_known(relation, person) or (yield from self._trust(found, relation, person, then)):
                    return
                more = self._brings(found, relation, person)
                page += 1
            if self.memory.related(relation, person) or (self.memory.lists and derived):
                break
        if self.memory.lists and not derived:
            yield from self._look_once(relation, person)
        elif not self.memory.related(relation, person) or derived:
            yield from self._derive(relation, person)

    def _open_heading(self, relation: str, person: str, then: str) -> Steps[bool]:
        """Open a document that bears the person's name and was shown before; return True if that settled it.

        Single values are as cheap to search for, and derived relations are walked instead.
        """
        id = self._headings.get(words_of(person))
        if id is None or relation in ATTRIBUTES or relation in PATHS:
            return False
        return (yield from self._trust([(id, person)], relation, person, then))

    def _look_once(self, relation: str, person: str) -> Gathering:
        """Read one page of a store that lists.

        Read a second page for an attribute, which everyone has, and if a related person appears in no list.
        """
        query = listing_query(relation, person)
        for page in (1, 2):
            if (query, page) not in self._searched:
                found = yield from self._search(query, page)
                if self._is_known(relation, person) or (yield from self._trust(found, relation, person)):
                    return
            if relation not in ATTRIBUTES and not self.memory.unlisted(relation, person):
                break
        self._doubts[relation, person] = page + 1
        self.memory.settle_list(relation, person)

    def _try_harder(self, query: Query) -> Gathering:
        """Repeat searches that stopped after one page while the question has no answer yet."""
        while self._doubts and self._answer(query) in ("unknown", "0"):
            (relation, person), page = next(iter(self._doubts.items()))
            del self._doubts[relation, person]
            known = self.memory.related(relation, person)
            yield from self._search(listing_query(relation, person), page)
            if self.memory.related(relation, person) != known:
                yield from self._gather_query(query)
            elif page < FAR:
                self._doubts[relation, person] = page + 1

    def _is_known(self, relation: str, person: str) -> bool:
        """Return True if nothing remains to be learnt: complete, read in an index, or a known single value."""
        memory = self.memory
        if memory.is_settled(relation, person) or memory.is_listed(relation, person):
            return True
        if person in memory.whole_people and (relation in _OWN or (memory.lists and relation not in PATHS)):
            return True
        found = len(memory.related(relation, person)) if relation not in PATHS else 0
        return (relation in _SINGLE and found > 0) or (memory.lists and relation == "parent" and found == 2)

    def _derive(self, relation: str, person: str) -> Gathering:
        """Walk a derived relation over the relations that documents state."""
        if (steps := PATHS.get(relation)) is not None:
            reached = [person]
            for step in steps:
                yield from self._each(step, reached)
                reached = list(dict.fromkeys(other for one in reached for other in self.memory.related(step, one)))
        elif relation == "sibling":
            yield from self._lookup("parent", person)
            yield from self._each("child", self.memory.related("parent", person))
        elif relation in GENDERED:
            general, _ = GENDERED[relation]
            yield from self._lookup(general, person)
            yield from self._each("gender", self.memory.related(general, person))

    def _brings(self, found: list[Shown], relation: str, person: str) -> bool:
        """Return True if another page is worth an action: this one held a member, and did not state all at once."""
        stated = _stated(found)
        if found and not stated:  # only indexes of other keys, which say nothing about the members
            return True
        members = set(self.memory.related(relation, person))
        belongs = [
            fact
            for fact in stated
            if (fact.subject == person and fact.value in members) or (fact.value == person and fact.subject in members)
        ]
        return bool(belongs) and not any(fact.whole and fact.relation == relation for fact in belongs)

    # -- tools ---------------------------------------------------------------------------------------------------------

    def _search(self, query: str, page: int) -> Steps[list[Shown]]:
        observation = yield Search(query, page)
        self._searched.add((query, page))
        found = documents(observation)
        self._take_in(found)
        return found

    def _take_in(self, shown: list[Shown]) -> list[Fact]:
        """Record and return the facts of documents, and remember those without facts."""
        for id, text in shown:
            if not facts(text):
                self._headings.setdefault(words_of(text), id)
        return [fact for _, text in shown for fact in self.memory.learn(text)]

    def _read_index(self, found: list[Shown], key: IndexKey) -> Steps[list[Fact]]:
        """Read the index of a key if the page shows one; return the facts of its documents."""
        for id in (id for id, text in found if is_index(text, key) and id not in self._read):
            self._read.add(id)
            if stated := self._take_in(documents((yield Read(id)))[1:]):
                return stated
        return []

    def _trust(self, found: list[Shown], relation: str, person: str, then: str = "") -> Steps[bool]:
        """Return True if an index of the relation, or of the person, made the relation complete."""
        if then and (stated := (yield from self._read_index(found, IndexKey(relation, person, then)))):
            self.memory.settle(relation, person, dict.fromkeys(fact.subject for fact in stated))
            return True
        if relation not in ATTRIBUTES and (stated := (yield from self._read_index(found, IndexKey(relation, person)))):
            if relation not in PATHS:
                members = self.memory.related(relation, person)
            else:
                members = [far_side(fact, relation) for fact in stated]
            self.memory.settle(relation, person, dict.fromkeys(members))
            return True
        if (yield from self._read_index(found, IndexKey("person", person))):
            self.memory.whole_people.add(person)
            return self._is_known(relation, person)
        return False


# Statements in a person's own documents about that person.
_OWN = {"friend", "child", "spouse", "parent", *ATTRIBUTES}


def _stated(found: list[Shown]) -> list[Fact]:
    return [fact for _, text in found for fact in facts(text)]

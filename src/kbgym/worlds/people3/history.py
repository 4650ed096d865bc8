"""The reports of a v3 world, by several sources about a population over the years.

Base reports come first, then changes, then rounds of updates. An entry holds the reports of one document.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from datetime import date
from random import Random
from typing import NamedTuple

import msgspec

from kbgym.chronicle.timeline import ATTRIBUTES, PARENTS, SOURCES, DatedReport
from kbgym.errors import BadInput
from kbgym.worlds.people.population import Person, vocabulary

LARGEST_KEY, SMALLEST_KEY = 500, 5
UNUSED = 20  # values of each attribute that occur in no document
BASE, CHANGES, LATER, FIRST_UPDATE = (2012, 2019), (2020, 2024), (2025, 2027), 2028
_VOCABULARY = {"job": ("jobs", 2), "hobby": ("hobbies", 2), "city": ("cities", 1)}
_WEIGHTS = (5, 3, 2)  # relative frequency of reports by source
Pair = tuple[str, str]
_DISPUTED, _WITHDRAWN, _RENAMED = 0.1, 0.15, 0.15


class Dials(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The dials of a world.

    Attributes:
        depth: The longest path of a question, in steps.
        breadth: The mean number of people in a city; jobs and hobbies have half as many.
        passage: The maximum number of facts in a document.
        time: The share of facts that later documents supersede or withdraw.
        sources: The number of sources; two or more disagree on some facts.
        rounds: The rounds of updates after the world's initial documents.
        wordings: "all", or "open" for training worlds, which omit the held-out half.
    """

    depth: int = 3
    breadth: int = 20
    passage: int = 1
    time: float = 0.2
    sources: int = 3
    rounds: int = 2
    wordings: str = "all"

    def __post_init__(self) -> None:
        limits = {"depth": (1, 5), "breadth": (5, 500), "passage": (1, 8), "time": (0.05, 0.4), "sources": (1, 3)}
        for name, (least, most) in {**limits, "rounds": (0, 5)}.items():
            if not least <= getattr(self, name) <= most:
                raise BadInput(f"{name} must be between {least} and {most}, not {getattr(self, name)}.")
        if self.wordings not in ("all", "open"):
            raise BadInput(f'wordings must be "all" or "open", not {self.wordings!r}.')


class HistoryEntry(NamedTuple):
    """The reports of one document, all about one person, of one date and source."""

    reports: tuple[DatedReport, ...]
    round: int = 0


class Values(NamedTuple):
    """The values of each attribute, repeated by frequency, and values that occur in no document."""

    deck: dict[str, list[str]]
    unused: dict[str, list[str]]


def values_for(people: int, dials: Dials) -> Values:
    """Return the values of a population: a few large keys and many small ones."""
    deck: dict[str, list[str]] = {}
    unused: dict[str, list[str]] = {}
    for attribute, (table, factor) in _VOCABULARY.items():
        count = max(4, people * factor // dials.breadth)
        found = vocabulary(table, count + UNUSED)
        weights = [1_000_000 // (place + 3) for place in range(count)]
        left = max(0, people - SMALLEST_KEY * count)
        sizes = [min(LARGEST_KEY, SMALLEST_KEY + left * weight // sum(weights)) for weight in weights]
        deck[attribute] = [value for value, size in zip(found, sizes, strict=False) for _ in range(size)]
        unused[attribute] = found[count:]
    return Values(deck, unused)


class Historian:
    """Generator of the entries of a world, period by period."""

    def __init__(self, people: Sequence[Person], dials: Dials, seed: int) -> None:
        self._people = people
        self._name = {person.id: person.name for person in people}
        self.asked = tuple(person.name for person in people if not person.distractor)
        self.genders = {person.name: person.gender for person in people}
        self.dials = dials
        self._rng = Random(f"{seed}:v3:history")
        self._sources = SOURCES[: dials.sources]
        self.values = values_for(len(people), dials)
        self._taken: dict[tuple[str, str], list[str]] = {}  # values by attribute and person, in order of time
        self._alias = dict(self._aliases())

    def entries(self) -> Iterator[HistoryEntry]:
        """Yield all entries in order of periods."""
        friendships = yield from self._base()
        share = 2.25 * self.dials.time
        yield from self._changes(CHANGES, share, 0)
        friendships = yield from self._ends(friendships, self.dials.time, CHANGES, 0)
        yield from self._changes(LATER, share / 3, 0)
        for number in range(1, self.dials.rounds + 1):
            year = FIRST_UPDATE + number - 1
            yield from self._changes((year, year), 0.1, number)
            friendships = yield from self._ends(friendships, 0.03, (year, year), number)

    # -- base reports -------------------------------------------------------------------------------------------------

    def _base(self) -> Generator[HistoryEntry, None, list[Pair]]:
        """Yield the first reports of all people; return the friendships as pairs of names."""
        rng = self._rng
        friendships: list[Pair] = []
        decks = {attribute: list(deck) for attribute, deck in self.values.deck.items()}
        for deck in decks.values():
            deck += [rng.choice(deck) for _ in range(max(0, len(self._people) - len(deck)))]
            rng.shuffle(deck)
        for place, person in enumerate(self._people):
            told = [("born", person.born)]
            for attribute in ATTRIBUTES:
                told.append((attribute, decks[attribute][place]))
                self._taken[attribute, person.name] = [decks[attribute][place]]
            if person.spouse is not None and person.id < person.spouse:
                told.append(("spouse", self._name[person.spouse]))
            told += [(kind, self._name[parent]) for kind, parent in zip(PARENTS, person.parents, strict=False)]
            for friend in person.friends:
                if (int(person.id[1:]) + int(friend[1:])) % 2 == (person.id < friend):  # stated from one end
                    told.append(("friend", self._name[friend]))
                    friendships.append((person.name, self._name[friend]))
            yield from self._written(person, told, BASE, 0)
            yield from self._alias_entry(person)
        return friendships

    def _written(
        self, person: Person, told: list[tuple[str, str]], years: tuple[int, int], number: int, ended: bool = False
    ) -> Iterator[HistoryEntry]:
        """Yield entries of up to `passage` reports on a person; another source of that date disputes some."""
        rng, most = self._rng, self.dials.passage
        rng.shuffle(told)
        while told:
            size = rng.randint(min(3, most), most)
            chunk, told = told[:size], told[size:]
            chunk.sort(key=lambda one: one[0] not in (*ATTRIBUTES, "born"))  # a page begins with its subject
            day, source = self._day(years), self._source()
            alias = self._alias.get(person.name, ("", ""))[1]
            used = alias if alias and chunk[0][0] != "born" and rng.random() < 0.5 else ""
            made = [
                DatedReport(kind, person.name, value, day, source, ended=ended, alias=used) for kind, value in chunk
            ]
            yield HistoryEntry(tuple(made), number)
            for report in made:
                disputable = report.relation in ATTRIBUTES and not ended and len(self._sources) > 1
                if disputable and rng.random() < _DISPUTED:
                    other = rng.choice([one for one in self._sources if one != source])
                    losing = SOURCES.index(other) > SOURCES.index(source)
                    value = self._new_value(report.relation, person.name, front=losing)
                    yield HistoryEntry((DatedReport(report.relation, person.name, value, day, other),), number)

    def _alias_entry(self, person: Person) -> Iterator[HistoryEntry]:
        if person.name in self._alias:
            kind, alias = self._alias[person.name]
            yield HistoryEntry((DatedReport(kind, person.name, alias, self._day(BASE), self._source()),))

    def _aliases(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Yield people with a second name, and that name; names are unique."""
        taken = {person.name for person in self._people}
        shortened = [f"{person.name[0]}. {person.name.split(' ')[1]}" for person in self._people]
        often = Counter(shortened)
        for person, short in zip(self._people, shortened, strict=True):
            if person.distractor or self._rng.random() >= _RENAMED:
                continue
            first, last = person.name.split(" ")
            short_first = re.match(r"[^aeiou]*[aeiou]+[^aeiou]", first.lower())
            kinds = {"nickname": f"{f'{short_first[0] if short_first else first}ie'.capitalize()} {last}"}
            if often[short] == 1:
                kinds["initial"] = short
            if person.gender == "female" and person.spouse is not None:
                kinds["married"] = f"{first} {self._name[person.spouse].split(' ')[1]}"
            kind = self._rng.choice(list(kinds))
            if kinds[kind] not in taken:
                taken.add(kinds[kind])
                yield person.name, (kind, kinds[kind])

    # -- changes ------------------------------------------------------------------------------------------------------

    def _changes(self, years: tuple[int, int], share: float, number: int) -> Iterator[HistoryEntry]:
        """Yield reports of new values and withdrawals for a share of all attributes."""
        for person in self._people:
            new: list[tuple[str, str]] = []
            gone: list[tuple[str, str]] = []
            for attribute in ATTRIBUTES:
                if self._rng.random() >= share:
                    continue
                known = self._taken[attribute, person.name]
                if known[-1] and self._rng.random() < _WITHDRAWN:
                    gone.append((attribute, known[-1]))
                    known.append("")
                else:
                    new.append((attribute, self._new_value(attribute, person.name)))
            yield from self._written(person, new, years, number)
            yield from self._written(person, gone, years, number, ended=True)

    def _ends(
        self, friendships: Sequence[Pair], share: float, years: tuple[int, int], number: int
    ) -> Generator[HistoryEntry, None, list[Pair]]:
        """Yield reports that end a share of friendships; return the others."""
        left = []
        for pair in friendships:
            if self._rng.random() < share:
                yield HistoryEntry(
                    (DatedReport("friend", *pair, self._day(years), self._source(), ended=True),), number
                )
            else:
                left.append(pair)
        return left

    def _new_value(self, attribute: str, person: str, front: bool = False) -> str:
        """Return a value never reported for this person; a value that does not count goes first."""
        known, deck = self._taken[attribute, person], self.values.deck[attribute]
        value = self._rng.choice(deck)
        while value in known:
            value = self._rng.choice(deck)
        known.insert(0 if front else len(known), value)
        return value

    def _day(self, years: tuple[int, int]) -> str:
        first, last = date(years[0], 1, 1).toordinal(), date(years[1], 12, 31).toordinal()
        return date.fromordinal(self._rng.randint(first, last)).isoformat()

    def _source(self) -> str:
        return self._rng.choices(self._sources, _WEIGHTS[: len(self._sources)])[0]

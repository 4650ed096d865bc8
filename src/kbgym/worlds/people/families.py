"""Families of three generations with birthdates: founders, their children and grandchildren.

Every child has a mother and a father, a couple has at most four children, and the middle generation marries within
itself but never a sibling. People are numbers here; `population` gives them names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

MOST_CHILDREN = 4
YEAR = 365.25
_LAST_FOUNDER = 706_579  # ordinal of July 9, 1935: the youngest founder
_ADULT = round(18 * YEAR)


@dataclass(slots=True)
class Draft:
    """A person under construction; relations are positions in the list of drafts."""

    gender: str
    born: int
    distractor: bool = False
    spouse: int | None = None
    parents: tuple[int, ...] = ()
    children: list[int] = field(default_factory=list)
    friends: list[int] = field(default_factory=list)
    first: str = ""
    last: str = ""
    job: str = ""
    hobby: str = ""
    city: str = ""


class Calendar:
    """Unique birthdates. The founders' window widens with the population so that there are enough days."""

    def __init__(self, people: int, rng: Random) -> None:
        self.first_founder = _LAST_FOUNDER - round(max(25, people / 200) * YEAR)
        self._used: set[int] = set()
        self._rng = rng

    def day(self, earliest: int, latest: int) -> int:
        """Return a random unused day of a range, or the next free day if the range is crowded."""
        day = self._rng.randrange(earliest, latest + 1)
        for _ in range(20):
            if day not in self._used:
                break
            day = self._rng.randrange(earliest, latest + 1)
        while day in self._used:  # a later day keeps a child younger than its parents
            day += 1
        self._used.add(day)
        return day

    def founder(self, years_later: int = 0) -> int:
        """Return a day of the founders' window, shifted by a number of years."""
        shift = round(years_later * YEAR)
        return self.day(self.first_founder + shift, _LAST_FOUNDER + shift)

    def any_day(self) -> int:
        """Return a day of any of the three generations."""
        return self.day(self.first_founder, _LAST_FOUNDER + round(55 * YEAR))


def families(people: int, rng: Random, calendar: Calendar) -> list[Draft]:
    """Return exactly `people` drafts, founders first, with parents, children and spouses set."""
    drafts: list[Draft] = []
    couples = [_founders(drafts, calendar, rng) for _ in range(max(1, round(0.148 * people)))]
    for _ in range(round(0.02 * people)):
        drafts.append(Draft(_gender(rng), calendar.founder()))

    middle = len(drafts)
    newcomers = round(0.02 * people)
    for parents in _places(couples, round(0.335 * people), 1, rng):
        _child(drafts, parents, rng, calendar)
    for _ in range(newcomers):
        drafts.append(Draft(_gender(rng), calendar.founder(25)))
    couples = _marriages(drafts, range(middle, len(drafts)), rng)

    for parents in _places(couples, people - len(drafts), 0, rng):
        _child(drafts, parents, rng, calendar)
    while len(drafts) < people:  # a small world may have too few couples
        drafts.append(Draft(_gender(rng), calendar.founder(45)))
    return drafts


def _gender(rng: Random) -> str:
    return "female" if rng.random() < 0.5 else "male"


def _founders(drafts: list[Draft], calendar: Calendar, rng: Random) -> tuple[int, int]:
    """Add a wife and a husband born within five years of each other."""
    wife = Draft("female", calendar.founder())
    husband = Draft("male", calendar.day(wife.born - round(5 * YEAR), wife.born + round(3 * YEAR)))
    drafts += [wife, husband]
    return _marry(drafts, len(drafts) - 2, len(drafts) - 1)


def _marry(drafts: list[Draft], wife: int, husband: int) -> tuple[int, int]:
    drafts[wife].spouse, drafts[husband].spouse = husband, wife
    return wife, husband


def _places(couples: list[tuple[int, int]], children: int, least: int, rng: Random) -> list[tuple[int, int]]:
    """Return the parents of each child: `least` children per couple, the rest at random up to the maximum."""
    every = [couple for couple in couples for _ in range(least)]
    more = [couple for couple in couples for _ in range(MOST_CHILDREN - least)]
    rng.shuffle(more)
    return (every + more)[: max(0, children)]


def _child(drafts: list[Draft], parents: tuple[int, int], rng: Random, calendar: Calendar) -> None:
    adult = max(drafts[parent].born for parent in parents) + _ADULT
    for parent in parents:
        drafts[parent].children.append(len(drafts))
    drafts.append(Draft(_gender(rng), calendar.day(adult, adult + round(20 * YEAR)), parents=parents))


def _marriages(drafts: list[Draft], generation: range, rng: Random) -> list[tuple[int, int]]:
    """Marry nine in ten people to a person of similar age who is not a sibling."""
    ages = {number: drafts[number].born + rng.randrange(round(4 * YEAR)) for number in generation}
    by_age = sorted((number for number in generation if rng.random() < 0.95), key=lambda number: (ages[number], number))
    women = [number for number in by_age if drafts[number].gender == "female"]
    men = [number for number in by_age if drafts[number].gender == "male"]
    for side in (women, men):
        while len(side) > min(len(women), len(men)):
            side.pop(rng.randrange(len(side)))
    couples = []
    for place, wife in enumerate(women):
        if _siblings(drafts, wife, men[place]) and place + 1 < len(men):
            men[place], men[place + 1] = men[place + 1], men[place]
        if not _siblings(drafts, wife, men[place]):
            couples.append(_marry(drafts, wife, men[place]))
    return couples


def _siblings(drafts: list[Draft], one: int, other: int) -> bool:
    return drafts[one].parents != () and drafts[one].parents == drafts[other].parents

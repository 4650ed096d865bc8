"""The population of a people world: families, friends, names, jobs, hobbies, cities and distractors.

`population(people, seed)` returns values only; documents and questions are made elsewhere. Each key fits in one index:
a city, job or hobby has at most 36 members and a person at most ten friends, unless the world is crowded. Names and
values come from `vocabulary.toml`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Sequence
from datetime import date
from functools import cache
from importlib.resources import files
from itertools import product
from random import Random
from typing import Any

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.people.families import Calendar, Draft, families

FEWEST, MOST = 20, 150_000
LARGEST_KEY = 36
MOST_FRIENDS = 10
FRIENDS = 4  # on average
CLUSTERING = 0.25  # share of friendships made with a friend's friend
DISTRACTORS = 0.1


class Person(msgspec.Struct, frozen=True):
    """A person; relations are ids, parents are (mother, father), `born` is an ISO date."""

    id: str
    name: str
    gender: str
    job: str
    hobby: str
    city: str
    born: str
    spouse: str | None
    parents: tuple[str, ...]
    children: tuple[str, ...]
    friends: tuple[str, ...]
    distractor: bool


def population(people: int, seed: int, crowded: bool = False) -> tuple[Person, ...]:
    """Return `people` people and one tenth as many distractors, in random order.

    Args:
        crowded: Put 100 people in a city instead of 25, and halve the number of jobs and hobbies.
    """
    if people < FEWEST:
        raise BadInput(f"a world needs at least {FEWEST} people, not {people}.")
    if people > MOST:
        raise BadInput(f"a world has at most {MOST} people, not {people}: no two share a birthdate.")
    calendar = Calendar(people, Random(f"{seed}:births"))
    drafts = families(people, Random(f"{seed}:families"), calendar)
    _befriend(drafts, Random(f"{seed}:friends"))
    _assign_names(drafts, people, Random(f"{seed}:names"))
    drafts += _distractors(drafts, round(DISTRACTORS * people), calendar, people, Random(f"{seed}:distractors"))
    jobs = max(10, people // (20 if crowded else 10))
    hobbies = max(8, people // 25 if crowded else people * 2 // 25)
    cities = max(4, people // (100 if crowded else 25))
    _assign_jobs(drafts, vocabulary("jobs", jobs), Random(f"{seed}:jobs"))
    _assign(drafts, "hobby", vocabulary("hobbies", hobbies), Random(f"{seed}:hobbies"))
    _assign(drafts, "city", vocabulary("cities", cities), Random(f"{seed}:cities"))
    return _freeze(drafts, Random(f"{seed}:order"))


def _befriend(drafts: list[Draft], rng: Random) -> None:
    wanted = len(drafts) * FRIENDS // 2
    made = 0
    while made < wanted:
        one = rng.randrange(len(drafts))
        other = rng.randrange(len(drafts))
        if drafts[one].friends and rng.random() < CLUSTERING:
            other = rng.choice(drafts[rng.choice(drafts[one].friends)].friends)
        if _may_befriend(drafts, one, other):
            drafts[one].friends.append(other)
            drafts[other].friends.append(one)
            made += 1


def _may_befriend(drafts: list[Draft], one: int, other: int) -> bool:
    """Return True if two people are different, unrelated, not friends yet, and both below the limit of friends."""
    a, b = drafts[one], drafts[other]
    if one == other or other in a.friends or max(len(a.friends), len(b.friends)) >= MOST_FRIENDS:
        return False
    related = a.spouse == other or one in b.parents or other in a.parents
    return not related and (a.parents == () or a.parents != b.parents)


def _name_count(base: int, people: int) -> int:
    """Return the size of a name list, which grows with the square root of the population."""
    return round(base * max(1.0, math.sqrt(people / 500)))


def _assign_names(drafts: list[Draft], people: int, rng: Random) -> None:
    """Assign a unique full name to each person."""
    first = {"female": vocabulary("women", _name_count(40, people)), "male": vocabulary("men", _name_count(40, people))}
    last = vocabulary("surnames", _name_count(60, people))
    taken: set[tuple[str, str]] = set()
    for draft in drafts:
        while not draft.first or (draft.first, draft.last) in taken:
            draft.first, draft.last = rng.choice(first[draft.gender]), rng.choice(last)
        taken.add((draft.first, draft.last))


def _distractors(drafts: list[Draft], count: int, calendar: Calendar, people: int, rng: Random) -> list[Draft]:
    """Return people who are never asked about; each shares a first name with a regular person."""
    taken = {(draft.first, draft.last) for draft in drafts}
    last = vocabulary("surnames", _name_count(60, people))
    found: list[Draft] = []
    while len(found) < count:
        double = rng.choice(drafts)
        name = (double.first, rng.choice(last))
        if name not in taken:
            taken.add(name)
            found.append(Draft(double.gender, calendar.any_day(), distractor=True, first=name[0], last=name[1]))
    return found


def _assign_jobs(drafts: list[Draft], jobs: list[str], rng: Random) -> None:
    """Assign rare jobs, a fifth of all, to one married and at most two unmarried people; spread the others evenly.

    The rare jobs guarantee instances of "Whose spouse has the job of J?".
    """
    jobs = list(jobs)
    rng.shuffle(jobs)
    rare, common = jobs[: len(jobs) // 5], jobs[len(jobs) // 5 :]
    married = [draft for draft in drafts if draft.spouse is not None]
    unmarried = [draft for draft in drafts if draft.spouse is None]
    rng.shuffle(married)
    rng.shuffle(unmarried)
    for job, holder in zip(rare, married, strict=False):
        holder.job = job
        for _ in range(min(rng.randrange(3), len(unmarried))):
            unmarried.pop().job = job
    _assign([draft for draft in drafts if not draft.job], "job", common, rng)


def _assign(drafts: list[Draft], field: str, values: list[str], rng: Random) -> None:
    """Assign a random value to each person, none more often than the largest key allows.

    With too few values for that, none is assigned more than twice as often as the average.
    """
    members = dict.fromkeys(values, 0)
    largest = LARGEST_KEY if len(drafts) <= LARGEST_KEY * len(values) else 2 * len(drafts) // len(values)
    for draft in drafts:
        value = rng.choice(values)
        while members[value] >= largest:
            value = rng.choice(values)
        members[value] += 1
        setattr(draft, field, value)


def _freeze(drafts: list[Draft], rng: Random) -> tuple[Person, ...]:
    order = list(range(len(drafts)))
    rng.shuffle(order)
    width = max(4, len(str(len(drafts))))
    ids = {number: f"p{place:0{width}d}" for place, number in enumerate(order, 1)}

    def person(number: int) -> Person:
        draft = drafts[number]
        return Person(
            id=ids[number],
            name=f"{draft.first} {draft.last}",
            born=date.fromordinal(draft.born).isoformat(),
            spouse=None if draft.spouse is None else ids[draft.spouse],
            parents=tuple(ids[parent] for parent in draft.parents),
            children=tuple(ids[child] for child in draft.children),
            friends=tuple(ids[friend] for friend in draft.friends),
            **{name: getattr(draft, name) for name in ("gender", "job", "hobby", "city", "distractor")},
        )

    return tuple(person(number) for number in order)


# -- vocabulary -------------------------------------------------------------------------------------------------------


def vocabulary(kind: str, count: int) -> list[str]:
    """Return the first `count` values of a table of `vocabulary.toml`, listed values before composed ones."""
    table = _vocabularies()[kind]
    found = dict.fromkeys(table["words"][:count])
    composed = _words_of(table["syllables"]) if "syllables" in table else _qualified(**table)
    while len(found) < count:
        value = next(composed, None)
        if value is None:
            raise BadInput(f"the vocabulary has only {len(found)} {kind}, {count} are needed; use fewer people.")
        found[value] = None
    return list(found)


@cache
def _vocabularies() -> dict[str, Any]:
    return tomllib.loads((files("kbgym.worlds.people") / "vocabulary.toml").read_text(encoding="utf-8"))


def _words_of(syllables: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield every combination of one syllable of each list, in an order in which consecutive words differ clearly."""
    words = ["".join(reversed(chosen)) for chosen in product(*reversed(syllables))]
    # 7919 is prime and divides no product of these lists' lengths, so every combination is visited once.
    return (words[number * 7919 % len(words)] for number in range(len(words)))


def _qualified(words: Sequence[str], qualifiers: Sequence[str], outer_qualifiers: Sequence[str]) -> Iterator[str]:
    """Yield "copper engraver" and, when those run out, "retired copper engraver"."""
    pairs = [
        f"{qualifiers[(start + place) % len(qualifiers)]} {word}"
        for start in range(len(qualifiers))
        for place, word in enumerate(words)
    ]
    yield from pairs
    yield from (f"{outer} {pair}" for outer in outer_qualifiers for pair in pairs)

"""The people of the universe: families, friends, names, jobs, hobbies, cities, and the distractors.

`population(people, seed)` gives values only. No key outgrows what one index may link: a city, job or hobby has at most
36 members, a person at most ten friends; only who asks for fewer jobs gets larger ones. It knows nothing of sentences
and questions.
"""

from __future__ import annotations

import math
from datetime import date
from random import Random

import msgspec

from kbgym.errors import BadInput
from kbgym.worlds.people import vocabulary
from kbgym.worlds.people.families import Calendar, Draft, families

FEWEST, MOST = 20, 150_000
LARGEST_KEY = 36
MOST_FRIENDS = 10
FRIENDS = 4  # on average
CLUSTERING = 0.25  # share of friendships made with a friend's friend
DISTRACTORS = 0.1


class Person(msgspec.Struct, frozen=True):
    """One person; relations are ids, parents are (mother, father), `born` is an ISO date."""

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


def population(people: int, seed: int, jobs: int | None = None, crowded: bool = False) -> tuple[Person, ...]:
    """`people` people and a tenth more distractors, in an order that tells nothing about them.

    `jobs` is how many jobs they share, a tenth of their number unless told. `crowded`: a hundred to a city, and half as
    many jobs and hobbies.
    """
    if jobs is not None and jobs < 5:
        raise BadInput(f"a world needs at least 5 jobs, not {jobs}: a fifth of them are rare.")
    if people < FEWEST:
        raise BadInput(f"a world needs at least {FEWEST} people, not {people}.")
    if people > MOST:
        raise BadInput(f"a world has at most {MOST} people, not {people}: no two share a birthdate.")
    calendar = Calendar(people, Random(f"{seed}:births"))
    drafts = families(people, Random(f"{seed}:families"), calendar)
    _befriend(drafts, Random(f"{seed}:friends"))
    _name(drafts, people, Random(f"{seed}:names"))
    drafts += _distractors(drafts, round(DISTRACTORS * people), calendar, people, Random(f"{seed}:distractors"))
    _employ(drafts, vocabulary.jobs(jobs or max(10, people // (20 if crowded else 10))), Random(f"{seed}:jobs"))
    _spread(
        drafts,
        "hobby",
        vocabulary.hobbies(max(8, people // 25 if crowded else people * 2 // 25)),
        Random(f"{seed}:hobbies"),
    )
    _spread(drafts, "city", vocabulary.cities(max(4, people // (100 if crowded else 25))), Random(f"{seed}:cities"))
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
    """Not oneself, not twice, not within the family, not past the most friends."""
    a, b = drafts[one], drafts[other]
    if one == other or other in a.friends or max(len(a.friends), len(b.friends)) >= MOST_FRIENDS:
        return False
    related = a.spouse == other or one in b.parents or other in a.parents
    return not related and (a.parents == () or a.parents != b.parents)


def _name(drafts: list[Draft], people: int, rng: Random) -> None:
    """Full names, all different."""
    growth = _names_growth(people)
    first = {"female": vocabulary.women(round(40 * growth)), "male": vocabulary.men(round(40 * growth))}
    last = vocabulary.surnames(round(60 * growth))
    taken: set[tuple[str, str]] = set()
    for draft in drafts:
        while not draft.first or (draft.first, draft.last) in taken:
            draft.first, draft.last = rng.choice(first[draft.gender]), rng.choice(last)
        taken.add((draft.first, draft.last))


def _names_growth(people: int) -> float:
    """First and last names each grow with the square root of the population, so that full names grow with it."""
    return max(1.0, math.sqrt(people / 500))


def _distractors(drafts: list[Draft], count: int, calendar: Calendar, people: int, rng: Random) -> list[Draft]:
    """People nobody asks about, each sharing the first name of somebody who may be asked about."""
    taken = {(draft.first, draft.last) for draft in drafts}
    last = vocabulary.surnames(round(60 * _names_growth(people)))
    found: list[Draft] = []
    while len(found) < count:
        double = rng.choice(drafts)
        name = (double.first, rng.choice(last))
        if name not in taken:
            taken.add(name)
            found.append(Draft(double.gender, calendar.anybody(), distractor=True, first=name[0], last=name[1]))
    return found


def _employ(drafts: list[Draft], jobs: list[str], rng: Random) -> None:
    """A fifth of the jobs are rare: one married holder and at most two unmarried ones. So 'whose spouse has job J'
    always has askable instances. Everybody else shares the other jobs."""
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
    _spread([draft for draft in drafts if not draft.job], "job", common, rng)


def _spread(drafts: list[Draft], field: str, values: list[str], rng: Random) -> None:
    """One value each, at random, none more often than the largest key allows; where values are too few for that,
    none more than twice as often as the others."""
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
            gender=draft.gender,
            job=draft.job,
            hobby=draft.hobby,
            city=draft.city,
            born=date.fromordinal(draft.born).isoformat(),
            spouse=None if draft.spouse is None else ids[draft.spouse],
            parents=tuple(ids[parent] for parent in draft.parents),
            children=tuple(ids[child] for child in draft.children),
            friends=tuple(ids[friend] for friend in draft.friends),
            distractor=draft.distractor,
        )

    return tuple(person(number) for number in order)

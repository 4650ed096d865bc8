"""Words nobody has seen: a population whose names, jobs, hobbies and cities are made up of syllables, anew a seed.

For teaching a model to copy what it reads instead of spelling it from memory. Nothing else about the people changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from kbgym.worlds.people.population import Person

_BEGIN = """
    b bl br c ch cl cr d dr f fl fr g gl gr h j k kn l m n p ph pl pr qu r s sc sh sk sl sm sn sp st str t th tr tw
    v w wh y z b d f g h k l m n p r s t v w
""".split()
_MIDDLE = "a a a e e e i i o o u ai au ea ee ie oa oo ou y".split()
_END = [*[""] * 30, *"b ck d ft g l ld ll lt m mp n nd ng nk nt p r rd rk rm rn rt s sh ss st t th x".split()]
_TRADES = "er ist man or ian ster maker smith wright keeper".split()
_PASTIMES = "ing ing ery ball craft dancing making music racing spotting".split()
_PLACES = "ton ham mouth port field bridge stead wick by ville haven dale".split()


def renamed(people: Sequence[Person], seed: int) -> tuple[Person, ...]:
    """The same people under invented names, with invented jobs and hobbies in invented cities."""
    rng = Random(f"{seed}:invented")
    new: dict[tuple[str, str], str] = {}
    taken: set[str] = set()

    def word(kind: str, old: str) -> str:
        while (kind, old) not in new:
            made = _made(kind, rng)
            if made not in taken:
                taken.add(made)
                new[kind, old] = made
        return new[kind, old]

    def one(person: Person) -> Person:
        first, last = person.name.split(" ")
        values = {kind: word(kind, getattr(person, kind)) for kind in ("job", "hobby", "city")}
        return msgspec.structs.replace(person, name=f"{word('name', first)} {word('name', last)}", **values)

    return tuple(map(one, people))


def _made(kind: str, rng: Random) -> str:
    stem = _stem(rng)
    match kind:
        case "name":
            return stem.capitalize()
        case "city":
            return (stem + rng.choice(_PLACES) if rng.random() < 0.6 else stem).capitalize()
        case _:
            ends = _TRADES if kind == "job" else _PASTIMES
            before = f"{_stem(rng)} " if rng.random() < 0.3 else ""
            return before + stem + (rng.choice(ends) if rng.random() < 0.7 else "")


def _stem(rng: Random) -> str:
    syllables = rng.choice((1, 2, 2))
    return "".join(rng.choice(_BEGIN) + rng.choice(_MIDDLE) + rng.choice(_END) for _ in range(syllables))

"""Practice people: the names, jobs, hobbies and cities of a population replaced by invented or listed words.

A model that trains on them learns to copy what it reads instead of spelling it from memory: the benchmark's own words
are never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec

from kbgym.worlds.people.population import Person, vocabulary

_BEGIN = """
    b bl br c ch cl cr d dr f fl fr g gl gr h j k kn l m n p ph pl pr qu r s sc sh sk sl sm sn sp st str t th tr tw
    v w wh y z b d f g h k l m n p r s t v w
""".split()
_MIDDLE = "a a a e e e i i o o u ai au ea ee ie oa oo ou y".split()
_END = [*[""] * 30, *"b ck d ft g l ld ll lt m mp n nd ng nk nt p r rd rk rm rn rt s sh ss st t th x".split()]
_TRADES = "er ist man or ian ster maker smith wright keeper".split()
_PASTIMES = "ing ing ery ball craft dancing making music racing spotting".split()
_PLACES = "ton ham mouth port field bridge stead wick by ville haven dale".split()


# Words of sentences and questions that could be mistaken for a value.
_PLAIN = set(
    """
    also born child children city date father friend friends have hobby hobbies husband index job jobs live lives many
    married mother older oldest people person page spouse store their they whose wife with birth grandchildren brother
    sister search read answer left links nothing
""".split()
)


def renamed(people: Sequence[Person], seed: int, words: Sequence[str] = ()) -> tuple[Person, ...]:
    """Return the same people with new names, jobs, hobbies and cities; about half of the words are from `words`."""
    rng = Random(f"{seed}:invented")
    sizes = {"women": 40, "men": 40, "surnames": 60, "cities": 20, "jobs": 50, "hobbies": 40}
    held_out = _PLAIN | {part for own in sizes.items() for value in vocabulary(*own) for part in value.lower().split()}
    words = [word for word in words if word.isascii() and word.isalpha() and word.islower()]
    words = [word for word in words if 4 <= len(word) <= 11 and word not in held_out]
    new: dict[tuple[str, str], str] = {}
    taken: set[str] = set()

    def word(kind: str, old: str) -> str:
        while (kind, old) not in new:
            made = _made(kind, rng, words)
            if made not in taken:
                taken.add(made)
                new[kind, old] = made
        return new[kind, old]

    def one(person: Person) -> Person:
        first, last = person.name.split(" ")
        values = {kind: word(kind, getattr(person, kind)) for kind in ("job", "hobby", "city")}
        return msgspec.structs.replace(person, name=f"{word('name', first)} {word('name', last)}", **values)

    return tuple(map(one, people))


def _made(kind: str, rng: Random, words: Sequence[str]) -> str:
    stem = _stem(rng)
    if words and rng.random() < 0.5:
        stem = rng.choice(words)
        if kind in ("job", "hobby"):
            return f"{rng.choice(words)} {stem}" if rng.random() < 0.3 else stem
        if kind == "name":
            return stem.capitalize()
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

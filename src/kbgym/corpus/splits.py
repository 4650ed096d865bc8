"""Splits of questions by whole groups (six tenths train, three test, one eval), and near-duplicate detection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from kbgym.canonical import digest
from kbgym.errors import BadInput
from kbgym.worlds.splits import shares

SHARES = {"train": 6, "test_in": 3, "eval": 1}


class Split(msgspec.Struct, frozen=True):
    """The group and split of a question; `given` is True if a person chose the split."""

    name: str
    group: str = ""
    split: str = ""
    given: bool = False


def divide(
    members: Sequence[Split], alike: Sequence[tuple[int, int]], seed: int = 0, leave_out: Collection[int] = ()
) -> list[str]:
    """Return a split for every member. Members of one group, and members that are alike, share theirs.

    A split that a person gave is kept, even if a near-duplicate has another one; a group in two splits is refused.
    Larger groups are placed first, each in the split with the largest deficit; a hash of the seed and the group breaks
    ties.
    """
    splits = [member.split if member.given else "" for member in members]
    have = dict.fromkeys(SHARES, 0)
    waiting: list[tuple[int, str, list[int]]] = []  # the size of a bundle, its place in the draw, its members
    for places in _bundles(members, alike):
        known = [members[place].split for place in places if members[place].split]
        chosen = [members[place].split for place in places if members[place].given]
        counted = [place for place in places if place not in leave_out]
        if known:  # the rest of a bundle follows its first
            rest = next(split for split in known if split in chosen or not chosen)
            for place in places:
                splits[place] = splits[place] or rest
            for place in counted:
                if splits[place] in have:
                    have[splits[place]] += 1
        else:
            waiting.append((len(counted), digest(f"{seed}:{_name(members, places)}".encode()), places))
    total = sum(have.values()) + sum(size for size, _, _ in waiting)
    wanted = dict(zip(SHARES, shares(list(SHARES.values()), total), strict=True))
    for size, _, places in sorted(waiting, key=lambda bundle: (-bundle[0], bundle[1])):
        split = max(SHARES, key=lambda name: wanted[name] - have[name])
        have[split] += size
        for place in places:
            splits[place] = split
    return splits


def _bundles(members: Sequence[Split], alike: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return groups of members that must stay together."""
    bundle = [[place] for place in range(len(members))]
    groups: dict[str, int] = {}
    given: dict[str, str] = {}
    pairs = [*alike]
    for place, member in enumerate(members):
        if member.group:
            pairs.append((groups.setdefault(member.group, place), place))
            if member.given and (split := given.setdefault(member.group, member.split)) != member.split:
                raise BadInput(f"group {member.group!r} is in the splits {split} and {member.split}; choose one.")
    for one, other in pairs:
        if bundle[one] is not bundle[other]:
            small, large = sorted((bundle[one], bundle[other]), key=len)
            large += small
            for place in small:
                bundle[place] = large
    return [sorted(places) for places in {id(places): places for places in bundle}.values()]


def _name(members: Sequence[Split], places: Sequence[int]) -> str:
    return next((members[place].group for place in places if members[place].group), members[places[0]].name)


# -- near-duplicates --------------------------------------------------------------------------------------------------

NEAR = 0.9
_TOKEN = re.compile(r"\w+")


class Pair(msgspec.Struct, frozen=True):
    """Two questions by their positions in the list; `same` if they are equal except for case and punctuation."""

    first: int
    second: int
    same: bool


def normalised(text: str) -> str:
    return " ".join(_TOKEN.findall(text.casefold()))


def says(text: str, words: str) -> bool:
    """Return True if a text has these words in this order."""
    return f" {normalised(words)} " in f" {normalised(text)} "


def near_duplicates(texts: Sequence[str]) -> list[Pair]:
    """Return all pairs of near-duplicates in order. Equal texts are each paired with the first of them."""
    found: list[Pair] = []
    first: dict[str, int] = {}
    sets: dict[int, frozenset[str]] = {}
    for place, text in enumerate(map(normalised, texts)):
        if text in first:
            found.append(Pair(first[text], place, same=True))
        else:
            first[text] = place
            sets[place] = frozenset(text.split())
    counts = Counter(token for tokens in sets.values() for token in tokens)
    by_token: dict[str, list[int]] = {}
    for place, tokens in sets.items():
        ordered = sorted(tokens, key=lambda token: (counts[token], token))
        least = -(-len(ordered) * 9 // 10)  # tokens shared with a near-duplicate, so one of the prefix is
        prefix = ordered[: len(ordered) - least + 1]
        candidates = dict.fromkeys(other for token in prefix for other in by_token.get(token, ()))
        for other in sorted(candidates):
            if (shared := len(tokens & sets[other])) and shared / len(tokens | sets[other]) >= NEAR:
                found.append(Pair(other, place, same=False))
        for token in prefix:
            by_token.setdefault(token, []).append(place)
    return sorted(found, key=lambda pair: (pair.first, pair.second))

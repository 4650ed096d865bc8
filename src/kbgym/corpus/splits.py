"""Splits of questions by whole groups (six tenths train, three test, one eval), and near-duplicate detection."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from kbgym.canonical import digest
from kbgym.errors import BadInput

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
    bundles = _bundles(members, alike)
    sizes = {root: sum(place not in leave_out for place in places) for root, places in bundles.items()}
    splits = [member.split if member.given else "" for member in members]
    have = dict.fromkeys(SHARES, 0)
    open_: list[int] = []
    for root, places in bundles.items():
        chosen = {members[place].split for place in places if members[place].given}
        known = [members[place].split for place in places if members[place].split]
        if known:  # the rest of a bundle follows its first
            for place in places:
                splits[place] = splits[place] or (known[0] if not chosen else next(s for s in known if s in chosen))
            for place in places:
                if place not in leave_out and splits[place] in have:
                    have[splits[place]] += 1
        else:
            open_.append(root)
    total = sum(have.values()) + sum(sizes[root] for root in open_)
    wanted = _sizes(total)
    open_.sort(key=lambda root: (-sizes[root], digest(f"{seed}:{_name(members, bundles[root])}".encode())))
    for root in open_:
        split = max(SHARES, key=lambda name: wanted[name] - have[name])
        have[split] += sizes[root]
        for place in bundles[root]:
            splits[place] = split
    return splits


def _bundles(members: Sequence[Split], alike: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
    """Return groups of members that must stay together, keyed by the first of them."""
    leader = list(range(len(members)))

    def find(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    groups: dict[str, int] = {}
    given: dict[str, str] = {}
    for place, member in enumerate(members):
        if member.group:
            leader[find(place)] = find(groups.setdefault(member.group, place))
            split = given.setdefault(member.group, member.split) if member.given else member.split
            if member.given and split != member.split:
                raise BadInput(f"group {member.group!r} is in the splits {split} and {member.split}; choose one.")
    for one, other in alike:
        first, second = sorted((find(one), find(other)))
        leader[second] = first
    bundles: dict[int, list[int]] = {}
    for place in range(len(members)):
        bundles.setdefault(find(place), []).append(place)
    return bundles


def _name(members: Sequence[Split], places: Sequence[int]) -> str:
    return next((members[place].group for place in places if members[place].group), members[places[0]].name)


def _sizes(total: int) -> dict[str, int]:
    """Split a number by the shares, rounding up the largest remainders."""
    whole = sum(SHARES.values())
    sizes = {name: total * share // whole for name, share in SHARES.items()}
    order = sorted(SHARES, key=lambda name: -(total * SHARES[name] % whole))
    for name in order[: total - sum(sizes.values())]:
        sizes[name] += 1
    return sizes


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
        prefix = ordered[: len(ordered) - _least_shared(len(ordered)) + 1]
        candidates = dict.fromkeys(other for token in prefix for other in by_token.get(token, ()))
        for other in sorted(candidates):
            if _jaccard(tokens, sets[other]) >= NEAR:
                found.append(Pair(other, place, same=False))
        for token in prefix:
            by_token.setdefault(token, []).append(place)
    return sorted(found, key=lambda pair: (pair.first, pair.second))


def _least_shared(size: int) -> int:
    """Return the minimum number of tokens a near-duplicate shares: nine tenths, rounded up."""
    return -(-size * 9 // 10)


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared) if shared else 0.0

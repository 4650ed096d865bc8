"""Opaque ids: a bijection from numbers to codes of seven characters in no apparent order.

A generated world numbers its shuffled documents this way, and the store continues the count for documents that agents
write. An id reveals neither the position of a document, nor its neighbours, nor its author. The last character is a
check character, so that an id of another kind is rarely taken for a code.
"""

from __future__ import annotations

import hashlib

_SIGNS = "0123456789bcdfghjklmnpqrstvwxyz"  # no vowel, so that no code is a word
_PLACES = {sign: place for place, sign in enumerate(_SIGNS)}
_HALF = len(_SIGNS) ** 3
_ROUNDS = 4
MOST = _HALF * _HALF


def code(number: int) -> str:
    """Return the code of a number from 1 to MOST - 1."""
    left, right = divmod(number, _HALF)
    for turn in range(_ROUNDS):
        left, right = right, (left + _mixed(turn, right)) % _HALF
    rest, body = left * _HALF + right, ""
    for _ in range(6):
        rest, place = divmod(rest, len(_SIGNS))
        body += _SIGNS[place]
    return body + _check(body)


def number_of(id: str) -> int:
    """Return the number of a code, or 0 for any other id."""
    if len(id) != 7 or any(sign not in _PLACES for sign in id) or _check(id[:6]) != id[6]:
        return 0
    rest = 0
    for sign in reversed(id[:6]):
        rest = rest * len(_SIGNS) + _PLACES[sign]
    left, right = divmod(rest, _HALF)
    for turn in reversed(range(_ROUNDS)):
        left, right = (right - _mixed(turn, left)) % _HALF, left
    return left * _HALF + right


def _mixed(turn: int, value: int) -> int:
    return int.from_bytes(hashlib.blake2b(b"%d:%d" % (turn, value), digest_size=6).digest(), "big")


def _check(body: str) -> str:
    return _SIGNS[hashlib.blake2b(body.encode(), digest_size=6).digest()[0] % len(_SIGNS)]

"""Ids and places of documents reveal nothing; where they are numbered person by person, a classifier reads them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from kbgym.store import Record, Store
from kbgym.worlds.people.population import population
from kbgym.worlds.people.sentences import statements, write
from kbgym.worlds.world import Document

PEOPLE, PAIRS = 150, 3_000
FACTS = ("job", "hobby", "city", "birth")


def signs(id: str) -> list[float]:
    return [float(ord(sign)) for sign in id.ljust(7)[:7]]


def pair(one: str, other: str, apart: int) -> list[float]:
    """Return features that two ids and their positions share, as an attacker might use them."""
    a, b = signs(one), signs(other)
    same = [float(x == y) for x, y in zip(a, b, strict=True)]
    return [
        *same,
        *(abs(x - y) for x, y in zip(a, b, strict=True)),
        float(abs(apart)),
        float(apart > 0),
        abs(apart) < 9,
    ]


def separates(features: Sequence[Sequence[float]], labels: Sequence[bool]) -> float:
    """Return the AUC of a logistic regression trained on half of the rows; 0.5 is chance."""
    x = np.array(features, float)
    x = np.hstack([(x - x.mean(0)) / (x.std(0) + 1e-9), np.ones((len(x), 1))])
    y = np.array(labels, float)
    order = np.random.default_rng(0).permutation(len(x))
    train, test = order[::2], order[1::2]
    weights: NDArray[np.float64] = np.zeros(x.shape[1])
    for _ in range(300):
        guess = 1 / (1 + np.exp(-x[train] @ weights))
        weights -= 0.5 * (x[train].T @ (guess - y[train]) / len(train) + 1e-3 * weights)
    ranks = np.argsort(np.argsort(x[test] @ weights)) + 1
    positive = y[test] > 0
    n, m = positive.sum(), (~positive).sum()
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


def documents(numbered: bool) -> tuple[Document, ...]:
    people = population(PEOPLE, 3)
    if numbered:
        return tuple(Document(f"d{number:05d}", *one) for number, one in enumerate(statements(people), 1))
    return write(people, 3)


def same_person(told: Sequence[Document]) -> float:
    draw = random.Random(0)
    mine: dict[str, list[int]] = {}
    for place, document in enumerate(told):
        mine.setdefault(document.about[0], []).append(place)
    several = [places for places in mine.values() if len(places) > 1]
    pairs = [draw.sample(draw.choice(several), 2) for _ in range(PAIRS)]
    pairs += [draw.sample(range(len(told)), 2) for _ in range(PAIRS)]
    rows = [pair(told[a].id, told[b].id, b - a) for a, b in pairs]
    return separates(rows, [told[a].about[0] == told[b].about[0] for a, b in pairs])


def next_fact(told: Sequence[Document]) -> float:
    """Of two facts of one person, is the second the one told next?"""
    draw = random.Random(0)
    place = {(document.about[0], document.kind): place for place, document in enumerate(told)}
    people = sorted({document.about[0] for document in told})
    rows, labels = [], []
    for _ in range(PAIRS):
        who, (first, second) = draw.choice(people), draw.sample(range(len(FACTS)), 2)
        a, b = place[who, FACTS[first]], place[who, FACTS[second]]
        rows.append(pair(told[a].id, told[b].id, b - a))
        labels.append(second == first + 1)
    return separates(rows, labels)


def kind_by_id(told: Sequence[Document]) -> float:
    rows = [signs(document.id) for document in told]
    return separates([[*row, *(v * v for v in row)] for row in rows], [document.kind == "job" for document in told])


def authored_by_id(told: Sequence[Document]) -> float:
    store = Store(Record(document.id, document.text) for document in told)
    for number in range(len(told)):
        store.add(f"Index {number}.")
    rows = [signs(record.id) for record in store]
    return separates([[*row, *(v * v for v in row)] for row in rows], [record.flag == "authored" for record in store])


@pytest.mark.parametrize("asked", [same_person, next_fact, authored_by_id])
def test_the_classifier_reads_numbered_documents(asked) -> None:
    assert asked(documents(numbered=True)) > 0.9


@pytest.mark.parametrize("asked", [same_person, next_fact, kind_by_id, authored_by_id])
def test_the_classifier_is_no_better_than_chance_on_a_generated_world(asked) -> None:
    assert 0.45 < asked(documents(numbered=False)) < 0.55

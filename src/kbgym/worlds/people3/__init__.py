"""Benchmark v3: people whose facts change, reported by several sources in many wordings.

`generate` makes a world with rounds of updates, `pool` lists the questions of a template.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any

import msgspec

from kbgym.chronicle.questions import answer
from kbgym.chronicle.timeline import SOURCES, DatedReport, Timeline
from kbgym.errors import BadInput, Damaged
from kbgym.worlds.people.population import population
from kbgym.worlds.people3.documents import rules, write
from kbgym.worlds.people3.history import Dials, Historian
from kbgym.worlds.people3.questions import DEFAULT_SIZES, QuestionSampler, draw, question, reworded, slots_of
from kbgym.worlds.splits import Sizes
from kbgym.worlds.updates import Update
from kbgym.worlds.world import Document, Question, World

__all__ = ["DEFAULT_SIZES", "KIND", "Dials", "generate", "pool", "versions"]

KIND = "people-v3"
_IDS_OF_A_ROUND = 50_000_000  # far from the ids that a store assigns to documents of agents


class Facts(msgspec.Struct, frozen=True):
    """The facts of a v3 world in `world.json`."""

    dials: Dials
    seed: int
    asked: tuple[str, ...]
    unused: dict[str, tuple[str, ...]]
    reports: tuple[DatedReport, ...]
    later: tuple[tuple[DatedReport, ...], ...]  # the reports of each round of updates
    updates: tuple[Update, ...]
    spans: dict[str, tuple[tuple[str, int, int], ...]]

    def timeline(self, rounds: int = 0) -> Timeline:
        """Return the timeline of all reports up to a round of updates."""
        return Timeline([*self.reports, *(report for told in self.later[:rounds] for report in told)])

    def asker(self, rounds: int = 0) -> QuestionSampler:
        return QuestionSampler(self.timeline(rounds), self.asked, self.unused, self.dials.depth, self.dials.sources)


def generate(people: int = 500, seed: int = 0, sizes: Sizes = DEFAULT_SIZES, dials: Dials = Dials()) -> World:  # noqa: B008
    """Generate a v3 world. The same arguments give the same bytes on every platform."""
    historian = Historian(population(people, seed), dials, seed)
    documents, reports = _written(historian, seed)
    facts = Facts(
        dials,
        seed,
        historian.asked,
        {kind: tuple(values) for kind, values in historian.values.unused.items()},
        reports[0],
        tuple(reports[1:]),
        (),
        {},
    )
    asker = facts.asker()
    questions = draw(asker, sizes, seed)
    spans = {}
    for one in questions:
        solution = answer(asker.timeline, asker.templates[one.template], slots_of(one))
        spans[one.id] = tuple((told.document, told.start, told.end) for told in (solution.reports if solution else ()))
    tested = [one for one in questions if one.split.startswith("test")]
    rounds = tuple(_update(facts, tested, number, documents[number]) for number in range(1, dials.rounds + 1))
    plain: Mapping[str, Any] = msgspec.to_builtins(msgspec.structs.replace(facts, updates=rounds, spans=spans))
    return World(
        documents[0],
        (*questions, *reworded(tested, asker.templates, seed)),
        {"kind": KIND, "version": 3, "sources": SOURCES, **plain},
    )


def _written(historian: Historian, seed: int) -> tuple[list[tuple[Document, ...]], list[tuple[DatedReport, ...]]]:
    """Return the initial documents and reports, and those of each round of updates."""
    entries, rng = list(historian.entries()), Random(f"{seed}:v3:documents")
    documents: list[tuple[Document, ...]] = []
    reports: list[tuple[DatedReport, ...]] = []
    for number in range(historian.dials.rounds + 1):
        of_round = [entry for entry in entries if entry.round == number]
        extra = () if number else rules(historian.dials.sources)
        first = number * _IDS_OF_A_ROUND + 1
        written, told = write(of_round, historian.genders, historian.dials.wordings, first, rng, extra)
        documents.append(tuple(written))
        reports.append(tuple(told))
    return documents, reports


def _update(facts: Facts, tested: list[Question], number: int, documents: tuple[Document, ...]) -> Update:
    before = facts.timeline(number - 1)
    replaced = (old for told in facts.later[number - 1] if (old := before.current(*told.fact)) is not None)
    asked = tuple(_asked_after(facts, tested, number))
    return Update(number, documents, tuple(dict.fromkeys(old.document for old in replaced)), asked)


def _asked_after(facts: Facts, asked: Iterable[Question], number: int) -> Iterator[Question]:
    """Yield questions with the answers after a round, without those that are no longer valid."""
    asker = facts.asker(number)
    for one in asked:
        template, slots = asker.templates[one.template], slots_of(one)
        if (solution := answer(asker.timeline, template, slots)) is not None:
            after = question(template, slots, solution, f"{one.id}-update{number}", "", facts.seed)
            yield msgspec.structs.replace(after, split=f"{one.split}-update{number}", text=one.text)


def versions(world: World, asked: Sequence[Question]) -> dict[str, tuple[Question, ...]]:
    """Return questions, such as a probe's group, in held-out wordings and after each round of updates."""
    facts = facts_of(world)
    found = {"reworded": tuple(reworded(asked, facts.asker().templates, facts.seed))}
    for number in range(1, facts.dials.rounds + 1):
        found[f"update{number}"] = tuple(_asked_after(facts, asked, number))
    return found


def facts_of(world: World) -> Facts:
    """Read the facts of a v3 world."""
    try:
        return msgspec.convert(world.facts, Facts)
    except msgspec.ValidationError as error:
        raise Damaged(f"world.json does not describe a v3 world: {error}.") from error


def pool(world: World, template: str) -> Iterator[Question]:
    """Yield every answerable instance of a template, with one unanswerable instance for every seven."""
    facts = facts_of(world)
    asker = facts.asker()
    if template not in asker.templates:
        raise BadInput(f"there is no template {template!r}; the templates are {', '.join(asker.templates)}.")
    room = 1.0
    for found in asker.instances(asker.templates[template], f"{facts.seed}:v3:pool"):
        if not found[2].unanswerable or room >= 1:
            room += -1 if found[2].unanswerable else 1 / 7
            yield question(*found, ":".join([template, *found[1]]), "pool", facts.seed)

"""Documents of a v3 world: entries in words, with the span of each report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import msgspec

from kbgym.chronicle.timeline import PARENTS, SOURCES, DatedReport
from kbgym.chronicle.wordings import PRONOUNS, every, fill, heading, person_slots, spoken, wordings
from kbgym.codes import code
from kbgym.worlds.people3.history import HistoryEntry
from kbgym.worlds.world import Document

_PRONOUN = 0.6  # share of the later sentences of a page that use one where possible


def rules(sources: int) -> list[str]:
    """Return the sentences that explain how reports are weighed."""
    first, *others = SOURCES[:sources]
    told = ["A later report replaces an earlier one on the same matter."]
    if others:
        told.append(f"The {first} is the most reliable source, then the {', then the '.join(others)}.")
        told.append("Of reports that bear the same date, that of the more reliable source counts.")
    return told


def write(
    entries: Iterable[HistoryEntry],
    genders: Mapping[str, str],
    half: str,
    first: int,
    rng: Random,
    extra: Iterable[str] = (),
) -> tuple[list[Document], list[DatedReport]]:
    """Return documents in random order, numbered from `first`, and their reports with documents and spans."""
    texts: list[tuple[str, tuple[DatedReport, ...]]] = [(text, ()) for text in extra]
    texts += [_page(entry.reports, genders[entry.reports[0].subject], half, rng) for entry in entries]
    rng.shuffle(texts)
    documents, reports = [], []
    for number, (text, told) in enumerate(texts, first):
        id = code(number)
        names = dict.fromkeys(name for report in told for name in _people(report))
        documents.append(Document(id, text, told[0].relation if told else "rule", tuple(names)))
        reports += [msgspec.structs.replace(report, document=id) for report in told]
    return documents, reports


def _people(report: DatedReport) -> tuple[str, ...]:
    return (report.subject, report.value) if report.relation in ("friend", "spouse", *PARENTS) else (report.subject,)


def _page(reports: tuple[DatedReport, ...], gender: str, half: str, rng: Random) -> tuple[str, tuple[DatedReport, ...]]:
    text = heading(reports[0].source, reports[0].date)
    told = []
    for place, report in enumerate(reports):
        sentence = _sentence(report, gender if place else "", half, rng)
        text += " " if place else ""
        told.append(msgspec.structs.replace(report, start=len(text), end=len(text) + len(sentence)))
        text += sentence
    return text, tuple(told)


def _sentence(report: DatedReport, gender: str, half: str, rng: Random) -> str:
    """Return a report in a random wording; with a gender, a pronoun may replace the name."""
    table = "parent" if report.relation in PARENTS else report.relation
    chosen = every("documents", table) if half == "all" else wordings("documents", table, half)
    wording = rng.choice([one for one in chosen if one.ended == report.ended])
    pronoun = PRONOUNS[gender] if gender and wording.takes_pronoun and rng.random() < _PRONOUN else None
    value = spoken(report.value) if report.relation == "born" else report.value
    return fill(wording, {**person_slots(report.alias or report.subject, pronoun), "V": value, "R": report.relation})

"""Usage accounting of authored documents: how the exams of a run used each, and its estimated gain or cost.

Estimates come from transcripts; nothing is asked again. They remove one document, and with it every step that only it
led to. A question that first saw its evidence there would have gone as on the flat store. Any other question would have
saved those steps, up to its excess over the flat store, and avoided a worse answer. Alternative paths of a reader are
unknown: only an exam without the document would show them. A document is therefore called harmful only if no question
needed it, and either two or more questions that opened it were answered worse than on the flat store, or all of them as
well but with more actions, by a ratio whose interval lies above 1.

`prove`, `audit`, `prune`, the report and the viewer all show the accounts of `index_use`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import msgspec

from kbgym.analysis.audit import Audit
from kbgym.analysis.health import Advice
from kbgym.analysis.results import FLAT, how_to_compare, open_seeds
from kbgym.analysis.statistics import Sampled, ratio
from kbgym.analysis.verdict import Pair, paired_rows, split
from kbgym.errors import BadInput
from kbgym.gym.actions import Found, Opened, shown_by
from kbgym.sanitize import counted, safe_text
from kbgym.store import Store
from kbgym.trace.events import Acted, Event
from kbgym.training.exam import Row, Shot
from kbgym.training.exam_header import read_header

LOST = 2  # questions that must have been answered worse: one may be chance


class IndexUse(msgspec.Struct, frozen=True):
    """Use of one authored document: which questions opened it, how often, and the estimated loss without it.

    `saved` counts actions, `f1` correct answers; negative values are a gain without the document. `needed` are the
    questions that found their evidence there and were answered no worse. The losses of two documents are not additive
    if a question opened both.
    """

    id: str
    text: str
    opened: int
    questions: tuple[str, ...]
    needed: tuple[str, ...]
    saved: int
    f1: float
    harmful: bool

    @property
    def useful(self) -> bool:
        return (self.f1, self.saved) > (0.0, 0)


def index_use(store: Store, pairs: Sequence[Pair]) -> list[IndexUse]:
    """Return the use of every authored document of the trained store, most useful first, by F1 and then by actions."""
    written = {record.id: record.text for record in store.authored()}
    asked: dict[str, list[Pair]] = {id: [] for id in written}
    for pair in pairs:
        for id in opened_in(pair[0].shots, written):
            asked[id].append(pair)
    found = [_use(id, text, asked[id]) for id, text in written.items()]
    return sorted(found, key=lambda one: (-one.f1, -one.saved, -len(one.questions), one.id))


def _use(id: str, text: str, pairs: Sequence[Pair]) -> IndexUse:
    saved, f1, needed = 0, 0.0, []
    for trained, flat in pairs:
        gained = (trained.f1 or 0.0) - (flat.f1 or 0.0)
        if needs(trained, id):
            saved += flat.actions - trained.actions
            f1 += gained
            if gained >= 0:
                needed.append(trained.id)
        else:
            saved -= min(len(_only_through(trained, id)), max(0, trained.actions - flat.actions))
            f1 += min(0.0, gained)
    results = [shot.result for trained, _ in pairs for shot in trained.shots]
    times = sum(isinstance(result, Opened) and result.id == id for result in results)
    asked = tuple(trained.id for trained, _ in pairs)
    return IndexUse(id, text, times, asked, tuple(needed), saved, round(f1, 6), not needed and _worse(pairs))


def _worse(pairs: Sequence[Pair]) -> bool:
    """Return True if several questions lost their answers, or none gained and they took more actions beyond chance."""
    gained = [(trained.f1 or 0.0) - (flat.f1 or 0.0) for trained, flat in pairs]
    net = round(sum(gained), 6)
    if net < 0 and sum(one < 0 for one in gained) >= LOST:
        return True
    return bool(pairs) and net <= 0 and ratio([Sampled(*split(pairs, "actions"))]).interval.low > 1


def needs(row: Row, id: str) -> bool:
    """Return True if a pass first saw some of its evidence through this document alone."""
    return bool(_sought(row, id) & _only_through(row, id))


def _only_through(row: Row, id: str) -> set[int]:
    """Return the numbers of the steps that opened this document, or a document that only it had shown."""
    with_it: set[str] = set()
    without: set[str] = set()
    gone: set[int] = set()
    for number, shot in enumerate(row.shots, 1):
        match shot.result:
            case Found(ids, _, learnt):
                with_it.update(shown_by(shot.result))
                without.update(ids, *((one.index, *one.targets) for one in learnt if one.index != id))
                if any(one.index == id for one in learnt):
                    gone.add(number)
            case Opened(opened, links):
                with_it.update(links)
                if opened == id or (opened in with_it and opened not in without):
                    gone.add(number)
                else:
                    without.update(links)
    return gone


def _sought(row: Row, id: str) -> set[int]:
    """Return the steps that first showed the evidence; if it is unknown, all steps that opened another document."""
    found = row.evidence
    if found is not None and found.supports:
        return set(found.seen)
    if found is not None and found.gold:
        return {found.gold}
    opened = ((number, shot.result) for number, shot in enumerate(row.shots, 1))
    return {number for number, result in opened if isinstance(result, Opened) and result.id != id}


def costly(uses: Iterable[IndexUse]) -> list[IndexUse]:
    """Return the documents without which the exams would have gone better, the most harmful first."""
    return sorted((one for one in uses if one.harmful), key=lambda one: (one.f1, one.saved, one.id))


def opened_in(shots: Sequence[Shot], among: dict[str, str]) -> list[str]:
    """Return which of these documents a pass opened, in the order of their first opening."""
    results = (shot.result for shot in shots)
    return list(dict.fromkeys(one.id for one in results if isinstance(one, Opened) and one.id in among))


def openings(events: Iterable[Event]) -> dict[str, list[int]]:
    """Return the iterations in which a forward pass, in training or in serving, opened each document."""
    found: dict[str, list[int]] = {}
    for event in events:
        if isinstance(event, Acted) and event.phase == "forward" and isinstance(event.result, Opened):
            found.setdefault(event.result.id, []).append(event.iteration)
    return found


def use_line(one: IndexUse) -> str:
    """Return a line for people on one document that was opened."""
    done = f"{counted(abs(one.saved), 'action')} {'saved' if one.saved >= 0 else 'lost'}"
    accuracy = f", accuracy {one.f1:+.2f} in all" if one.f1 else ""
    return f"{one.id} {safe_text(one.text[:60])!r}: {counted(len(one.questions), 'question')}, {done}{accuracy}"


class Accounting(msgspec.Struct, frozen=True):
    """Accounts of every authored document of the current store, by the questions of these exam sets."""

    sets: tuple[str, ...]
    n: int
    indexes: list[IndexUse]

    @property
    def unused(self) -> list[IndexUse]:
        return [one for one in self.indexes if not one.questions]

    @property
    def harmful(self) -> list[IndexUse]:
        return costly(self.indexes)


def pairs_of(run: Path, store: Store) -> dict[str, list[Pair]]:
    """Return, by set, each question on the flat store and on this one; exams of other stores are excluded."""
    plan, (seed, *_) = open_seeds(run)
    if plan is not None:
        raise BadInput(f"{run} is an experiment; name one of its runs.")
    arm = next(iter(seed.trained))
    headers = {name: read_header(seed.file(arm, name)) for name in seed.sets}
    found = {
        name: paired_rows(seed.rows(arm, name), seed.rows(FLAT, name))
        for name, header in headers.items()
        if header is None or header.store == store.fingerprint  # rows of an earlier version name no store
    }
    if not found:
        how = f"examine it again: kbgym exam {run} --set {seed.sets[0]}" if seed.sets else how_to_compare(run)
        raise BadInput(f"{run} holds no exam of its store as it is now beside one of the flat store; {how}.")
    return found


def account(run: Path, store: Store) -> Accounting:
    """Return the accounts of a run. Raise BadInput if it has no exams of this store and of the flat one."""
    pairs = pairs_of(run, store)
    every = [pair for some in pairs.values() for pair in some]
    return Accounting(tuple(pairs), len(every), index_use(store, every))


def account_if_examined(run: Path, store: Store) -> Accounting | None:
    """Return the accounts of a run, or None if it has no exams of this store and of the flat one."""
    try:
        return account(run, store)
    except BadInput:
        return None


def advised(accounted: Accounting, place: str) -> list[Advice]:
    """Return advice on documents without which the exams would have gone better, or no worse."""
    found, of = [], f"of {len(accounted.indexes):,} written documents"
    for flag, what in (("harmful", "cost more than they gave"), ("unused", "were never opened")):
        if some := getattr(accounted, flag):
            said = f"in {accounted.n} exam questions {len(some):,} {of} {what}; look at them"
            found.append(Advice(said, f"store prune {quote(place)} --{flag} --dry-run"))
    return found


def accounts(audit: Audit, used: Mapping[str, Sequence[int]], accounted: Accounting | None) -> list[dict[str, Any]]:
    """Return the account of every authored document: its gain or cost, its last opening, its completeness.

    `used` are the iterations that opened each. Without exams the values that depend on them are None.
    """
    by_id = {one.id: one for one in accounted.indexes} if accounted else {}
    fields = ("opened", "questions", "needed", "saved", "f1", "harmful")
    unknown = "it names no single key" if audit.resolved else "the world has no facts to count by"
    found = []
    for index in audit.indexes:
        uses = {name: getattr(by_id.get(index.id), name, None) for name in fields}
        complete = f"{index.members - len(index.missing)} of {index.members} by the world's facts"
        last = max(used.get(index.id, ()), default=None)
        known = {"last_used": last, "complete": complete if index.scored else f"not known: {unknown}"}
        found.append({"id": index.id, "text": index.text, **uses, **known})
    return found

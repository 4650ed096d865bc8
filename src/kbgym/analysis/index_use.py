"""Which written documents the questions of an exam opened, and what came of it against the flat store.

From transcripts alone. A question's gain or loss is shared equally among the written documents it opened, so that the
shares of all add up to what the questions that opened any of them gained. That is a way of sharing, not a proof: only
an exam without a document shows what it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbgym.actions import Opened
from kbgym.analysis.verdict import Pair
from kbgym.store import Store


class IndexUse(msgspec.Struct, frozen=True):
    """One written document: the questions that opened it, and its share of actions saved and of F1 gained."""

    id: str
    text: str
    questions: tuple[str, ...]
    saved: float
    f1: float

    @property
    def harmful(self) -> bool:
        """Whether those who opened it did worse: less accurate, or as accurate at more actions."""
        return self.f1 < 0 or (self.f1 == 0 and self.saved < 0)


def index_use(store: Store, pairs: Sequence[Pair]) -> list[IndexUse]:
    """Every written document of the trained store; the most useful first, by F1 and then by actions."""
    written = {record.id: record.text for record in store if record.flag == "authored"}
    asked: dict[str, list[str]] = {id: [] for id in written}
    saved, gained = dict.fromkeys(written, 0.0), dict.fromkeys(written, 0.0)
    for trained, flat in pairs:
        opened = opened_in(trained.shots, written)
        for id in opened:
            asked[id].append(trained.id)
            saved[id] += (flat.actions - trained.actions) / len(opened)
            gained[id] += ((trained.f1 or 0.0) - (flat.f1 or 0.0)) / len(opened)
    found = [IndexUse(id, written[id], tuple(asked[id]), round(saved[id], 6), round(gained[id], 6)) for id in written]
    return sorted(found, key=lambda one: (-one.f1, -one.saved, -len(one.questions), one.id))


def opened_in(shots: Sequence[object], among: dict[str, str]) -> list[str]:
    """The documents of these that a pass opened, in the order of their first opening."""
    results = (getattr(shot, "result", None) for shot in shots)
    return list(dict.fromkeys(one.id for one in results if isinstance(one, Opened) and one.id in among))

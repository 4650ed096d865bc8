"""Flat against trained, group by group: rho and F1 with their intervals, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec

from kbgym.analysis.published import F1, RHO
from kbgym.analysis.statistics import Interval, Sampled, difference, ratio
from kbgym.training.exam import Row
from kbgym.worlds.world import Question, World, pages_of

FEW_PAGES = 10


class _Labels(dict[str, str]):
    """A set of questions that has no label of its own is called by its name."""

    def __missing__(self, name: str) -> str:
        return name


LABELS = _Labels(
    {"trained": "trained on", "both": "both keys", "one": "one key", "neither": "neither", "unseen": "never asked"}
)


class Comparison(msgspec.Struct, frozen=True):
    """One arm against the flat store on the same questions. Questions either agent failed on are left out."""

    n: int
    rho: Interval
    f1_flat: float
    f1_arm: float
    f1_difference: Interval
    actions_flat: float
    actions_arm: float
    characters_flat: float
    characters_arm: float
    failed: int


def split(pairs: Sequence[tuple[Row, Row]], field: str) -> tuple[list[float], list[float]]:
    """One field of the rows on an arm and on its base."""
    return [getattr(a, field) or 0.0 for a, _ in pairs], [getattr(b, field) or 0.0 for _, b in pairs]


def shared_keys(world: World, asked: Iterable[Question] = ()) -> dict[str, tuple[Hashable, ...]]:
    """What each question, by its text, may have in common with others: the keys it names, or what its answer rests on.

    That is the pages of its supports, or the very sentences where all answers stand on fewer than ten pages: what a
    store does for a page it does in part for all questions about it. `asked` are questions the world does not hold.
    """
    questions, pages = (*world.questions, *asked), pages_of(world.documents)
    if len({pages.get(id) for one in questions for id in one.support}) < FEW_PAGES:
        pages = {}
    return {one.text: one.keys or tuple(dict.fromkeys(pages.get(id, id) for id in one.support)) for one in questions}


def compare(
    arm: Sequence[Row], flat: Sequence[Row], keys: Mapping[str, Sequence[Hashable]] | None = None
) -> Comparison:
    """Pair the rows by question. `keys`: those that a question, by its text, names; without, none share any."""
    base = {row.id: row for row in flat}
    pairs = [(row, base[row.id]) for row in arm if row.f1 is not None and base[row.id].f1 is not None]
    fields = {field: split(pairs, field) for field in ("f1", "actions", "characters")}
    named = [(keys or {}).get(row.question, ()) for row, _ in pairs]
    actions, scores = (Sampled(*fields[field], named) for field in ("actions", "f1"))
    means = {
        f"{field}_{side}": sum(values) / len(values) if values else 0.0
        for field, both in fields.items()
        for side, values in zip(("arm", "flat"), both, strict=True)
    }
    return Comparison(
        n=len(pairs),
        rho=ratio([actions]).interval,
        f1_difference=difference([scores], scores=True).interval,
        failed=len(arm) - len(pairs),
        **means,
    )


def table(groups: Mapping[str, Comparison]) -> str:
    """The gradient of a people world on one screen, ours beside the paper's."""
    head = f"{'':12}{'n':>4}  {'rho [95%]':>22}{'F1 flat → trained':>22}{'actions':>14}   {'paper: rho, F1':<22}"
    lines = [head]
    for name, result in groups.items():
        rho = f"{result.rho.value:.3f} [{result.rho.low:.2f}, {result.rho.high:.2f}]"
        f1 = f"{result.f1_flat:.3f} → {result.f1_arm:.3f}"
        actions = f"{result.actions_flat:.1f} → {result.actions_arm:.1f}"
        paper = ""
        if name in RHO["trained-paper"]:
            before, after = (F1[arm][name] for arm in ("flat", "trained-paper"))
            paper = f"{RHO['trained-paper'][name]:.3f}, {before:.3f} → {after:.3f}"
        lines.append(f"{LABELS.get(name, name):12}{result.n:>4}  {rho:>22}{f1:>22}{actions:>14}   {paper:<22}")
    return "\n".join(line.rstrip() for line in lines)

"""What `kbgym prove` says when everything was played: the verdict, what it cost, which indexes were used."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from kbgym.analysis import published as paper
from kbgym.analysis.index_use import IndexUse, costly, index_use, use_line
from kbgym.analysis.results import LABELS
from kbgym.analysis.statistics import break_even
from kbgym.analysis.trajectory import Trained, tokens_of
from kbgym.analysis.verdict import WORDS, Finding, judge, paired_rows
from kbgym.trace.events import Ended
from kbgym.training.exam import Row, summarise

NAMED = 5  # indexes, in the text; the file has all
WIDTH = 116  # of a line for people


class BothExams(msgspec.Struct, frozen=True):
    """One set of questions on both stores."""

    set: str
    flat: Sequence[Row]
    trained: Sequence[Row]


def joined(name: str, several: Sequence[BothExams]) -> BothExams:
    """Several sets as one, in their order."""
    return BothExams(
        name, [row for one in several for row in one.flat], [row for one in several for row in one.trained]
    )


class Costs(msgspec.Struct, frozen=True):
    """What it took. Tokens are 0 where no model played; dollars None where a price is unknown."""

    training_actions: int
    training_characters: int
    training_tokens: int
    exam_actions: int
    exam_tokens: int
    dollars: float | None


class Proof(msgspec.Struct, frozen=True):
    """The answer to "does a trained store help me?", and everything it rests on. Holds no clock: made again, the same.

    `verdict` is about questions training never saw; `on_trained` about those it did. `break_even` counts questions, in
    `unit`; None where a question saves nothing. `nostore_f1`, where the text is public: what the reader knew before.
    """

    verdict: Finding
    on_trained: Finding
    evidence_flat: float | None
    evidence_trained: float | None
    cost: Costs
    break_even: float | None
    unit: str
    documents: int
    links: int
    indexes: Sequence[IndexUse]
    nostore_f1: float | None = None

    @property
    def used(self) -> list[IndexUse]:
        return [one for one in self.indexes if one.questions]

    @property
    def harmful(self) -> list[IndexUse]:
        return costly(self.indexes)


def prove(
    run: Path, unseen: BothExams, seen: BothExams, keys: Mapping[str, Sequence[Hashable]], alone: Sequence[Row] = ()
) -> Proof:
    """From a trained run and four exams of it; `alone` are rows of the unseen questions asked without a store.

    `keys`: what a question, by its text, has in common with others.
    """
    trained = Trained(run, run, "trained", "Trained")
    rows = [*unseen.flat, *unseen.trained, *seen.flat, *seen.trained]
    spent = trained.spent[max(trained.spent)]
    passes = [event.usage for event in trained.events if isinstance(event, Ended)]
    cost = Costs(
        training_actions=spent.actions,
        training_characters=spent.characters,
        training_tokens=spent.tokens,
        exam_actions=sum(row.actions for row in rows),
        exam_tokens=sum(map(tokens_of, rows)),
        dollars=_dollars([*passes, *(row.usage for row in rows)]),
    )
    pairs, unit = paired_rows(unseen.trained, unseen.flat), "tokens" if spent.tokens else "actions"
    paid = None
    if pairs:
        means = [sum(map(_size[unit], side)) / len(pairs) for side in zip(*pairs, strict=True)]
        paid = break_even(getattr(spent, unit), means[1], means[0])
    store = trained.store
    return Proof(
        verdict=judge(unseen.trained, unseen.flat, keys),
        on_trained=judge(seen.trained, seen.flat, keys),
        evidence_flat=summarise(unseen.flat).evidence,
        evidence_trained=summarise(unseen.trained).evidence,
        cost=cost,
        break_even=paid,
        unit=unit,
        documents=len(store),
        links=store.links,
        indexes=index_use(store, [*pairs, *paired_rows(seen.trained, seen.flat)]),
        nostore_f1=summarise(alone).f1 if alone else None,
    )


_size = {"tokens": tokens_of, "actions": lambda row: row.actions}


def _dollars(used: Iterable[dict[str, Any] | None]) -> float | None:
    costs = [usage.get("cost", 0.0) for usage in used if usage]
    return None if any(cost is None for cost in costs) else math.fsum(costs)


def values(proof: Proof) -> dict[str, Any]:
    """For machines: the keys a script may rely on, and the whole proof beside them."""
    verdict = proof.verdict
    rho = verdict.rho
    return {
        "verdict": verdict.word,
        "sentence": verdict.sentence,
        "n": verdict.n,
        "rho": _finite(rho.value),
        "rho_low": _finite(rho.low),
        "rho_high": _finite(rho.high),
        "f1_flat": round(verdict.f1_flat, 4),
        "f1_trained": round(verdict.f1_trained, 4),
        "evidence_flat": proof.evidence_flat,
        "evidence_trained": proof.evidence_trained,
        "break_even": None if proof.break_even is None else math.ceil(proof.break_even),
        "break_even_unit": proof.unit,
        "cost": msgspec.to_builtins(proof.cost),
        "more_questions": verdict.more_questions,
        "failed": verdict.failed,
        "trained": {"verdict": proof.on_trained.word, "sentence": proof.on_trained.sentence, "n": proof.on_trained.n},
        "indexes": msgspec.to_builtins(proof.indexes),
        "harmful": [one.id for one in proof.harmful],
        "nostore_f1": proof.nostore_f1,
    }


def group_lines(groups: Mapping[str, Finding]) -> list[str]:
    """Return the gradient of a people world as a table, beside the paper's figures."""
    found = [f"{'':12}{'n':>4}  {'rho [95%]':>22}{'F1 flat → trained':>22}{'actions':>14}   paper: rho, F1"]
    for name, group in groups.items():
        rho = f"{group.rho.value:.3f} [{group.rho.low:.2f}, {group.rho.high:.2f}]"
        f1 = f"{group.f1_flat:.3f} → {group.f1_trained:.3f}"
        actions = f"{group.actions_flat:.1f} → {group.actions_trained:.1f}"
        theirs = ""
        if name in paper.RHO["trained-paper"]:
            before, after = (paper.F1[arm][name] for arm in ("flat", "trained-paper"))
            theirs = f"{paper.RHO['trained-paper'][name]:.3f}, {before:.3f} → {after:.3f}"
        found.append(f"{LABELS[name]:12}{group.n:>4}  {rho:>22}{f1:>22}{actions:>14}   {theirs}".rstrip())
    return found


def verdict_lines(proof: Proof) -> list[str]:
    return wrap(f"Verdict: {proof.verdict.said}", WIDTH)


def lines(proof: Proof, run: Path, world: Path) -> list[str]:
    """For people, the verdict first; every word that is ours is explained where it stands."""
    verdict, used, harmful = proof.verdict, proof.used, proof.harmful
    said = [
        f"{WORDS} These are {verdict.n} questions training never saw.",
        "",
        f"On questions it was trained on, which is easier: {proof.on_trained.sentence}",
    ]
    if proof.evidence_flat is not None and proof.evidence_trained is not None:
        before, after = proof.evidence_flat, proof.evidence_trained
        said.append(
            f"Of the sentences the answers rest on, {before:.0%} were seen before training and {after:.0%} after."
        )
    if proof.nostore_f1 is not None:
        known = f"without any document the same reader's accuracy is {proof.nostore_f1:.2f}"
        said.append(f"This text is public, and a model may know it: {known}. Only what lies above that is the store's.")
    if verdict.failed:
        said.append(f"{verdict.failed} questions are left out because the agent failed on them, not the store.")
    wrote = f"Training wrote {len(proof.indexes):,} documents of its own"
    opened = f"{len(used):,} were opened by a question of these exams, {len(proof.indexes) - len(used):,} never"
    said += [_cost(proof), f"{wrote}; {opened}."]
    if used:
        said.append("What these exams would have lost without it, estimated from what was seen only through it:")
    found = [*verdict_lines(proof), *(line for one in said for line in wrap(one, WIDTH) or [""])]
    best = [one for one in used if one.useful][:NAMED]
    found += [f"  gave {use_line(one)}" for one in best] + [f"  cost {use_line(one)}" for one in harmful[:NAMED]]
    if harmful:
        found.append(f"Take out what cost more than it gave: kbgym store prune {run} --harmful --dry-run")
    elif verdict.word == "hurts":
        found.append("No single document is shown to do it: what training wrote may stand in the way of searches.")
    return [*found, "", *_next(proof, run, world)]


def _cost(proof: Proof) -> str:
    cost = proof.cost
    took = f"Training took {cost.training_actions:,} actions"
    if cost.training_tokens or cost.exam_tokens:
        money = "price unknown" if cost.dollars is None else f"${cost.dollars:,.2f} with the exams"
        took += f" and {cost.training_tokens:,} tokens ({money})"
    if proof.break_even is None:
        return f"{took}; a question like these saves none, so it is not paid back."
    return f"{took}; in {proof.unit} it is paid back after {math.ceil(proof.break_even):,} questions like these."


def _next(proof: Proof, run: Path, world: Path) -> list[str]:
    match proof.verdict.word:
        case "helps":
            first = f"Next: kbgym serve {run} --mcp --role reader"
        case "hurts":
            first = f"Next: keep only edits that do no harm: kbgym prove {world} --out {run}-gated --gate 10"
        case _:
            first = "Next: " if not proof.verdict.more_questions else "Next: ask more questions, or "
            first += f"train further: kbgym prove {world} --out {run}-class --set strategy=class"
    return [first, f"Everything is in {run}: kbgym report {run}, kbgym view {run}"]


def _finite(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None

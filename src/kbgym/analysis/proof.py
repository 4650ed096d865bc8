"""The result of `kbgym prove`: the verdict and its context (headroom, cost, evidence, groups, indexes used)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import msgspec

from kbgym.analysis.index_use import IndexUse, costly, index_use, use_line
from kbgym.analysis.results import LABELS
from kbgym.analysis.statistics import break_even
from kbgym.analysis.trajectory import Trained, cost_of, tokens_of
from kbgym.analysis.verdict import UNSHOWN, WORDS, Finding, judge, paired_rows, right_in
from kbgym.sanitize import safe_text
from kbgym.trace.events import Ended
from kbgym.training.exam import Row, Summary, summarise
from kbgym.training.run import Settings

LISTED = 5  # indexes and questions in the text; the file has all
WIDTH = 116  # characters of a printed line
LEAST = 2  # actions: one search and the answer
CHARACTERS = 4  # per token, approximately
Groups = Mapping[str, Sequence[str]]  # ids of questions


class BothExams(msgspec.Struct, frozen=True):
    """One set of questions on both stores."""

    set: str
    flat: Sequence[Row]
    trained: Sequence[Row]

    def only(self, name: str, ids: Sequence[str]) -> BothExams:
        flat, trained = ([row for row in rows if row.id in ids] for rows in (self.flat, self.trained))
        return BothExams(name, flat, trained)


def joined(name: str, several: Sequence[BothExams]) -> BothExams:
    """Join several sets in their order."""
    return BothExams(
        name, [row for one in several for row in one.flat], [row for one in several for row in one.trained]
    )


class Headroom(msgspec.Struct, frozen=True):
    """Mean actions on the flat store, the least possible, and the share that could be saved at most."""

    actions: float
    least: float
    share: float

    @property
    def sentence(self) -> str:
        return (
            f"Headroom: the flat store takes {self.actions:.2f} actions a question and {self.least:.2f} is the least, "
            f"so at most {self.share:.0%} can be saved."
        )


def headroom(flat: Sequence[Row]) -> Headroom:
    actions = [row.actions for row in flat if row.f1 is not None]
    if not actions:
        return Headroom(0.0, 0.0, 0.0)
    least = sum(min(LEAST, one) for one in actions)
    return Headroom(sum(actions) / len(actions), least / len(actions), 1 - least / sum(actions))


class Costs(msgspec.Struct, frozen=True):
    """Training and exams in actions, characters and tokens (0 if no model played); dollars None if unpriced."""

    training_actions: int
    training_characters: int
    training_tokens: int
    exam_actions: int
    exam_tokens: int
    dollars: float | None


class Proof(msgspec.Struct, frozen=True):
    """The verdict on questions unseen in training, and the data behind it. Contains no timestamps.

    `on_trained` is about questions training asked. `break_even` counts questions, in `unit`; None if a question saves
    nothing or no difference is shown. `nostore_f1`: the score without a store, if the text is public.
    """

    verdict: Finding
    on_trained: Finding
    headroom: Headroom
    flat: Summary
    trained: Summary
    groups: Mapping[str, Mapping[str, Any]]
    right: Mapping[str, int]
    answers: Sequence[Mapping[str, Any]]
    tokens: tuple[float, float]
    cost: Costs
    break_even: float | None
    unit: str
    settings: Settings
    suspects: int
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
    run: Path,
    unseen: BothExams,
    seen: BothExams,
    keys: Mapping[str, Sequence[Hashable]],
    alone: Sequence[Row] = (),
    groups: Groups | None = None,
) -> Proof:
    """Judge a trained run by four exams of it.

    `keys` are those of each question, by its text; `alone` are rows of the unseen questions asked without a store;
    `groups` are the ids of the questions of each group.
    """
    trained = Trained(run, run, "trained", "Trained")
    rows = [*unseen.flat, *unseen.trained, *seen.flat, *seen.trained]
    spent = trained.total
    passes = [event.usage for event in trained.events if isinstance(event, Ended)]
    pairs, unit = paired_rows(unseen.trained, unseen.flat), "tokens" if spent.tokens else "actions"
    verdict = judge(unseen.trained, unseen.flat, keys)
    paid = None
    if pairs and verdict.word != UNSHOWN:
        means = [sum(cost_of(row, unit) for row in side) / len(pairs) for side in zip(*pairs, strict=True)]
        paid = break_even(getattr(spent, unit), means[1], means[0])
    whole = joined("all", [unseen, seen])
    return Proof(
        verdict=verdict,
        on_trained=judge(seen.trained, seen.flat, keys),
        headroom=headroom(unseen.flat),
        flat=summarise(unseen.flat),
        trained=summarise(unseen.trained),
        groups={name: _group(whole.only(name, ids), keys) for name, ids in (groups or {}).items()},
        right=right_in(pairs),
        answers=[_answer(*pair) for pair in pairs],
        tokens=(_tokens(unseen.flat), _tokens(unseen.trained)),
        cost=Costs(
            training_actions=spent.actions,
            training_characters=spent.characters,
            training_tokens=spent.tokens,
            exam_actions=sum(row.actions for row in rows),
            exam_tokens=sum(map(tokens_of, rows)),
            dollars=dollars_of([*passes, *(row.usage for row in rows)]),
        ),
        break_even=paid,
        unit=unit,
        settings=trained.settings,
        suspects=len(trained.health.suspects),
        links=trained.store.links,
        indexes=index_use(trained.store, [*pairs, *paired_rows(seen.trained, seen.flat)]),
        nostore_f1=summarise(alone).f1 if alone else None,
    )


def dollars_of(used: Iterable[dict[str, Any] | None]) -> float | None:
    """Return the cost of passes in dollars, or None if a price is unknown."""
    costs = [usage.get("cost", 0.0) for usage in used if usage]
    return None if any(cost is None for cost in costs) else math.fsum(costs)


def _tokens(rows: Sequence[Row]) -> float:
    """Return the mean tokens of a question, estimated from the characters read if no model read."""
    used = sum(map(tokens_of, rows)) or sum(row.characters for row in rows) / CHARACTERS
    return round(used / max(1, len(rows)), 1)


def _answer(after: Row, before: Row) -> dict[str, Any]:
    sides = (("before", before), ("after", after))
    scores = {f"{name}_{side}": getattr(row, name) for name in ("f1", "actions") for side, row in sides}
    answers = {side: row.answer for side, row in sides}
    return {"id": after.id, "question": after.question, "expected": list(after.golds), **answers, **scores}


def _group(exams: BothExams, keys: Mapping[str, Sequence[Hashable]]) -> dict[str, Any]:
    """Return one group of questions on both stores, as scripts read it."""
    pages = {f"first_page_{side}": summarise(getattr(exams, side)).first_page for side in ("flat", "trained")}
    return {**_compared(judge(exams.trained, exams.flat, keys)), **pages}


def _compared(found: Finding) -> dict[str, Any]:
    ends = {"rho": found.rho.value, "rho_low": found.rho.low, "rho_high": found.rho.high}
    means = ("f1_flat", "f1_trained", "actions_flat", "actions_trained")
    return {
        "n": found.n,
        "accuracy": found.accuracy,
        **{name: _finite(value) for name, value in ends.items()},
        **{name: round(getattr(found, name), 4) for name in means},
    }


def values(proof: Proof) -> dict[str, Any]:
    """Return the keys scripts may rely on, with the whole proof."""
    verdict = proof.verdict
    both = {
        f"{name}_{side}": getattr(summary, name)
        for side, summary in (("flat", proof.flat), ("trained", proof.trained))
        for name in ("evidence", "first_page", "f1_within")
    }
    return {
        "verdict": verdict.word,
        "sentence": verdict.sentence,
        **_compared(verdict),
        "f1_difference": [_finite(one) for one in (verdict.gain.value, verdict.gain.low, verdict.gain.high)],
        "headroom": round(proof.headroom.share, 4),
        "tokens_flat": proof.tokens[0],
        "tokens_trained": proof.tokens[1],
        "tokens_measured": proof.cost.exam_tokens > 0,
        **{name: round(getattr(verdict, name), 1) for name in ("characters_flat", "characters_trained", "effective")},
        **both,
        "evidence_n": proof.flat.evidence_n,
        **{name: getattr(proof, name) for name in ("right", "groups", "answers", "nostore_f1")},
        "break_even": None if proof.break_even is None else math.ceil(proof.break_even),
        "break_even_unit": proof.unit,
        "cost": msgspec.to_builtins(proof.cost),
        "more_questions": verdict.more_questions,
        "failed": verdict.failed,
        "trained": {"verdict": proof.on_trained.word, "sentence": proof.on_trained.sentence, "n": proof.on_trained.n},
        "suspect_links": proof.suspects,
        "indexes": msgspec.to_builtins(proof.indexes),
        "harmful": [one.id for one in proof.harmful],
    }


def group_lines(groups: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return groups of questions as a table for people."""
    found = [f"{'':12}{'n':>4}  {'rho [95%]':>22}{'F1 flat → trained':>22}{'actions':>14}{'first page':>14}"]
    for name, group in groups.items():
        rho = "unknown" if group["rho_high"] is None else "{rho:.3f} [{rho_low:.2f}, {rho_high:.2f}]".format(**group)
        f1, actions = ("{f1_flat:.3f} → {f1_trained:.3f}", "{actions_flat:.1f} → {actions_trained:.1f}")
        pages = (group["first_page_flat"], group["first_page_trained"])
        page = "" if None in pages else "{:.2f} → {:.2f}".format(*pages)
        line = f"{LABELS[name]:12}{group['n']:>4}  {rho:>22}{f1.format(**group):>22}{actions.format(**group):>14}"
        line += f"{page:>14}"
        found.append(line.rstrip())
    return found


def verdict_lines(proof: Proof) -> list[str]:
    return wrap(f"Verdict: {proof.verdict.said}", WIDTH)


def lines(proof: Proof, run: Path, world: Path) -> list[str]:
    """Return the proof for people, the verdict first."""
    verdict = proof.verdict
    said = [proof.headroom.sentence, _a_question(proof), f"{WORDS} These are {verdict.n} questions training never saw."]
    found = verdict_lines(proof) + [line for one in said for line in wrap(one, WIDTH)] + [""]
    if proof.groups:
        found += [*group_lines(proof.groups), ""]
    found += [line for one in _surroundings(proof) for line in wrap(one, WIDTH)]
    found += [*_changed(proof), *_indexes(proof, run)]
    return [*found, "", *_next(proof, run, world)]


def _a_question(proof: Proof) -> str:
    """Return the cost of a question on both stores."""
    verdict, about = proof.verdict, "" if proof.cost.exam_tokens else "about "
    parts = (
        ("actions", verdict.actions_flat, verdict.actions_trained, ".2f"),
        ("characters read", verdict.characters_flat, verdict.characters_trained, ",.0f"),
        (f"{about}tokens", *proof.tokens, ",.0f"),
    )
    listed = [
        f"{name} {before:{form}} to {after:{form}}" + (f" ({after / before - 1:+.0%})" if before else "")
        for name, before, after, form in parts
    ]
    return f"A question costs, flat to trained: {'; '.join(listed)}."


def _surroundings(proof: Proof) -> list[str]:
    verdict, right = proof.verdict, proof.right
    found = [
        f"Right on both stores {right['both']}, only on the flat one {right['flat']}, only on the trained one "
        f"{right['trained']}, on neither {right['neither']}.",
        f"On questions it was trained on, which is easier: {proof.on_trained.sentence}",
    ]
    if proof.flat.evidence is not None and proof.trained.evidence is not None:
        found.append(
            f"Evidence (n = {proof.flat.evidence_n} questions with known sources): {proof.flat.evidence:.0%} was seen "
            f"before training and {proof.trained.evidence:.0%} after; on the first page of results "
            f"{proof.flat.first_page:.0%} and {proof.trained.first_page:.0%}."
        )
    if proof.nostore_f1 is not None:
        known = f"without any document the same reader's accuracy is {proof.nostore_f1:.2f}"
        found.append(
            f"This text is public, and a model may know it: {known}. Only what lies above that is the store's."
        )
    if verdict.failed:
        found.append(f"{verdict.failed} questions are left out because the agent failed on them, not the store.")
    if proof.suspects:
        found.append(f"{proof.suspects:,} of {proof.links:,} links are wrong or look wrong; see kbgym audit.")
    return [*found, _cost(proof)]


def _changed(proof: Proof) -> list[str]:
    """List the answers that changed most."""
    changed = [one for one in proof.answers if one["f1_before"] != one["f1_after"]]
    changed.sort(key=lambda one: -abs(one["f1_after"] - one["f1_before"]))
    found = ["Answers that changed (question | expected | before | after):"] if changed else []
    for one in changed[:LISTED]:
        texts = (one["question"], one["expected"][0], one["before"], one["after"])
        found.append("  " + " | ".join(safe_text(str(text or "no answer"))[:60] for text in texts))
    return found


def _indexes(proof: Proof, run: Path) -> list[str]:
    used, harmful = proof.used, proof.harmful
    if not proof.indexes:
        return ["Training wrote no document."]
    found = [
        f"Training wrote {len(proof.indexes):,} documents; {len(used):,} were opened by a question of these exams."
    ]
    best = [one for one in used if one.useful][:LISTED]
    if best or harmful:
        found.append("What these exams would have lost without one, estimated from what was seen only through it:")
    found += [f"  gave {use_line(one)}" for one in best] + [f"  cost {use_line(one)}" for one in harmful[:LISTED]]
    if harmful:
        found.append(f"Take out what cost more than it gave: kbgym store prune {run} --harmful --dry-run")
    return found


def _cost(proof: Proof) -> str:
    cost = proof.cost
    took = f"Training took {cost.training_actions:,} actions"
    if cost.training_tokens or cost.exam_tokens:
        money = "price unknown" if cost.dollars is None else f"${cost.dollars:,.2f} with the exams"
        took += f" and {cost.training_tokens:,} tokens ({money})"
    if proof.verdict.word == UNSHOWN:
        return f"{took}."
    if proof.break_even is None:
        return f"{took}; a question like these saves none, so it is not paid back."
    return f"{took}; in {proof.unit} it is paid back after {math.ceil(proof.break_even):,} questions like these."


def _next(proof: Proof, run: Path, world: Path) -> list[str]:
    """Return the next steps, which depend on the verdict and on the run's agents."""
    settings, verdict = proof.settings, proof.verdict
    again = f"kbgym prove {world} --out {run}"
    look = f"see which questions changed and why: kbgym view {run}"
    if verdict.word == "helps":
        first = f"serve the store: kbgym serve {run} --mcp --role reader"
    elif verdict.word == "hurts":
        first = look if settings.gate else f"keep only edits that do no harm: {again}-gated --gate 10"
    elif verdict.too_few or verdict.rho.high < 1 or verdict.more_questions:
        first = "add exam questions on other pages and run prove again"
    elif settings.strategy != "class" and settings.curator == "reference":
        first = f"train on classes of questions: {again}-class --set strategy=class"
    else:
        first = look
    return [f"Next: {first}", f"Everything is in {run}: kbgym report {run}, kbgym view {run}"]


def _finite(value: float) -> float | None:
    return round(value, 4) if math.isfinite(value) else None

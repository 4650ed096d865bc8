"""The key-coverage gradient: question groups that differ only in the number of their keys that training touched.

`trained` are training questions; the other groups are unseen and have two, one or none of their keys in a slot of any
training question. All groups have the same number of questions of each template, so that they are equally difficult by
composition. If a pool is too small, every group takes fewer questions of that template, and the shortfall is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import msgspec

from kbgym.canonical import atomic_dir, write_lines
from kbgym.errors import BadInput
from kbgym.training.lessons import schedule
from kbgym.training.run import Run
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.splits import shares
from kbgym.worlds.world import Question, World

NAMES = {2: ("neither", "one", "both"), 1: ("neither", "one")}


class Probe(msgspec.Struct, frozen=True):
    """The groups, the quota of each template, and the results of the checks."""

    groups: dict[str, tuple[Question, ...]]
    quota: dict[str, int]
    wanted: dict[str, int]
    overlap: dict[str, int]

    @property
    def short(self) -> dict[str, str]:
        """Return the templates that could not fill their quota, as "3 of 5"."""
        return {name: f"{self.quota[name]} of {n}" for name, n in self.wanted.items() if self.quota[name] < n}


def probe_run(run: Run, n: int | None = 34, seed: int = 0) -> Probe:
    """Draw the groups for a run's training questions and write them into the run."""
    trained = list(dict.fromkeys(question for _, question in schedule(run.world, run.settings)))
    probe = gradient(run.world, trained, n, seed)
    with atomic_dir(run.folder / "probe") as folder:
        for name, questions in probe.groups.items():
            write_lines(folder / f"{name}.jsonl", questions)
    return probe


def gradient(
    world: World, trained: Sequence[Question], n: int | None = 34, seed: int = 0, also: Sequence[Question] = ()
) -> Probe:
    """Draw the groups for a store trained on these questions; with `n` None, use all trained questions.

    Questions in `also`, on which stores to be compared with it are trained, are excluded from the unseen groups.
    """
    kind = kind_of(world)
    if not kind.has_pools:
        return held_out(world, (*trained, *also), n, seed)
    templates = gradient_templates(world)
    anchors = [question for question in trained if question.template in templates]
    if not anchors:
        raise BadInput("no training question has a template the gradient can be drawn from.")
    slots = max(len(question.keys) for question in anchors)
    touched = {key for question in trained for key in question.keys}
    seen = {question.text for question in (*trained, *also)}
    wanted = _quotas(anchors, len(anchors) if n is None else n)
    drawn: dict[str, dict[str, list[Question]]] = {}
    for template in wanted:
        of_template = drawn.setdefault(template, {name: [] for name in ("trained", *NAMES[slots])})
        of_template["trained"] = [question for question in anchors if question.template == template]
        for question in kind.pool(world, template):
            if question.text not in seen:
                of_template[NAMES[slots][sum(key in touched for key in question.keys)]].append(question)
    quota = {template: min(wanted[template], *map(len, groups.values())) for template, groups in drawn.items()}
    chosen: dict[str, tuple[Question, ...]] = {}
    for name in ("trained", *reversed(NAMES[slots])):
        picked: list[Question] = []
        for template, count in quota.items():
            picked += Random(f"{seed}:probe:{name}:{template}").sample(drawn[template][name], count)
        chosen[name] = tuple(msgspec.structs.replace(question, split=name) for question in picked)
    overlap = {name: sum(question.text in seen for question in group) for name, group in chosen.items()}
    return Probe(chosen, quota, wanted, overlap)


def gradient_templates(world: World) -> tuple[str, ...]:
    """Return the trained templates with the most slots: two in the people universe, one in PhantomWiki."""
    trained: dict[str, int] = {}
    for question in world.split("train"):
        trained[question.template] = max(trained.get(question.template, 0), len(question.keys))
    most = max(trained.values(), default=0)
    return tuple(sorted(name for name, slots in trained.items() if slots == most and most > 0))


def held_out(world: World, trained: Sequence[Question], n: int | None = 34, seed: int = 0) -> Probe:
    """Draw trained questions and unseen test questions, for a world that cannot list its questions."""
    asked = {question.text: question for question in trained}
    test = [question for name in ("test_in", "test_out") for question in world.split(name)]
    groups = {"trained": list(asked.values()), "unseen": [question for question in test if question.text not in asked]}
    if not groups["unseen"]:
        raise BadInput("this world has no test question that was not trained on, so nothing can be compared.")
    chosen: dict[str, tuple[Question, ...]] = {}
    for name, questions in groups.items():
        count = len(questions) if n is None else min(n, len(questions))
        drawn = Random(f"{seed}:probe:{name}").sample(questions, count)
        chosen[name] = tuple(msgspec.structs.replace(question, split=name) for question in drawn)
    overlap = {name: sum(question.text in asked for question in group) for name, group in chosen.items()}
    sizes = {name: len(group) for name, group in chosen.items()}
    return Probe(chosen, sizes, {name: n or size for name, size in sizes.items()}, overlap)


def _quotas(anchors: Sequence[Question], n: int) -> dict[str, int]:
    """Split n over the templates in proportion to the trained questions, by the largest remainder method."""
    counts = Counter(question.template for question in anchors)
    total = len(anchors)
    if n > total:
        raise BadInput(f"{n} questions a group are too many: training asked only {total} of these templates.")
    templates = sorted(counts)
    quota = zip(templates, shares([counts[template] for template in templates], n), strict=True)
    return {template: count for template, count in quota if count}

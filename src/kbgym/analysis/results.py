"""Results of an experiment or a run, loaded for the tables: rows by seed, arm and group; trainings by replay.

A run folder with exams of `flat` and `trained` (as `kbgym demo` writes) is read as an experiment with one seed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from kbgym.analysis import published as paper
from kbgym.analysis.cells import TABLES, CellSource, Line, Table
from kbgym.analysis.health import coverage
from kbgym.analysis.statistics import Sampled
from kbgym.analysis.trajectory import Trained
from kbgym.analysis.verdict import Pair, paired_rows, shared_keys
from kbgym.baselines import ARMS
from kbgym.canonical import digest_of, read_lines, read_value
from kbgym.errors import BadInput
from kbgym.experiments.experiment import FILE, LESSONS, Plan, exams_of, read_plan, seed_folder
from kbgym.sanitize import safe_text
from kbgym.store import Store
from kbgym.trace.events import Genesis
from kbgym.training.exam import NO_STORE, Row, read_rows
from kbgym.training.exam_header import KeptExam, exam_files, kept_exams
from kbgym.training.run import Run, Settings
from kbgym.worlds.kinds import WorldKind, kind_of
from kbgym.worlds.world import Question, World

PROBED = ("trained", "both", "one", "neither")
ORDER = (*PROBED, "unseen")
PROTOCOL = ("forward_budget", "backward_budget", "memory", "ranking", "gate", "observations", "search")
POOLED = "pooled"
FLAT = "flat"


class _Labels(dict[str, str]):
    """Labels of question sets; a set without one is called by its name."""

    def __missing__(self, name: str) -> str:
        return name


LABELS = _Labels(
    {"trained": "trained on", "both": "both keys", "one": "one key", "neither": "neither", "unseen": "never asked"}
)


class KeptPairs(msgspec.Struct, frozen=True):
    """Files by arm and set of questions, all under one condition; `left_out` are the exams under others."""

    files: dict[tuple[str, str], Path]
    left_out: tuple[KeptExam, ...] = ()

    @property
    def sets(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for _, name in self.files))


def kept_pairs(run: Path, trained: str, reader: str) -> KeptPairs:
    """Return the exams under the condition with most sets examined on both stores; ties go to the run's own reader."""
    under: dict[str, list[KeptExam]] = {}
    for exam in kept_exams(run / "exams"):
        if exam.header.arm == FLAT:
            under.setdefault(digest_of(exam.header.conditions), []).append(exam)
    found = [(_paired(exams, trained), exams) for exams in under.values()]
    if not found:
        return KeptPairs({})
    files, chosen = max(found, key=lambda one: (len(one[0]), one[1][0].header.agent == reader))
    others = (exam for exams in under.values() if exams is not chosen for exam in exams)
    return KeptPairs(files, tuple(others))


def _paired(exams: Iterable[KeptExam], trained: str) -> dict[tuple[str, str], Path]:
    """Pair, by set, the same questions on the flat and the latest trained store; of several exams, the largest."""
    asked: dict[tuple[str, str], dict[str, KeptExam]] = {}
    for exam in exams:
        both = asked.setdefault((exam.header.set, exam.header.questions), {})
        arm = trained if exam.header.iteration else FLAT
        if arm not in both or both[arm].header.iteration < exam.header.iteration:
            both[arm] = exam
    found: dict[tuple[str, str], Path] = {}
    by_rows = sorted(asked.items(), key=lambda item: min(exam.file.stat().st_size for exam in item[1].values()))
    for (name, _), both in by_rows:
        if len(both) == 2:
            found |= {(arm, name): exam.file for arm, exam in both.items()}
    return found


def how_to_compare(run: Path) -> str:
    """Return the commands that produce the missing exams."""
    sets = {arm: set[str]() for arm in (FLAT, "trained")}
    for exam in kept_exams(run / "exams"):
        sets["trained" if exam.header.iteration else FLAT].add(exam.header.set)
    if only := sorted(sets["trained"] - sets[FLAT]):
        return f"examine the flat store too: kbgym exam {run}@0 --set {only[0]}"
    if only := sorted(sets[FLAT] - sets["trained"]):
        return f"examine the trained store too: kbgym exam {run} --set {only[0]}"
    return f"make both: kbgym exam {run}@0 --set test_in && kbgym exam {run} --set test_in"


class Seed:
    """The rows and trainings of one seed."""

    def __init__(
        self, number: int, folder: Path, root: Path, trainings: Sequence[tuple[str, str, Path]], kept: KeptPairs | None
    ) -> None:
        """Load a seed. `kept` are the exams of a run by their headers; those of an experiment go by file name."""
        self.number = number
        self.kept = kept
        self.folder = folder
        self.exams = exams_of(folder)
        self.root = root
        begun = [one for one in trainings if (one[2] / "run.json").exists()]
        self.trained = {name: Trained(place, root, name, label) for name, label, place in begun}
        self._rows: dict[tuple[str, str], tuple[Row, ...]] = {}

    def under(self, reader: str) -> Seed:
        """Return the same stores, read by another reader."""
        other = copy(self)
        other.exams, other._rows = exams_of(self.folder, reader), {}
        return other

    @cached_property
    def world(self) -> World:
        return World.load(self.folder / "world")

    @cached_property
    def keys(self) -> dict[str, tuple[Hashable, ...]]:
        """Return the keys of the questions by their text, including the probe's."""
        groups = sorted((self.folder / "probe").glob("*.jsonl"))
        return shared_keys(self.world, chain.from_iterable(read_lines(file, Question) for file in groups))

    def file(self, arm: str, group: str) -> Path:
        """Return the file of an exam; a run calls its only trained store `trained`."""
        if self.kept is not None and (arm, group) in self.kept.files:
            return self.kept.files[arm, group]
        path = self.exams / f"{arm}-{group}.jsonl"
        if not path.exists() and arm in self.trained and self.trained[arm].where == str(self.folder):
            return self.exams / f"trained-{group}.jsonl"
        return path

    @property
    def sets(self) -> tuple[str, ...]:
        """Return the question sets examined on both the flat and the trained store, those of the gradient first."""
        arms = ("flat", *self.trained)
        stems = [file.stem for file in exam_files(self.exams) if file.stem.startswith("flat-")]
        named = {stem.removeprefix("flat-") for stem in stems if not stem.endswith(f".{NO_STORE}")}
        known = {*named, *(self.kept.sets if self.kept else ())}
        order = {name: place for place, name in enumerate(ORDER)}
        both = (name for name in known if name != LESSONS and all(self.has(arm, name) for arm in arms))
        return tuple(sorted(both, key=lambda name: (order.get(name, len(order)), name)))

    def has(self, arm: str, group: str) -> bool:
        return self.file(arm, group).exists()

    def rows(self, arm: str, group: str) -> tuple[Row, ...]:
        if (arm, group) not in self._rows:
            self._rows[arm, group] = tuple(read_rows(self.file(arm, group)))
        return self._rows[arm, group]

    @cached_property
    def arms(self) -> dict[str, dict[str, Any]]:
        """Return the records of every arm, trained arms included, and of arms that could not be built."""
        files = sorted((self.folder / "arms").glob("*.json"))
        found = {file.stem: read_value(file, dict[str, Any]) for file in files}
        if "flat" not in found:
            found["flat"] = _about(Store(next(iter(self.trained.values())).place.initial))
        for name, trained in self.trained.items():
            found[name] = {**_about(trained.store), "coverage": msgspec.to_builtins(trained.health.coverage)}
        return found


def _about(store: Store) -> dict[str, Any]:
    authored = len(store.authored())
    shares = msgspec.to_builtins(coverage(store))
    return {"documents": len(store), "authored": authored, "links": store.links, "coverage": shares, "tokens": 0}


class Results:
    """An experiment's seeds, arms and groups, and how a table asks for rows."""

    def __init__(self, root: Path, plan: Plan | None, seeds: Sequence[Seed], compared: bool = True) -> None:
        """Load results; with `compared`, refuse results without an exam of the flat store."""
        self.root = root
        self.plan = plan
        self.seeds = tuple(seeds)
        begun = {(one.number, name) for one in seeds for name in one.trained}
        wanted = [(seed, one.name) for seed in plan.seeds for one in plan.trainings] if plan else []
        if late := [f"seed-{seed}/{name}" for seed, name in wanted if (seed, name) not in begun]:
            raise BadInput(f"{root} has no {late[0]} yet; run the experiment first.")
        first = self.seeds[0]
        controls = [one.name for one in plan.trainings if one.control] if plan else []
        self.trainings = tuple(name for name in first.trained if name not in controls)
        known = [*(plan.arms if plan else ("flat",)), *controls, *self.trainings]
        self.groups = first.sets if plan is None else tuple(name for name in ORDER if first.has("flat", name))
        if not self.groups and (compared or plan is not None):
            how = "run the experiment first" if plan else how_to_compare(root)
            raise BadInput(f"{root} holds no exam of the flat and the trained store on the same questions; {how}.")
        whole = [arm for arm in known if all(seed.has(arm, group) for seed in self.seeds for group in self.groups)]
        self.arms = tuple(whole)
        self.missing = tuple(arm for arm in known if arm not in whole)
        self.settings = first.trained[self.trainings[0]].settings

    @cached_property
    def readers(self) -> dict[str, Results]:
        """Return the results of an experiment under every reader that has read the flat stores."""
        plan, found = self.plan, dict[str, Results]()
        for name in (plan.readers or (plan.reader,)) if plan else ():
            seeds = self.seeds if plan and name == plan.reader else [seed.under(name) for seed in self.seeds]
            if all(seed.has("flat", group) for seed in seeds for group in self.groups):
                found[name] = self if seeds is self.seeds else Results(self.root, plan, seeds)
        return found

    def label(self, arm: str) -> str:
        trained = next((seed.trained[arm] for seed in self.seeds if arm in seed.trained), None)
        return safe_text(trained.label) if trained else ARMS[arm].label if arm in ARMS else arm

    @cached_property
    def world_kind(self) -> WorldKind:
        return kind_of(self.seeds[0].world)

    @property
    def kind(self) -> str:
        """Return the kind of world: people, phantomwiki, or the name in its facts."""
        return self.world_kind.name or "corpus"

    @property
    def reference(self) -> bool:
        return is_reference(self.settings)

    @property
    def gradient(self) -> bool:
        """Return True if there are at least two groups that differ in how much training touched their questions."""
        return len(set(PROBED) & set(self.groups)) > 1

    @property
    def beside_paper(self) -> bool:
        """Return True if the results match the paper's world, protocol and groups, so that its rows apply."""
        usual, mine = Settings(), self.settings
        fixed = PROTOCOL if self.plan is None else PROTOCOL[:1]  # an ablation changes settings on purpose
        same = all(getattr(usual, name) == getattr(mine, name) for name in fixed)
        return self.kind == paper.KIND and self.gradient and same

    @property
    def agent(self) -> str:
        return played_by(self.settings, self.seeds[0].trained[self.trainings[0]].place.genesis)

    def caption(self, seeds: Sequence[Seed] | None = None, n: bool = True) -> str:
        """Return agent, seeds and n, for the caption of a table."""
        chosen = self.seeds if seeds is None else seeds
        numbers = ", ".join(str(seed.number) for seed in chosen)
        text = f"By {self.agent}; seed{'s' if len(chosen) > 1 else ''} {numbers}."
        if not n:
            return text
        if not self.groups:
            return f"{text} No exam."
        sizes = {len(seed.rows("flat", group)) for seed in chosen for group in self.groups}
        text += f" n = {' to '.join(str(one) for one in sorted({min(sizes), max(sizes)}))} a group and seed."
        if len(chosen) > 1 and self.plan is not None and self.plan.world:
            text += " All seeds share one world: intervals are over the keys that questions share, not over seeds."
        return text

    def table(
        self,
        name: str,
        lines: Sequence[Line],
        sentence: str = "",
        columns: Sequence[str] = (),
        of: str = "",
        caption: str = "",
        title: str = "",
    ) -> Table:
        """Return a table by its name in `tables.toml`, and of what it is one, such as a training."""
        info = TABLES[name]
        title = title or info.title.format(arm=self.label(of) if of else "")
        caption = f"{caption or self.caption(n=info.sized)} {info.note}".rstrip()
        full = f"{name}-{of}" if of else name
        return Table(full, title, columns or info.columns, lines, caption, sentence, info.head)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def pairs(self, arm: str, group: str, base: str = "flat", seeds: Sequence[Seed] | None = None) -> list[list[Pair]]:
        """Return a list of pairs per seed: the same question on both arms, where neither agent failed."""
        names = self.groups if group == POOLED else (group,)
        return [
            [pair for name in names for pair in paired_rows(seed.rows(arm, name), seed.rows(base, name))]
            for seed in (self.seeds if seeds is None else seeds)
        ]

    @cached_property
    def _keys(self) -> dict[str, tuple[Hashable, ...]]:
        """Return the keys of questions by their text; questions of an external set may have none."""
        return {text: keys for seed in self.seeds for text, keys in seed.keys.items()}

    def sampled(self, pairs: Sequence[Sequence[Pair]], value: Callable[[Row], float]) -> list[Sampled]:
        """Return the pairs of every seed as samples for intervals: one number per row, and the keys of its question."""
        return [
            Sampled(
                [value(a) for a, _ in of], [value(b) for _, b in of], [self._keys.get(a.question, ()) for a, _ in of]
            )
            for of in pairs
            if of
        ]

    @property
    def apart(self) -> bool:
        """Return True if every seed has its own world, so that the seed is the sampling unit."""
        return self.plan is None or not self.plan.world

    def sources(
        self, arm: str, group: str, field: str, base: str | None = None, seeds: Sequence[Seed] | None = None
    ) -> list[CellSource]:
        names = self.groups if group == POOLED else (group,)
        return [
            CellSource(os.path.relpath(seed.file(one, name), self.root), field)
            for seed in (self.seeds if seeds is None else seeds)
            for name in names
            for one in (arm, base)
            if one is not None
        ]


def is_reference(settings: Settings) -> bool:
    return settings.reader == settings.curator == "reference"


def played_by(settings: Settings, genesis: Genesis | None = None) -> str:
    """Return the agents that produced the numbers, so that rules cannot be mistaken for a model."""
    if is_reference(settings):
        return "the reference agents (deterministic rules, no language model)"
    if settings.reader == settings.curator == "general":
        return "the general agents (rules for any text, no language model)"
    # A cassette is named by the model it recorded.
    known = genesis.settings.get("agents", {}) if genesis else {}
    reader, curator = (known.get(role, {}).get("agent", getattr(settings, role)) for role in ("reader", "curator"))
    return f"reader {reader}, curator {curator}"


def open_seeds(place: Path) -> tuple[Plan | None, list[Seed]]:
    """Return the seeds of an experiment that have started, each with its started trainings; a run is one seed."""
    if (place / FILE).exists():
        plan = read_plan(place)
        begun = [(number, folder) for number in plan.seeds if (folder := seed_folder(place, number)).is_dir()]
        return plan, [
            Seed(number, folder, place, [(one.name, one.label, folder / one.name) for one in plan.trainings], None)
            for number, folder in begun
        ]
    if not (place / "run.json").exists():
        raise BadInput(f"{place} is neither an experiment nor a run: it has no {FILE} and no run.json.")
    settings = Run(place).settings
    trained = (f"trained-{settings.strategy}", f"Trained ({settings.strategy})", place)
    return None, [Seed(settings.seed, place, place, [trained], kept_pairs(place, trained[0], settings.reader))]


def open_results(place: Path, compared: bool = True) -> Results:
    """Open an experiment or run folder; with `compared`, require exams of the flat store."""
    return Results(place, *open_seeds(place), compared)

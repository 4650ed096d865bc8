"""Experiments: for each seed a world, training runs, probe groups, and exams of every arm on every group.

    EXP/experiment.json          the plan
    EXP/seed-0/world/            the seed's world
    EXP/seed-0/trained-paper/    a run folder for every training
    EXP/seed-0/probe/            the question groups and their checks
    EXP/seed-0/arms/ARM.json     the outcome of an unsupervised arm
    EXP/seed-0/exams/ARM-GROUP.jsonl, ARM@ITERATION-GROUP.jsonl
    EXP/seed-0/readers/READER/exams/ARM-GROUP.jsonl, by readers that did not train

Existing results are kept, so that a resumed experiment does only the missing work. The caller supplies the function
that builds an arm; summaries of the rows are made elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from kbgym import canonical
from kbgym.agents.external.agent import KEPT
from kbgym.agents.llm.connect import Models, is_model
from kbgym.agents.registry import make_agent
from kbgym.api import teach, trainer_for
from kbgym.api.factory import CASSETTE, agent_of, agents_named, embedder_named, models_for, settings_with
from kbgym.baselines.arm import Summarise
from kbgym.baselines.written import Summariser
from kbgym.errors import BadInput, Damaged
from kbgym.experiments.controls import controlled
from kbgym.gym.environment import RANKINGS
from kbgym.search.base import search_named
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.sync import run_sync
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import examine
from kbgym.training.lessons import schedule
from kbgym.training.probe import gradient
from kbgym.training.run import Run, Settings
from kbgym.worlds import people
from kbgym.worlds.kinds import description_for_prompt, kind_of, search_of
from kbgym.worlds.world import Question, World

# `public`: every arm on a world of real text, its questions drawn so that no page is in two splits.
Kind = Literal["paper", "paper-original", "ablation", "public"]
PAPER = ("paper", "paper-original")
FILE = "experiment.json"
LESSONS = "lessons"  # the exam on every training question: retention where only the store differs
EVAL = "eval"  # the split for the curve by epoch
SNAPSHOTS = 5  # stores of the first epoch that are examined
# Settings that an ablation can vary, with their default values.
VALUES: dict[str, tuple[int | str, ...]] = {
    "budget": (15, 30, 60),
    "questions": (25, 50, 100, 200, 400),
    "ranking": RANKINGS,
    "gate": (0, 10),
}
_FIELDS = {"budget": "backward_budget"}


class Training(msgspec.Struct, frozen=True):
    """A training variant: the arm's name, its label in tables, and settings (the seed is filled in later).

    `begins` is the arm that supplies the initial store, empty for the world's documents. `control`: see `controls.py`.
    """

    name: str
    label: str
    settings: Settings
    begins: str = ""
    control: str = ""


class Plan(msgspec.Struct, frozen=True):
    """The plan of an experiment for each seed. `world` is the hash of a given world, empty for generated ones.

    `touched` is the number of training questions that determine the touched keys, 0 for those of the largest training.
    No training has seen a question of the other groups.

    With `readers`, every arm is examined by each of them, and on the test splits too, and the stores between epochs on
    the eval split; training happens once.
    """

    kind: Kind
    trainings: tuple[Training, ...]
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    n: int | None = 34
    people: int = 500
    world: str = ""
    vary: str = ""
    touched: int = 0
    hard: bool = False
    readers: tuple[str, ...] = ()

    @property
    def others(self) -> tuple[str, ...]:
        """Return the readers besides the one that trained."""
        return tuple(reader for reader in self.readers if reader != self.reader)

    @property
    def largest(self) -> int:
        return max(training.settings.questions for training in self.trainings)

    @property
    def reader(self) -> str:
        return self.trainings[0].settings.reader

    @property
    def embedder(self) -> str:
        return self.trainings[0].settings.embedder


class AskedSet(msgspec.Struct, frozen=True):
    """One exam of an arm: who reads (empty for the reader that trained), the file, the set of questions."""

    reader: str
    file: Path
    name: str
    questions: Sequence[Question]

    @property
    def is_whole(self) -> bool:
        """Return True if the exam is complete; a file in progress has fewer lines than questions."""
        return self.file.exists() and self.file.read_bytes().count(b"\n") >= len(self.questions)


def exams_of(seed: Path, reader: str = "") -> Path:
    """Return the exams folder of a seed: of the reader that trained, or of another one."""
    return seed / "readers" / re.sub(r"[^A-Za-z0-9_.]+", "-", reader) / "exams" if reader else seed / "exams"


class Prepared(msgspec.Struct, frozen=True):
    """An arm's store, its search engine, and the facts about it to record."""

    store: Store
    engine: Engine
    about: Mapping[str, Any]


Prepare = Callable[[str, World, str, int, Summarise | None], Prepared]  # arm, world, embedder's name, seed, writer
StatusCallback = Callable[[str], None]
Connect = Callable[..., AbstractContextManager[Models | None]]  # names, and the place of their recorded replies


def trainings(
    kind: Kind,
    vary: str,
    strategies: Sequence[str],
    base: Settings,
    values: Sequence[int | str] = (),
    controls: Sequence[str] = (),
) -> tuple[Training, ...]:
    """Return one training a strategy (one of an ablation: a strategy and value), then one a control.

    `paper+hipporag` is the strategy `paper` on top of the arm `hipporag`.
    """
    found = []
    for strategy in strategies:
        strategy, _, arm = strategy.partition("+")
        settings = settings_with(base, strategy=strategy)
        name, label = f"trained-{strategy}", strategy
        if arm:
            name, label = f"{name}-from-{arm}", f"{label}, from {arm}"
        if kind != "ablation" or vary == "strategy":
            found.append(Training(name, f"Trained ({label})", settings, arm))
            continue
        if vary not in VALUES:
            raise BadInput(f"an ablation varies strategy, {' or '.join(VALUES)}, not {vary!r}.")
        for value in values or VALUES[vary]:
            try:
                changed = settings_with(settings, **{_FIELDS.get(vary, vary): value})
            except BadInput as error:
                raise BadInput(f"{vary} cannot be {value!r}: {error}") from error
            at = f"{vary}-{value}" if isinstance(value, str) else f"{vary}{value}"
            found.append(Training(f"{name}-{at}", f"{label}, {vary} {value}", changed, arm))
    first = found[0].settings if kind != "ablation" else base
    controlled = (Training(f"control-{one}", f"Control: {one.replace('-', ' ')}", first, "", one) for one in controls)
    return (*found, *controlled)


def open_experiment(folder: Path, plan: Plan) -> Plan:
    """Start an experiment or resume one: seeds, arms and trainings may be added, the rest must be the same."""
    file = folder / FILE
    if file.exists():
        before = read_plan(folder)
        for name in ("kind", "n", "people", "world", "vary", "reader", "embedder"):
            old, new = getattr(before, name), getattr(plan, name)
            if old != new:
                raise BadInput(f"{folder} was started with {name} {old!r}, not {new!r}; use that, or another --out.")
        known = {training.name: training for training in before.trainings}
        for training in plan.trainings:
            if known.get(training.name, training) != training:
                raise BadInput(f"{folder} trains {training.name} with other settings; use another --out.")
        plan = msgspec.structs.replace(
            plan,
            trainings=tuple({**known, **{one.name: one for one in plan.trainings}}.values()),
            arms=tuple(dict.fromkeys((*before.arms, *plan.arms))),
            readers=tuple(dict.fromkeys((*before.readers, *plan.readers))),
            seeds=tuple(sorted({*before.seeds, *plan.seeds})),
        )
    elif folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder} is not empty and holds no experiment; choose another --out.")
    with canonical.write_whole(file) as scratch:
        scratch.write_text(canonical.pretty(plan), encoding="utf-8")
    return plan


def read_plan(folder: Path) -> Plan:
    if not (folder / FILE).exists():
        raise BadInput(f"{folder} is not an experiment: it has no {FILE}.")
    plan = canonical.read_value(folder / FILE, Plan)
    if not plan.trainings or not plan.seeds:
        raise Damaged(f"{folder / FILE}: it has no training, or no seed.")
    for name in (*(training.name for training in plan.trainings), *plan.arms):
        canonical.check_name(folder / FILE, name)
    return plan


def seed_folder(folder: Path, seed: int) -> Path:
    return folder / f"seed-{seed}"


def snapshots(settings: Settings) -> tuple[int, ...]:
    """Return the iterations to examine before the last: five of the first epoch, then the end of each epoch."""
    steps = (round(settings.questions * part / SNAPSHOTS) for part in range(1, SNAPSHOTS + 1))
    ends = (settings.questions * epoch for epoch in range(1, settings.epochs + 1))
    last = settings.questions * settings.epochs
    return tuple(sorted({step for step in (*steps, *ends) if 0 < step < last}))


def run_seed(
    folder: Path,
    plan: Plan,
    seed: int,
    prepare: Prepare,
    tick: StatusCallback | None = None,
    connect: Connect = models_for,
) -> None:
    """Run the missing work of one seed; `connect` opens the models of agents."""
    SeedRun(seed_folder(folder, seed), plan, seed, prepare, tick or (lambda note: None), connect).run()


@dataclass
class SeedRun:
    """One seed in progress."""

    folder: Path
    plan: Plan
    seed: int
    prepare: Prepare
    tick: StatusCallback
    connect: Connect = models_for

    def __post_init__(self) -> None:
        self.embedder = embedder_named(self.plan.embedder)
        for reader in (self.plan.reader, *self.plan.others):
            if not is_model(reader):
                make_agent(reader, "reader")  # rejects unknown readers before any write
        self.world = self._world()
        self.search = search_named(search_of(self.world))

    def run(self) -> None:
        for training in self.plan.trainings:
            self._train(training)
        groups = self._probe()
        for arm in self.plan.arms:
            self._arm(arm, groups)
        for training in self.plan.trainings:
            self._stores(training, groups)

    def _world(self) -> World:
        place = self.folder / "world"
        if not place.exists():
            if self.plan.world:
                raise BadInput(f"{place} is missing; run the experiment again with its --world.")
            # A world has more training questions only if a plan needs more than the default.
            sizes = people.Sizes(train=max(people.Sizes().train, self.plan.largest))
            people.generate(self.plan.people, self.seed, sizes, hard=self.plan.hard).save(place)
        return World.load(place)

    def _settings(self, training: Training) -> Settings:
        return msgspec.structs.replace(training.settings, seed=self.seed, search=self.search)

    def _train(self, training: Training) -> None:
        settings, begins, folder = self._settings(training), None, self.folder / training.name
        world = self.world
        if training.control:
            world, settings, begins = controlled(world, training.control, settings)
        if training.begins:
            if not (folder / "run.json").exists():
                begins = self.prepare(training.begins, self.world, self.plan.embedder, self.seed, None).store
            said = f"{training.begins} {begins.fingerprint[:16]}" if begins is not None else Run(folder).settings.begins
            settings = msgspec.structs.replace(settings, begins=said)
        run = Run.open_or_create(folder, world, settings, begins)
        names = (settings.reader, settings.curator, settings.judge)
        with self.connect(names, cassette=folder / CASSETTE) as models:
            trainer = trainer_for(run, agents_named(settings, models, world=world, kept=run.folder / KEPT))
            teach(trainer, lambda done, total, note: self.tick(f"{training.name}: {done} of {total}"))

    def _probe(self) -> dict[str, tuple[Question, ...]]:
        """Return the groups by the keys that one training touched; no training saw an unseen question."""
        trained = self._asked(self.plan.touched or self.plan.largest)
        also = self._asked(self.plan.largest)
        place = self.folder / "probe"
        if not place.exists():
            probe = gradient(self.world, trained, self.plan.n, self.seed, also)
            with canonical.atomic_dir(place) as folder:
                for name, questions in probe.groups.items():
                    canonical.write_lines(folder / f"{name}.jsonl", questions)
                checked: dict[str, Any] = {"quota": probe.quota, "wanted": probe.wanted, "overlap": probe.overlap}
                checked["order"] = list(probe.groups)
                (folder / "probe.json").write_text(canonical.pretty(checked), encoding="utf-8")
        order: list[str] = canonical.read_value(place / "probe.json", dict[str, Any])["order"]
        for name in order:
            canonical.check_name(place / "probe.json", name)
        return {name: tuple(canonical.read_lines(place / f"{name}.jsonl", Question)) for name in order}

    def _asked(self, questions: int) -> list[Question]:
        """Return the training questions of a training of this size."""
        settings = Settings(questions=questions, epochs=1, seed=self.seed)
        return [question for _, question in schedule(self.world, settings)]

    def _arm(self, arm: str, groups: Mapping[str, Sequence[Question]]) -> None:
        sheets = self._sheets(arm, groups, lessons=arm == "flat", ends=arm == "flat")
        note = self.folder / "arms" / f"{arm}.json"
        if note.exists() and ("skipped" in canonical.read_value(note, dict[str, Any]) or not sheets):
            return
        self.tick(f"{arm}: building")
        note.parent.mkdir(exist_ok=True)
        # As in the paper, the model that plays also writes the summaries of GraphRAG's communities.
        writer = self.plan.reader if arm == "graphrag" and self.plan.reader.startswith("llm:") else "rule"
        try:
            with self.connect([writer], cassette=note.with_suffix(f".{CASSETTE}")) as models:
                summarise = Summariser(models, writer, models.options.concurrency) if models else None
                prepared = self.prepare(arm, self.world, self.plan.embedder, self.seed, summarise)
        except BadInput as refusal:  # this kind of world does not support the arm
            note.write_text(canonical.pretty({"arm": arm, "skipped": str(refusal)}), encoding="utf-8")
            return
        settings = msgspec.structs.replace(self.plan.trainings[0].settings, ranking="paper")
        self._examine(arm, prepared.store, prepared.engine, sheets, settings)
        written = {"tokens": summarise.tokens, "agent": writer} if summarise else {}
        note.write_text(canonical.pretty({**prepared.about, **written}), encoding="utf-8")

    def _stores(self, training: Training, groups: Mapping[str, Sequence[Question]]) -> None:
        """Examine the final store of a training run and earlier ones, obtained by replay."""
        place = StoreFolder(self.folder / training.name)
        last = training.settings.questions * training.settings.epochs
        for at in (*(() if training.control else snapshots(training.settings)), last):
            arm = training.name if at == last else f"{training.name}@{at}"
            is_last, ends = at == last, at % training.settings.questions == 0
            if sheets := self._sheets(arm, groups, lessons=is_last, ends=ends, final=is_last):
                store = place.store(at)
                engine = engine_for(store, self.embedder, search=self.search)
                self._examine(arm, store, engine, sheets, training.settings)

    def _sheets(
        self, arm: str, groups: Mapping[str, Sequence[Question]], lessons: bool, ends: bool, final: bool = True
    ) -> list[AskedSet]:
        """Return the incomplete exams of an arm; `ends`: its store is that of the beginning or end of an epoch."""
        sets = dict(groups)
        if final and self.plan.readers and kind_of(self.world).has_pools:  # the groups are not drawn from these splits
            sets |= {name: some for name in ("test_in", "test_out") if (some := self.world.split(name))}
        mine = dict(sets)
        if self.plan.kind in PAPER:
            once = msgspec.structs.replace(self._settings(self.plan.trainings[0]), epochs=1)
            asked_once = sorted((question for _, question in schedule(self.world, once)), key=lambda one: one.id)
            mine |= {LESSONS: tuple(asked_once)} if lessons else {}
            mine |= {EVAL: self.world.split(EVAL)} if ends and self.plan.readers and self.world.split(EVAL) else {}
        asked = [("", mine), *((reader, sets) for reader in (self.plan.others if final else ()))]
        found = (
            AskedSet(reader, exams_of(self.folder, reader) / f"{arm}-{name}.jsonl", name, questions)
            for reader, of_reader in asked
            for name, questions in of_reader.items()
        )
        return [one for one in found if not one.is_whole]

    def _examine(self, arm: str, store: Store, engine: Engine, sheets: Sequence[AskedSet], settings: Settings) -> None:
        """Run exams with the budget and memory of the training, or of the first training for other arms."""
        about = description_for_prompt(self.world, keys=False)
        for sheet in sheets:
            by = sheet.reader or self.plan.reader
            self.tick(f"{arm}: exam {sheet.name}" + (f" by {by}" if sheet.reader else ""))
            file, how = sheet.file, settings
            file.parent.mkdir(parents=True, exist_ok=True)
            if sheet.reader:  # the rendering of observations depends on the reader
                how = msgspec.structs.replace(settings, observations="rich" if by == "general" else "paper")
            with self.connect([by], cassette=file.with_name(f"{file.stem}.{CASSETTE}")) as models:
                reader = agent_of(by, "reader", models, about=about)
                run_sync(examine(store, engine, sheet.questions, reader, file, how))

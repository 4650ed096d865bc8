"""`kbgym prove` and `kbgym demo`: the effect of training, on a given world or on a generated one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from kbgym.agents.trust import allowed, refuse_hand
from kbgym.analysis import proof as proofs
from kbgym.analysis.health import coverage
from kbgym.analysis.proof import BothExams
from kbgym.analysis.report import write_report
from kbgym.analysis.verdict import shared_keys
from kbgym.api import Exam, Workspace, open, teach, trainer_for
from kbgym.api.factory import CASSETTE, agents_named, settings_with, training_settings
from kbgym.canonical import pretty, refuse_links, sweep, write_whole
from kbgym.cli import read_table
from kbgym.cli.common import Printed, progress, say, settings_given, splits_of, verb
from kbgym.cli.settings import option, options, place
from kbgym.cli.spending import Spending, spending_options, training_plan, with_spend
from kbgym.cli.training import begin, players, training_options
from kbgym.errors import BadInput
from kbgym.experiments.chunks import PASSES
from kbgym.store import ledger
from kbgym.training.exam import no_store_file, read_rows
from kbgym.training.exam_header import place_for
from kbgym.training.lessons import schedule
from kbgym.training.probe import probe_run
from kbgym.training.run import Run, Settings
from kbgym.worlds.people import generate
from kbgym.worlds.world import Question, World

FILE = "verdict.json"
TRAINED = "trained"
Sets = dict[str, tuple[Question, ...]]


@verb("prove")
@place("WORLD", "world", "world_folder", type=click.Path(path_type=Path))
@option("run", "--out", "out", required=True, help="The run folder; run again to resume.")
@options("set", default="test_in")
@training_options
@spending_options
def command(world_folder: Path, out: Path, set_name: str, most: int | None, trust: bool, **flags: Any) -> Printed:
    """Test whether training on a WORLD helps, and print a verdict.

    Examines the flat store, trains on the training questions, and examines the trained store on the same questions.
    The verdict uses questions that training never saw; some trained questions are reported separately. Finished steps
    are not repeated; --out may be a run of `kbgym train`.

    \b
    Example:
      kbgym prove worlds-out/w0 --out runs/r0
      kbgym prove worlds-out/w0 --out runs/gpt --agent llm:openai/gpt-5-mini-2025-08-07 --max-cost 20
    """
    spending = Spending(flags)
    with progress("opening the world"):
        world = World.load(world_folder)
    chosen = settings_given(flags)
    exists = (out / "run.json").exists()
    # The flags must match an existing run. Evaluations between epochs are not part of the proof.
    begun = settings_with(Run(out).settings, **chosen) if exists else None
    settings = begun or training_settings(world, out, **{"eval": False, **chosen})
    refuse_hand(players(settings))
    sets = _sets(world, settings, set_name, most)
    if exists:
        allowed(str(out), players(settings), [flags[role] for role in ("agent", "reader", "curator", "judge")], trust)
        refuse_links(out)
        sweep(out)
    steps = ProofSteps(begin(out, world, settings, chosen)[0], sets, spending)
    steps.confirm()
    proof, result = steps.proved()
    return result, proofs.lines(proof, out, world_folder)


def _sets(world: World, settings: Settings, unseen: str, most: int | None) -> Sets:
    """Return the questions that decide, and as many trained ones."""
    learnt = dict.fromkeys(lesson.question for lesson in schedule(world, settings))
    asked = world.split(unseen)[:most]
    if not asked or unseen == TRAINED:
        splits = splits_of(world) or "none"
        raise BadInput(f"there are no questions in the split {unseen!r} to decide on; the world's splits are {splits}.")
    if known := [question.id for question in asked if question in learnt]:
        raise BadInput(f"training would see {len(known)} of the questions in {unseen!r} (the first: {known[0]}).")
    return {unseen: asked, TRAINED: tuple(learnt)[: len(asked)]}


class ProofSteps:
    """Exams and training of one run; each step does only the missing work.

    The set `trained` is reported separately; all other sets are unseen in training and decide together.
    """

    def __init__(self, run: Run, sets: Sets, spending: Spending) -> None:
        self._run, self._sets, self._spending = run, sets, spending
        self._unseen = [name for name in sets if name != TRAINED]
        self.keys = shared_keys(run.world, (one for questions in sets.values() for one in questions))
        self.exams: dict[str, BothExams] = {}

    @property
    def groups(self) -> proofs.Groups:
        """Return the questions of each group: the sets of the gradient, or else the groups in the questions."""
        if len(self._unseen) > 1:
            return {name: [one.id for one in questions] for name, questions in self._sets.items()}
        found: dict[str, list[str]] = {}
        for name in (*self._unseen, TRAINED):
            for one in self._sets[name]:
                if group := getattr(one, "group", ""):
                    found.setdefault(TRAINED if name == TRAINED else group, []).append(one.id)
        return found

    def confirm(self) -> None:
        """Forecast the cost of all remaining work and ask once."""
        settings, left = self._run.settings, self._lessons_left()
        flat, trained = f"{self._run.folder}@0", str(self._run.folder)
        exams = self._missing(flat) + (self._asked if left else self._missing(trained))
        exams += len(self._run.world.split("eval")) * (settings.epochs + 1) if settings.eval and left else 0
        self._spending.confirm_all(training_plan(settings, left, exams))

    def proved(self) -> tuple[proofs.Proof, dict[str, Any]]:
        """Do all missing work, then return the verdict, which is kept in the run."""
        folder = self._run.folder
        flat = self._examine(f"{folder}@0")
        say(proofs.headroom([row for name in self._unseen for row in flat[name].rows]).sentence)
        self._train()
        trained = self._examine(str(folder))
        self.exams = {name: BothExams(name, flat[name].rows, trained[name].rows) for name in self._sets}
        unseen = proofs.joined("+".join(self._unseen), [self.exams[name] for name in self._unseen])
        alone = [row for name in self._unseen for row in flat[name].without]
        proof = proofs.prove(folder, unseen, self.exams[TRAINED], self.keys, alone, self.groups)
        result = {"run": str(folder), "agent": self._run.settings.reader, "set": unseen.set, **proofs.values(proof)}
        with write_whole(folder / FILE) as scratch:
            scratch.write_text(pretty(result), encoding="utf-8")
        return proof, result

    def _examine(self, place: str) -> dict[str, Exam]:
        """Examine one store on all sets, kept in the run; on public text, also once without a store."""
        reader, found, passes = self._run.settings.reader, dict[str, Exam](), PASSES * self._spending.concurrency
        with Workspace(place) as opened:
            for name, questions in self._sets.items():
                file = self._file(opened, name)
                with self._spending.models([reader], file.with_name(f"{file.stem}.{CASSETTE}")) as models:
                    with progress("embedding") as tick:
                        opened.embedded(tick)
                    with progress(f"exam {file.stem}") as tick:
                        found[name] = opened.examine(
                            reader,
                            questions,
                            out=file,
                            models=models,
                            concurrency=passes,
                            tick=with_spend(tick, models),
                            header=opened.exam_header(reader, questions, name),
                            alone=opened.at == 0 and name != TRAINED,
                        )
        return found

    def _train(self) -> None:
        run, settings = self._run, self._run.settings
        if not self._lessons_left():
            return
        with self._spending.models(players(settings), run.folder / CASSETTE) as models:
            with progress("embedding") as tick:
                trainer = trainer_for(run, agents_named(settings, models, world=run.world), tick=tick)
            with progress("training") as tick:
                teach(trainer, with_spend(tick, models))

    @property
    def _asked(self) -> int:
        return sum(map(len, self._sets.values()))

    def _missing(self, place: str) -> int:
        """Return questions without a row, including those to ask without a store if the text is public."""
        with Workspace(place) as opened:
            files = {name: self._file(opened, name) for name in self._sets}
            alone = self._unseen if opened.at == 0 and opened.is_public else []
        asked = self._asked + sum(len(self._sets[name]) for name in alone)
        kept = [*files.values(), *(no_store_file(files[name]) for name in alone)]
        return asked - sum(len(read_rows(file)) for file in kept)

    def _file(self, opened: Workspace, name: str) -> Path:
        header = opened.exam_header(self._run.settings.reader, self._sets[name], name)
        return place_for(self._run.exam_path(name).parent, header)

    def _lessons_left(self) -> int:
        with Workspace(self._run.folder) as opened:
            return max(0, len(schedule(self._run.world, self._run.settings)) - opened.place.position)


@verb("demo")
@options("embedder", default="all-MiniLM-L6-v2")
def demo_command(out: Path, people: int, seed: int, n: int, **flags: Any) -> Printed:
    """Train a store and prove its gain, offline, with the reference agents.

    Makes a world, trains on 100 questions twice, and examines the flat and the trained store on questions of four
    kinds: trained on, and never seen with both, one or none of their keys touched in training. Writes a report.

    \b
    Example:
      kbgym demo --out runs/demo
    """
    settings = Settings(seed=seed, **flags)
    run = Run.open_or_create(out, generate(people, seed), settings)
    proof, found = ProofSteps(run, probe_run(run, n).groups, Spending({})).proved()
    with open(out) as opened:
        store = opened.store
    share = coverage(store).direct
    result = {name: found[name] for name in ("run", "agent", "verdict", "sentence", "groups")}
    result |= {"report": str(write_report(out)), "seed": seed, "coverage": round(share, 4), "links": store.links}
    text: str = read_table("texts.toml")["demo"]
    return result, text.format(
        **msgspec.structs.asdict(ledger(store)),
        people=people,
        questions=settings.questions,
        seed=seed,
        share=share,
        times="once" if settings.epochs == 1 else f"{settings.epochs} times",
        groups="\n".join(proofs.group_lines(proof.groups)),
        verdict="\n".join(proofs.verdict_lines(proof)),
        report=out / "report" / "report.html",
        out=out,
    )

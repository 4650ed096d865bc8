"""Run folders: the settings, the world, the trace of the store and exams.

run.json        resolved settings, versions and hashes, written first
world/          documents.jsonl, questions.jsonl, world.json
records.jsonl   the initial store, if it is not the world's documents
trace.jsonl     every action and result; deterministic, hash-chained
exams/          a file of rows per exam
report/
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbgym.canonical import atomic_dir, check_name, pretty, read_value, write_lines
from kbgym.errors import BadInput
from kbgym.gym.environment import SLOT_THRESHOLD, SLOTS, Ranking
from kbgym.gym.observations import Observations
from kbgym.search.base import SearchKind
from kbgym.store import Store
from kbgym.trace.folder import RECORDS
from kbgym.worlds.world import World

STRATEGIES = ("paper", "class")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings that determine a training run. Two runs with equal settings give equal bytes.

    The fields from `ranking` on are off in the paper's protocol.

    Attributes:
        questions: The number of training questions.
        epochs: The number of times each is asked.
        seed: The seed of their order.
        reader: The agent that answers.
        curator: The agent that edits.
        judge: What decides on duplicates: `rule` or a model.
        strategy: How the curator chooses its work: `paper` or `class`.
        embedder: The embedding model.
        forward_budget: Actions of a forward pass.
        backward_budget: Actions of a backward pass.
        memory: Turns that an agent sees.
        batch_size: Lessons taught concurrently.
        eval: Whether the eval split is asked before training and after each epoch.
        ranking: How a page of results is filled, in training and in exams.
        gate: Questions asked again before the edits of a lesson are applied; 0 for no gate.
        observations: The rendering of results.
        search: The kind of search.
        begins: The kind and fingerprint of the initial store; empty for the world's own documents.
        slots: Trained indexes that the ranking `slot` shows beside the first page.
        slot_threshold: The minimum score of such an index, until calibration sets another.
    """

    questions: int = 100
    epochs: int = 2
    seed: int = 0
    reader: str = "reference"
    curator: str = "reference"
    judge: str = "rule"
    strategy: str = "paper"
    embedder: str = "all-MiniLM-L6-v2"
    forward_budget: int = 15
    backward_budget: int = 30
    memory: int = 30
    batch_size: int = 1
    eval: bool = True
    ranking: Ranking = "paper"
    gate: int = 0
    observations: Observations = "paper"
    search: SearchKind = "vectors"
    begins: str = ""
    slots: int = SLOTS
    slot_threshold: float = SLOT_THRESHOLD


class _Header(msgspec.Struct, frozen=True):
    """The fields of `run.json` that are read."""

    settings: Settings
    world: str


class Run:
    """A run folder that exists."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "run.json"
        if not file.exists():
            raise BadInput(f"{folder} is not a run: it has no run.json.")
        header = read_value(file, _Header)
        check_name(file, header.settings.strategy)  # part of the file names of tables and figures
        self.settings, self.world_hash = header.settings, header.world
        self._world: World | None = None

    @classmethod
    def open_or_create(cls, folder: Path, world: World, settings: Settings, begins: Store | None = None) -> Run:
        """Open the run in a folder, or create it. Raise BadInput if it has other settings or another world.

        `begins` is the initial store if that is not the world's documents.
        """
        if (folder / "run.json").exists():
            run = cls(folder)
            if run.settings != settings:
                fields = [
                    (name, old, getattr(settings, name)) for name, old in msgspec.structs.asdict(run.settings).items()
                ]
                changed = [f"{name} {old!r}, not {new!r}" for name, old, new in fields if new != old]
                raise BadInput(f"{folder} was started with {'; '.join(changed)}. Use those, or another --out.")
            if run.world_hash != world.hash:
                raise BadInput(f"{folder} was started on another world; use another --out.")
            return run
        with atomic_dir(folder) as scratch:
            header = {"settings": settings, "world": world.hash, "kbgym": 1}
            (scratch / "run.json").write_text(pretty(header), encoding="utf-8")
            world.save(scratch / "world")
            if begins is not None:
                write_lines(scratch / RECORDS, begins)
        return cls(folder)

    @property
    def world(self) -> World:
        """Return the world that the run trains on."""
        if self._world is None:
            self._world = World.load(self.folder / "world")
        return self._world

    def exam_path(self, name: str) -> Path:
        """Return the file for the rows of an exam, and create its folder."""
        folder = self.folder / "exams"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}.jsonl"

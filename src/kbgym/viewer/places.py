"""The arguments of `kbgym view`: runs, experiments and stores by a short name, and the stores and exams in each.

A requested name or arm is looked up among the known ones and never turned into a path. Results are cached until a file
of the place changes size, so that a run in progress is up to date. Expensive results of a store (search engine, audit)
are computed on first use. Nothing is ever written to a store or its folder.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

from cachetools import LRUCache

from kbgym.analysis.audit import Index
from kbgym.analysis.health import Health, health
from kbgym.analysis.index_use import openings
from kbgym.analysis.results import ORDER, Results, Seed, open_seeds
from kbgym.analysis.trajectory import Trained
from kbgym.api import Workspace
from kbgym.api.factory import embedder_named
from kbgym.baselines import ARMS, build_arm
from kbgym.errors import BadInput
from kbgym.experiments.experiment import FILE, Plan, read_plan, seed_folder
from kbgym.sanitize import number_in
from kbgym.trace.folder import arm_of
from kbgym.trace.history import Blame, blame
from kbgym.training.exam import Row
from kbgym.training.exam_header import exam_files, read_header
from kbgym.training.run import Settings
from kbgym.worlds.world import Document, World, pages_of

T = TypeVar("T")
KEPT = 60
LOOK_SECONDS = 1.0


class ViewedStore(Workspace):
    """A store to view. `name` identifies it in requests (`trained-paper`, `flat`), `label` is shown to people."""

    label = ""

    @cached_property
    def health(self) -> Health:
        began = self.place.initial if self.events else self.store
        return health(self.store, self.world, tuple(origin for record in began for origin in record.origins))

    @cached_property
    def indexes(self) -> dict[str, Index]:
        return {index.id: index for index in self.health.audit.indexes}

    @cached_property
    def suspects(self) -> frozenset[tuple[str, str]]:
        """Return links (source, target) that are wrong, or suspected if no facts are known."""
        return frozenset((suspect.index, suspect.target) for suspect in self.health.suspects)

    @cached_property
    def originals(self) -> dict[str, Document]:
        """Return the user's sentences by id, with their places in the files."""
        known = self.place.originals()
        return known or ({document.id: document for document in self.world.documents} if self.world else {})

    @cached_property
    def pages(self) -> dict[str, str]:
        """Return the source page of each original, by id."""
        return pages_of(self.originals.values())

    def kind_of(self, id: str) -> str:
        """Return the kind of a document: source, edited, index, stub, correction or gone."""
        if id not in self.store:
            return "gone"
        record = self.store[id]
        if record.flag == "authored":
            return "index" if record.links else "stub"
        return record.flag if record.flag in ("correction", "edited") else "source"

    def text(self, id: str) -> str:
        return self.store[id].text if id in self.store else "(no longer in this store)"

    def blame(self, id: str) -> Blame | None:
        """Return the whole history of a document, or None if the store has none."""
        return blame(self.place.initial.copy, self.events, id, self.at) if self.events else None

    @cached_property
    def readings(self) -> dict[str, list[int]]:
        """Return the iterations in whose forward passes each document was opened."""
        return openings(self.events)


class ViewedPlace:
    """One RUN argument of the command line."""

    def __init__(self, name: str, folder: Path, world: Path | None = None) -> None:
        self.name, self.folder, self.given_world = name, folder, world
        self.kind = "experiment"
        if not (folder / FILE).exists():
            opened = Workspace(folder)
            self.kind = "run" if opened.kind == "run" else "store"
            if self.kind == "store":
                _ = opened.place  # reject anything but a store before serving
        self._kept: LRUCache[Any, Any] = LRUCache(KEPT)
        self._lock = threading.RLock()
        self._seen: tuple[Any, ...] = ()
        self._looked = 0.0

    # -- cache ---------------------------------------------------------------------------------------------------------

    def keep(self, key: Any, make: Callable[[], T]) -> T:
        """Return the cached value under a key, or make it; the cache is cleared when files have grown."""
        with self._lock:
            self._look()
            if key not in self._kept:
                seen = self._seen
                made = make()
                if seen != self._seen:  # a file grew meanwhile: the value is neither the old nor the new state
                    return made
                self._kept[key] = made
            found: T = self._kept[key]
            return found

    def _look(self) -> None:
        if time.monotonic() - self._looked < LOOK_SECONDS and self._seen:
            return
        self._looked, seen = time.monotonic(), self.signature()
        if seen != self._seen:
            self._seen = seen
            self._kept.clear()

    def signature(self) -> tuple[Any, ...]:
        """Return the sizes of the files that grow during a run."""
        bases = [self.folder]
        if self.kind == "experiment":
            seeds = [seed_folder(self.folder, seed) for seed in self.seeds]
            bases = [*seeds, *(seed / one.name for seed in seeds for one in self.plan.trainings)]
        files: list[Path] = []
        for base in bases:
            files += [base / "trace.jsonl", base / "records.jsonl", *exam_files(base / "exams")]
        return tuple((str(file), file.stat().st_size) for file in files if file.exists())

    # -- contents ------------------------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        return read_plan(self.folder)

    @property
    def seeds(self) -> tuple[int, ...]:
        if self.kind == "experiment":
            return tuple(seed for seed in self.plan.seeds if seed_folder(self.folder, seed).is_dir())
        return (self.settings.seed,) if self.settings else (0,)

    @property
    def settings(self) -> Settings | None:
        if self.kind == "run":
            return Workspace(self.folder).settings
        return self.plan.trainings[0].settings if self.kind == "experiment" else None

    def seed(self, asked: str | None) -> int:
        """Return the seed asked for, or the first."""
        if not self.seeds:
            raise BadInput(f"{self.name} has not begun yet.")
        if not asked:
            return self.seeds[0]
        if (number := number_in(asked)) not in self.seeds:
            raise BadInput(f"{self.name} has no seed {asked[:20]}; it has {', '.join(map(str, self.seeds))}.")
        return number

    def base(self, seed: int) -> Path:
        """Return the folder with a seed's world and exams."""
        return seed_folder(self.folder, seed) if self.kind == "experiment" else self.folder

    def trained(self, seed: int) -> dict[str, Trained]:
        """Return the started trainings of a seed, by arm."""
        return {} if self.kind == "store" else {one.number: one.trained for one in self._opened[1]}[seed]

    def keys(self, seed: int) -> dict[str, tuple[Hashable, ...]]:
        """Return the keys that questions share, by their text."""
        return {} if self.kind == "store" else {one.number: one.keys for one in self._opened[1]}[seed]

    @property
    def _opened(self) -> tuple[Plan | None, list[Seed]]:
        return self.keep("opened", lambda: open_seeds(self.folder))

    def arms(self, seed: int) -> dict[str, str]:
        """Return the label of every store by arm, trained ones first."""
        if self.kind == "store":
            arm = arm_of(self.folder)
            return {"store": ARMS[arm].label if arm in ARMS else "the store"}
        found = {name: trained.label for name, trained in self.trained(seed).items()}
        found["flat"] = "Flat (before training)"
        if self.kind == "experiment":
            found |= {arm: ARMS[arm].label for arm in self.plan.arms if arm in ARMS and arm != "flat"}
        return found

    def label(self, seed: int, arm: str) -> str:
        name, at = split(arm)
        label = self.arms(seed).get(name, name)
        return label if at is None else f"{label}, after iteration {at}"

    def world(self, seed: int) -> World | None:
        return self.keep(("world", seed), lambda: Workspace(self.base(seed), self.given_world).world)

    @property
    def results(self) -> Results | None:
        """Return the results for the tables, or None if there is nothing to compare yet."""

        def made() -> Results | None:
            try:
                return Results(self.folder, *self._opened) if self.kind != "store" else None
            except BadInput:
                return None

        return self.keep("results", made)

    # -- stores -------------------------------------------------------------------------------------------------------

    def viewed(self, seed: int, arm: str | None = None, at: int | None = None) -> ViewedStore:
        """Return a store by arm (`trained-paper`, `trained-paper@40`, `flat`), at an iteration if one is given."""
        arms = self.arms(seed)
        name, inside = split(arm or next(iter(arms)))
        if name not in arms:
            raise BadInput(f"{self.name} has no store {name[:60]!r}; it has {', '.join(arms)}.")
        at = inside if at is None else at
        if at is not None and name not in self.trained(seed) and self.kind != "store":
            at = None
        return self.keep(("viewed", seed, name, at), partial(self._open, seed, name, at))

    def _open(self, seed: int, arm: str, at: int | None) -> ViewedStore:
        trained, world = self.trained(seed).get(arm), self.world(seed)
        folder = self.base(seed) if trained is None else trained.where
        named = self.settings.embedder if self.settings else None
        viewed = ViewedStore(folder if at is None else f"{folder}@{at}", world, embedder=named)
        if trained is not None:
            vars(viewed)["place"] = trained.place  # its trace is read once for all iterations
            if at is None:
                vars(viewed)["store"] = trained.store
        elif self.kind != "store":
            if arm in ("flat", "bm25"):
                store = viewed.place.store(0)
            elif world is None:
                raise BadInput(f"{self.name} has no world to build {arm} from.")
            else:
                store = build_arm(arm, world, lambda: embedder_named(viewed.settings.embedder), seed).store
            viewed = viewed.with_store(store, arm)
        viewed.name, viewed.label = arm, self.label(seed, arm if at is None else f"{arm}@{at}")
        return viewed

    # -- exams --------------------------------------------------------------------------------------------------------

    def exams(self, seed: int) -> dict[tuple[str, str], tuple[Row, ...]]:
        """Return rows by arm and question set; sets of the gradient come first, in its order."""

        def made() -> dict[tuple[str, str], tuple[Row, ...]]:
            found: dict[tuple[str, str], tuple[Row, ...]] = {}
            for stem, rows in Workspace(self.base(seed)).exams().items():
                name = self._exam_name(seed, stem) or self._said(seed, stem)
                if name is not None:
                    found[name] = tuple(rows)
            order = {name: place for place, name in enumerate(ORDER)}
            return dict(sorted(found.items(), key=lambda item: (order.get(item[0][1], len(order)), item[0])))

        return self.keep(("exams", seed), made)

    def _said(self, seed: int, stem: str) -> tuple[str, str] | None:
        """Return arm and set from an exam's header, regardless of the file's name."""
        header = read_header(self.base(seed) / "exams" / f"{stem}.jsonl")
        if header is None or header.arm != "flat":
            return None
        arm = f"{next(iter(self.arms(seed)))}@{header.iteration}" if header.iteration else "flat"
        return arm, header.set

    def _exam_name(self, seed: int, stem: str) -> tuple[str, str] | None:
        """Return ARM-SET or ARM@ITERATION-SET; a run calls its only trained store `trained`."""
        arms = self.arms(seed)
        for arm in sorted(arms, key=len, reverse=True):
            if match := re.fullmatch(re.escape(arm) + r"(@\d+)?-(.+)", stem):
                return arm + (match[1] or ""), match[2]
        if self.kind == "run" and (match := re.fullmatch(r"trained(@\d+)?-(.+)", stem)):
            return next(iter(arms)) + (match[1] or ""), match[2]
        return None


def split(arm: str) -> tuple[str, int | None]:
    """Split `trained-paper@40` into an arm and an iteration."""
    name, _, at = arm.partition("@")
    return name, number_in(at)


class ViewedPlaces(dict[str, ViewedPlace]):
    """Every place by its name."""

    def __init__(self, folders: Sequence[Path], world: Path | None = None) -> None:
        for folder in folders:
            name = plain = folder.resolve().name or "store"
            number = 2
            while name in self:
                name, number = f"{plain}-{number}", number + 1
            self[name] = ViewedPlace(name, folder, world)

    def named(self, name: str | None) -> ViewedPlace:
        """Return a place by name, the first one by default."""
        name = name or next(iter(self))
        if name not in self:
            raise BadInput(f"{name[:60]!r} is not being viewed; there are {', '.join(self)}.")
        return self[name]

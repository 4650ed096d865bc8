"""The workspace: a world, a run or a store, opened once, with its settings, store, questions, search and exams.

    with kbgym.open("runs/r0@57") as run:
        print(run.settings.reader, len(run.store), run.examine("reference", "test_in").summary.f1)

World, run, settings, embedder and arm of a place are determined only here. Everything is read lazily. Open stores are
frozen; edit a copy.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from copy import copy
from functools import cached_property
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from kbgym.api import factory
from kbgym.api.factory import Player
from kbgym.canonical import read_lines, refuse_links
from kbgym.errors import BadInput, Missing
from kbgym.gym.environment import Environment
from kbgym.gym.tools import PAGE_SIZE
from kbgym.progress import ProgressCallback
from kbgym.search.base import search_named
from kbgym.store import Store
from kbgym.trace.backend import StoreBackend, is_url, open_backend, shown
from kbgym.trace.events import Event, Genesis
from kbgym.trace.folder import TRACE, arm_file, arm_of, folder_and_iteration, initial_file
from kbgym.trace.history import Entry, log
from kbgym.trace.log import has_begun
from kbgym.training.run import Run, Settings
from kbgym.worlds.kinds import agent_for, description_for_prompt
from kbgym.worlds.world import Question, Source, World

if TYPE_CHECKING:  # exams and arms are loaded on use, to keep imports fast for search
    from kbgym.agents.llm.connect import Models
    from kbgym.search.engine import Engine
    from kbgym.training.exam import Row, Summary
    from kbgym.training.exam_header import ExamHeader

LIBRARIES = ("pandas", "polars")
_LEFT_OUT = ("shots",)  # the steps of a pass are not a column; the rows have them


def frame(values: Iterable[msgspec.Struct], **columns: Sequence[Any]) -> Any:
    """Return a pandas or polars frame with a row for each value; further columns come first."""
    for name in LIBRARIES:
        if find_spec(name) is not None:
            rows = zip(values, *columns.values(), strict=True)
            made = [{**dict(zip(columns, added, strict=True)), **_plain(value)} for value, *added in rows]
            return import_module(name).DataFrame(made)
    raise Missing("a frame needs pandas or polars; run `pip install pandas`.")


def _plain(value: msgspec.Struct) -> dict[str, Any]:
    fields = zip(value.__struct_encode_fields__, msgspec.structs.astuple(value), strict=True)
    return {name: msgspec.to_builtins(field) for name, field in fields if name not in _LEFT_OUT}


Kind = Literal["world", "run", "store"]


class Ranked(msgspec.Struct, frozen=True):
    """A search hit and its similarity."""

    id: str
    text: str
    score: float


def html_table(title: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a small HTML table with escaped texts."""
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    return f"<table><caption>{escape(title)}</caption>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


class Exam(msgspec.Struct, frozen=True):
    """The result of an exam.

    Attributes:
        rows: One row per question.
        without: The rows of the same questions without a store, if the text is public and a model may know it.
    """

    rows: list[Row]
    without: list[Row] = []

    @property
    def summary(self) -> Summary:
        """Return the means of the rows and the counts of their outcomes."""
        from kbgym.training.exam import summarise

        return summarise(self.rows)

    def frame(self) -> Any:
        """Return the rows as a pandas or polars frame."""
        return frame(self.rows)

    def __repr__(self) -> str:
        found = self.summary
        return f"<Exam, n = {found.n}: F1 {found.f1:.3f}, {found.actions:.2f} actions a question>"

    def _repr_html_(self) -> str:
        found = msgspec.to_builtins(self.summary)
        shown = ("n", "f1", "em", "actions", "characters")
        return html_table("Exam", [(name, found[name]) for name in shown] + list(found["outcomes"].items()))


class Workspace:
    """One place at one iteration. `changes` are settings that override those of the place."""

    def __init__(self, where: str | Path, world: str | Path | World | None = None, **changes: Any) -> None:
        self.where = str(where)
        self.name = shown(where)
        self.folder: Path | None = None
        self.at: int | None = None
        if not is_url(where):
            self.folder, self.at = folder_and_iteration(where)
            initial_file(self.folder)  # rejects anything but a store
        self._world, self._changes = world, changes
        self._engine: Engine | None = None
        self._has_own_store = False  # exams of a hand-made store are not the run's
        self._brief = False  # few searches: building a graph would not pay

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}>"

    def _repr_html_(self) -> str:
        from kbgym.store import ledger

        found = ledger(self.store)
        rows: list[tuple[str, object]] = [("iteration", self.iteration), ("documents", f"{found.documents:,}")]
        rows += [("written by agents", f"{found.authored:,}"), ("links", f"{found.links:,}")]
        rows += [(f"exam {name}", f"n = {len(some)}") for name, some in self.exams().items()]
        return html_table(f"{self.kind} {self.name}", rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release open resources; loaded values stay available."""
        if "place" in vars(self):
            self.place.close()

    # -- properties ----------------------------------------------------------------------------------------------------

    @cached_property
    def place(self) -> StoreBackend:
        """Return the initial documents and the trace."""
        return open_backend(self.where)

    @cached_property
    def run(self) -> Run | None:
        """Return the run, if the folder is one."""
        return Run(self.folder) if self.folder is not None and (self.folder / "run.json").exists() else None

    @property
    def kind(self) -> Kind:
        """Return `run`, `world` or `store`."""
        if self.run is not None:
            return "run"
        return "world" if self.folder is not None and (self.folder / "documents.jsonl").is_file() else "store"

    @cached_property
    def arm(self) -> str:
        """Return the arm that made the store, or `flat`; it decides how the store is searched."""
        return (self.place.arm if self.folder is None else arm_of(self.folder)) or "flat"

    @property
    def iteration(self) -> int:
        """Return the iteration that was opened."""
        return self.place.iteration if self.at is None else self.at

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Return the events of the trace."""
        return self.place.events

    @cached_property
    def settings(self) -> Settings:
        """Return the settings of the run, else those its trace began with, else the defaults."""
        changes = dict(self._changes)
        if self.run is not None:
            return factory.settings_with(self.run.settings, **changes)
        if (genesis := self._genesis) is not None:
            began = {**genesis.settings, "embedder": genesis.embedder or None}
            known = factory.settings_with(**{name: began.get(name) for name in Settings.__struct_fields__})
        else:
            # By the arm that built the store, else by its world.
            built = arm_file(self.folder) if self.folder is not None else None
            given: dict[str, Any] = {"reader": self.agent, "curator": self.agent}
            if self.world is not None:
                given |= factory.settings_of(self.world)
            if built is not None:
                given |= {"search": search_named(built.engine or "vectors"), "observations": built.observations}
            known = factory.settings_with(**given)
        if changes.get("search") == "words" and not changes.get("embedder"):
            changes["embedder"] = "none"
        return factory.settings_with(known, **changes)

    @property
    def is_new(self) -> bool:
        """Return True if the store was never trained or served, so that nothing names its agents."""
        return self.run is None and self._genesis is None

    @property
    def agent(self) -> str:
        """Return the default agent: by the world's kind, else by the history."""
        if self.world is not None:
            return agent_for(self.world)
        return Settings().reader if self.is_new else self.settings.reader

    def show_links_to(self, reader: Player) -> None:
        """Mark documents that have links for the general reader, unless the history says otherwise."""
        if reader == "general" and self.is_new and self._changes.get("observations") is None:
            self._changes = {**self._changes, "observations": "rich"}
            vars(self).pop("settings", None)

    @property
    def _genesis(self) -> Genesis | None:
        """Return the first line of the trace, without opening a large store."""
        trace = self.folder / TRACE if self.folder is not None else None
        if trace is None or "place" in vars(self) or (has_begun(trace) and not trace.exists()):
            return self.place.genesis  # or report the error of a missing trace
        return next(read_lines(trace, Genesis), None) if has_begun(trace) else None

    @cached_property
    def world(self) -> World | None:
        """Return the given world, else the run's own, else the folder itself if it is one."""
        if isinstance(self._world, World):
            return self._world
        inside = (self.folder / "world", self.folder) if self.folder else ()
        places = [Path(self._world)] if self._world else [one for one in inside if (one / "documents.jsonl").is_file()]
        return World.load(places[0], elsewhere=self.folder is None) if places else None

    def questions(self, name: str = "test_in") -> tuple[Question, ...]:
        """Return a split of the world, a probe group of the run, or a file of questions."""
        if self.world is None and not Path(name).is_file():
            raise BadInput(f"{self.name} holds no questions; name their world with --world.")
        return factory.question_set(name, self.world, self.run)

    # -- the store ----------------------------------------------------------------------------------------------------

    @cached_property
    def store(self) -> Store:
        """Return the store at this iteration, frozen; `store.copy()` can be edited."""
        return self.place.store(self.at).freeze()

    def with_store(self, store: Store, arm: str = "flat") -> Self:
        """Return the same place with another store and no history, to search and examine it."""
        twin = copy(self)
        twin._engine, twin._has_own_store = None, True
        vars(twin).update(store=store.as_frozen(), arm=arm, events=())
        return twin

    @property
    def origins(self) -> tuple[str, ...]:
        """Return the originals that the store began with."""
        return tuple(origin for record in self.place.initial for origin in record.origins)

    def sources(self, ids: Collection[str]) -> dict[str, Source]:
        """Return the places of originals in the user's files, as far as they are known."""
        known = self.place.originals(ids) if ids else {}
        return {id: source for id in ids if id in known and (source := known[id].source) is not None}

    @property
    def engine(self) -> Engine:
        """Return the search engine of the store; the first call embeds the documents."""
        return self.embedded()

    def embedded(self, tick: ProgressCallback | None = None) -> Engine:
        """Return the search engine, with every document embedded once."""
        if self._engine is None:
            from kbgym.baselines import engine_for_arm

            settings = self.settings
            beside = factory.beside_on_page(self.place.originals().values()) if self.folder is not None else {}
            vectors = factory.embedder_named(settings.embedder)
            self._engine = engine_for_arm(self.arm, self.store, vectors, tick, settings.search, beside, self._brief)
        return self._engine

    def search(self, query: str, page: int = 1, tick: ProgressCallback | None = None) -> list[Ranked]:
        """Return a page of results as an agent sees it."""
        self._brief = True
        engine, store = self.embedded(tick), self.store
        ids = Environment(store, engine, ranking=self.settings.ranking).page(query, page)
        scores, limit = dict[str, float](), page * PAGE_SIZE
        while not scores.keys() >= set(ids):
            scores, limit = dict(engine.search(query, 0, limit)), 2 * limit
        return [Ranked(id, store[id].text, scores[id]) for id in ids]

    def log(self) -> list[Entry]:
        """Return the iterations of the store, oldest first."""
        if self.at is not None:
            _ = self.store  # raises if there is no such iteration
        return [entry for entry in log(self.events) if self.at is None or entry.iteration <= self.at]

    # -- exams --------------------------------------------------------------------------------------------------------

    def examine(self, reader: Player | None = None, set: str | Sequence[Question] = "test_in", **how: Any) -> Exam:
        """Ask a reader a set of questions on the frozen store, under the run's budget, memory and ranking.

        The default reader is the one that suits the world.

        `how` are further arguments of `examine_async`; inside a running loop either may be used. Model replies are
        recorded beside `out`.
        """
        from kbgym.sync import run_sync

        reader = self.agent if reader is None else reader
        cassette = factory.file_beside(out, factory.CASSETTE) if (out := how.get("out")) is not None else None
        with factory.models_for([factory.name_of(reader)], how.pop("models", None), cassette=cassette) as models:
            return run_sync(self.examine_async(reader, set, models=models, **how))

    async def examine_async(
        self,
        reader: Player | None = None,
        set: str | Sequence[Question] = "test_in",
        out: str | Path | None = None,
        concurrency: int = 16,
        models: Models | None = None,
        tick: ProgressCallback | None = None,
        header: ExamHeader | None = None,
        alone: bool = True,
    ) -> Exam:
        """Write rows to `out` as they come, and skip questions that have a row.

        Without `out`, an exam of a named set by a named reader is kept in the run, if this is one.

        `header` overrides the header of the rows, for readers and sets with unknown names. If `alone` is False, the
        reader is not examined without a store, even if the text is public.
        """
        from kbgym.training.exam import examine, examine_without
        from kbgym.training.exam_header import claim

        reader = self.agent if reader is None else reader
        self.show_links_to(reader)
        questions = self.questions(set) if isinstance(set, str) else set
        if out is None and isinstance(reader, str) and isinstance(set, str):
            out = self.kept_place(header or self.exam_header(reader, set))
        agent = self.reader(reader, models, out)
        file = None if out is None else Path(out)
        if file is not None:
            claim(file, header := header or self.exam_header(factory.name_of(reader), set))
        asked = questions, agent, file, self.settings, concurrency
        rows = await examine(self.store, self.engine, *asked, tick, header.conversation or "" if header else "")
        return Exam(rows, await examine_without(*asked) if alone and self.is_public else [])

    def exam_header(self, agent: str, set: str | Sequence[Question], called: str | None = None) -> ExamHeader:
        """Return the header of an exam of this store by this agent."""
        from kbgym.training.exam_header import header_of

        asked = self.questions(set) if isinstance(set, str) else set
        name = called or (Path(set).stem if isinstance(set, str) else "questions")
        world = self.world.hash if self.world is not None else ""
        return header_of(self.store, self.iteration, self.arm, world, agent, name, asked, self.settings)

    def reader(self, name: Player, models: Models | None = None, out: str | Path | None = None) -> Any:
        """Return the reader of this name, with the world's description of itself.

        The output of a command is kept beside `out`.
        """
        from kbgym.agents.external.agent import KEPT

        kept = None if out is None else factory.file_beside(out, KEPT)
        return factory.agent_of(name, "reader", models, kept=kept, **self.told)

    def kept_place(self, header: ExamHeader) -> Path | None:
        """Return the file of an exam in its run; None if the run cannot be written or the questions are foreign."""
        from kbgym.training.exam_header import place_for

        foreign = self.run is None or self._has_own_store or header.world != self.run.world_hash
        if self.run is None or foreign or not os.access(self.run.folder, os.W_OK):
            return None
        refuse_links(self.run.folder)
        return place_for(self.run.exam_path("").parent, header)

    @property
    def told(self) -> dict[str, Any]:
        """Return the context of a reader besides its skill: the world's description, the same for every store."""
        return {"about": description_for_prompt(self.world, keys=False) if self.world is not None else ""}

    @property
    def is_public(self) -> bool:
        """Return True if a score is meaningful only beside the score without a store."""
        from kbgym.training.exam import is_public

        return self.world is not None and is_public(self.world) and len(self.store) > 0

    def exams(self) -> dict[str, list[Row]]:
        """Return the rows of every exam in the run, by the exam's name."""
        from kbgym.training.exam import read_rows
        from kbgym.training.exam_header import exam_files

        files = exam_files(self.folder / "exams") if self.folder else ()
        return {file.stem: read_rows(file) for file in files}

    def frame(self, what: Literal["exams", "log", "documents", "questions"] = "exams") -> Any:
        """Return the rows of the exams, the log, the documents or the questions as a pandas or polars frame."""
        columns: dict[str, list[str]] = {}
        values: Sequence[Any] = ()
        if what == "exams":
            exams = self.exams()
            values = [row for rows in exams.values() for row in rows]
            columns = {"exam": [name for name, rows in exams.items() for _ in rows]}
        elif what == "questions":
            values = self.world.questions if self.world is not None else ()
        else:
            values = self.log() if what == "log" else list(self.store)
        if not values:
            raise BadInput(f"{self.name} has no {what}.")
        return frame(values, **columns)

    # -- notebooks ----------------------------------------------------------------------------------------------------

    def probe(self, n: int | None = 34, seed: int = 0) -> dict[str, int]:
        """Draw the gradient's question groups, keep them in the run, and return their sizes."""
        from kbgym.training.probe import probe_run

        if self.run is None:
            raise BadInput(f"{self.name} is no run; only a trained run has a gradient.")
        return {name: len(questions) for name, questions in probe_run(self.run, n, seed).groups.items()}

    def compare(self, other: Workspace | str | Path, set: str = "test_in", reader: Player | None = None) -> Any:
        """Examine both stores on the same questions and return rho and F1 with intervals; kept exams are reused."""
        there = other if isinstance(other, Workspace) else Workspace(other, self.world)
        notebook = import_module("kbgym.integrations.notebook")  # a layer above this package
        return notebook.compare(self, there, set, self.agent if reader is None else reader)

    def plot(self, what: Literal["gradient", "learning", "map"] = "gradient") -> Any:
        """Draw the gradient, the growth in training ("learning") or the map of the store, for a notebook."""
        return import_module("kbgym.integrations.notebook").draw(self, what)


def open(where: str | Path, world: str | Path | World | None = None, **changes: Any) -> Workspace:
    """Open a run, a run at an iteration (`RUN@57`), a store, a world, or `postgresql://...`.

    `world` has the questions, unless the place has its own; `changes` replace settings of the place.
    """
    return Workspace(where, world, **changes)

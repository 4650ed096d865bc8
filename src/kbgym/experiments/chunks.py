"""Exams in chunks of questions, each asked by `examine` in a process of a work engine.

An `ExamSetup` is sent to each process once: the store, its vectors and the name of the reader. A chunk returns its
rows, which are kept as they come. Models are asked from one process, where they share a budget: see `--concurrency`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbgym.agents.llm.connect import is_model
from kbgym.agents.registry import make_agent
from kbgym.api import Exam, Workspace
from kbgym.api.factory import embedder_named
from kbgym.canonical import Decoder
from kbgym.errors import BadInput
from kbgym.experiments.engines import WorkEngine, cut
from kbgym.progress import ProgressCallback
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex
from kbgym.store import Store
from kbgym.sync import run_sync
from kbgym.training.exam import ResultWriter, Row, examine, no_store_file, of_no_store
from kbgym.training.exam_header import ExamHeader, claim
from kbgym.training.run import Settings
from kbgym.worlds.world import Question

CHUNK = 200  # maximum questions; in small chunks the overhead of a task dominates
EACH = 8  # chunks per worker, so that none waits long for the last
PASSES = 3  # concurrent passes per concurrent request, since the others are searching

_row: Decoder[Row] = Decoder(Row)


class ExamSetup:
    """The store and the reader of an exam, as a value that can be sent to another process."""

    def __init__(self, store: Store, engine: Engine, settings: Settings, agent: str = "reference") -> None:
        """Create a setup; `settings` name the embedder of the engine."""
        if is_model(agent):
            raise BadInput("a model is asked from one process: leave --engine out, and say --concurrency.")
        self.store = store.as_frozen()
        self.settings = settings
        self.agent = agent
        self._engine: Engine | None = engine

    def __getstate__(self) -> dict[str, Any]:
        """Send exact vectors as one array; memory-mapped ones are opened on every machine.

        For a store whose documents are read from a database, only the changes are sent.
        """
        engine = self._engine
        if not isinstance(engine, Engine):
            return vars(self)
        held = self.store.base is None and isinstance(engine.index, ExactIndex)
        index = engine.index if held else None
        return {**vars(self), "_engine": None, "_index": index, "_how": (engine.kind, engine.beside)}

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            embedder, index = embedder_named(self.settings.embedder), vars(self).pop("_index")
            search, beside = vars(self).pop("_how")
            self._engine = engine_for(self.store, embedder, None, search, beside, index=index)
        return self._engine


def ask_chunk(setup: ExamSetup, questions: Sequence[Question]) -> bytes:
    """Ask the questions of a chunk in this process and return the lines of their rows."""
    with tempfile.TemporaryDirectory(prefix="kbgym-chunk-") as folder:
        rows = Path(folder) / "rows.jsonl"
        reader = make_agent(setup.agent, "reader")
        run_sync(examine(setup.store, setup.engine, questions, reader, rows, setup.settings, PASSES))
        return rows.read_bytes()


def examine_in_chunks(
    engine: WorkEngine,
    setup: ExamSetup,
    questions: Sequence[Question],
    out: Path | None = None,
    tick: ProgressCallback | None = None,
    size: int | None = None,
) -> list[Row]:
    """Return the rows that `examine` would return, asked on an engine."""
    with ResultWriter(questions, out, tick, setup.settings.ranking) as sheet:
        size = size or max(1, min(CHUNK, len(sheet.missing) // (EACH * engine.workers)))
        for answered in engine.run(ask_chunk, setup, cut(sheet.missing, size)):
            for line in answered.splitlines():
                sheet.add(_row.decode(line))
    return sheet.rows


def examine_on(
    engine: WorkEngine,
    opened: Workspace,
    agent: str,
    questions: Sequence[Question],
    out: Path | None = None,
    tick: ProgressCallback | None = None,
    header: ExamHeader | None = None,
) -> Exam:
    """Return the exam that `Workspace.examine` would return, asked on an engine."""
    setup = ExamSetup(opened.store, opened.engine, opened.settings, agent)
    if out is not None:
        claim(out, header or opened.exam_header(agent, questions))
    rows = examine_in_chunks(engine, setup, questions, out, tick)
    if not opened.is_public:
        return Exam(rows)
    setup = ExamSetup(Store(), engine_for(Store(), embedder_named("hash")), of_no_store(opened.settings), agent)
    file = no_store_file(out) if out else None
    return Exam(rows, examine_in_chunks(engine, setup, questions, file, tick))

"""An exam in chunks of questions, each asked by `examine` in whatever process an engine gives it to.

An `ExamSetup` travels there once: the store, its vectors, and who reads, by name; models are connected to on the
spot, with the keys of that machine's environment, so no key travels. What comes back of a chunk is its rows, what it
spent and what its models said; here the rows are kept as they come and the recording goes on one cassette.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbgym.agents.llm.client import Budget
from kbgym.agents.llm.connect import Models, Options, is_model
from kbgym.agents.llm.retry import CapReached
from kbgym.agents.llm.values import Usage
from kbgym.agents.registry import make_agent
from kbgym.api import Exam, Workspace
from kbgym.api.factory import embedder_named
from kbgym.canonical import Decoder, read_file
from kbgym.errors import KbgymError
from kbgym.experiments.engines import WorkEngine, cut
from kbgym.gym import environment
from kbgym.progress import ProgressCallback
from kbgym.search.engine import Engine
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex
from kbgym.store import Store
from kbgym.sync import run_sync
from kbgym.training.exam import ResultWriter, Row, examine
from kbgym.training.exam_header import ExamHeader, claim
from kbgym.training.no_store import no_store_file, of_no_store
from kbgym.training.run import Settings
from kbgym.worlds.world import Question

CHUNK = 200  # questions at most; with few, what a task costs in itself begins to show
EACH = 8  # chunks for every worker, so that none waits long for the last
PASSES = 3  # under way for each request that may be: the others are searching
_PLAYED = "cassette:"


class ExamSetup:
    """The store and the reader of an exam, as a value that can be sent to another process."""

    def __init__(
        self, store: Store, engine: environment.SearchEngine, settings: Settings, agent: str = "reference"
    ) -> None:
        """`settings` name what the engine embeds with."""
        self.store = store.as_frozen()
        self.settings = settings
        self.agent = agent
        self.options = Options()
        self.recording = b""  # what the models have said already
        self.played = read_file(Path(agent.removeprefix(_PLAYED))) if agent.startswith(_PLAYED) else b""
        self._engine: environment.SearchEngine | None = engine

    def __getstate__(self) -> dict[str, Any]:
        """Exact vectors are sent as one array. Mapped ones are not: every machine opens its own.

        Of a store whose documents are read from a database only what was changed is sent.
        """
        engine = self._engine
        if not isinstance(engine, Engine):
            return vars(self)
        held = self.store.base is None and isinstance(engine.index, ExactIndex)
        index = engine.index if held else None
        return {**vars(self), "_engine": None, "_index": index, "_how": (engine.kind, engine.spread)}

    @property
    def engine(self) -> environment.SearchEngine:
        if self._engine is None:
            embedder, index = embedder_named(self.settings.embedder), vars(self).pop("_index")
            search, spread = vars(self).pop("_how")
            self._engine = engine_for(self.store, embedder, None, search, spread, index=index)
        return self._engine


class Chunk(msgspec.Struct, frozen=True):
    """Questions, and what may be spent until they are answered."""

    questions: tuple[Question, ...]
    max_cost: float | None = None
    max_tokens: int | None = None


class ChunkResult(msgspec.Struct, frozen=True):
    """The result of a chunk: lines of rows, lines of a cassette, what was spent, and why it ended early if it did."""

    rows: bytes
    recorded: bytes = b""
    spent: Usage = Usage()
    failure: KbgymError | None = None


def ask_chunk(desk: ExamSetup, chunk: Chunk) -> ChunkResult:
    """Ask the questions of a chunk in this process; rows finished before a failure are kept."""
    with tempfile.TemporaryDirectory(prefix="kbgym-chunk-") as folder:
        rows, cassette, played = (Path(folder) / name for name in ("rows.jsonl", "cassette.jsonl", "played.jsonl"))
        agent, models, before = desk.agent, None, Usage()
        if desk.played:
            played.write_bytes(desk.played)
            agent = f"{_PLAYED}{played}"
        failure = None
        try:
            if is_model(agent):
                cassette.write_bytes(desk.recording)
                recorded = None if desk.played else cassette
                caps = {"max_cost": chunk.max_cost, "max_tokens": chunk.max_tokens}
                models = Models(msgspec.structs.replace(desk.options, cassette=recorded, **caps))
                before = models.budget.spent
            run_sync(_ask(desk, chunk, agent, models, rows))
        except KbgymError as error:
            failure = error
        spent = models.budget.spent - before if models else Usage()
        recorded_now = cassette.read_bytes()[len(desk.recording) :] if cassette.exists() else b""
        return ChunkResult(rows.read_bytes() if rows.exists() else b"", recorded_now, spent, failure)


async def _ask(desk: ExamSetup, chunk: Chunk, agent: str, models: Models | None, rows: Path) -> None:
    try:
        await examine(
            desk.store,
            desk.engine,
            chunk.questions,
            make_agent(agent, "reader", models),
            rows,
            desk.settings,
            PASSES * desk.options.concurrency,
        )
    finally:
        if models is not None:
            await models.close()


def examine_in_chunks(
    engine: WorkEngine,
    desk: ExamSetup,
    questions: Sequence[Question],
    out: Path | None = None,
    tick: ProgressCallback | None = None,
    models: Models | None = None,
    size: int | None = None,
) -> list[Row]:
    """The rows `examine` would give, asked on an engine. `models` has the caps and the cassette of the whole exam.

    A cap is checked when a chunk comes back and no chunk is started with more than what is left, so it can be passed
    by what the other chunks under way spend, and by no more.
    """
    budget, tape = Budget(), None
    if models:
        budget, options = models.budget, models.options
        share = max(1, options.concurrency // engine.workers)
        desk.options = msgspec.structs.replace(options, concurrency=share, cassette=None)
        if options.cassette:
            tape, desk.recording = _SharedCassette(options.cassette), options.cassette.read_bytes()
    before, failures = budget.spent, list[KbgymError]()

    def chunks() -> Iterator[Chunk]:
        for part in cut(sheet.missing, size or _size(len(sheet.missing), desk, engine.workers)):
            if failures:
                return
            now = budget.spent - before
            cost = None if budget.max_cost is None else budget.max_cost - (now.cost or 0.0)
            tokens = None if budget.max_tokens is None else budget.max_tokens - now.tokens
            yield Chunk(tuple(part), cost, tokens)

    with ResultWriter(questions, out, tick, desk.settings.ranking) as sheet:
        for answered in engine.run(ask_chunk, desk, chunks()):
            budget.spent += answered.spent
            if tape:
                tape.add(answered.recorded)
            for line in answered.rows.splitlines():
                sheet.add(_row.decode(line))
            if answered.failure and not isinstance(answered.failure, CapReached):
                failures.append(answered.failure)
            elif reached := run_sync(_cap(budget)):
                failures.append(reached)
        if failures:
            raise failures[0]
    return sheet.rows


def examine_on(
    engine: WorkEngine,
    opened: Workspace,
    agent: str,
    questions: Sequence[Question],
    out: Path | None = None,
    tick: ProgressCallback | None = None,
    models: Models | None = None,
    header: ExamHeader | None = None,
) -> Exam:
    """What `Workspace.examine` would give, asked on an engine."""
    if out is not None:
        claim(out, header or opened.exam_header(agent, questions))
    desk = ExamSetup(opened.store, opened.engine, opened.settings, agent)
    rows = examine_in_chunks(engine, desk, questions, out, tick, models)
    if not opened.is_public:
        return Exam(rows)
    desk = ExamSetup(Store(), engine_for(Store(), embedder_named("hash")), of_no_store(opened.settings), agent)
    file = no_store_file(out) if out else None
    return Exam(rows, examine_in_chunks(engine, desk, questions, file, tick, models))


async def _cap(budget: Budget) -> CapReached | None:
    """What one process would say of its budget now."""
    try:
        async with budget.request():
            return None
    except CapReached as reached:
        return reached


def _size(questions: int, desk: ExamSetup, workers: int) -> int:
    """Few enough that every worker gets several chunks; of a model, as many as it plays at once."""
    most = PASSES * desk.options.concurrency if is_model(desk.agent) else CHUNK
    return max(1, min(most, questions // (EACH * workers)))


class _SharedCassette:
    """The exam's cassette, to which chunks' lines are added; lines they share are written once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = {line for line in path.read_bytes().splitlines() if not _is_reply(line)}

    def add(self, recorded: bytes) -> None:
        fresh = []
        for line in recorded.splitlines():
            if _is_reply(line) or line not in self._known:
                fresh.append(line + b"\n")
                self._known.add(line)
        with self._path.open("ab") as file:
            file.write(b"".join(fresh))


class _Line(msgspec.Struct):
    kind: str


_line: Decoder[_Line] = Decoder(_Line)
_row: Decoder[Row] = Decoder(Row)


def _is_reply(line: bytes) -> bool:
    return _line.decode(line).kind == "reply"

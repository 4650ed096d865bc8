"""Exams and experiments in pieces that travel: the same rows and files as in one process, nothing asked twice."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys

import numpy as np
import pytest
from experiments import contents, run, small_plan
from fault_server import FaultServer
from llm_fixtures import direct_rows, flat_store, plain, world
from pickling_engine import Posted

from kbgym.agents.llm.cassette import Cassette
from kbgym.agents.llm.connect import Models, Options
from kbgym.agents.llm.retry import CapReached
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api import Workspace
from kbgym.api.factory import embedder_named
from kbgym.baselines.registry import engine_for_arm
from kbgym.canonical import read_lines
from kbgym.cli.experiment import prepare
from kbgym.errors import BadInput, Damaged, Failed, Missing
from kbgym.experiments import engines
from kbgym.experiments.chunks import Chunk, ChunkResult, ExamSetup, ask_chunk, examine_in_chunks, examine_on
from kbgym.experiments.engines import Here, opened
from kbgym.experiments.experiment import open_experiment
from kbgym.experiments.parts import run_parts
from kbgym.search.index import ExactIndex
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.worlds.people import generate
from kbgym.worlds.world import World

HASH = Settings(embedder="hash")


def flat_desk(agent="reference"):
    store, engine = flat_store()
    return ExamSetup(store, engine, HASH, agent)


@pytest.fixture(scope="module")
def questions():
    return world().split("test_in")[:30]


@pytest.mark.parametrize("engine", [Here(), Posted()], ids=["here", "posted"])
def test_chunks_give_the_bytes_of_one_process(engine, questions, tmp_path):
    store, search = flat_store()
    asyncio.run(examine(store, search, questions, ReferenceReader, tmp_path / "one"))
    rows = examine_in_chunks(engine, flat_desk(), questions, tmp_path / "many", size=7)
    assert (tmp_path / "many").read_bytes() == (tmp_path / "one").read_bytes()
    assert rows == list(read_lines(tmp_path / "one", Row))


def test_what_is_searched_by_words_travels_too(questions):
    store, _ = flat_store()
    words = engine_for_arm("bm25", store, embedder_named("hash"))
    here = asyncio.run(examine(store.copy(), words, questions[:10], ReferenceReader))
    assert examine_in_chunks(Posted(), ExamSetup(store, words, HASH), questions[:10], size=4) == here


def test_vectors_travel_as_one_array_and_queries_do_not(questions):
    store, search = flat_store()
    search.search("warm", 0, 5)
    arrays = []
    data = pickle.dumps(ExamSetup(store, search, HASH), protocol=5, buffer_callback=arrays.append)
    assert [array.raw().nbytes for array in arrays] == [len(store) * 256 * 4]
    desk = pickle.loads(data, buffers=[bytes(array.raw()) for array in arrays])
    assert isinstance(desk.engine.index, ExactIndex) and not desk.engine.index._matrix.flags.writeable
    assert desk.engine.search("Who lives in Lund?", 0, 9) == search.search("Who lives in Lund?", 0, 9)
    assert np.shares_memory(desk.engine.index._matrix, np.frombuffer(desk.engine.index._matrix.base, np.float32))


def test_an_interrupted_exam_asks_only_what_is_missing(questions, tmp_path):
    out, whole = tmp_path / "rows", tmp_path / "whole"

    class Cut(Posted):
        def run(self, work, shared, items):
            for done, result in enumerate(super().run(work, shared, items)):
                if done == 2:
                    raise KeyboardInterrupt
                yield result

    with pytest.raises(KeyboardInterrupt):
        examine_in_chunks(Cut(), flat_desk(), questions, out, size=5)
    assert len(list(read_lines(out, Row))) == 10
    with out.open("ab") as torn:
        torn.write(b'{"id":"torn')
    again = Posted()
    examine_in_chunks(again, flat_desk(), questions, out, size=5)
    examine_in_chunks(Here(), flat_desk(), questions, whole)
    assert again.chunks == 4 and out.read_bytes() == whole.read_bytes()
    examine_in_chunks(done := Posted(), flat_desk(), questions, out)
    assert done.chunks == 0


def test_a_bad_agent_is_one_sentence(questions, tmp_path):
    with pytest.raises(BadInput, match="there is no agent 'nobody'"):
        examine_in_chunks(Posted(), flat_desk("nobody"), questions)
    with pytest.raises(BadInput, match=r"cannot read .*none.jsonl: No such file"):
        flat_desk(f"cassette:{tmp_path}/none.jsonl")


# -- models -----------------------------------------------------------------------------------------------------------


def asked(server, questions, out, engine=None, **options):
    """The exam by a model, in chunks, with one cassette."""
    models = Models(Options(base_url=server.url, cassette=out.with_suffix(".cassette"), timeout=20.0, **options))
    try:
        return examine_in_chunks(engine or Posted(), flat_desk("llm:local/m"), questions, out, None, models, 5), models
    finally:
        asyncio.run(models.close())


def test_a_model_is_asked_where_the_chunk_is_and_one_cassette_holds_it_all(questions, tmp_path, monkeypatch):
    monkeypatch.setenv("KBGYM_LOCAL_API_KEY", "sk-never-to-be-seen")
    engine, out = Posted(), tmp_path / "rows"
    with FaultServer() as server:
        rows, models = asked(server, questions[:12], out, engine, concurrency=6)
    assert plain(rows) == direct_rows(questions[:12])
    assert models.budget.spent.requests == sum(row.usage["requests"] for row in rows) == len(server.bodies)
    assert not any(b"never-to-be-seen" in data for data in engine.sent)
    cassette = Cassette(out.with_suffix(".cassette"), record=False)
    assert len(cassette) == len(server.bodies) and cassette.spent.requests == len(server.bodies)
    lines = [line for line in out.with_suffix(".cassette").read_bytes().splitlines() if b'"reply"' not in line]
    assert len(set(lines)) == len(lines)
    played = examine_in_chunks(Posted(), flat_desk(f"cassette:{cassette.path}"), questions[:12], None)
    assert plain(played) == plain(rows)


def test_a_cap_stops_between_chunks_and_a_higher_one_goes_on(questions, tmp_path):
    out = tmp_path / "rows"
    with FaultServer() as server:
        whole, _ = asked(server, questions, tmp_path / "whole")
        tokens = sum(row.usage["prompt"] + row.usage["completion"] for row in whole)
        before = len(server.bodies)
        with pytest.raises(CapReached, match=f"max_tokens {tokens // 2} is reached .*run the same command again"):
            asked(server, questions, out, max_tokens=tokens // 2)
        kept = list(read_lines(out, Row))
        assert 0 < len(kept) < len(questions)
        rows, models = asked(server, questions, out, max_tokens=2 * tokens)
    assert plain(rows) == plain(whole)
    # What a question cut short had said was played back; only what was under way when the cap was met is asked again.
    assert 0 <= len(server.bodies) - 2 * before < 5
    assert models.budget.spent.tokens == tokens


def test_a_provider_that_is_down_stops_the_exam_and_keeps_what_was_finished(questions, tmp_path):
    out = tmp_path / "rows"
    with FaultServer() as server:
        asked(server, questions[:10], out)
    with pytest.raises(Failed):
        asked(server, questions, out.rename(tmp_path / "more"), Here())
    assert len(list(read_lines(tmp_path / "more", Row))) == 10


def test_rows_finished_before_a_failure_come_back_with_it(questions):
    desk = flat_desk("pickling_engine:nothing")
    answered = ask_chunk(desk, Chunk(questions[:2]))
    assert isinstance(answered, ChunkResult) and isinstance(answered.failure, BadInput) and answered.rows == b""


# -- experiments ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_parts_leave_the_folder_one_process_leaves(tmp_path):
    plan = small_plan(seeds=(0,), arms=("flat", "nostore"))
    run(tmp_path / "one", plan)
    many = tmp_path / "many"
    engine = Posted()
    run_parts(engine, many, open_experiment(many, plan), prepare)
    assert contents(many) == contents(tmp_path / "one")
    assert engine.chunks == len(plan.arms) + len(plan.trainings)
    timing = (many / "seed-0" / "timing.jsonl").read_bytes()
    assert timing.count(b"\n") == (tmp_path / "one" / "seed-0" / "timing.jsonl").read_bytes().count(b"\n")
    # Whatever is missing is done, whatever is there stays.
    (many / "seed-0" / "exams" / "flat-neither.jsonl").unlink()
    run_parts(Posted(), many, plan, prepare)
    assert contents(many) == contents(tmp_path / "one")


# -- the seam ---------------------------------------------------------------------------------------------------------


def test_flags_of_ray_are_refused_elsewhere():
    with pytest.raises(BadInput, match="need --set engine=ray"), opened("local", workers=2):
        pass
    with opened("local") as engine:
        assert list(engine.run(lambda shared, item: shared + item, 1, [1, 2])) == [2, 3]


def test_without_ray_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(Missing, match=r"pip install 'kbgym\[ray\]'"), opened("ray"):
        pass


def test_nothing_of_ray_is_loaded_unless_asked_for(tmp_path):
    code = (
        "import sys\n"
        "from kbgym.cli.main import run\n"
        "import kbgym.cli.exam, kbgym.cli.experiment, kbgym.experiments.chunks, kbgym.experiments.parts\n"
        "try: run(['exam', '--help'])\n"
        "except SystemExit: pass\n"
        "found = [name for name in sys.modules if name.split('.')[0] in ('ray', 'grpc')]\n"
        "assert not found, found\n"
        "assert 'kbgym.engines.ray' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, stdout=subprocess.DEVNULL)


def test_damaged_rows_are_refused_before_anything_starts(tmp_path, questions):
    (tmp_path / "rows").write_bytes(b"{}\n")
    engine = Posted()
    with pytest.raises(Damaged):
        examine_in_chunks(engine, flat_desk(), questions, tmp_path / "rows")
    assert engine.chunks == 0


@pytest.mark.parametrize("public", [False, True])
def test_what_was_opened_is_examined_elsewhere_as_it_is_here(tmp_path, public):
    """With its own budget, memory and ranking; on public text without a store too."""
    world = generate(people=60, seed=3)
    world = World(world.documents, world.questions, {**world.facts, "public_text": public})
    world.save(tmp_path / "w")
    opened = Workspace(tmp_path / "w", embedder="hash", forward_budget=3, memory=2, ranking="apart")
    questions = opened.questions("test_in")[:8]
    here = opened.examine("reference", questions, out=tmp_path / "here.jsonl")
    there = examine_on(Posted(), opened, "reference", questions, tmp_path / "there.jsonl")
    assert here == there and max(row.actions for row in there.rows) == 3 and bool(there.without) == public
    names = {path.name.partition(".")[2]: path.read_bytes() for path in tmp_path.glob("here.*")}
    assert names == {path.name.partition(".")[2]: path.read_bytes() for path in tmp_path.glob("there.*")}
    assert len(names) == 2 + public, "rows, and what was asked of whom"

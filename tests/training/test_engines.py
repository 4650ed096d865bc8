"""Exams in pieces that travel: the same rows as in one process, nothing asked twice."""

from __future__ import annotations

import asyncio
import pickle
import subprocess
import sys

import numpy as np
import pytest
from llm_fixtures import flat_store, world
from pickling_engine import Here, Posted

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api import Workspace
from kbgym.api.factory import embedder_named
from kbgym.baselines import engine_for_arm
from kbgym.canonical import read_lines
from kbgym.errors import BadInput, Damaged, Missing
from kbgym.experiments import engines
from kbgym.experiments.chunks import ExamSetup, examine_in_chunks, examine_on
from kbgym.experiments.engines import EngineChoice
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


def test_a_bad_agent_is_one_sentence(questions):
    with pytest.raises(BadInput):
        examine_in_chunks(Posted(), flat_desk("nobody"), questions)


def test_models_are_asked_from_one_process(questions, tmp_path):
    for agent in ("llm:local/m", f"cassette:{tmp_path}/played.jsonl"):
        with pytest.raises(BadInput):
            flat_desk(agent)


# -- the seam ---------------------------------------------------------------------------------------------------------


def test_flags_of_ray_are_refused_elsewhere():
    with pytest.raises(BadInput, match="need --set engine=ray"):
        EngineChoice("local", workers=2)
    assert EngineChoice("local").is_here


def test_without_ray_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    with pytest.raises(Missing, match=r"pip install 'kbgym\[ray\]'"):
        EngineChoice("ray")


def test_nothing_of_ray_is_loaded_unless_asked_for(tmp_path):
    code = (
        "import sys\n"
        "from kbgym.cli.main import run\n"
        "import kbgym.cli.training, kbgym.cli.experiment, kbgym.experiments.chunks\n"
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

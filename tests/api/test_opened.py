"""`kbgym.open`: what a place is, its parts, its exams; and that looking changes nothing."""

from __future__ import annotations

import asyncio
import builtins
import shutil
import sys
from types import SimpleNamespace

import pytest

import kbgym
from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api import workspace as module
from kbgym.baselines import build_arm
from kbgym.canonical import digest, write_lines
from kbgym.errors import BadInput
from kbgym.gym.actions import Answer, Search
from kbgym.trace.backend import save_store
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam_header import header_file, read_header

SMALL = {"questions": 12, "epochs": 1, "embedder": "hash", "eval": False}


def contents(folder):
    """Return the hash of every file but the exams, which examine() keeps."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.parent.name != "exams")
    return {str(path.relative_to(folder)): digest(path.read_bytes()) for path in files}


def test_a_run_at_an_iteration_and_a_world_and_a_store(trained, small_world, tmp_path):
    with kbgym.open(trained) as run, kbgym.open(f"{trained}@5") as early:
        assert (run.kind, run.arm, run.iteration, early.iteration) == ("run", "flat", 12, 5)
        assert run.settings == run.run.settings and run.settings.questions == 12
        assert run.world.hash == small_world.hash
        assert run.store.fingerprint == StoreFolder(trained).store().fingerprint
        assert early.store.fingerprint == StoreFolder(trained).store(5).fingerprint
        assert [entry.iteration for entry in early.log()] == [1, 2, 3, 4, 5] and len(run.log()) == 12
    small_world.save(tmp_path / "world")
    world = kbgym.open(tmp_path / "world")
    assert (world.kind, world.run, world.iteration) == ("world", None, 0)
    assert len(world.store) == len(small_world.documents) and world.settings == kbgym.Settings()
    save_store(build_arm("bm25", small_world).store, str(tmp_path / "arm"), '{"arm": "bm25"}')
    store = kbgym.open(tmp_path / "arm", world=small_world, embedder="hash")
    assert (store.kind, store.arm) == ("store", "bm25") and store.engine.kind == "words"


@pytest.mark.parametrize(
    ("place", "said"), [("nowhere", "is not a store"), ("{run}@99", "there is no iteration 99"), ("", "is not a store")]
)
def test_what_cannot_be_opened_is_one_sentence(trained, place, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kbgym.BadInput, match=said):
        _ = kbgym.open(place.format(run=trained)).store


def test_settings_come_from_the_run_and_can_be_replaced(trained):
    assert kbgym.open(trained, forward_budget=4, ranking="apart").settings.forward_budget == 4
    for changes, said in (({"strategy": "clas"}, "no strategy 'clas'"), ({"budget": 3}, "bad settings")):
        with pytest.raises(kbgym.BadInput, match=said):
            _ = kbgym.open(trained, **changes).settings


def test_settings_of_a_store_come_from_its_trace_without_reading_the_rest(small_world, tmp_path, monkeypatch):
    small_world.save(tmp_path / "w")
    StoreFolder(tmp_path / "w").start("hash", {"strategy": "class", "eval": False, "forward_budget": 7}).close()
    monkeypatch.setattr(module, "open_backend", lambda where: pytest.fail("the whole store was read"))
    settings = kbgym.open(tmp_path / "w").settings
    assert (settings.embedder, settings.strategy, settings.eval, settings.forward_budget) == ("hash", "class", False, 7)


def test_questions_are_a_split_a_group_or_a_file(trained, small_world, tmp_path):
    run = kbgym.open(trained)
    assert run.questions("test_out") == small_world.split("test_out")
    file = tmp_path / "some.jsonl"
    write_lines(file, small_world.split("eval")[:3])
    assert run.questions(str(file)) == small_world.split("eval")[:3]
    save_store(run.store, str(tmp_path / "bare"))
    bare = kbgym.open(tmp_path / "bare")
    assert bare.world is None and len(bare.questions(str(file))) == 3
    with pytest.raises(kbgym.BadInput, match="holds no questions; name their world"):
        bare.questions("test_in")


def test_a_search_shows_what_an_agent_sees(trained):
    for ranking in ("paper", "apart"):
        run = kbgym.open(trained, ranking=ranking)
        query = next(record.text for record in run.store if record.flag == "authored")
        environment = kbgym.Environment(run.store, run.engine, ranking=ranking)
        for page in (1, 2):
            step = kbgym.run_sync(environment.step(Search(query, page), "reader"))
            hits = run.search(query, page)
            assert tuple(hit.id for hit in hits) == step.result.ids
            assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            assert all(hit.text == run.store[hit.id].text for hit in hits)
    assert run.search("anything", 10_000) == []


def test_nothing_that_is_opened_is_changed(trained):
    before = contents(trained)
    with kbgym.open(trained) as run:
        run.examine("reference", "test_in")
        run.search("anything")
        run.log()
        with pytest.raises(Exception, match="frozen"):
            run.store.add("A sentence.")
        mine = run.store.copy()
        mine.delete(next(iter(mine)).id)
        assert run.with_store(mine).examine("reference", run.questions()[:2]).summary.n == 2
        assert not mine.frozen and len(run.store) == len(mine) + 1
    assert contents(trained) == before


def test_another_store_in_the_same_place_is_searched_and_examined_itself(trained):
    run = kbgym.open(trained)
    run.embedded()
    mine = run.store.copy()
    id = mine.add("The harbour master keeps a heron.")
    other = run.with_store(mine)
    assert other.search("harbour master heron")[0].id == id and other.events == ()
    assert run.search("harbour master heron")[0].id != id


@pytest.mark.parametrize("way", ["name", "policy", "function", "coroutine"])
def test_a_reader_is_a_name_a_policy_or_a_function_of_a_view(trained, way):
    def function(view):
        return Answer("unknown") if view.history else Search(view.task.question)

    async def coroutine(view):
        return function(view)

    readers = {"name": "reference", "policy": ReferenceReader, "function": function, "coroutine": coroutine}
    run = kbgym.open(trained)
    rows = run.examine(readers[way], run.questions()[:4]).rows
    if way in ("function", "coroutine"):
        assert [row.actions for row in rows] == [2] * 4 and rows[0].answer == "unknown"
    else:
        assert rows == run.examine("reference", run.questions()[:4]).rows
    with pytest.raises(kbgym.BadInput, match="a reader is a name, a function"):
        run.examine(5)


def test_an_exam_keeps_to_the_runs_budget_and_memory(trained):
    seen = []

    def searching(view):
        seen.append((view.remaining, len(view.history)))
        return Search("anything")

    run = kbgym.open(trained, forward_budget=4, memory=2)
    exam = run.examine(searching, run.questions()[:1])
    assert exam.rows[0].actions == 4 and seen == [(4, 0), (3, 1), (2, 2), (1, 2)]


def test_an_exam_is_kept_and_gone_on_with(trained, tmp_path):
    run, out = kbgym.open(trained), tmp_path / "rows.jsonl"
    first = run.examine("reference", run.questions()[:5], out=out).rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kbgym.training.exam.play", lambda *_: pytest.fail("asked again"))
        assert run.examine("reference", run.questions()[:5], out=out).rows == first
    assert len(out.read_text().splitlines()) == 5


def test_rows_say_what_was_asked_of_whom_and_are_not_mixed_with_another_exams(trained, tmp_path):
    run, out = kbgym.open(trained), tmp_path / "rows.jsonl"
    run.examine("reference", run.questions()[:2], out=out)
    header = read_header(out)
    assert header is not None and header.store == run.store.fingerprint and header.agent == "reference"
    with pytest.raises(BadInput, match="holds an exam with agent reference, not "):
        run.examine(lambda view: pytest.fail("asked"), run.questions()[:2], out=out)
    with pytest.raises(BadInput, match="holds an exam with store"):
        kbgym.open(f"{trained}@0").examine("reference", run.questions()[:2], out=out)
    header_file(out).unlink()
    rows = kbgym.open(f"{trained}@0").examine("reference", run.questions()[:2], out=out).rows
    assert len(rows) == 2 and read_header(out) is None, "rows of an earlier version stay readable and unnamed"


def test_it_works_inside_a_running_loop(trained):
    """Notebooks run cells inside an event loop."""

    async def cell():
        run = kbgym.open(trained)
        here = run.examine("reference", run.questions()[:3]).rows
        assert here == (await run.examine_async("reference", run.questions()[:3])).rows
        return here

    run = kbgym.open(trained)
    assert asyncio.run(cell()) == run.examine("reference", run.questions()[:3]).rows


def test_the_place_is_closed(trained, monkeypatch):
    closed = []
    monkeypatch.setattr(StoreFolder, "close", lambda self: closed.append(self))
    with kbgym.open(trained):
        pass
    assert not closed  # it was never looked at
    with kbgym.open(trained) as run:
        len(run.store)
    assert len(closed) == 1


def test_rows_as_a_frame_in_whatever_is_installed(trained, monkeypatch):
    made = {}
    fake = SimpleNamespace(DataFrame=lambda rows: made.setdefault("rows", rows))
    run = kbgym.open(trained)
    exam = run.examine("reference", run.questions()[:2])
    monkeypatch.setattr("kbgym.api.workspace.find_spec", lambda name: name == "polars" or None)
    monkeypatch.setitem(sys.modules, "polars", fake)
    assert exam.frame() is made["rows"]
    assert [row["id"] for row in made["rows"]] == [row.id for row in exam.rows]
    assert {"class", "f1", "actions", "ranking"} <= made["rows"][0].keys() and "shots" not in made["rows"][0]
    for what, size in (("log", 12), ("documents", len(run.store)), ("questions", len(run.world.questions))):
        made.clear()
        assert len(run.frame(what)) == size
    monkeypatch.setattr("kbgym.api.workspace.find_spec", lambda name: None)
    with pytest.raises(kbgym.Missing, match="pip install pandas"):
        run.frame("log")


def test_the_exams_of_a_run_as_one_frame(trained, tmp_path, monkeypatch):
    shutil.copytree(trained, tmp_path / "run", ignore=shutil.ignore_patterns("exams"))
    run = kbgym.open(tmp_path / "run")
    for name, questions in (("a", run.questions()[:2]), ("b", run.questions()[2:5])):
        run.examine("reference", questions, out=run.run.exam_path(name))
    monkeypatch.setattr("kbgym.api.workspace.find_spec", lambda name: True)
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=list))
    assert [row["exam"] for row in run.frame()] == ["a", "a", "b", "b", "b"]


def test_training_takes_functions_and_goes_on(small_world, tmp_path):
    def lazy(view):
        return kbgym.Answer("unknown")

    def idle(view):
        return kbgym.Done()

    run = kbgym.train(small_world, tmp_path / "run", reader=lazy, curator=idle, **SMALL)
    assert run.iteration == 12 and run.store.links == 0 and run.settings.reader.endswith("lazy")
    again = kbgym.train(small_world, tmp_path / "run", reader=lazy, curator=idle, **SMALL)
    assert again.events == run.events
    with pytest.raises(kbgym.BadInput, match="questions 12, not 11"):
        kbgym.train(small_world, tmp_path / "run", reader=lazy, curator=idle, **{**SMALL, "questions": 11})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reader": "nobody"}, "no agent 'nobody'"),
        ({"curator": 5}, "a curator is a name"),
        ({"embedder": "magic"}, "no embedder 'magic'"),
        ({"strategy": "luck"}, "no strategy 'luck'"),
        ({"questions": 1000}, "cannot take 1000"),
    ],
)
def test_what_cannot_be_trained_leaves_nothing_behind(small_world, tmp_path, changes, said):
    with pytest.raises(kbgym.BadInput, match=said):
        kbgym.train(small_world, tmp_path / "run", **{**SMALL, **changes})
    assert not (tmp_path / "run").exists()


def test_training_as_in_the_command_line(small_world, trained, tmp_path):
    """Inside a loop, with a world's folder: the same bytes."""
    small_world.save(tmp_path / "world")

    async def cell():
        return kbgym.train(tmp_path / "world", tmp_path / "run", **SMALL)

    assert asyncio.run(cell()).store.fingerprint == kbgym.open(trained).store.fingerprint


def test_your_own_files(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "boats.md").write_text("# Boats\n\nThe Kestrel is blue. The Heron is grey.\n")
    (tmp_path / "questions.csv").write_text("question,answer\nWhich colour is the Kestrel?,blue\n")
    world = kbgym.import_corpus(tmp_path / "notes", questions=tmp_path / "questions.csv", out=tmp_path / "world")
    assert len(world.documents) == 1 and world.questions[0].golds == ("blue",)
    assert kbgym.open(tmp_path / "world").world.hash == world.hash
    assert kbgym.import_corpus([tmp_path / "notes"]).documents == world.documents


def test_open_does_not_hide_pythons_own():
    assert open is builtins.open and kbgym.open is not builtins.open


def test_representations_are_short_and_html_escapes(trained, small_world):
    run = kbgym.open(trained)
    exam = run.examine("reference", "eval")
    shown = [repr(one) for one in (run, run.world, run.store, exam)]
    assert all(len(text) < 120 for text in shown), shown
    assert run._repr_html_().startswith("<table>") and str(exam.summary.n) in exam._repr_html_()
    assert "<script>" not in module.html_table("<script>", [("<script>", 1)])


def test_an_exam_of_a_run_is_kept_and_compare_reuses_it(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "exams", ignore_errors=True)
    run = kbgym.open(tmp_path / "run")
    first = run.examine("reference", "test_in")
    assert [len(rows) for rows in run.exams().values()] == [len(first.rows)]
    found = run.compare(f"{tmp_path / 'run'}@0", "test_in", "reference")
    assert found.n == len(first.rows) and found.rho.low <= found.rho.value <= found.rho.high
    assert len(run.exams()) == 2 and "rho" in repr(found) and found._repr_html_().startswith("<table>")
    assert {"trained", "neither"} <= run.probe(n=2).keys()
    assert all(run.plot(what)._repr_svg_().lstrip().startswith("<") for what in ("learning", "map"))


def test_a_frame_of_nothing_is_refused(trained, tmp_path):
    shutil.copytree(trained, tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "exams", ignore_errors=True)
    with pytest.raises(BadInput):
        kbgym.open(tmp_path / "run").frame()
    save_store(kbgym.open(trained).store, str(tmp_path / "bare"))
    for what in ("log", "questions"):
        with pytest.raises(BadInput):
            kbgym.open(tmp_path / "bare").frame(what)

"""The trajectory read off a trace equals what was done, counted by hand; and what a training run says of itself."""

import asyncio
from functools import partial

import msgspec
import pytest
from store_fixtures import Live

from kbgym.analysis.health import coverage
from kbgym.analysis.trajectory import degrees, trajectory
from kbgym.api.factory import agents_named, embedder_named
from kbgym.gym.actions import Add, Delete, Done, Edit, Link, LinkMany, Search, Unlink
from kbgym.search.factory import engine_for
from kbgym.store import Record, Store, source
from kbgym.trace.backend import save_store
from kbgym.trace.events import Began
from kbgym.trace.folder import StoreFolder, open_folder
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds import people

ORIGINALS = ("Anna Berg lives in Lund.", "Bo Ek lives in Lund.", "Cy Dahl lives in Ystad.", "Bo Ek works as a baker.")


@pytest.fixture
def live(tmp_path):
    made = Live(tmp_path / "store", [source(f"d{number}", text) for number, text in enumerate(ORIGINALS)])
    yield made
    made.close()


def lesson(live: Live, epoch: int, *actions) -> None:
    number = live.iteration + 1
    live.pending.append(Began(number, "backward", "tester", f"q{number}", "?", epoch))
    for action in actions:
        live.act(action)
    live.commit()


def test_points_and_epochs(live):
    # To add what is there does nothing and is no merge.
    lesson(live, 1, Search("Lund"), Add("People who live in Lund"), LinkMany("n1", ("d0", "d1", "nobody")), Done())
    lesson(live, 1, Add("People who live in Lund"), Link("n1", "d0"), Add("Bakers"), Link("n2", "d3"), Done())
    lesson(live, 2, Unlink("n1", "d1"), Edit("n2", "All bakers of Lund"), Delete("n2"), Done())
    found = trajectory(StoreFolder(live.path))
    assert [msgspec.structs.astuple(point) for point in found.points] == [
        (0, 0, 4, 0, 0, 0.0),
        (1, 1, 5, 2, 1, 0.5),
        (2, 1, 6, 3, 2, 0.75),
        (3, 2, 5, 1, 1, 0.25),
    ]
    first, second = found.epochs
    assert (first.passes, first.actions, first.errors) == (2, 9, 1)
    assert first.edits == {"add": 2, "edit": 0, "merge": 0, "delete": 0, "link": 1, "link_many": 1, "unlink": 0}
    assert (first.edits_a_pass, second.edits_a_pass) == (2.0, 3.0)
    assert (first.degrees.mean, second.degrees.mean) == (1.5, 1.0)
    assert second.edits == {"add": 0, "edit": 1, "merge": 0, "delete": 1, "link": 0, "link_many": 0, "unlink": 1}
    assert (found.degrees.mean, found.degrees.empty) == (1.0, 0)


def test_judged_candidates_are_counted_from_the_verdicts(live):
    lesson(live, 1, Add("People who live in Lund"), Add("People, who live in Lund"), Done())
    (epoch,) = trajectory(StoreFolder(live.path)).epochs
    assert (epoch.judged, epoch.edits["merge"]) == (1, 1)


def test_merges_of_both_kinds_are_counted(live):
    """An add that the guard found to be a duplicate, and an edit that made one of two documents."""
    lesson(live, 1, Add("People who live in Lund"), Add("People, who live in Lund"), Add("Bakers"), Done())
    lesson(live, 1, Edit("n2", "People who live in Lund"), Done())
    (epoch,) = trajectory(StoreFolder(live.path)).epochs
    assert epoch.edits["merge"] == 2


def test_a_rollback_returns_the_store_but_not_the_work(live):
    lesson(live, 1, Add("Bakers"), Link("n1", "d3"), Done())
    lesson(live, 1, Delete("n1"), Done())
    live.rollback(1)
    found = trajectory(StoreFolder(live.path))
    assert [(point.iteration, point.authored) for point in found.points] == [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert found.epochs[0].edits["delete"] == 1


def test_only_up_to_the_iteration_asked_for(live):
    lesson(live, 1, Add("Bakers"), Done())
    lesson(live, 1, Delete("n1"), Done())
    found = trajectory(open_folder(f"{live.path}@1"))
    assert [point.iteration for point in found.points] == [0, 1]
    assert found.degrees.empty == 1 and found.epochs[0].passes == 1


def test_a_store_without_history_is_one_point(live, tmp_path):
    lesson(live, 1, Add("Bakers"), Link("n1", "d3"), Done())
    save_store(live.store, tmp_path / "plain")
    found = trajectory(StoreFolder(tmp_path / "plain"))
    assert [(point.documents, point.coverage) for point in found.points] == [(5, 0.25)]
    assert found.epochs == () and found.degrees.mean == 1.0


def test_degrees():
    linked = [("b", "c", "d"), (), ("a",), ()]
    found = degrees(
        Store(Record(id, f"Index {id}.", to, flag="authored") for id, to in zip("abcd", linked, strict=True))
    )
    assert (found.mean, found.median, found.empty) == (1.0, 0.5, 2)
    assert degrees(Store()).mean == 0.0


def test_a_training_run_agrees_with_its_own_store(tmp_path):
    world = people.generate(40, 0)
    settings = Settings(questions=12, epochs=2, embedder="hash", eval=False)
    run = Run.open_or_create(tmp_path / "run", world, settings)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    trainer = Trainer(run, agents_named(settings), engine)
    asyncio.run(trainer.train())
    found = trajectory(StoreFolder(run.folder))
    last = found.points[-1]
    assert [point.iteration for point in found.points] == list(range(25))
    assert [point.epoch for point in found.points] == [0, *[1] * 12, *[2] * 12]
    assert (last.documents, last.links) == (len(trainer.store), trainer.store.links)
    assert last.coverage == coverage(trainer.store).direct > 0
    assert [epoch.passes for epoch in found.epochs] == [12, 12]
    authored = sum(record.flag == "authored" for record in trainer.store)
    assert round(found.degrees.mean * authored) == trainer.store.links

"""Several trainers on one store in PostgreSQL: every lesson is taught once, in one order, even if a trainer dies."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import msgspec
import pytest
from pickling_engine import FOLDER, Here
from postgres import MISSING, Cluster, installed

from kbgym.api.factory import agents_named, embedder_named
from kbgym.api.training import check_database
from kbgym.backends.postgres.backend import PostgresBackend
from kbgym.backends.postgres.tables import read_meta
from kbgym.cli.main import run as verb
from kbgym.engines.fleet import Fleet, train_fleet
from kbgym.errors import BadInput
from kbgym.search.factory import engine_for
from kbgym.trace.backend import StoreBackend, copy_store, open_backend
from kbgym.trace.events import Acted, Began, Ended, Graded
from kbgym.trace.folder import StoreFolder
from kbgym.training.lessons import schedule
from kbgym.training.run import Run, Settings
from kbgym.training.session import recorded_settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate

pytestmark = [pytest.mark.slow, pytest.mark.skipif(installed() is None, reason=MISSING)]

SETTINGS = Settings(questions=20, epochs=2, embedder="hash", eval=False, strategy="class", batch_size=2)

_TRAIN = """
import sys; sys.path.insert(0, {tests!r} + "/training")
from test_train_shared import train
print("ready", flush=True)
train(sys.argv[1], sys.argv[2])
print("finished", flush=True)
"""


def run_in(folder: str) -> Run:
    return Run.open_or_create(Path(folder), generate(people=80, seed=3), SETTINGS)


def train(folder: str, url: str, settings: Settings = SETTINGS) -> Trainer:
    run, agents = run_in(folder), agents_named(settings)
    initial = StoreFolder(Path(folder)).initial
    check_database(url, initial.fingerprint, "hash", recorded_settings(settings, agents))
    trainer = Trainer(run, agents, partial(engine_for, embedder=embedder_named("hash")), url)
    asyncio.run(trainer.train())
    return trainer


def whole(url: str) -> None:
    """Everything the trace must say once all lessons are over."""
    place = open_backend(url)
    place.verify()
    events = place.events
    assert sorted(e.iteration for e in events if isinstance(e, Graded)) == sorted(
        e.iteration for e in events if isinstance(e, Began) and e.phase == "forward"
    )
    lessons = [(e.epoch, e.question) for e in events if isinstance(e, Began) and e.phase == "forward"]
    assert len(lessons) == len(set(lessons)) == 40
    assert sum(isinstance(e, Ended) for e in events) == 80
    epochs = [e.epoch for e in events if isinstance(e, Began)]
    assert epochs == sorted(epochs), "a lesson of the second epoch began before the first was over"
    for passed in {(e.iteration, e.phase) for e in events if isinstance(e, Acted)}:
        steps = [e.step for e in events if isinstance(e, Acted) and (e.iteration, e.phase) == passed]
        assert steps == list(range(1, len(steps) + 1)), passed
    assert place.position == 40
    place.close()


def test_one_trainer_learns_there_what_it_learns_in_a_folder(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.url("alone")
    run = run_in(str(tmp_path / "there"))
    copy_store(str(run.folder / "world"), url)
    alone = Settings(questions=20, epochs=2, embedder="hash", eval=False, strategy="class")
    here = Run.open_or_create(tmp_path / "here", run.world, alone)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    asyncio.run(Trainer(here, agents_named(alone), engine).train())
    there = Run.open_or_create(tmp_path / "one", run.world, alone)
    agents = agents_named(alone)
    initial = StoreFolder(there.folder).initial
    check_database(url, initial.fingerprint, "hash", recorded_settings(alone, agents))
    trainer = Trainer(there, agents, partial(engine_for, embedder=embedder_named("hash")), url)
    asyncio.run(trainer.train())
    assert trainer.store.fingerprint == StoreFolder(here.folder).store().fingerprint
    whole(url)


def test_others_documents_or_settings_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.url("refused")
    run = run_in(str(tmp_path / "a"))
    copy_store(str(run.folder / "world"), url)
    initial, agents = StoreFolder(run.folder).initial, agents_named(SETTINGS)
    for batch_size in (1, 2, 7):  # the number of lessons side by side may differ
        settings = msgspec.structs.replace(SETTINGS, batch_size=batch_size)
        check_database(url, initial.fingerprint, "hash", recorded_settings(settings, agents))
    with pytest.raises(BadInput):
        settings = Settings(questions=20, embedder="hash", eval=False)
        check_database(url, initial.fingerprint, "hash", recorded_settings(settings, agents))
    other = generate(people=40, seed=1)
    other.save(tmp_path / "other")
    with pytest.raises(BadInput):
        check_database(
            url, StoreFolder(tmp_path / "other").initial.fingerprint, "hash", recorded_settings(SETTINGS, agents)
        )


def test_documents_that_are_only_there_need_not_be_held(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    url, world = cluster.url("only"), generate(people=80, seed=3)
    world.save(tmp_path / "world")
    copy_store(str(tmp_path / "world"), url)
    words = ["train", "--world", str(tmp_path / "world"), "--questions", "8", "--epochs", "1", "--set", "eval=false"]
    words += ["--search", "words", "--set", "strategy=class", "--quiet", "--out"]

    def code(*more: str) -> object:
        with pytest.raises(SystemExit) as stopped:
            verb([*words, *more])
        return stopped.value.code

    assert code(str(tmp_path / "here")) == 0
    (tmp_path / "world" / "documents.jsonl").unlink()
    assert code(str(tmp_path / "nowhere")) == 2
    assert "it has no documents.jsonl" in capfd.readouterr().err
    assert code(str(tmp_path / "there"), "--set", f"store={url}&documents=read") == 0
    here, there = StoreFolder(tmp_path / "here"), open_backend(f"{url}&documents=read")
    assert there.store().fingerprint == here.store().fingerprint and there.position == 8
    assert (tmp_path / "there" / "world" / "documents.jsonl").read_bytes() == b""
    for store, more in ((str(tmp_path / "here"), ()), (f"{url}&documents=read", ("--world", str(tmp_path / "world")))):
        words = ["exam", store, *more, "--set", "eval", "--agent", "reference", "--quiet", "--out"]
        assert code(str(tmp_path / f"{len(more)}.jsonl")) == 0
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()


def environment() -> dict[str, str]:
    paths = [str(Path(__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def start(folder: Path, url: str) -> subprocess.Popen[str]:
    code = _TRAIN.format(tests=str(Path(__file__).parent.parent))
    command = [sys.executable, "-c", code, str(folder), url]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment())


@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (pip install 'kbgym[ray]')")
@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(600)
def test_a_fleet_on_ray_of_which_one_dies(cluster: Cluster, tmp_path: Path) -> None:
    """Ray starts another trainer in its place; what was begun is gone on with."""
    url, world = cluster.url("ray"), generate(people=80, seed=3)
    world.save(tmp_path / "world")
    copy_store(str(tmp_path / "world"), url)
    (tmp_path / "fatal").write_text(schedule(world, SETTINGS)[5].question.text)
    words = [
        "train",
        "--world",
        str(tmp_path / "world"),
        "--out",
        str(tmp_path / "run"),
        "--set",
        f"store={url}",
        "--json",
    ]
    words += [
        "--questions",
        "20",
        "--epochs",
        "2",
        "--set",
        "embedder=hash",
        "--set",
        "eval=false",
        "--set",
        "strategy=class",
    ]
    words += [
        "--set",
        "batch_size=2",
        "--set",
        "reader=pickling_engine:Mortal",
        "--set",
        "engine=ray",
        "--set",
        "workers=2",
        "--quiet",
    ]
    program = [sys.executable, "-c", "from kbgym.cli.main import run; run()", *words]
    done = subprocess.run(program, capture_output=True, text=True, env=environment() | {FOLDER: str(tmp_path)})
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "dead").exists(), "nobody was killed"
    assert json.loads(done.stdout)["authored"] > 0
    whole(url)


def test_what_a_fleet_needs_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        verb(["train", "--world", "w", "--out", "r", "--set", "engine=ray"])
    assert stopped.value.code == 2 and "store=URL" in capfd.readouterr().err
    with pytest.raises(BadInput):
        train_fleet(Here(), Fleet(generate(people=40, seed=1), Settings(reader="llm:local/m"), "postgresql://x/y"))


def _iteration(place: StoreBackend) -> int:
    assert isinstance(place, PostgresBackend)
    return read_meta(place.server)[1].iteration

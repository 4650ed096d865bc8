"""Report and viewer on every kind of run there can be: they say what is there, what is missing, and nothing else."""

from __future__ import annotations

import asyncio
import json
import shutil

import pytest
from starlette.testclient import TestClient

import kbgym
from kbgym.analysis.report import make_report
from kbgym.api import import_corpus, teach, trainer_for
from kbgym.api.factory import agents_named, training_settings
from kbgym.cli.main import run as command
from kbgym.errors import BadInput
from kbgym.serving.learning.setup import open_online
from kbgym.training.run import Run
from kbgym.training.trainer import Trainer
from kbgym.viewer.app import Viewer, guarded, make_viewer
from kbgym.viewer.places import ViewedPlaces
from kbgym.worlds.people import generate
from kbgym.worlds.splits import Sizes

SMALL = {"questions": 8, "epochs": 1, "embedder": "hash", "eval": False}
# What each route of the viewer is asked with; one that is not named here is asked with nothing.
ASKED = {
    "search": ["q=a"],
    "document": ["id={document}"],
    "question": ["set=test_in&id={question}&arms=flat"],
    "lesson": ["iteration=1"],
    "compare": ["left=flat"],
    "compare-questions": ["left=flat"],
    "table": ["name=gradient", "name=audit", "name=retention:{arm}"],
    "table.csv": ["name=gradient", "name=coverage"],
    "about": ["", "seed=0"],
}
MISSING = {404}  # said in one sentence


@pytest.fixture(scope="module")
def world():
    return generate(60, 0, Sizes(train=10, test_in=8, test_out=2, eval_in=2, eval_out=2))


@pytest.fixture(scope="module")
def trained(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "run"
    kbgym.train(world, out, **SMALL)
    return out


def verb(*arguments):
    with pytest.raises(SystemExit) as stopped:
        command([*map(str, arguments), "--quiet"])
    return stopped.value.code


def examined(folder):
    for at in ("@0", ""):
        assert verb("exam", f"{folder}{at}", "--set", "test_in") == 0
    return folder


def as_it_is(folder, world):
    pass


def learned(folder, world):
    """One graded question served to a run."""

    async def work():
        with kbgym.open(folder) as opened:
            settings = opened.settings
        online = open_online(str(folder), settings, "hash")
        asked = await online.ask(world.split("eval")[0].text, "ada")
        await online.gold(asked.id, world.split("eval")[0].golds)
        await online.stop()
        await online.live.close()

    asyncio.run(work())


def learned_from_traffic(folder, world):
    rows = [{"question": one.text, "golds": list(one.golds)} for one in world.split("eval")[:2]]
    traffic = folder.parent / "traffic.jsonl"
    traffic.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert verb("learn", folder, "--traffic", traffic) == 0


def rolled_back(folder, world):
    assert verb("store", "rollback", folder, "--to", 3) == 0


def batched(folder, world):
    shutil.rmtree(folder)
    kbgym.train(world, folder, **SMALL, batch_size=4)


def interrupted(folder, world):
    shutil.rmtree(folder)
    settings = training_settings(world, folder, **SMALL)
    run, real, taught = Run.open_or_create(folder, world, settings), Trainer.begin, []

    async def stops(self, lesson):
        taught.append(lesson)
        if len(taught) > 3:
            raise KeyboardInterrupt
        return await real(self, lesson)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(Trainer, "begin", stops)
        teach(trainer_for(run, agents_named(settings)))


def never_trained(folder, world):
    shutil.rmtree(folder)
    Run.open_or_create(folder, world, training_settings(world, folder, **SMALL))


def imported(folder, world):
    shutil.rmtree(folder)
    own = import_corpus("examples/harbour/notes", "examples/harbour/questions.csv")
    kbgym.train(own, folder, **{**SMALL, "questions": 4})


def pruned(folder, world):
    examined(folder)
    assert verb("store", "prune", folder, "--unused") == 0
    shutil.rmtree(folder / "exams")


def proved(folder, world):
    shutil.rmtree(folder)
    world.save(folder.parent / "world")
    small = ["--set", "embedder=hash", "--questions", 8, "--epochs", 1, "--n", 4]
    assert verb("prove", folder.parent / "world", "--out", folder, *small) == 0
    shutil.rmtree(folder / "exams")


def admitted_on_trial(folder, world):
    shutil.rmtree(folder)
    kbgym.train(world, folder, **SMALL, gate=2)


def torn(folder, world):
    """Killed while it wrote: half a transaction, half a row, a scratch file."""
    with (folder / "trace.jsonl").open("ab") as trace:
        trace.write(b'{"event":"begin","itera')
    (folder / "exams").mkdir(exist_ok=True)
    (folder / "exams" / ".4194305-flat-test_in.exam.json").write_text("{")
    (folder / "exams" / "flat-train.jsonl").write_text('{"actions":')


def on_top_of_another(folder, world):
    shutil.rmtree(folder)
    world.save(folder.parent / "world")
    pages = folder.parent / "pages"
    assert verb("baseline", "hipporag", "--world", folder.parent / "world", "--out", pages) == 0
    small = ["--questions", 4, "--epochs", 1, "--set", "embedder=hash"]
    assert verb("train", "--world", folder.parent / "world", "--out", folder, "--from", pages, *small) == 0


def imported_again(folder, world):
    """The user's files changed after training, and the trained store follows them."""
    notes = shutil.copytree("examples/harbour/notes", folder.parent / "notes")
    place = ["import", "corpus", notes, "--out", folder.parent / "own"]
    assert verb(*place, "--questions", "examples/harbour/questions.csv") == 0
    shutil.rmtree(folder)
    small = ["--questions", 4, "--epochs", 1, "--set", "embedder=hash"]
    assert verb("train", "--world", folder.parent / "own", "--out", folder, *small) == 0
    boats = notes / "boats.md"
    boats.write_text(boats.read_text() + "\nThe Petrel was sold in 2024.\n")
    assert verb(*place, "--update", "--store", folder) == 0


KINDS = [as_it_is, learned, learned_from_traffic, rolled_back, batched, interrupted, never_trained, imported]
KINDS += [pruned, proved, admitted_on_trial, torn, on_top_of_another, imported_again]


@pytest.mark.parametrize("with_exams", [False, True])
@pytest.mark.parametrize("change", KINDS)
def test_every_kind_of_run_has_a_report_and_a_page(trained, world, tmp_path, change, with_exams):
    folder = shutil.copytree(trained, tmp_path / "run")
    change(folder, world)
    if with_exams:
        examined(folder)
    report = make_report(folder)
    names = {table.name for table in report.tables}
    said = " ".join([report.statement, *report.notes, *(table.sentence for table in report.tables)])
    assert "worlds" in names and "nan" not in said.split()
    pairs = with_exams and change is not never_trained
    assert ("gradient" in names) == pairs, "flat against trained, only where both were examined"
    assert ("What is missing" in said) != pairs and (pairs or f"kbgym exam {folder}" in said)
    assert "paper:" not in said and "gpt-5-mini" not in said and "group to group" not in said
    if change in (imported, imported_again):
        assert not any(name.startswith("index-quality") for name in names) and "Generated" not in said
        audit = next(table for table in report.tables if table.name == "audit")
        assert "incomplete indexes" not in [line.head for line in audit.lines]
    places = ViewedPlaces([folder])
    client = TestClient(guarded(make_viewer(places)), base_url="http://127.0.0.1")
    asked = client.get("/api/questions").json()
    with kbgym.open(folder) as opened:
        names = {"document": next(iter(opened.store)).id, "question": opened.world.split("test_in")[0].id}
        names["arm"] = f"trained-{opened.settings.strategy}"
    for route in (one.path for one in Viewer(places).routes() if one.path.startswith("/api/")):
        for query in ASKED.get(route.removeprefix("/api/"), [""]):
            answer = client.get(f"{route}?{query.format(**names)}")
            needs_pairs = route.startswith(("/api/gradient", "/api/table"))
            absent = (
                (needs_pairs and not pairs)
                or (route == "/api/question" and not with_exams)
                or (route == "/api/lesson" and change is never_trained)
            )
            assert answer.status_code in (200, 202) or (absent and answer.status_code in MISSING), (route, answer.text)
            assert answer.status_code != 404 or len(answer.json()["error"]) > 20
    assert bool(asked["sets"]) == (with_exams or change is torn), "an exam of a run is seen in it, also one just begun"


def test_exams_are_found_by_what_they_say_and_not_by_their_names(trained, tmp_path):
    run = examined(shutil.copytree(trained, tmp_path / "run"))
    for number, file in enumerate(sorted((run / "exams").glob("*.jsonl"))):
        file.rename(file.with_name(f"x{number}.jsonl"))
        file.with_name(f"{file.stem}.exam.json").rename(file.with_name(f"x{number}.exam.json"))
    tables = {table.name: table for table in make_report(run).tables}
    assert "test_in" in tables["gradient"].columns
    assert len(tables["answers"].lines) == 8, "a line a question: expected, before, after"


def test_exams_of_two_readers_are_not_mixed(trained, tmp_path):
    run = examined(shutil.copytree(trained, tmp_path / "run"))
    with kbgym.open(run) as opened:
        header = opened.exam_header("general", "test_in")
        assert verb("exam", run, "--set", "test_in", "--agent", "general") == 0
    files = list((run / "exams").glob("trained-test_in*.jsonl"))
    assert len(files) == 2
    report = make_report(run)
    assert any("1 exam under other conditions (by general)" in note for note in report.notes)
    assert header.agent == "general" and len({file.read_bytes() for file in files}) == 2


def test_a_folder_of_nothing_is_one_sentence(tmp_path):
    with pytest.raises(BadInput, match="neither an experiment nor a run"):
        make_report(tmp_path)


def test_the_papers_figures_stand_beside_the_papers_protocol(tmp_path):
    """Its groups of questions on its kind of world, as the demo asks them; with another budget they are not there."""
    small = ["--people", 60, "--questions", 8, "--epochs", 1, "--n", 4, "--set", "embedder=hash"]
    assert verb("demo", "--out", tmp_path / "demo", *small) == 0
    report = make_report(tmp_path / "demo")
    assert "seeds" not in [table.name for table in report.tables], "one seed has no table of seeds"
    assert report.notes[0].startswith("In short. On questions training never saw, ")
    assert "An action is one search" in report.notes[1] and "rho is the actions" in report.notes[2]
    found = {table.name: table for table in report.tables}
    assert "paper" in found and "group to group" in found["gradient"].sentence
    settings = json.loads((tmp_path / "demo" / "run.json").read_text())
    settings["settings"]["forward_budget"] = 8
    (tmp_path / "demo" / "run.json").write_text(json.dumps(settings))
    assert "paper" not in [table.name for table in make_report(tmp_path / "demo").tables]

"""Public text: an exam, an experiment and a report on it say what the reader scores without a store."""

from __future__ import annotations

import json
import shutil

import pytest
from fault_server import FaultServer
from test_train_exam import kbgym

from kbgym.corpus.public import read_public
from kbgym.errors import BadInput
from kbgym.gym.actions import Answer, Search
from kbgym.training.probe import gradient
from kbgym.worlds.world import World

BOATS = (
    "Kestrel Petrel Dipper Brent Whimbrel Turnstone Merganser Curlew Plover Godwit Teal Wigeon Pintail Gadwall Smew"
    " Scoter Eider Garganey Shelduck Goosander"
).split()


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> World:
    """Twenty questions in HotpotQA's format."""
    folder = tmp_path_factory.mktemp("public")
    entries = [
        {
            "_id": f"h{number}",
            "question": f"Who founded the yard that built the {boat}?",
            "answer": f"Founder{number}",
            "type": "bridge",
            "supporting_facts": [[boat, 0], [f"Yard {number}", 0]],
            "context": [
                [boat, [f"The {boat} was built by Yard {number}.", "It is a boat."]],
                [f"Yard {number}", [f"Yard {number} was founded by Founder{number}.", "It stands by the sea."]],
            ],
        }
        for number, boat in enumerate(BOATS)
    ]
    (folder / "hotpot.json").write_text(json.dumps(entries))
    return read_public("hotpotqa", folder / "hotpot.json").world


@pytest.fixture
def place(world, tmp_path):
    world.save(tmp_path / "world")
    return str(tmp_path / "world")


def remembering(body):
    """A reader that remembers half of the answers: it searches once and ignores the results."""
    boat = body["messages"][1]["content"].split("the ")[-1].split("?")[0]
    number = BOATS.index(boat)
    if len(body["messages"]) == 2:
        return Search(boat)
    return Answer(f"Founder{number}" if number % 2 else "unknown")


def test_an_exam_says_what_the_reader_knew_before(place, tmp_path):
    rows = tmp_path / "rows.jsonl"
    with FaultServer(remembering) as server:
        base = ["exam", place, "--set", "embedder=hash", "--agent", "llm:local/m", "--set", f"base_url={server.url}"]
        code, _, error = kbgym(*base)
        assert code == 2 and "12 passes, about" in error, "both exams are forecast"
        code, printed, error = kbgym(*base, "--yes", "--out", str(rows), "--json")
        assert code == 0, error
        asked = len(server.bodies)
        code, text, _ = kbgym(*base, "--yes", "--out", str(rows))
        assert code == 0 and len(server.bodies) == asked, "neither is asked again"
    result = json.loads(printed)
    without = [json.loads(line) for line in (tmp_path / "rows.nostore.jsonl").read_text().splitlines()]
    assert result["nostore_f1"] == result["f1"] == sum(row["f1"] for row in without) / 6
    assert 0 < result["f1"] < 1, "the reader knew some of it, and the store added nothing"
    assert "without a store the same reader scores F1" in text


def test_an_exam_of_no_store_and_one_on_private_text_have_nothing_beside_them(place, tmp_path):
    assert kbgym("baseline", "nostore", "--world", place, "--out", str(tmp_path / "none"))[0] == 0
    code, printed, _ = kbgym("exam", str(tmp_path / "none"), "--world", place, "--set", "embedder=hash", "--json")
    assert code == 0 and "nostore_f1" not in json.loads(printed)
    world = World.load(tmp_path / "world")
    facts = {**world.facts, "public_text": False}
    World(world.documents, world.questions, facts).save(tmp_path / "private")
    code, printed, _ = kbgym("exam", str(tmp_path / "private"), "--set", "embedder=hash", "--json")
    assert code == 0 and "nostore_f1" not in json.loads(printed)


def test_an_experiment_adds_the_arm_and_its_report_the_sentence(place, tmp_path):
    out = tmp_path / "exp"
    small = ["--questions", "8", "--epochs", "1", "--strategy", "paper", "--arms", "flat", "--n", "5"]
    code, printed, error = kbgym(
        "experiment", "run", "paper", "--world", place, "--out", str(out), *small, "--set", "embedder=hash", "--json"
    )
    assert code == 0, error
    assert json.loads(printed)["arms"] == ["flat", "nostore", "trained-paper"]
    assert {path.name for path in (out / "seed-0" / "exams").glob("nostore-*")} == {
        "nostore-trained.jsonl",
        "nostore-unseen.jsonl",
    }
    assert kbgym("report", str(out))[0] == 0
    page = (out / "report" / "report.html").read_text()
    assert (
        "without a store the same reader scores F1 0.000 on the same 10 questions" in page
        and "<td>No store</td>" in page
    )
    assert "People universe" not in page, "a public set is neither of the paper's benchmarks"
    for file in (out / "seed-0" / "exams").glob("nostore-*"):
        file.unlink()
    assert kbgym("report", str(out))[0] == 0
    page = (out / "report" / "report.html").read_text()
    assert "its score without a store is missing" in page


def test_a_report_of_one_run_finds_the_rows_beside_its_exams(place, tmp_path):
    run = tmp_path / "run"
    train = ["--questions", "8", "--epochs", "1", "--set", "embedder=hash"]
    assert kbgym("train", "--world", place, "--out", str(run), *train)[0] == 0
    assert kbgym("probe", str(run), "--n", "5")[0] == 0
    (run / "exams").mkdir(exist_ok=True)
    for store, name in ((f"{run}@0", "flat"), (str(run), "trained")):
        for group in ("trained", "unseen"):
            out = run / "exams" / f"{name}-{group}.jsonl"
            assert kbgym("exam", store, "--set", group, "--out", str(out), "--set", "embedder=hash")[0] == 0
    assert kbgym("report", str(run))[0] == 0
    assert "without a store the same reader scores F1" in (run / "report" / "report.html").read_text()
    for file in (run / "exams").glob("*.nostore.jsonl"):
        file.unlink()
    shutil.rmtree(run / "report")
    assert kbgym("report", str(run))[0] == 0
    assert "its score without a store is missing" in (run / "report" / "report.html").read_text()


def test_groups_of_a_world_that_cannot_list_its_questions(world):
    trained = world.split("train")[:8]
    probe = gradient(world, trained, 5)
    assert {name: len(group) for name, group in probe.groups.items()} == {"trained": 5, "unseen": 5}
    assert probe.overlap == {"trained": 5, "unseen": 0}
    assert gradient(world, trained, 5) == probe != gradient(world, trained, 5, seed=1)
    assert len(gradient(world, trained, None).groups["unseen"]) == 6
    with pytest.raises(BadInput, match="no test question"):
        gradient(World(world.documents, trained, world.facts), trained, 5)

"""The importer of the paper's universe: a hand-made sample, the real file where it is there, and broken files."""

import json
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from second_path import SentenceReader, as_golds, instance

from kbgym.cli.worlds import import_command as command
from kbgym.errors import BadInput
from kbgym.worlds.people import TEMPLATES, paper, pool
from kbgym.worlds.people.kind import PeopleKind
from kbgym.worlds.splits import training_subset
from kbgym.worlds.world import Key, World

SAMPLE = Path(__file__).with_name("paper-sample.json")


def test_the_sample_becomes_a_world():
    world = paper.read(SAMPLE)
    assert world.splits == {"train": 6, "test_in": 1, "test_out": 1, "eval": 1}
    people = {person["name"]: person for person in world.facts["people"]}
    ids = {person["id"]: name for name, person in people.items()}
    cleo = people["Cleo Vane"]
    assert (cleo["gender"], cleo["job"], cleo["hobby"], cleo["city"]) == ("female", "tuner", "drums", "Westby")
    assert cleo["born"] == "1955-06-03"
    assert [ids[parent] for parent in cleo["parents"]] == ["Ada Moss", "Bram Holt"]
    assert [ids[child] for child in cleo["children"]] == ["Fitz Rook"]
    assert ids[cleo["spouse"]] == "Egon Tarr"
    assert people["Dirk Lund"]["gender"] == ""
    assert [name for name, person in people.items() if person["distractor"]] == ["Ada Quill"]
    question = world.questions[4]
    assert (question.template, question.class_) == ("job-and-city", "QC6")
    assert question.keys == (Key("job", "tuner"), Key("city", "Westby"))
    assert world.documents[0].kind == "job" and world.documents[0].about == ("p0001",)
    assert [q.golds for q in pool(world, "spouse-of-job")] == [("Ada Moss",), ("Cleo Vane",)]


def _node(sample, text):
    return next(node for node in sample["nodes"] if node["text"] == text)


def _text(old, new):
    return lambda sample: _node(sample, old).update(text=new)


def _drop(text):
    return lambda sample: sample["nodes"].remove(_node(sample, text))


def _question(number, **changes):
    return lambda sample: sample["questions"][number - 1].update(changes)


BROKEN = {
    "a node id twice": (lambda s: s["nodes"][3].update(id="s01"), "'s01' occurs twice"),
    "a question id twice": (_question(2, qid="q1"), "'q1' occurs twice"),
    "a support of nothing": (_question(1, support=["s99"]), "q1 is supported by 's99', which is not a document"),
    "a strange sentence": (_text("Ada Moss's job is tuner.", "Ada Moss tunes."), "s01 is not a sentence"),
    "no job": (_drop("Dirk Lund's job is miner."), "Dirk Lund has 0 job sentences"),
    "a negative count": (lambda s: s["meta"].update(n_distractors=-1), "is not a whole universe file"),
    "a stranger": (
        _text("Fitz Rook is a friend of Dirk Lund.", "Fitz Rook is a friend of Jon Doe."),
        "names Jon Doe",
    ),
    "a wrong gold": (_question(1, golds=["miner"]), "q1 has the gold \\['miner'\\], but the people say \\['pilot'\\]"),
    "a wrong abstention": (_question(1, unanswerable=True), "q1 has the gold"),
    "not askable": (_question(5, text="Who is the pilot who lives in the city of Westby?"), "q5 cannot be asked"),
    "an unknown template": (_question(1, template="qc1_shoe"), "q1 is not of the template 'qc1_shoe'"),
    "another shape": (_question(1, text="What does Fitz Rook do?"), "q1 is not of the template 'qc1_job'"),
    "a person who is not there": (_question(1, text="What is the job of Jon Doe?"), "q1 names 'Jon Doe'"),
    "in no split": (lambda s: s["splits"]["train"].remove("q1"), "q1 is in no split"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_in_one_sentence(name, tmp_path):
    damage, says = BROKEN[name]
    sample = json.loads(SAMPLE.read_text())
    damage(sample)
    file = tmp_path / "broken.json"
    file.write_text(json.dumps(sample))
    with pytest.raises(BadInput, match=says) as caught:
        paper.read(file)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("keep", [0, 1, 0.3, 0.9, 0.999])
def test_a_truncated_file_leaves_nothing_behind(keep, tmp_path):
    whole = SAMPLE.read_bytes().rstrip()
    file = tmp_path / "torn.json"
    file.write_bytes(whole[: keep if isinstance(keep, int) else int(len(whole) * keep)])
    result = CliRunner().invoke(command, ["paper-universe", str(file), "--out", str(tmp_path / "out")])
    assert isinstance(result.exception, BadInput) and result.exception.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["torn.json"]


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(BadInput, match=r"cannot read .*nothing\.json"):
        paper.read(tmp_path / "nothing.json")


def test_the_command_writes_a_world(tmp_path):
    out = tmp_path / "paper"
    result = CliRunner().invoke(command, ["paper-universe", str(SAMPLE), "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["documents"] == 52 and printed["questions"] == 9
    world = World.load(out)
    assert world.hash == printed["hash"] == paper.read(SAMPLE).hash


def test_the_papers_universe(paper_file):
    world = paper.read(paper_file)
    assert len(world.documents) == 5864
    assert world.splits == {"train": 150, "test_in": 100, "test_out": 50, "eval": 30}
    kinds = Counter(document.kind for document in world.documents)
    assert kinds == {
        "job": 550, "hobby": 550, "city": 550, "birth": 550, "spouse": 320, "child-of": 668, "parent-of": 668,
        "friend": 2008,
    }  # fmt: skip
    assert sum(person["distractor"] for person in world.facts["people"]) == 50
    assert {q.template for q in world.questions} == set(TEMPLATES) - {"spouse-of-job"}
    reader = SentenceReader(document.text for document in world.documents)
    assert [q.id for q in world.questions if as_golds(reader.answer(q.text)) != set(q.golds)] == []


def test_our_pools_hold_the_papers_questions_with_its_supports(paper_file):
    """Except for brothers and sisters: the file tells no gender of people without children."""
    world = paper.read(paper_file)
    for name in TEMPLATES:
        ours = {instance(name, q.keys): q for q in pool(world, name)}
        for question in world.questions:
            if question.template == name and name not in ("brother-job", "sister-hobby"):
                mine = ours[instance(name, question.keys)]
                assert (mine.golds, set(mine.support)) == (question.golds, set(question.support))


def test_100_of_the_papers_training_questions_are_mixed(paper_file):
    subset = training_subset(paper.read(paper_file).split("train"), 100, PeopleKind().difficulty)
    easy = [q.class_ in {"QC1", "QC2", "QC3", "QC4", "QC5"} for q in subset]
    assert sum(easy) == 40 and 15 <= sum(easy[:50]) <= 25
    assert len({q.class_ for q in subset}) == 10

"""HotpotQA, 2WikiMultihopQA and MuSiQue: small files in the official formats, written by hand."""

import json
from pathlib import Path

import pytest

from kbgym.corpus.public import read_public
from kbgym.errors import BadInput
from kbgym.worlds.world import Key, World

KESTREL = ["The Kestrel is a trawler.", " She was built by Dunmore Yard in 1987."]
YARD = ["Dunmore Yard is a shipyard.", "  It was founded by Elias Dunmore.", " "]
HOTPOT = [
    {
        "_id": "5a8b57f2",
        "question": "Who founded the yard that built the Kestrel?",
        "answer": "Elias Dunmore",
        "type": "bridge",
        "level": "medium",
        "supporting_facts": [["Kestrel (boat)", 1], ["Dunmore Yard", 1]],
        "context": [["Kestrel (boat)", KESTREL], ["Dunmore Yard", YARD], ["Petrel", ["The Petrel is green."]]],
    },
    {
        "_id": "5a8c7595",
        "question": "Are the Kestrel and the Petrel both green?",
        "answer": "no",
        "type": "comparison",
        "level": "easy",
        "supporting_facts": [["Petrel", 0], ["Kestrel (boat)", 7]],
        "context": [["Petrel", ["The Petrel is green."]], ["Kestrel (boat)", KESTREL]],
    },
]
TWOWIKI = [
    {
        **HOTPOT[0],
        "type": "compositional",
        "evidences": [["Kestrel", "builder", "Dunmore Yard"], ["Dunmore Yard", "founder", "Elias Dunmore"]],
        "entity_ids": "Q1_Q2",
    }
]
MUSIQUE = [
    {
        "id": "2hop__11_22",
        "paragraphs": [
            {"idx": 0, "title": "Kestrel", "paragraph_text": "".join(KESTREL), "is_supporting": True},
            {"idx": 1, "title": "Petrel", "paragraph_text": "The Petrel is green.", "is_supporting": False},
            {
                "idx": 2,
                "title": "Kestrel",
                "paragraph_text": "A kestrel eats mice. Dr. Vael saw it.",
                "is_supporting": False,
            },
        ],
        "question": "Who built the boat of Ingrid Falk?",
        "question_decomposition": [{"id": 11, "question": "boat", "answer": "Kestrel", "paragraph_support_idx": 0}],
        "answer": "Dunmore Yard",
        "answer_aliases": ["Dunmore", "Dunmore Yard"],
        "answerable": True,
    },
    {
        "id": "2hop__11_22",
        "paragraphs": [{"idx": 0, "title": "Petrel", "paragraph_text": "The Petrel is green.", "is_supporting": False}],
        "question": "Who built the boat of Ingrid Falk?",
        "question_decomposition": [],
        "answer": "Dunmore Yard",
        "answer_aliases": [],
        "answerable": False,
    },
]


def written(tmp_path: Path, value: object, lines: bool = False) -> Path:
    path = tmp_path / "data.json"
    path.write_text("\n".join(map(json.dumps, value)) + "\n" if lines else json.dumps(value))
    return path


def text_of(world: World) -> dict[str, str]:
    return {document.id: document.text for document in world.documents}


def test_hotpotqa(tmp_path):
    made = read_public("hotpotqa", written(tmp_path, HOTPOT))
    texts = text_of(made.world)
    assert list(texts.values()) == [
        "Kestrel (boat): The Kestrel is a trawler.",
        "Kestrel (boat): She was built by Dunmore Yard in 1987.",
        "Dunmore Yard: Dunmore Yard is a shipyard.",
        "Dunmore Yard: It was founded by Elias Dunmore.",
        "Petrel: The Petrel is green.",
    ]
    first, second = made.world.questions
    assert [texts[id] for id in first.support] == [
        "Kestrel (boat): She was built by Dunmore Yard in 1987.",
        "Dunmore Yard: It was founded by Elias Dunmore.",
    ]
    assert first.golds == ("Elias Dunmore",) and (first.class_, first.template) == ("hotpotqa", "bridge")
    assert first.keys == (Key("page", "Kestrel (boat)"), Key("page", "Dunmore Yard"))
    assert second.template == "comparison" and [texts[id] for id in second.support] == ["Petrel: The Petrel is green."]
    assert made.bad_supports == 1
    assert made.world.facts["public_text"] is True


def test_2wiki(tmp_path):
    made = read_public("2wiki", written(tmp_path, TWOWIKI))
    assert made.world.questions[0].template == "compositional" and made.world.questions[0].class_ == "2wiki"
    assert len(made.world.documents) == 5


def test_musique(tmp_path):
    made = read_public("musique", written(tmp_path, MUSIQUE, lines=True))
    texts = text_of(made.world)
    assert list(texts.values()) == [
        "Kestrel: The Kestrel is a trawler.",
        "Kestrel: She was built by Dunmore Yard in 1987.",
        "Kestrel: A kestrel eats mice.",
        "Kestrel: Dr. Vael saw it.",
        "Petrel: The Petrel is green.",
    ]
    (question,) = made.world.questions
    assert question.golds == ("Dunmore Yard", "Dunmore") and question.template == "2hop"
    assert [texts[id] for id in question.support] == list(texts.values())[:2]
    assert made.unanswerable == 1


def many(n: int) -> list[dict]:
    return [{**HOTPOT[0], "_id": f"q{k}", "question": f"Who founded yard number {k}?"} for k in range(n)]


def test_splits_and_limit_are_the_same_every_time(tmp_path):
    path = written(tmp_path, many(50))
    whole = read_public("hotpotqa", path).world
    assert whole.splits == {"train": 30, "test_in": 15, "eval": 5}
    some = read_public("hotpotqa", path, limit=20).world
    assert some.splits == {"train": 12, "test_in": 6, "eval": 2}
    assert some.hash == read_public("hotpotqa", path, limit=20).world.hash
    other = read_public("hotpotqa", path, limit=20, seed=1).world
    assert {q.text for q in other.questions} != {q.text for q in some.questions}
    assert {q.text for q in some.questions} < {q.text for q in whole.questions}


@pytest.mark.parametrize(
    ("dataset", "content", "message"),
    [
        ("hotpotqa", "{}", "not in the expected format"),
        ("hotpotqa", "[]", "no question"),
        ("2wiki", '[{"_id": "a", "question": "Who?", "context": []}]', "no answer or no supporting facts"),
        ("musique", '{"id": "2hop__1_2"}', "line 1 is not in the expected format"),
        ("musique", '{"id": "a", "question": "Who?", "paragraphs": []}', "no answer or no supports"),
        ("musique", "\xff", "not in the expected format"),
    ],
)
def test_other_files_are_refused(tmp_path, dataset, content, message):
    path = tmp_path / "data"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(BadInput, match=message):
        read_public(dataset, path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInput, match="nowhere"):
        read_public("musique", tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize(("dataset", "entries"), [("hotpotqa", HOTPOT), ("2wiki", TWOWIKI), ("musique", MUSIQUE)])
def test_an_array_and_lines_are_the_same(tmp_path, dataset, entries):
    array = read_public(dataset, written(tmp_path, entries))
    lines = read_public(dataset, written(tmp_path, entries, lines=True))
    assert array == lines and array.world.questions


def test_a_wrong_entry_of_an_array_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"data.json, entry 1: no answer"):
        read_public("musique", written(tmp_path, [{**MUSIQUE[0], "answer": None}]))

"""MadeQuestions: read exactly, split by group, duplicates found."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.corpus.questions import MadeQuestions, make_questions, read_rows
from kbgym.corpus.splits import NEAR, Split, divide, near_duplicates, normalised
from kbgym.errors import BadInput
from kbgym.worlds.world import Document, Key

DOCUMENTS = (Document("k1", "The Kestrel was built by Dunmore Yard."), Document("k2", "Boats: She is 18.5 m long."))


def written(tmp_path: Path, text: str, name: str = "qa.csv") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def read_questions(path: Path, documents, seed: int = 0, old=()) -> MadeQuestions:
    return make_questions(read_rows(path)[0], documents, seed, old)


def test_csv_with_everything(tmp_path):
    path = written(
        tmp_path,
        "Question,answers,keys,support,group,split,unanswerable,class,template\n"
        'Who built it?," Dunmore Yard | Dunmore ",boat:Kestrel|yard:Dunmore,'
        "k1|is 18.5 m LONG,kestrel,test_in,,history,built\n"
        "Who sank it?,,,,,train,yes,,\n",
    )
    first, second = read_questions(path, DOCUMENTS).questions
    assert first.text == "Who built it?" and first.golds == ("Dunmore Yard", "Dunmore") and first.split == "test_in"
    assert first.keys == (Key("boat", "Kestrel"), Key("yard", "Dunmore")) and first.support == ("k1", "k2")
    assert (first.class_, first.template) == ("history", "built") and not first.unanswerable
    assert second.unanswerable and second.golds == ("unknown",) and second.class_ == second.template == "corpus"


def test_jsonl_says_the_same(tmp_path):
    path = written(
        tmp_path,
        '{"question": "Who built it?", "answers": ["Dunmore Yard", "A|B"], '
        '"support": ["k1"], "keys": ["boat:Kestrel"]}\n\n'
        '{"question": "How long is it?", "answer": 18.5, "unanswerable": false}\n',
        "qa.jsonl",
    )
    first, second = read_questions(path, DOCUMENTS).questions
    assert first.golds == ("Dunmore Yard", "A|B") and first.support == ("k1",) and second.golds == ("18.5",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q,answer\nWho?,Me\n", "no column `question`"),
        ("question,answer,colour\nWho?,Me,red\n", "line 2: there is no column 'colour'"),
        ("question,answer\n,Me\n", "line 2: the question is empty"),
        ("question,answer\nWho?,\n", "line 2: 'Who?' has no answer"),
        ("question,answer\nWho?,a,b\n", "line 2: 3 cells for 2 columns"),
        ("question,answer,split\nWho?,Me,exam\n", "no split 'exam'"),
        ("question,answer,keys\nWho?,Me,boat\n", "kind:value"),
        ("question,answer,support\nWho?,Me,k9\n", "no document has the id or the words 'k9'"),
        ("question,answer,unanswerable\nWho?,Me,perhaps\n", "yes or no"),
        ("question,answer\nWho is it?,Me\nwho is IT,You\n", "line 2 and qa.csv, line 3 ask the same"),
        ("question,answer\n", "holds no question"),
        ('question,answer\n"Who,Me\n', "line 2"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    with pytest.raises(BadInput, match=None) as wrong:
        read_questions(written(tmp_path, text), DOCUMENTS)
    assert message in str(wrong.value)


@pytest.mark.parametrize("name", ["missing.csv", "qa.xlsx"])
def test_files_that_are_no_questions(tmp_path, name):
    written(tmp_path, "x", "qa.xlsx")
    with pytest.raises(BadInput, match=name):
        read_rows(tmp_path / name)


def numbered(tmp_path: Path, n: int, extra: str = "") -> Path:
    lines = [f"What is the name of boat number {number}?,Boat {number}\n" for number in range(n)]
    return written(tmp_path, "question,answer\n" + "".join(lines) + extra)


def test_twenty_questions_are_split_twelve_six_two_and_stay_so(tmp_path):
    first = read_questions(numbered(tmp_path, 20), DOCUMENTS).questions
    assert Counter(q.split for q in first) == {"train": 12, "test_in": 6, "eval": 2}
    assert read_questions(numbered(tmp_path, 20), DOCUMENTS).questions == first
    other = read_questions(numbered(tmp_path, 20), DOCUMENTS, seed=1).questions
    assert Counter(q.split for q in other) == {"train": 12, "test_in": 6, "eval": 2} and other != first


def test_the_order_of_the_rows_does_not_move_a_question(tmp_path):
    rows, _ = read_rows(numbered(tmp_path, 20))
    splits = {q.text: q.split for q in make_questions(rows, DOCUMENTS).questions}
    assert {q.text: q.split for q in make_questions(rows[::-1], DOCUMENTS).questions} == splits


def test_old_questions_keep_their_split_when_new_ones_come(tmp_path):
    old = read_questions(numbered(tmp_path, 20), DOCUMENTS).questions
    new = read_questions(numbered(tmp_path, 40), DOCUMENTS, old=old).questions
    before = {q.id: q.split for q in old}
    assert all(q.split == before[q.id] for q in new if q.id in before)
    assert Counter(q.split for q in new) == {"train": 24, "test_in": 12, "eval": 4}


def test_duplicates_are_dropped_and_near_ones_stay_together(tmp_path):
    words = (
        "Which of the many small green boats in our old stone harbour did the Hallow brothers build once during winter"
    )
    extra = (
        f"{words}?,Petrel\n{words.replace('winter', 'summer')}?,Merganser\nwhat is the NAME of boat number 3,Boat 3\n"
    )
    found = read_questions(numbered(tmp_path, 20, extra), DOCUMENTS)
    assert [(pair.first, pair.second, pair.dropped) for pair in found.duplicates] == [
        ("qa.csv, line 5", "qa.csv, line 24", True),
        ("qa.csv, line 22", "qa.csv, line 23", False),
    ]
    assert len(found.questions) == 22 and not found.leaks
    near = [q.split for q in found.questions if q.text.startswith("Which")]
    assert len(set(near)) == 1


def test_duplicates_across_given_splits_are_leaks(tmp_path):
    text = "question,answer,split\nWho built the Kestrel?,Dunmore,train\nWho built the Kestrel,Dunmore,test_in\n"
    found = read_questions(written(tmp_path, text), DOCUMENTS)
    assert len(found.questions) == 2 and [pair.splits for pair in found.leaks] == [("train", "test_in")]


TEXTS = st.lists(st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=24).map(" ".join), max_size=25)


@given(TEXTS)
def test_the_fast_search_finds_what_comparing_all_with_all_finds(texts):
    found = {(pair.first, pair.second) for pair in near_duplicates(texts) if not pair.same}
    first: dict[str, int] = {}
    for place, text in enumerate(texts):
        first.setdefault(normalised(text), place)
    places = sorted(first.values())
    expected = set()
    for n, one in enumerate(places):
        for other in places[n + 1 :]:
            a, b = set(texts[one].split()), set(texts[other].split())
            if len(a & b) / len(a | b) >= NEAR:
                expected.add((one, other))
    assert found == expected
    same = [pair for pair in near_duplicates(texts) if pair.same]
    assert len(same) == len(texts) - len(places)


GROUPS = st.lists(st.sampled_from(["", "", "a", "b", "c", "d"]), min_size=1, max_size=40)


@given(GROUPS, st.integers(0, 3))
def test_no_group_is_ever_in_two_splits(groups, seed):
    members = [Split(f"q{n}", group) for n, group in enumerate(groups)]
    splits = divide(members, [], seed)
    for group in set(groups) - {""}:
        assert len({split for split, member in zip(splits, members, strict=True) if member.group == group}) == 1
    assert set(splits) <= {"train", "test_in", "eval"}
    if not any(groups):
        n = len(groups)
        assert all(abs(splits.count(name) - n * share / 10) < 1 for name, share in (("train", 6), ("test_in", 3)))


@pytest.mark.parametrize("name", ["q.json", "q.jsonl"])
def test_an_array_of_questions_or_one_a_line(tmp_path, name):
    rows = [
        {"question": "Who owns the Kestrel?", "answer": ["Ingrid", "Falk"]},
        {"question": "Who cooks?", "answer": "Petra"},
    ]
    read = []
    for content in (json.dumps(rows), "\n".join(map(json.dumps, rows))):
        (tmp_path / name).write_text(content)
        read.append([(row.text, row.golds) for row in read_rows(tmp_path / name)[0]])
    assert read[0] == read[1] == [("Who owns the Kestrel?", ("Ingrid", "Falk")), ("Who cooks?", ("Petra",))]
    (tmp_path / name).write_text('[{"question": 1')
    with pytest.raises(BadInput, match=name):
        read_rows(tmp_path / name)

"""The verdict: what it says in clear cases, that it keeps its level, and that it finds harm."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

import kbgym
from kbgym.agents.general.reader import GeneralReader
from kbgym.analysis.index_use import costly, index_use
from kbgym.analysis.statistics import Interval, Sampled, ratio
from kbgym.analysis.verdict import judge, more_questions, paired_rows, right_in, shared_keys
from kbgym.gym.actions import Found, Opened, Read, Search
from kbgym.store import Store
from kbgym.training.evidence import Evidence
from kbgym.training.exam import Row, Shot
from kbgym.worlds.people import generate
from kbgym.worlds.world import Document, Question, Source, World

SKARN = Path(__file__).parents[2] / "examples" / "skarn"


def row(id, actions, f1=1.0, opened=()):
    shots = tuple(Shot(Read(one), Opened(one, ())) for one in opened)
    return Row(str(id), "c", "t", "q", ("g",), "g", f1, f1, actions, 100, "answered", shots)


def rows(actions, f1=None):
    return [row(id, many, 1.0 if f1 is None else f1[id]) for id, many in enumerate(actions)]


# 150 questions, as many as show without a change of answers that accuracy is not lower by 3 points.
FLAT = rows([8, 9, 10, 7, 12, 15, 9, 8, 10, 11] * 15)
FEWER = [5, 5, 6, 4, 7, 9, 5, 5, 6, 6] * 15
SAME = [1.0] * 150


def test_it_helps_where_actions_fall_and_accuracy_is_shown_not_to():
    found = judge(rows(FEWER), FLAT)
    assert (found.word, found.accuracy) == ("helps", "not lower") and found.rho.high < 1 and found.gain.low > -0.03
    assert found.sentence.startswith("helps: 41% fewer actions [") and "accuracy not lower" in found.sentence


@pytest.mark.parametrize(("n", "lost"), [(20, 0), (100, 0), (150, 2)])
def test_fewer_actions_are_no_help_while_accuracy_is_undecided(n, lost):
    """On a point estimate of no loss or of one point, below the number of questions that would show it."""
    found = judge(rows(FEWER[:n], [0.0] * lost + SAME[lost:n]), FLAT[:n])
    assert (found.word, found.accuracy) == ("no difference shown", "undecided") and found.rho.high < 1
    assert "accuracy undecided" in found.sentence and "more question" not in found.sentence.partition("shown;")[0]


def test_it_hurts_where_answers_are_lost_however_cheaply():
    found = judge(rows([3] * 12, [0.0] * 9 + [1.0] * 3), FLAT[:12])
    assert (found.word, found.accuracy) == ("hurts", "lower")


def test_more_actions_hurt_and_more_right_answers_help_at_any_price():
    assert judge(rows([14] * 150), rows([9] * 150)).word == "hurts"
    found = judge(rows([14] * 12), rows([row.actions for row in FLAT[:12]], [0.0] * 10 + [1.0] * 2))
    assert (found.word, found.accuracy) == ("helps", "not lower") and found.rho.value > 1


def test_without_a_difference_it_says_how_many_questions_would_show_one_or_what_is_excluded():
    wide = judge(rows([3, 15, 10, 4, 14, 12, 3, 15]), rows([10, 9, 9, 11, 10, 8, 10, 9]))
    assert wide.word == "no difference shown" and wide.more_questions and "a saving of 20%" in wide.outlook
    for same in (FLAT, FLAT[:12]):
        found = judge(same, same)
        assert found.word == "no difference shown" and found.more_questions is None
        assert "excluded" in found.outlook and "more question" not in found.outlook, "both stores are identical"


def test_nothing_to_compare_is_no_difference_and_no_crash():
    assert judge([], []).word == "no difference shown"
    alone = judge(rows([5]), rows([9]))
    assert alone.word == "no difference shown" and alone.rho == Interval(5 / 9, 0.0, float("inf"))
    assert alone.too_few and "too few pages" in alone.sentence
    failed = judge([row(0, 3, None)], rows([9]))
    assert failed.n == 0 and failed.failed == 1


def test_the_number_of_further_questions_is_enough():
    """With as many as it says, a gain of 20% with the same spread is found in about four of five experiments."""
    draw = Random(1)
    spread = [-6, -4, -1, 0, 0, 1, 4, 6]
    needed = 8 + (more_questions(ratio([Sampled([10.0 + one for one in spread], [10.0] * 8)])) or 0)
    found = 0
    for _ in range(40):
        actions = [8.0 + draw.choice(spread) for _ in range(needed)]
        found += ratio([Sampled(actions, [10.0] * needed)]).p <= 0.05
    assert found >= 26, "four of five is 32 of 40; six fewer is two standard errors"
    assert more_questions(ratio([Sampled([10.0] * 6, [10.0] * 6)])) == 6, "a dozen at least"
    shared = ratio([Sampled([4.0, 9.0], [10.0, 10.0], [("a",), ("a",)])])
    assert more_questions(shared) is None, "questions that all share a key do not tell how questions differ"


def test_questions_of_few_pages_decide_nothing():
    """Pages are never split into sentences: ten pages are worth at most ten questions, five too few for any verdict."""
    named = [replace(one, question=f"q{one.id}") for one in rows(FEWER)]
    for pages, few in ((5, True), (10, False), (150, False)):
        found = judge(named, FLAT, {f"q{at}": (f"page {at % pages}",) for at in range(150)})
        assert found.too_few == few and found.effective == pytest.approx(pages)
        assert found.word == ("helps" if pages == 150 else "no difference shown")


def test_questions_share_the_pages_of_their_supports_however_few_there_are():
    texts = ["One is here. Two is here.", "Three is here. Four is here."]
    documents = [
        Document(f"d{at}", text, source=Source(f"page{at // 2}.md", at, at + 1))
        for at, text in enumerate(sentence for text in texts for sentence in text.split(". "))
    ]
    questions = [
        Question(f"q{at}", "test_in", "c", "t", f"Question {at}?", ("g",), support=(f"d{at}",)) for at in range(4)
    ]
    keys = shared_keys(World(tuple(documents), tuple(questions)))
    assert keys["Question 0?"] == keys["Question 1?"] != keys["Question 2?"]


def test_right_in_both_one_or_neither():
    after, before = rows([5] * 4, [1.0, 0.0, 1.0, 0.5]), rows([5] * 4, [1.0, 1.0, 0.0, 0.5])
    assert right_in(paired_rows(after, before)) == {"both": 1, "flat": 1, "trained": 1, "neither": 1}


def passing(id, actions, *steps, f1=1.0, seen=()):
    """A pass of searches, each the ids it found, and openings, each an id and its links."""
    shots = tuple(
        Shot(Read(step[0]), Opened(*step)) if isinstance(step, tuple) else Shot(Search("q"), Found(tuple(step), 1))
        for step in steps
    )
    return replace(row(id, actions, f1), shots=shots, evidence=Evidence(len(seen), seen) if seen else None)


def test_without_a_document_a_question_that_saw_only_there_what_it_needed_goes_as_on_the_flat_store():
    store = Store()
    first, second, third = (store.add(text) for text in ("People of A", "People of B", "People of C"))
    trained = [
        passing(0, 4, [first, "x"], (first, ("d1", "d2")), ("d1", ("d3",)), seen=(2,)),
        passing(1, 9, [second, "d1"], (second, ("d1",)), ("d1", ("d3",)), seen=(1, 3)),
        passing(2, 3, [first], (first, (second,)), (second, ("d4",)), ("d4", ()), f1=0.0, seen=(3,)),
    ]
    found = {one.id: one for one in index_use(store, paired_rows(trained, rows([10, 7, 9])))}
    assert found[first].needed == ("0",) and found[first].saved == (10 - 4) + (9 - 3) and found[first].f1 == -1.0
    assert found[second].questions == ("1", "2") and not found[second].needed, "question 1 saw d1 anyway"
    assert found[second].saved == -1 + (9 - 3) and found[second].f1 == -1.0 and not found[second].useful
    assert found[second].opened == 2 and not found[third].questions and not found[third].harmful


def test_where_nothing_says_what_was_needed_it_is_what_was_opened_next():
    store = Store()
    index = store.add("People of A")
    led, idle = passing(0, 4, [index], (index, ("d1",)), ("d1", ())), passing(1, 4, [index], (index, ("d1",)))
    (found,) = index_use(store, paired_rows([led, idle], rows([9, 9])))
    assert found.needed == ("0",) and found.saved == 5 - 0, "the other took no more steps than on the flat store"
    (found,) = index_use(store, paired_rows([led, idle], rows([2, 2])))
    assert found.saved == -2 - 1 and not found.harmful, "one question needed it"
    (found,) = index_use(store, paired_rows([idle], rows([9, 2])))
    assert found.saved == -1 and not found.harmful, "one question is no evidence"


def test_a_document_is_harmful_where_all_who_opened_it_surely_went_worse_and_none_needed_it():
    store = Store()
    index = store.add("People of A")
    shown = [index, "d1", "d2"]
    idle = [passing(at, 8 + at % 2, shown, (index, ("d3",)), f1=1.0, seen=(1,)) for at in range(6)]
    (found,) = index_use(store, paired_rows(idle, rows([4, 5, 4, 5, 4, 5])))
    assert found.harmful and found.saved == -6
    (found,) = index_use(store, paired_rows(idle, rows([8, 9, 8, 8, 8, 9])))
    assert found.saved == -1 and not found.harmful, "one action of 51 is chance"
    led = passing(6, 9, shown, (index, ("d3",)), ("d3", ()), seen=(3,))
    (found,) = index_use(store, paired_rows([*idle, led], rows([4, 5, 4, 5, 4, 5, 5])))
    assert found.needed == ("6",) and not found.harmful
    wrong = [replace(one, f1=0.0) for one in idle]
    (found,) = index_use(store, paired_rows(wrong, rows([12] * 6)))
    assert found.harmful and found.f1 == -6.0, "fewer actions do not make up for answers that are lost"
    for lost, harmful in ((1, False), (2, True)):
        (found,) = index_use(store, paired_rows([*wrong[:lost], *idle[lost:]], rows([9] * 6)))
        assert found.f1 == -lost and found.harmful == harmful, "one may have been lost by chance"


class Credulous(GeneralReader):
    """The general reader, but it first asks for an overview, and reads it again and again."""

    async def act(self, view):
        if not view.history:
            return Search("overview of the whole observatory")
        first = view.history[0].observation.text.partition("[")[2].partition("]")[0]
        text = view.history[0].observation.text.partition("] ")[2]
        if text.startswith("Overview of the whole") and len(view.history) < 4:
            return Read(first)
        return await super().act(view)


def test_what_is_pruned_as_harmful_does_not_raise_actions_on_questions_kept_back(tmp_path):
    """A corpus with the indexes training wrote and a bad one; half of the questions judge, the rest are asked after."""
    world = kbgym.import_corpus([SKARN / "pages"], SKARN / "questions.jsonl", links=True)
    agents = {"reader": "general", "curator": "general"}
    kbgym.train(world, tmp_path / "run", **agents, questions=30, epochs=1, embedder="hash", eval=False)
    judging, kept_back = world.questions[::2], world.questions[1::2]
    with kbgym.open(f"{tmp_path}/run@0") as before, kbgym.open(tmp_path / "run") as after:
        store = after.store.copy()
        bad = store.add("Overview of the whole observatory")
        supports = {id for question in world.questions for id in question.support}
        for id in [one.id for one in world.documents if one.id not in supports][::20]:
            store.link(bad, id)
        opened = after.with_store(store)
        pairs = paired_rows(opened.examine(Credulous, judging).rows, before.examine(Credulous, judging).rows)
        equally_well = [(now, then) for now, then in pairs if now.f1 == then.f1]
        assert len(equally_well) > 0.8 * len(pairs)
        harmful = costly(index_use(store, equally_well))
        assert [one.id for one in harmful] == [bad], "only what the evidence is against"
        actions = [sum(row.actions for row in one.examine(Credulous, kept_back).rows) for one in (opened, after)]
    assert actions[1] < actions[0]


@pytest.mark.slow
def test_the_estimate_has_the_sign_of_an_exam_without_the_document(tmp_path):
    """Each of the ten most used indexes is really taken out and the same questions asked again."""
    kbgym.train(generate(60, 1), tmp_path / "run", questions=30, epochs=1, embedder="hash", eval=False)
    with kbgym.open(f"{tmp_path}/run@0") as before, kbgym.open(tmp_path / "run") as after:
        flat, trained = (opened.examine("reference", "train").rows for opened in (before, after))
        pairs, same = paired_rows(trained, flat), 0
        used = sorted(index_use(after.store, pairs), key=lambda one: -len(one.questions))[:10]
        for one in used:
            store = after.store.copy()
            store.delete(one.id)
            again = after.with_store(store).examine("reference", "train").rows
            lost = sum(row.actions for row in again) - sum(row.actions for row, _ in pairs)
            same += (lost > 0) == (one.saved > 0)
    assert same >= 8, "an estimate, but seldom on the wrong side"

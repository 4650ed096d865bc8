"""The grader, case by case against what the official SQuAD evaluation (version 2) does, and what the benchmark adds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbgym.gym.grading import abstains, exact, f1, grade, grade_question, normalise, score, set_f1
from kbgym.training.gate import qa_pair
from kbgym.worlds.world import Question


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("Edda Calder", "edda calder"),
        ("The  Cat!", "cat"),
        ("a cat, an owl and the dog.", "cat owl and dog"),
        ("  white \t space\n", "white space"),
        ("U.S.A.", "usa"),
        ("O'Neil's", "oneils"),
        ("state-of-the-art", "stateoftheart"),  # punctuation goes before articles are looked for
        ("another theme", "another theme"),  # articles are whole words
        ("The A-Team", "ateam"),
        ("$5,000.50", "500050"),
        ("The", ""),
        ("?!", ""),
        ("", ""),
        ("“quoted” — dash", "“quoted” — dash"),  # only ASCII punctuation is removed
        ("ÉCLAIR", "éclair"),
        ("a.b", "ab"),
        ("x a", "x"),
    ],
)
def test_normalise(text, normal):
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("Edda Calder", "edda calder", 1.0),
        ("The baker.", "baker", 1.0),
        ("Edda", "Edda Calder", 2 / 3),
        ("Edda Calder the baker", "Edda Calder", 0.8),
        ("Calder Edda", "Edda Calder", 1.0),  # F1 does not look at order
        ("Otto Brock", "Edda Calder", 0.0),
        ("row row row", "row row", 0.8),  # repeated words count as often as they stand in both
        ("row", "row row row", 0.5),
        ("", "Edda", 0.0),
        ("the", "Edda", 0.0),
        ("", "", 1.0),
        ("the", "a", 1.0),  # nothing left on both sides
    ],
)
def test_f1(answer, gold, score):
    assert f1(answer, gold) == pytest.approx(score)


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("The Baker!", "baker", 1.0),
        ("Calder Edda", "Edda Calder", 0.0),
        ("baker", "bakers", 0.0),
        ("icehockey", "ice-hockey", 1.0),
        ("", "the", 1.0),
    ],
)
def test_exact_match(answer, gold, score):
    assert exact(answer, gold) == score


def test_the_best_gold_counts():
    assert grade("Edda Calder", ["Otto", "Edda Calder"], False) == (1.0, 1.0)
    assert grade("Edda", ["Edda Calder", "Edda Maria Calder"], False).f1 == pytest.approx(2 / 3)
    assert grade("anything", [], False) == (0.0, 0.0)


def test_whoever_gives_no_answer_scores_nothing_even_where_there_is_none():
    assert score(None, ["Edda"], False) == score(None, [], True) == (0.0, 0.0)
    assert score("unknown", [], True) == score("Edda", ["Edda"], False) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("answer", "golds", "f1_score", "em"),
    [
        ("3", ["3", "three"], 1, 1),
        ("Three.", ["3", "three"], 1, 1),
        ("three", ["3"], 1, 1),
        ("3", ["three"], 1, 1),
        ("twenty-one", ["21"], 1, 1),
        ("twenty one", ["21"], 1, 1),
        ("4", ["3", "three"], 0, 0),
        ("03", ["3"], 0, 0),
        ("one", ["31"], 0, 0),
        ("3 children", ["3", "three"], 2 / 3, 0),
        ("123", ["123"], 1, 1),
        ("²", ["2"], 0, 0),
    ],
)
def test_numbers_are_accepted_as_digits_and_words(answer, golds, f1_score, em):
    assert grade(answer, golds, False) == (pytest.approx(f1_score), em)


def test_two_people_in_either_order_and_one_of_two_in_part():
    golds = ["Edda Calder and Otto Brock", "Otto Brock and Edda Calder"]
    assert grade("Otto Brock and Edda Calder", golds, False) == (1.0, 1.0)
    assert grade("Edda Calder and Otto Brock.", golds, False) == (1.0, 1.0)
    one = grade("Edda Calder", golds, False)
    assert 0.5 < one.f1 < 0.6 and one.em == 0
    assert grade("Ragna Venning", golds, False) == (0.0, 0.0)


ABSTAIN = [
    "unknown",
    "Unknown.",
    "The answer is unknown.",
    "It is unknown",
    "no answer",
    "No answer.",
    "none",
    "None.",
    "cannot be determined",
    "Can't be determined.",
    "It cannot be determined from the documents.",
    "This cannot be determined from the given information.",
    "I don't know.",
    "N/A",
    "not stated in the documents",
    "There is no answer",
    "not enough information",
    "Insufficient information.",
    "Edda Calder has no brother.",
    "There is no documented sister in the documents.",
]
ANSWERS = [
    "baker",
    "Edda Calder",
    "",
    "  ",
    "unknown baker",
    "Nonesuch",
    "one",
    "no",
    "The answer is baker.",
    "the",
    "Unknown, or baker",
]


@pytest.mark.parametrize("answer", ABSTAIN)
def test_the_usual_ways_of_saying_unknown(answer):
    assert abstains(answer)
    assert grade(answer, ["unknown"], True) == (1.0, 1.0)
    assert grade(answer, ["baker"], False).em == 0.0


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_to_an_unanswerable_question_scores_nothing(answer):
    assert not abstains(answer)
    assert grade(answer, ["unknown"], True) == (0.0, 0.0)


def test_an_unanswerable_question_may_have_a_gold_of_its_own():
    """Some worlds say in their own words that nothing is known; saying just that is right, saying part of it is not."""
    golds = ["Not on this list", "The register is silent"]
    assert not any(abstains(gold) for gold in golds)
    assert grade("register is silent!", golds, True) == (1.0, 1.0)
    assert grade("not on this list", golds, True) == (1.0, 1.0)
    assert grade("unknown", golds, True) == (1.0, 1.0)
    assert grade("the list", golds, True) == (0.0, 0.0)
    assert grade("", ["", "the"], True) == grade("the", ["", "a"], True) == (0.0, 0.0), "silence says nothing"


@given(st.text(), st.text())
def test_scores_are_bounded_symmetric_and_exact_means_full(answer, gold):
    assert 0 <= f1(answer, gold) <= 1
    assert f1(answer, gold) == pytest.approx(f1(gold, answer))
    assert not exact(answer, gold) or f1(answer, gold) == 1
    assert f1(answer, answer) == exact(answer, answer) == 1


@given(st.text(), st.lists(st.text(), max_size=4), st.booleans())
def test_grading_never_breaks_and_never_scores_exact_above_f1(answer, golds, unanswerable):
    score = grade(answer, golds, unanswerable)
    assert 0 <= score.em <= score.f1 <= 1


@pytest.mark.parametrize(
    ("answer", "gold", "score"),
    [
        ("Ann Ash", "Ann Ash", 1.0),
        ("bob oak,ANN ASH ", "Ann Ash, Bob Oak", 1.0),
        ("Ann Ash", "Ann Ash, Bob Oak", 2 / 3),
        ("Ann Ash, Cy Elm", "Ann Ash, Bob Oak", 0.5),
        ("Ann", "Ann Ash", 0.0),
        ("Ann Ash, Ann Ash", "Ann Ash", 1.0),
        ("0, 3", "3", 2 / 3),
        ("the chess", "chess", 0.0),
        ("", "Ann Ash", 0.0),
        ("Ann Ash,", "Ann Ash", 2 / 3),
    ],
)
def test_the_f1_of_comma_sets_is_phantomwikis(answer, gold, score):
    """Members count whole, case and outer white space aside; what is empty between commas is a member too."""
    assert set_f1(answer, gold) == pytest.approx(score)
    assert set_f1(gold, answer) == pytest.approx(score)


def imported(*golds: str, members: tuple[str, ...] = (), unanswerable: bool = False) -> Question:
    return qa_pair("q", "?", golds or (", ".join(members),), unanswerable, group="sets", members=members)


@pytest.mark.parametrize(
    "answer",
    [
        "2032-04-09",
        "9 April 2032",
        "April 9, 2032",
        "Apr 9 2032",
        "the 9th of April 2032",
        "2032/4/9",
    ],
)
@pytest.mark.parametrize("gold", ["2032-04-09", "April 9, 2032"])
def test_dates_of_imported_questions_count_in_any_usual_form(answer, gold):
    assert grade_question(answer, imported(gold)).em == 1
    other = grade_question(answer, imported("2032-04-10"))
    assert (other.f1, other.em) == (0, 0), "a date is right or wrong"


@pytest.mark.parametrize(
    ("answer", "gold"), [("1,234", "1234"), ("nine months", "9 months"), ("twenty-one", "21"), ("May 2031", "2031-05")]
)
def test_numbers_and_months_of_imported_questions_count_in_any_usual_form(answer, gold):
    assert grade_question(answer, imported(gold)).em == grade_question(gold, imported(answer)).em == 1


def test_other_questions_are_graded_as_squad_does():
    assert grade_question("April 9, 2032", qa_pair("q", "?", ("2032-04-09",))).em == 0
    assert grade_question(None, imported("x")) == (0, 0)
    assert grade_question("unknown", imported("unknown", unanswerable=True)).em == 1


MEMBERS = ("CentOS 7", "Debian 9", "Ubuntu", "Washington, D.C.", "Salt and Pepper")


@pytest.mark.parametrize("separator", [", ", "; ", "\n", "\n- ", " | ", " / ", " and ", ", and "])
def test_lists_are_sets_whatever_separates_them(separator):
    for order in (MEMBERS, MEMBERS[::-1]):
        assert grade_question(separator.join(order), imported(members=MEMBERS)) == (1, 1)
        assert grade_question("They are: " + separator.join(order), imported(members=MEMBERS)) == (1, 1)


@pytest.mark.parametrize(
    ("answer", "found", "others"),
    [
        ("CentOS 7, Debian 9", 2, 0),
        ("CentOS 7, Debian 8", 1, 1),
        ("CentOS 70", 0, 1),
        ("CentOS 7, CentOS 7, Ubuntu and Fedora", 2, 1),
        ("nothing", 0, 1),
        ("", 0, 0),
    ],
)
def test_each_wrong_member_costs_precision_and_each_missing_one_recall(answer, found, others):
    graded = grade_question(answer, imported(members=MEMBERS))
    assert graded.f1 == pytest.approx(2 * found / (found + others + len(MEMBERS)) if found else 0)
    assert graded.em == 0


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=4))
def test_any_answer_and_any_members_get_a_grade(answer, members):
    graded = grade_question(answer, imported(members=tuple(members)))
    assert 0 <= graded.em <= graded.f1 <= 1

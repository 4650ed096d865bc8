"""The gate through its one question, `judge`: what it remembers from pass to pass, and what it forgets.

The readers here answer by what they see of a store, so that every score is known beforehand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

import pytest

from kbgym.api.factory import embedder_named
from kbgym.gym.actions import Action, Answer, Read, Search
from kbgym.gym.environment import Environment
from kbgym.gym.grading import f1
from kbgym.gym.policy import View
from kbgym.search.factory import live_engine_for
from kbgym.store import Record, Store, source
from kbgym.training.asking import QAPair
from kbgym.training.gate import Admission, Gate, GateQuestions, Judging

TEXTS = (
    "Ada Alm's job is baker.",
    "Bo Alm's job is baker.",
    "Ada Alm lives in Lund.",
    "Bo Alm lives in Lund.",
    "Apart.",
)
BAKERS = ("People whose job is baker.", ("d0", "d1"))
LUND = ("People who live in Lund.", ("d2", "d3"))
ADA = ("What Ada does.", ("d0", "d2"))
ODD = ("Nothing speaks for this.", ())
SEEDS: list[dict[str, int]] = [{}, {"seed": 0}, {"seed": 1}]
GOLD = " ".join(f"w{n}" for n in range(200))

Index = tuple[str, tuple[str, ...]]


def environment(*indexes: Index, **links: tuple[str, ...]) -> Environment:
    """The five documents, indexes n1, n2, ... over them, and links of the documents themselves."""
    records = [source(f"d{n}", text) for n, text in enumerate(TEXTS)]
    records = [Record(r.id, r.text, links.get(r.id, ()), origin=r.origin) for r in records]
    written = [Record(f"n{n}", text, to, flag="authored") for n, (text, to) in enumerate(indexes, 1)]
    store = Store([*records, *written])
    embedder = embedder_named("hash")
    engine = live_engine_for(store, embedder)
    return Environment(store, engine.overlay())


class Reader:
    """Looks at everything, then answers what `said` makes of the question and of all it saw."""

    plays = 0

    def __init__(self, said: Callable[[str, str], str]) -> None:
        self.said = said

    def __call__(self) -> Reader:
        self.plays += 1
        return self

    async def act(self, view: View) -> Action:
        last = view.history[-1].observation.text if view.history else ""
        if last.startswith("Error"):
            return Answer(self.said(view.task.question, "\n".join(turn.observation.text for turn in view.history)))
        return Search("anything", len(view.history) + 1)


class ReadsOne:
    """Reads the document a question names, and says what it shows."""

    def __call__(self) -> ReadsOne:
        return self

    async def act(self, view: View) -> Action:
        return Answer(view.history[-1].observation.text) if view.history else Read(view.task.question)


def missing(words: int) -> str:
    """The gold without so many of its words."""
    return " ".join(GOLD.split()[words:])


def judge(gate: Judging, before: Environment, after: Environment, touched: Iterable[str], number: int = 1):
    return asyncio.run(gate.judge(before, after, set(touched), number))


def panel(*ids: str) -> list[QAPair]:
    return [QAPair(id, id, (GOLD,)) for id in ids]


def test_small_losses_do_not_add_up() -> None:
    """Each index costs less than half the margin; the third would make it more than the margin in all."""

    def said(question: str, seen: str) -> str:
        return missing(2 * sum(text in seen for text, _ in (BAKERS, LUND, ADA)))

    scores = [f1(missing(words), GOLD) for words in (0, 2, 4, 6)]
    margin = 2.5 * (1 - scores[1])
    gate = Gate(4, panel("q"), Reader(said), margin)
    first = judge(gate, environment(), environment(BAKERS), ["n1"], 1)
    assert (first.admitted, first.asked, first.reached, first.reason) == (True, 1, 1, "")
    assert (first.before, first.after, first.best) == (1.0, round(scores[1], 6), 1.0)
    assert judge(gate, environment(BAKERS), environment(BAKERS, LUND), ["n2"], 2).admitted
    third = judge(gate, environment(BAKERS, LUND), environment(BAKERS, LUND, ADA), ["n3"], 3)
    assert not third.admitted and third.withheld == ()
    assert (third.before, third.after, third.best) == (round(scores[2], 6), round(scores[3], 6), 1.0)
    assert third.reason.startswith("F1 of 1 questions would fall from 0.990 to 0.985 (at best 1.000): q from 0.99 to")
    alone = Gate(4, panel("q"), Reader(said), margin)
    assert judge(alone, environment(BAKERS, LUND), environment(BAKERS, LUND, ADA), ["n3"]).admitted, "it is small alone"


def test_a_pass_is_not_refused_for_what_was_lost_before_it() -> None:
    """The best was never reached again, whoever's fault that is; a pass that changes nothing of it stays."""
    answers = {"": 0, LUND[0]: 20, BAKERS[0]: 20}

    def said(question: str, seen: str) -> str:
        return missing(max(words for text, words in answers.items() if text in seen))

    gate = Gate(4, panel("q"), Reader(said))
    assert not judge(gate, environment(), environment(LUND), ["n1"], 1).admitted
    found = judge(gate, environment(LUND), environment(LUND, BAKERS), ["n2"], 2)
    assert found.admitted and found.before == found.after < found.best == 1.0


def test_the_best_is_what_was_reached_on_the_store_and_not_in_a_refused_pass() -> None:
    """A refused pass answered one question better and another worse; only what came true counts afterwards."""

    def said(question: str, seen: str) -> str:
        if BAKERS[0] in seen:
            return GOLD if question == "a" else "nothing"
        return missing((100 if question == "a" else 0) + 2 * (LUND[0] in seen))

    gate = Gate(4, panel("a", "b"), Reader(said), margin=0.01)
    refused = judge(gate, environment(), environment(BAKERS), ["n1"], 1)
    assert not refused.admitted and "b from 1.00 to 0.00" in refused.reason
    small = judge(gate, environment(), environment(LUND), ["n1"], 2)
    assert small.admitted and small.best == small.before == refused.before


def test_a_better_answer_raises_what_is_expected() -> None:
    def said(question: str, seen: str) -> str:
        return GOLD if BAKERS[0] in seen and LUND[0] not in seen else missing(4)

    gate = Gate(4, panel("q"), Reader(said))
    assert judge(gate, environment(), environment(BAKERS), ["n1"], 1).admitted
    worse = judge(gate, environment(), environment(LUND), ["n1"], 2)
    assert worse.admitted and worse.best == 1.0 > worse.before, "no loss of its own"
    gone = judge(gate, environment(BAKERS), environment(BAKERS, LUND), ["n2"], 3)
    assert not gone.admitted and (gone.before, gone.best) == (1.0, 1.0)


def test_a_refused_pass_leaves_no_trace_in_what_questions_are_known_to_see() -> None:
    """The refused link showed a question another document; on the store as it stayed it does not see that one."""
    gate = Gate(4, [QAPair("q", "d0", ("zebra",))], ReadsOne())
    refused = judge(gate, environment(), environment(d0=("d4",)), ["d0"], 1)
    assert not refused.admitted and refused.reached == 1
    assert refused.reason == f"nothing speaks for what was done to [d0] {TEXTS[0]!r}" and not refused.withheld
    after = environment()
    after.store.link("d4", ["d3"])
    assert judge(gate, environment(), after, ["d4"], 2).reached == 0
    admitted = environment(d0=("d1",))
    assert judge(gate, environment(), admitted, ["d0"], 3).admitted, "a baker under a baker"
    assert judge(gate, admitted, environment(d0=("d1",), d1=("d0",)), ["d1"], 4).reached == 1, "it is seen from now on"


def test_a_question_asked_on_the_very_same_store_is_not_asked_again() -> None:
    reader = Reader(lambda question, seen: GOLD)
    gate = Gate(4, panel("a", "b"), reader)
    judge(gate, environment(), environment(ODD), ["n1"], 1)
    assert reader.plays == 4, "both without and with the edits"
    judge(gate, environment(), environment(BAKERS), ["n1"], 2)
    assert reader.plays == 6, "the first pass was refused: what was known without it still holds"
    judge(gate, environment(BAKERS), environment(BAKERS, LUND), ["n2"], 3)
    assert reader.plays == 8, "the second was admitted: what was found with it holds now"
    judge(gate, environment(LUND), environment(LUND, BAKERS), ["n2"], 4)
    assert reader.plays == 12, "this store nobody was asked on"


@pytest.mark.parametrize(
    ("better", "worse", "admitted"),
    [("", "", False), ("a", "", True), ("ab", "", True), ("a", "b", False), ("", "b", False)],
)
def test_a_question_helped_speaks_for_a_change_unless_another_is_hurt(better: str, worse: str, admitted: bool) -> None:
    """The words give no reason. The mean rises whenever one is helped: a hurt question counts all the same."""

    def said(question: str, seen: str) -> str:
        if ODD[0] in seen:
            return missing(0 if question in better else 102 if question in worse else 100)
        return missing(100)

    gate = Gate(4, panel("a", "b"), Reader(said), margin=1.0)
    found = judge(gate, environment(), environment(ODD), ["n1"])
    assert (found.admitted, found.withheld) == (admitted, () if admitted else ("n1",))
    assert admitted or found.reason == "nothing speaks for what was done to [n1] 'Nothing speaks for this.'"
    assert (found.after > found.before) == bool(better)


def test_only_a_question_that_sees_the_document_speaks_for_it() -> None:
    """Two changes in one pass; the question that is helped reads one of them."""
    asking = QAPair("q", "d4", ("Apart. Ada Alm's job is baker.",))
    gate = Gate(4, [asking], ReadsOne())
    after = environment(ODD, d4=("d0",))
    found = judge(gate, environment(), after, ["d4", "n1"])
    assert (found.admitted, found.withheld) == (False, ("n1",)) and found.after > found.before
    again = judge(Gate(4, [asking], ReadsOne()), environment(), environment(d4=("d0",)), ["d4"])
    assert again.admitted, "it is the same change without the other document"


def test_what_was_done_to_old_documents_cannot_be_withheld() -> None:
    gate = Gate(4, panel("q"), Reader(lambda question, seen: GOLD))
    after = environment(ODD, ODD, d0=("d4",))
    found = judge(gate, environment(), after, ["d0", "n1", "n2"])
    assert (found.admitted, found.withheld) == (False, ())
    assert found.reason.startswith("nothing speaks for what was done to [d0]") and found.reason.endswith(" and 2 more")
    edited = environment()
    edited.store.edit("d4", "Something else.")
    assert judge(gate, environment(), edited, ["d4"]).reason == "nothing speaks for what was done to [d4] 'Apart.'"
    new = judge(gate, environment(), environment(ODD, ODD), ["n1", "n2"])
    assert new.withheld == ("n1", "n2") and new.reason.endswith("'Nothing speaks for this.' and 1 more")


def test_the_question_that_loses_most_is_named() -> None:
    lost = {"a": 3, "b": 50, "c": 0}

    def said(question: str, seen: str) -> str:
        return missing(lost[question] if BAKERS[0] in seen else 20 if question == "c" else 0)

    for number in range(6):
        found = judge(Gate(4, panel(*lost), Reader(said)), environment(), environment(BAKERS), ["n1"], number)
        assert found.reason.endswith("(at best 0.982): b from 1.00 to 0.86"), found.reason


def test_the_questions_an_edit_can_reach_are_asked_first() -> None:
    """Ten questions read a document of their own; the edit touches one of them, and one question may be asked."""
    qa_pairs = [QAPair(f"q{n}", f"d{n % 5}", (TEXTS[n % 5],)) for n in range(10)]
    gate = Gate(2, qa_pairs, ReadsOne())
    judge(gate, environment(), environment(BAKERS), ["n1"], 0)
    samples = []
    for number in range(6):
        after = environment(d3=("d2",))
        sample, reached = gate.sample({"d3"}, [], after, number)
        assert reached == 2 and {asking.id for asking in sample} == {"q3", "q8"}
        samples.append(tuple(asking.id for asking in gate.sample({"nobody"}, [], after, number)[0]))
    assert len(set(samples)) > 1, "which others are asked changes from pass to pass"
    assert gate.sample({"d3"}, [], after, 5)[0] == gate.sample({"d3"}, [], after, 5)[0]
    assert [asking.id for asking in gate.sample({"nobody"}, [], after, 5)[0]] == list(samples[5])


def test_a_new_document_reaches_whoever_would_find_it() -> None:
    """A search that was shown a whole page reaches a new document only if it is nearer than the last on the page."""

    class Searcher(ReadsOne):
        async def act(self, view: View) -> Action:
            return Answer("x") if view.history else Search(view.task.question)

    questions = ["Ada Alm's job is baker", "Bo Alm lives in Lund"]
    gate = Gate(4, [QAPair(text, text, ("x",)) for text in questions], Searcher())
    judge(gate, environment(), environment(ODD), ["n1"], 0)
    after = environment()
    near = "Ada Alm's job is baker."
    assert gate.sample(set(), [near], after, 1)[1] == 2
    assert all(gate.sample(set(), [text], after, 1)[1] == 2 for text in TEXTS), "as near as the last on the page"
    assert gate.sample(set(), ["Zebras graze quietly"], after, 1)[1] == 0
    assert gate.sample(set(), ["Zebras graze quietly", near], after, 1)[1] == 2
    assert gate.sample(set(), [], after, 1)[1] == 0


def test_any_new_document_reaches_whoever_saw_the_end_of_the_results() -> None:
    gate = Gate(4, panel("q"), Reader(lambda question, seen: GOLD))
    judge(gate, environment(), environment(BAKERS), ["n1"], 0)
    after = environment()
    embedding = after.engine.embedding
    opposite = next(
        text for text in (f"Zebra {n}" for n in range(99)) if embedding(text) @ embedding("anything") < -0.01
    )
    assert gate.sample(set(), [opposite], after, 1)[1] == 1


def test_the_order_of_the_others_is_the_seeds() -> None:
    qa_pairs = panel(*(f"q{n}" for n in range(9)))
    samples = [Gate(9, qa_pairs, ReadsOne(), **seed).sample(set(), [], environment(), 1)[0] for seed in SEEDS]
    assert samples[0] == samples[1] != samples[2]


def test_a_document_that_is_gone_is_judged_too() -> None:
    gate = Gate(4, panel("q"), Reader(lambda question, seen: GOLD))
    assert judge(gate, environment(ODD), environment(), ["n1"]).admitted
    spoken_for = judge(gate, environment(BAKERS), environment(), ["n1"])
    assert spoken_for.reason == f"nothing speaks for what was done to [n1] {BAKERS[0]!r}"


def test_without_enough_questions_to_tell_nothing_is_asked() -> None:
    reader = Reader(lambda question, seen: GOLD)
    gate = Gate(4, panel("a", "b"), reader, evidence=3)
    found = judge(gate, environment(), environment(BAKERS), ["n1"])
    assert found == Admission(False, 0, 2, 0.0, 0.0, 0.0, "only 2 questions could tell what it does")
    assert reader.plays == 2
    gate.answered(QAPair("c", "c", (GOLD,)))
    assert judge(gate, environment(), environment(BAKERS), ["n1"]).admitted


def test_without_any_question_only_the_words_decide() -> None:
    for index, admitted in ((BAKERS, True), (ODD, False)):
        found = judge(Gate(4, [], ReadsOne()), environment(), environment(index), ["n1"])
        assert (found.admitted, found.asked, found.reached) == (admitted, 0, 0)
        assert found.reason == "there is no question to ask yet"


def test_at_most_two_hundred_lately_answered_are_kept_and_who_left_is_forgotten() -> None:
    reader = Reader(lambda question, seen: GOLD)
    gate = Gate(1, panel("r0", "held"), reader)

    def asked_anew(*answered: QAPair) -> int:
        """How many have to be asked on a store on which everybody who is known was asked before."""
        for asking in answered:
            gate.answered(asking)
        plays = reader.plays
        judge(gate, environment(), environment(ODD), ["n1"])
        return reader.plays - plays - 1  # one is asked with the edits

    first, *others = panel(*(f"r{n}" for n in range(402)))
    assert asked_anew(first, *others[:199]) == 201
    assert asked_anew(first, others[199], others[200]) == 2, "r1 and r2 leave: r0 came again and is the latest"
    assert asked_anew(QAPair("r1", "r1 again", (GOLD,))) == 1, "r3 leaves, and r1 was forgotten"
    gate.n = 1000
    kept = {asking.id: asking.text for asking in gate.sample(set(), [], environment(), 1)[0]}
    assert kept.keys() == {"held", "r0", "r1", *(f"r{n}" for n in range(4, 202))} and kept["r1"] == "r1 again"
    gate.n = 1
    assert asked_anew(*others[201:400]) == 199
    assert asked_anew(others[400]) == 1, "r0 has left too, but is held out: it is known"


def test_no_answer_scores_nothing() -> None:
    class Silent(ReadsOne):
        async def act(self, view: View) -> Action:
            return Read("d0")

    asking = QAPair("q", "q", ("unknown",), unanswerable=True)
    assert judge(Gate(4, [asking], Silent()), environment(), environment(BAKERS), ["n1"]).before == 0.0
    unknown = Reader(lambda question, seen: "unknown")
    assert judge(Gate(4, [asking], unknown), environment(), environment(BAKERS), ["n1"]).before == 1.0


def test_a_panels_score_is_the_mean_of_its_questions() -> None:
    known = {"a": 0, "b": 100, "c": 200}
    reader = Reader(lambda question, seen: missing(100 if BAKERS[0] in seen else known[question]))
    found = judge(GateQuestions(3, panel(*known), reader, 0, 15, 30), environment(), environment(BAKERS), ["n1"])
    half = f1(missing(100), GOLD)
    assert (found.before, found.after) == (round((1 + half) / 3, 6), round(half, 6))
    assert (found.asked, found.admitted) == (3, True)

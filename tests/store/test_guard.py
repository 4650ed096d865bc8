"""The near-duplicate guard: what the rule calls a duplicate, whom it asks, and that its word is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from store_fixtures import Live, step

from kbgym.gym.actions import Add, Added, Edit, Edited, Error, Merged
from kbgym.gym.environment import Environment, Nearest, apply
from kbgym.index_keys import RuleJudge, same_key, signature
from kbgym.store import Store, source
from kbgym.store.guard import Check, Verdict, verdict
from kbgym.trace.folder import StoreFolder

SAME = [
    ("Residents of Lund.", "People who live in Lund."),
    ("People living in Lund", "Residents of Lund"),
    ("Index of residents of Lund.", "Everyone who lives in Lund."),
    ("Friends of Anna Berg.", "Anna Berg's friends"),
    ("The friends of Anna Berg.", "List of all friends of Anna Berg"),
    ("Children of Carl Berg.", "Carl Berg’s kids"),
    ("The job of Bo Ek is baker.", "Bo Ek works as a baker."),
    ("People whose hobby is chess.", "Everybody whose pastime is chess."),
    ("Bakers in Lund.", "People who are bakers in Lund."),
    ("Quartets that rehearse on Tuesdays.", "The quartets that rehearse on Tuesdays."),
    ("Grandchildren of Carl Berg", "Documents of the grandchildren of Carl Berg."),
    ("Anna Berg never lives in Lund.", "Anna Berg lives not in Lund."),  # one denial is as good as another
    ("Bo Ek is never not in Lund.", "Bo Ek is in Lund."),  # two cancel out
    ("Bo Ek is never not without a job.", "Bo Ek is without a job."),
    ("Anna Berg plays violin in Lund.", "Anna Berg in Lund plays violin."),  # names and words, each in its own order
]
DIFFERENT = [
    ("Anna Berg is a child of Carl Berg.", "Carl Berg is a child of Anna Berg."),  # direction
    ("Bo Ek is a friend of Anna Berg.", "Anna Berg is a friend of Bo Ek."),  # told from each end: two origins
    ("Anna Berg lives in Lund.", "Anna Berg does not live in Lund."),  # negation
    ("Anna Berg has a brother.", "Anna Berg has no brother."),
    ("Nobody lives in Lund.", "People live in Lund."),
    ("Residents of Lund.", "Residents of Malmö."),
    ("Residents of Lund.", "Bakers of Lund."),
    ("Friends of Anna Berg.", "Children of Anna Berg."),
    ("Friends of Anna Berg.", "Friends of Anna Bergman."),
    ("Children of Carl Berg.", "Grandchildren of Carl Berg."),
    ("Anna Berg was born in 1950.", "Anna Berg was born in 1951."),
    ("The red team reports to the blue team.", "The blue team reports to the red team."),  # no names, still a direction
    ("The sensor is off below -5 degrees.", "The sensor is off below 5 degrees."),
    ("Programmers who write C++.", "Programmers who write C."),
    ("The price is 5 €.", "The price is 5 $."),
    ("All the people.", "The list of documents."),  # nothing left to compare
    ("The load is > 5.", "The load is < 5."),
    ("Bakers in Lund.", "Bakers in Lund whose hobby is chess."),
    ("Bo Ek is never not in Lund.", "Bo Ek is not in Lund."),
    ("Nobody is not in Lund.", "Nobody is in Lund."),
    ("Anna Anna Berg sings.", "Anna Berg sings."),  # a name said twice is another name
    ("The range x..y holds y.", "The range x...y holds y."),  # signs of code
    ("A value of the type &T.", "A value of the type *T."),
    ("Both are checked with a && b.", "Both are checked with a || b."),
    ("The flag -v prints more.", "The flag --v prints more."),
    ("Call store.put first.", "Call store put first."),
    ("The name std::move is used.", "The name std:move is used."),
    ("It holds []int.", "It holds int."),
    ("Set a_b to one.", "Set a b to one."),
    ("Match a & b & c.", "Match a & b c."),
]
# Indexes of one key in other words; the pairs below look like that and are not.
ONE_KEY = [
    ("The job of these people is interpreter.", "People whose job is interpreter."),
    ("Interpreters.", "People whose job is interpreter."),
    ("People who work as interpreters", "The job of these people is interpreter."),
    ("Ferrymen", "People whose job is ferryman"),
    ("Chess enthusiasts", "People whose hobby is chess."),
    ("Kiruna residents", "People who live in the city of Kiruna"),
    ("About Odile Calder.", "Odile Calder"),
    ("Everything known about Odile Calder", "Odile Calder"),
    ("Odile Calder's children", "Children of Odile Calder."),
    ("Cities of everybody with the job tanner", "Cities of people whose job is tanner"),
]
OTHER_KEYS = [
    ("Interpreter", "People whose job is interpreter."),  # may be a name, or a page of that title
    ("Interpreters in Lund.", "People whose job is interpreter."),
    ("People whose job is planner", "People whose job is city planner"),
    ("People whose job is interpreter.", "People whose hobby is interpreter."),
    ("Jobs of friends of Ann Bell", "Friends of Ann Bell"),
    ("Ann Bell's job is interpreter.", "People whose job is interpreter."),
    ("People whose job is not interpreter", "People whose job is interpreter"),
    ("Known issues", "Issues"),
    ("Friends of Ann Bell", "Ann Bell"),
    ("People who enjoy x..y", "People whose hobby is x...y"),
    ("About &T", "About *T"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_paraphrases_of_an_index_sentence_are_duplicates(one: str, other: str) -> None:
    assert signature(one) == signature(other)
    assert asyncio.run(RuleJudge().duplicate(one, other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_the_rule_sees_direction_negation_names_and_numbers(one: str, other: str) -> None:
    assert not asyncio.run(RuleJudge().duplicate(one, other))
    assert not asyncio.run(RuleJudge().duplicate(other, one))


@pytest.mark.parametrize(("one", "other"), ONE_KEY)
def test_two_indexes_of_one_key_are_one_however_far_apart_their_words(one: str, other: str) -> None:
    for text, there in ((one, other), (other, one)):
        judge = Recording()
        texts, near = {"a": "Something.", "b": there}, [("a", 0.4), ("b", 0.3)]
        given = asyncio.run(verdict(text, near, texts.__getitem__, judge, same_key))
        assert given == Verdict((Check("b", 0.3, "key", True),)) and judge.asked == []


@pytest.mark.parametrize(("one", "other"), OTHER_KEYS)
def test_what_names_another_key_or_none_is_no_duplicate(one: str, other: str) -> None:
    for text, there in ((one, other), (other, one)):
        given = asyncio.run(verdict(text, [("b", 0.99)], {"b": there}.__getitem__, RuleJudge(), same_key))
        assert given.duplicate_of is None


class Recording:
    """A judge that remembers what it was asked and says yes to one text."""

    name = "recording"

    def __init__(self, yes: str = "") -> None:
        self.asked: list[str] = []
        self.yes = yes

    async def duplicate(self, candidate: str, existing: str) -> bool:
        self.asked.append(existing)
        return existing == self.yes


class Fixed:
    """An engine whose nearest documents are given."""

    trained = None

    def __init__(self, hits: list[tuple[str, float]]) -> None:
        self.hits = hits

    def search(self, query: str, offset: int, limit: int) -> list[tuple[str, float]]:
        return []

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[tuple[str, float]]:
        return [hit for hit in self.hits if hit[0] not in exclude][:limit]

    async def prepare(self, texts: Iterable[str]) -> None: ...

    def put(self, id: str, text: str) -> None: ...

    def remove(self, id: str) -> None: ...


def world(*hits: tuple[str, float], yes: str = "") -> tuple[Environment, Recording]:
    judge = Recording(yes)
    store = Store([source("a", "A one."), source("b", "B two."), source("c", "C three."), source("d", "D four.")])
    return Environment(store, Fixed(list(hits)), judge), judge


def test_only_the_three_nearest_above_the_threshold_are_judged() -> None:
    environment, judge = world(("a", 0.99), ("b", 0.95), ("c", 0.91), ("d", 0.91))
    done = step(environment, Add("Something."))
    assert (judge.asked, done.result) == (["A one.", "B two.", "C three."], Added("n1"))
    environment, judge = world(("a", 0.99), ("b", 0.95), ("c", 0.90), ("d", 0.99))
    step(environment, Add("Something."))
    assert judge.asked == ["A one.", "B two."]


def test_the_first_duplicate_ends_the_asking() -> None:
    environment, judge = world(("a", 0.99), ("b", 0.95), ("c", 0.94), yes="B two.")
    done = step(environment, Add("Something."))
    assert judge.asked == ["A one.", "B two."]
    assert done.result == Merged("b")
    assert done.verdict == Verdict((Check("a", 0.99, "recording", False), Check("b", 0.95, "recording", True)))
    assert len(environment.store) == 4


def test_what_the_rule_compares() -> None:
    assert signature("The residents of Lund never work for 5 bakers.") == (("lund", "5"), 1, ("live", "job", "bakers"))
    assert [signature(text)[1] for text in ("A b.", "A not b.", "A not b, no.", "Nobody is not without b.")] == [
        *(0, 1),
        *(0, 1),
    ]


def test_exactly_the_threshold_is_not_near_and_neither_is_no_number() -> None:
    environment, judge = world(("a", 0.90), ("b", float("nan")))
    assert isinstance(step(environment, Add("Something.")).result, Added)
    assert judge.asked == []


def test_equal_texts_need_no_judge() -> None:
    environment, judge = world(("a", 0.99))
    done = step(environment, Add("  a ONE"))
    assert (done.result, done.verdict, judge.asked) == (Merged("a"), None, [])
    done = step(environment, Edit("b", "A one"))
    assert (done.result, done.verdict, judge.asked) == (Merged("a", gone="b"), None, [])
    assert environment.store["a"].absorbed == ("b",)


def test_nobody_is_asked_about_what_a_frozen_store_refuses() -> None:
    environment, judge = world(("a", 0.99), ("b", 0.99))
    environment.store.freeze()
    for action in (Add("Something."), Edit("a", "Something.")):
        done = step(environment, action)
        assert isinstance(done.result, Error) and done.verdict is None
    assert judge.asked == []


def test_an_edit_is_not_compared_with_the_document_itself() -> None:
    environment, judge = world(("a", 0.99), ("b", 0.5), yes="A one.")
    assert step(environment, Edit("a", "A one!")).result == Edited("a")
    assert judge.asked == []


def test_a_neighbour_deleted_while_a_slow_judge_thinks_is_no_crash_and_no_duplicate() -> None:
    class Slow(Recording):
        async def duplicate(self, candidate: str, existing: str) -> bool:
            for id in ("a", "b"):
                if id in environment.store:
                    environment.store.delete(id)
            return await super().duplicate(candidate, existing)

    environment, _ = world(("a", 0.99), ("b", 0.98))
    environment.judge = judge = Slow(yes="B two.")
    done = step(environment, Add("Something."))
    assert judge.asked == ["A one.", "B two."]
    assert done.result == Added("n1")
    assert done.verdict is not None and done.verdict.duplicate_of == "b"


def test_similarities_are_plain_numbers_even_where_an_engine_gives_others() -> None:
    given = asyncio.run(verdict("x", [("a", np.float32(0.987654))], lambda _: "y", RuleJudge(), same_key))
    assert type(given.checks[0].similarity) is float and given.checks[0].similarity == 0.9877


def test_the_verdict_is_recorded_and_not_recomputed(tmp_path: Path) -> None:
    live = Live(tmp_path / "s")
    live.environment.engine = Fixed([("d5", 0.97)])
    live.environment.judge = Recording(yes="Bo Ek is a friend of Anna Berg.")
    assert live.act(Add("A sentence the rule would never call the same.")).result == Merged("d5")
    live.environment.judge = Recording()
    assert isinstance(live.act(Add("Bo Ek’s friend is Anna Berg.")).result, Added)
    live.commit()
    live.close()
    replayed = StoreFolder(tmp_path / "s").store()
    assert list(replayed) == list(live.store)


def test_a_recorded_verdict_decides_alone() -> None:
    for duplicate, expected in ((True, Merged("a")), (False, Added("n1"))):
        store = Store([source("a", "A one.")])
        advice = Verdict((Check("a", 0.95, "a model", duplicate),))
        assert apply(store, Add("Quite different words."), advice) == expected
    assert apply(Store([source("a", "A.")]), Add("B."), Nearest(("a",))) == Added("n1")

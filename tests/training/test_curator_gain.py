"""The value of a curator's pass: fresh questions, half of them related, scored before and after."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kbgym.api.factory import embedder_named
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, Answer, Search
from kbgym.gym.policy import View
from kbgym.integrations.curator_gain import Curation, Gain
from kbgym.search.factory import live_engine_for
from kbgym.store import Store, source
from kbgym.training.run import Settings
from kbgym.worlds.world import Question, World

SEEN: Counter[str] = Counter()


class Reader:
    """Searches twice, then answers with the text after "answer:" in the first result, or abstains."""

    async def act(self, view: View) -> Action:
        SEEN[view.task.question] += not view.history
        if view.task.question == "Never answered?":
            return Search("anything")
        if not view.history:
            return Search(view.task.question)
        _, found, answer = view.history[0].observation.text.partition("answer:")
        if found or len(view.history) > 1:
            return Answer(answer.split("\n")[0].strip() or "nobody knows")
        return Search("anything")


@pytest.fixture
def curation(small_world: World) -> Curation:
    return curating(small_world)


def curating(world: World, k: int = 8) -> Curation:
    store, embedder = Store(source(one.id, one.text) for one in world.documents), embedder_named("hash")
    engine = live_engine_for(store, embedder)
    return Curation(world, store, engine, Reader, Settings(embedder="hash", forward_budget=5), k)


def test_a_reward_is_f1_gained_and_actions_saved() -> None:
    gain = Gain(4, f1_before=0.25, f1_after=0.75, actions_before=6.0, actions_after=4.0)
    assert gain.reward(0.0) == 0.5 and gain.reward(0.1) == pytest.approx(0.7)
    assert Gain(4, 1.0, 1.0, 4.0, 6.0).reward(0.1) == pytest.approx(-0.2)


def test_no_question_tells_nothing(small_world: World) -> None:
    with pytest.raises(BadInput, match="0 fresh questions tell nothing"):
        curating(small_world, 0)
    assert len(curating(small_world, 1)._fresh(small_world.split("train")[0], 0)) == 1


def test_fresh_questions_are_nobodys_and_half_of_them_near(curation: Curation, small_world: World) -> None:
    question = small_world.split("train")[0]
    fresh = curation._fresh(question, 0)
    asked = {one.text for one in small_world.questions}
    near = [one for one in fresh if set(one.keys) & set(question.keys)]
    assert len(fresh) == len({one.text for one in fresh}) == 8 and not asked & {one.text for one in fresh}
    assert 4 <= len(near) < 8 and fresh[:4] == near[:4]
    assert curation._fresh(question, 0) == fresh != curation._fresh(question, 1)
    assert {one.template for one in curation._pool} <= {one.template for one in small_world.split("train")}


def test_without_pools_the_training_questions_are_what_there_is(small_world: World) -> None:
    questions = tuple(Question(f"q{n}", "train", "", "", f"Question {n}?", ("x",)) for n in range(3))
    curation = curating(World(small_world.documents, questions, {}))
    assert sorted(one.id for one in curation._fresh(questions[0], 0)) == ["q1", "q2"]


@pytest.mark.parametrize(
    ("text", "golds", "verdict"),
    [
        ("Never answered?", ("x",), "out of budget"),
        ("What is said? answer: Lund", ("Lund",), "right"),
        ("What is said? answer: Lund", ("Lund in Sweden",), "wrong"),
    ],
)
def test_a_lesson_is_the_readers_pass_and_how_it_ended(
    small_world: World, text: str, golds: tuple[str, ...], verdict: str
) -> None:
    store = Store(source(one.id, one.text) for one in small_world.documents)
    said = store.add("What is said? answer: Lund")
    embedder = embedder_named("hash")
    engine = live_engine_for(store, embedder)
    curation = Curation(small_world, store, engine, Reader, Settings(embedder="hash", forward_budget=5))
    lesson = asyncio.run(curation.lesson(Question("q", "train", "", "", text, golds)))
    assert lesson.task.verdict == verdict and lesson.task.golds == golds
    lesson.environment.store.delete(said)
    assert said in store, "a curator works on a copy"


def test_what_is_gained_is_measured_on_the_store_the_curator_left(curation: Curation, small_world: World) -> None:
    async def work() -> None:
        question = small_world.split("train")[0]
        fresh = curation._fresh(question, 0)
        idle = await curation.lesson(question)
        SEEN.clear()
        nothing = await curation.gain(idle, 0)
        assert (nothing.n, nothing.f1_before, nothing.f1_after, nothing.reward(0.05)) == (8, 0.0, 0.0, 0.0)
        assert nothing.actions_before == nothing.actions_after == 3.0
        assert Counter(one.text for one in fresh) == SEEN, "an unchanged store is not read twice"
        lesson = await curation.lesson(question)
        added = lesson.environment.store.add(f"{fresh[0].text} answer: {fresh[0].golds[0]}")
        lesson.environment.engine.put(added, lesson.environment.text_of(added))
        SEEN.clear()
        gain = await curation.gain(lesson, 0)
        assert Counter(one.text for one in fresh) == SEEN, "what was measured before is remembered"
        assert gain.f1_before == 0.0 < gain.f1_after and gain.actions_after < gain.actions_before == 3.0

    asyncio.run(work())

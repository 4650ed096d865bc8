"""The Gymnasium environment: Gymnasium's own checker, and the same grade as the exam's."""

from __future__ import annotations

import json

import pytest

from kbgym.observations import documents
from kbgym.protocol.session import embedder_named, engine_for
from kbgym.store import Store, source
from kbgym.worlds.people import generate

gymnasium = pytest.importorskip("gymnasium", reason="the extra gymnasium is not installed")


@pytest.fixture(scope="module")
def env():
    from kbgym.gym import ReaderEnv

    world = generate(people=80, seed=3)
    store = Store(source(document.id, document.text) for document in world.documents)
    return ReaderEnv(store, engine_for(store, embedder_named("hash")), world.split("train"))


def test_gymnasiums_own_checker_passes(env):
    from gymnasium.utils.env_checker import check_env

    check_env(env, skip_render_check=True)


def test_the_same_seed_draws_the_same_question(env):
    first, info = env.reset(seed=5)
    again, _ = env.reset(seed=5)
    assert first == again and info["question"] in first + info["question"]


def test_answering_right_is_rewarded_with_the_f1(env):
    question = next(q for q in env._questions if q.template == "job-of")
    seen, _ = env.reset(options={"question": question.id})
    assert question.text in seen
    seen, reward, ended, cut, _ = env.step(json.dumps({"tool": "search", "query": f"{question.keys[0].value}'s job"}))
    assert reward == 0 and not ended and not cut and documents(seen)
    _, reward, ended, cut, info = env.step(json.dumps({"tool": "answer", "text": question.golds[0]}))
    assert reward == 1.0 and ended and not cut and info["actions"] == 2


def test_a_malformed_call_costs_an_action_and_the_budget_ends_the_episode(env):
    env.reset(seed=1)
    for number in range(15):
        seen, reward, ended, cut, _ = env.step("not json" if number % 2 else '{"tool": "delete", "id": "d00001"}')
        assert "Error" in seen and reward == 0 and not ended
    assert cut

"""The Gymnasium environment: Gymnasium's own checker, and the same grade as the exam's."""

from __future__ import annotations

import asyncio
import json

import pytest

from kbgym.artefact.parts import embedder_named, engine_for
from kbgym.observations import documents
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


def test_a_step_inside_a_running_loop(env):
    """As in a notebook."""

    async def cell():
        env.reset(seed=1)
        return env.step(json.dumps({"tool": "search", "query": "anything"}))

    assert documents(asyncio.run(cell())[0])


def test_it_is_registered_and_takes_the_settings_of_the_place(tmp_path):
    generate(people=60, seed=3).save(tmp_path / "w")
    flags = {"embedder": "hash", "forward_budget": 2}
    made = gymnasium.make("kbgym.gym:kbgym/Reader-v0", place=str(tmp_path / "w"), set="train", **flags)
    seen, _ = made.reset(seed=1)
    assert "Actions left: 2" in seen
    made.step("not json")
    *_, cut, info = made.step("not json")
    assert cut and info["actions"] == 2


def test_the_callers_store_stays_open_for_edits():
    from kbgym.gym import ReaderEnv

    world = generate(people=60, seed=3)
    store = Store(source(document.id, document.text) for document in world.documents)
    ReaderEnv(store, engine_for(store, embedder_named("hash")), world.split("train"))
    assert store.add("A sentence of mine.") in store


def test_many_at_once_embed_together_and_come_out_as_one_by_one(tmp_path, monkeypatch):
    from kbgym.search.embed import HashEmbedder

    generate(people=60, seed=3).save(tmp_path / "w")
    flags = {"place": str(tmp_path / "w"), "embedder": "hash"}
    many = gymnasium.make_vec("kbgym.gym:kbgym/Reader-v0", num_envs=4, **flags)
    single = gymnasium.make("kbgym.gym:kbgym/Reader-v0", **flags)
    many.reset(seed=[1, 2, 3, 4])
    batches: list[int] = []
    embed = HashEmbedder.embed
    monkeypatch.setattr(HashEmbedder, "embed", lambda self, texts: batches.append(len(texts)) or embed(self, texts))
    calls = [json.dumps({"tool": "search", "query": f"a thing nobody asked for, number {n}"}) for n in range(4)]
    seen, *_ = many.step(calls)
    assert batches == [4]
    for number, call in enumerate(calls):
        single.reset(seed=number + 1)
        assert single.step(call)[0] == seen[number]


def test_an_episode_comes_out_as_the_exams_row(tmp_path):
    """The reference reader through text and JSON, with results that say what has links."""
    import kbgym
    from kbgym.agents.reference.reader import ReferenceReader
    from kbgym.gym import ReaderEnv
    from kbgym.policy import Forward, Turn, View

    world = generate(people=60, seed=3)
    world.save(tmp_path / "w")
    opened = kbgym.open(tmp_path / "w", embedder="hash", observations="rich")
    questions = world.split("test_in")[:12]
    rows = opened.examine("reference", questions).rows
    env = ReaderEnv(opened.store, opened.engine, questions, opened.settings)
    for question, row in zip(questions, rows, strict=True):
        env.reset(options={"question": question.id})
        policy, history, over, left = ReferenceReader(), (), False, opened.settings.forward_budget
        while not over:
            action = asyncio.run(policy.act(View("reader", Forward(question.text), history, left)))
            call = {"tool": action.__struct_config__.tag, **{f: getattr(action, f) for f in action.__struct_fields__}}
            seen, reward, ended, cut, info = env.step(json.dumps(call))
            shown = seen.split("\n", 1)[1].rsplit("\n", 1)[0]
            history, over, left = (*history, Turn(action, shown)), ended or cut, left - 1
        assert (reward, info["actions"], ended) == (row.f1, row.actions, row.outcome == "answered")
        assert sum(len(turn.observation) for turn in history) == row.characters

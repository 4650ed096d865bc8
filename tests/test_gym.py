"""The Gymnasium environment: Gymnasium's own checker, and the same grade as the exam's."""

from __future__ import annotations

import asyncio
import json

import pytest
from turns import turn

from kbgym.api.factory import embedder_named
from kbgym.gym.observations import documents
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.worlds.people import generate

gymnasium = pytest.importorskip("gymnasium", reason="the extra gymnasium is not installed")


@pytest.fixture(scope="module")
def env():
    from kbgym.integrations.gymnasium import ReaderEnv

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
    _, reward, ended, cut, info = env.step({"tool": "answer", "text": question.golds[0]})
    assert reward == 1.0 and ended and not cut and info["actions"] == 2
    assert (info["f1"], info["em"]) == (1.0, 1.0) and info["answer"]


def test_a_malformed_call_costs_an_action_and_the_budget_ends_the_episode(env):
    env.reset(seed=1)
    for number in range(15):
        seen, reward, ended, cut, _ = env.step("not json" if number % 2 else '{"tool": "delete", "id": "d00001"}')
        assert "Error" in seen and reward == 0 and not ended
    assert cut


def test_a_step_inside_a_running_loop(env):
    """Notebooks run cells inside an event loop."""

    async def cell():
        env.reset(seed=1)
        return env.step(json.dumps({"tool": "search", "query": "anything"}))

    assert documents(asyncio.run(cell())[0])


def test_it_is_registered_and_takes_the_settings_of_the_place(tmp_path):
    generate(people=60, seed=3).save(tmp_path / "w")
    flags = {"embedder": "hash", "forward_budget": 2}
    made = gymnasium.make(
        "kbgym.integrations.gymnasium:kbgym/Reader-v0", place=str(tmp_path / "w"), set="train", **flags
    )
    seen, _ = made.reset(seed=1)
    assert "Actions left: 2" in seen
    made.step("not json")
    *_, cut, info = made.step("not json")
    assert cut and info["actions"] == 2


def test_the_callers_store_stays_open_for_edits():
    from kbgym.integrations.gymnasium import ReaderEnv

    world = generate(people=60, seed=3)
    store = Store(source(document.id, document.text) for document in world.documents)
    ReaderEnv(store, engine_for(store, embedder_named("hash")), world.split("train"))
    assert store.add("A sentence of mine.") in store


def test_many_at_once_embed_together_and_come_out_as_one_by_one(tmp_path, monkeypatch):
    from kbgym.search.embed import HashEmbedder

    generate(people=60, seed=3).save(tmp_path / "w")
    flags = {"place": str(tmp_path / "w"), "embedder": "hash"}
    many = gymnasium.make_vec("kbgym.integrations.gymnasium:kbgym/Reader-v0", num_envs=4, **flags)
    single = gymnasium.make("kbgym.integrations.gymnasium:kbgym/Reader-v0", **flags)
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
    from kbgym.gym.policy import Forward, View
    from kbgym.integrations.gymnasium import ReaderEnv

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
            history, over, left = (*history, turn(action, shown)), ended or cut, left - 1
        assert (reward, info["actions"], ended) == (row.f1, row.actions, row.outcome == "answered")
        assert sum(len(turn.observation.text) for turn in history) == row.characters


# -- the curator ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def curator_env(tmp_path_factory):
    place = tmp_path_factory.mktemp("curator") / "w"
    generate(people=60, seed=3).save(place)
    return gymnasium.make(
        "kbgym.integrations.gymnasium:kbgym/Curator-v0", place=str(place), embedder="hash", k=6, price=0.05
    ).unwrapped


def curated(env, question, seed=0, policy=None):
    """An episode played by the reference curator; the last reward and what is said of it."""
    from kbgym.agents.reference.curator import ReferenceCurator
    from kbgym.gym.policy import View

    env.reset(seed=seed, options={"question": question.id})
    policy, history, over, left = policy or ReferenceCurator(), (), False, env._pass.remaining
    while not over:
        action = asyncio.run(policy.act(View("curator", env._pass.task, history, left)))
        call = {"tool": action.__struct_config__.tag, **{f: getattr(action, f) for f in action.__struct_fields__}}
        seen, reward, ended, cut, info = env.step(json.dumps(call))
        shown = seen.split("\n", 1)[1].rsplit("\n", 1)[0]
        history, over, left = (*history, turn(action, shown)), ended or cut, left - 1
        assert over or reward == 0
    return reward, info["gain"]


def test_gymnasiums_own_checker_passes_for_the_curator(curator_env):
    from gymnasium.utils.env_checker import check_env

    check_env(curator_env, skip_render_check=True)


def test_a_curator_sees_the_readers_pass_and_the_gold(curator_env):
    question = curator_env._questions[0]
    seen, _ = curator_env.reset(seed=1, options={"question": question.id})
    assert seen.startswith(f"Question: {question.text}\n") and seen.count("Question: ") == 1
    assert f"Correct answer: {question.golds[0]}" in seen and "What the reader did:" in seen
    assert seen.endswith("Actions left: 30")


def test_the_reference_curator_gains_and_who_does_nothing_gains_nothing(curator_env):
    """On questions that no split has; the store every episode begins with stays as it is."""
    before = curator_env._curation._store.fingerprint
    asked = [question for question in curator_env._questions if len(question.keys) == 2][:8]
    rewards = [curated(curator_env, question)[0] for question in asked]
    assert sum(rewards) > 0.1 and curator_env._curation._store.fingerprint == before
    again, gain = curated(curator_env, asked[0])
    assert again == rewards[0] and gain["n"] == 6
    lost = gain["f1_after"] - gain["f1_before"] + 0.05 * (gain["actions_before"] - gain["actions_after"])
    assert again == pytest.approx(lost)
    curator_env.reset(seed=0, options={"question": asked[0].id})
    _, reward, ended, cut, info = curator_env.step('{"tool": "done"}')
    assert (reward, ended, cut) == (0.0, True, False) and info["gain"]["f1_after"] == info["gain"]["f1_before"]
    fresh = curator_env._curation._fresh(asked[0], 0)
    listed = {question.text for question in curator_env._curation._world.questions}
    assert listed.isdisjoint(question.text for question in fresh) and len(fresh) == 6


def test_many_curators_at_once_edit_nobody_elses_copy(curator_env, tmp_path):
    generate(people=60, seed=3).save(tmp_path / "w")
    flags = {"place": str(tmp_path / "w"), "embedder": "hash", "k": 6, "price": 0.05}
    many = gymnasium.make_vec("kbgym.integrations.gymnasium:kbgym/Curator-v0", num_envs=2, **flags)
    many.reset(seed=[1, 1])
    added = json.dumps({"tool": "add", "text": "Everybody whose hobby is juggling."})
    seen, *_ = many.step([added, added])
    assert seen[0] == seen[1] and "Error" not in seen[0]  # the second finds no duplicate
    _, rewards, ended, *_ = many.step(['{"tool": "done"}'] * 2)
    assert list(ended) == [True, True] and rewards[0] == rewards[1]


def test_who_deletes_what_readers_need_loses(curator_env):
    """A search for the question's key, and away with everything it shows."""
    question = next(question for question in curator_env._questions if question.template == "job-of")
    lost = 0.0
    for seed in range(3):
        curator_env.reset(seed=seed, options={"question": question.id})
        name = question.keys[0].value
        found = [
            id
            for page in (1, 2, 3)
            for id, _ in documents(
                curator_env.step(json.dumps({"tool": "search", "query": name, "page": page}))[0].split("\n", 1)[1]
            )
        ]
        for id in dict.fromkeys(found[:20]):
            curator_env.step(json.dumps({"tool": "delete", "id": id}))
        _, reward, *_ = curator_env.step('{"tool": "done"}')
        lost += reward
    assert lost < 0

"""Experiments: the same bytes however often they were stopped, and nothing mixed that does not belong together."""

from __future__ import annotations

import json

import msgspec
import pytest
from experiments import BASE, contents, run, small_experiment, small_plan

from kbgym.baselines.written import Summariser
from kbgym.canonical import read_lines
from kbgym.cli.experiment import prepare
from kbgym.errors import BadInput
from kbgym.experiments.experiment import (
    Plan,
    SeedRun,
    open_experiment,
    read_plan,
    run_seed,
    seed_folder,
    snapshots,
    trainings,
)
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.people import generate
from kbgym.worlds.splits import training_subset
from kbgym.worlds.world import Question, World


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return small_experiment(tmp_path_factory.mktemp("experiment") / "exp")


def test_every_arm_sits_every_exam(made):
    plan = read_plan(made)
    groups = ("trained", "both", "one", "neither")
    for seed in plan.seeds:
        exams = {file.stem for file in (seed_folder(made, seed) / "exams").glob("*.jsonl")}
        stores = [*plan.arms, *(training.name for training in plan.trainings)]
        stores += [f"{training.name}@{at}" for training in plan.trainings for at in snapshots(training.settings)]
        wanted = {f"{store}-{group}" for store in stores for group in groups}
        wanted |= {f"{store}-lessons" for store in ("flat", "trained-paper", "trained-class")}
        assert exams == wanted


def test_all_arms_are_asked_the_same_questions_in_the_same_order(made):
    quota = json.loads((made / "seed-0" / "probe" / "probe.json").read_text())["quota"]
    for group in ("trained", "both", "one", "neither"):
        asked = [
            tuple(json.loads(line)["id"] for line in file.read_text().splitlines())
            for file in sorted((made / "seed-0" / "exams").glob(f"*-{group}.jsonl"))
        ]
        assert len(set(asked)) == 1 and len(asked[0]) == sum(quota.values()) > 0


def test_the_probe_is_not_trained_on(made):
    checked = json.loads((made / "seed-0" / "probe" / "probe.json").read_text())
    asked = sum(checked["quota"].values())
    assert checked["overlap"] == {"trained": asked, "both": 0, "one": 0, "neither": 0}


def test_groups_differ_in_how_many_keys_training_touched(made):
    """By hand: keys named in any slot of any question that was trained on."""
    seed = made / "seed-0"
    trained = {json.loads(line)["id"] for line in (seed / "exams" / "flat-lessons.jsonl").read_text().splitlines()}
    questions = map(json.loads, (seed / "world" / "questions.jsonl").read_text().splitlines())
    touched = {(k["kind"], k["value"]) for one in questions if one["id"] in trained for k in one["keys"]}
    for group, count in (("trained", 2), ("both", 2), ("one", 1), ("neither", 0)):
        for line in (seed / "probe" / f"{group}.jsonl").read_text().splitlines():
            keys = [(key["kind"], key["value"]) for key in json.loads(line)["keys"]]
            assert sum(key in touched for key in keys) == count, (group, line)


def test_stopped_anywhere_it_ends_in_the_same_bytes(tmp_path, made):
    again = small_experiment(tmp_path / "exp")
    before = contents(again)
    seed = again / "seed-1"
    half = (seed / "exams" / "hipporag-both.jsonl").read_bytes().splitlines(keepends=True)
    (seed / "exams" / "hipporag-both.jsonl").write_bytes(b"".join(half[:3]) + half[3][:20])  # torn in the middle
    (seed / "exams" / "trained-class@8-one.jsonl").unlink()
    (seed / "arms" / "nostore.json").unlink()
    trace = seed / "trained-paper" / "trace.jsonl"
    trace.write_bytes(trace.read_bytes()[: trace.stat().st_size // 2])
    trace.with_suffix(".head").unlink()  # a run stopped there would have had an earlier one
    run_seed(again, read_plan(again), 1, prepare)
    assert contents(again) == before


def test_what_is_there_is_kept(tmp_path, made):
    again = small_experiment(tmp_path / "exp")
    file = again / "seed-0" / "exams" / "flat-one.jsonl"
    before = file.stat().st_mtime_ns
    run_seed(again, read_plan(again), 0, prepare)
    assert file.stat().st_mtime_ns == before


def test_seeds_and_arms_are_added_and_the_rest_must_stay(tmp_path):
    plan = small_plan((0,), ("flat",))
    open_experiment(tmp_path / "exp", plan)
    more = open_experiment(tmp_path / "exp", small_plan((2,), ("flat", "oracle")))
    assert more.seeds == (0, 2) and more.arms == ("flat", "oracle")
    for changed in (
        msgspec.structs.replace(plan, n=7),
        msgspec.structs.replace(plan, people=90),
        msgspec.structs.replace(plan, world="other"),
        msgspec.structs.replace(plan, trainings=trainings("paper", "", ("paper",), Settings30)),
    ):
        with pytest.raises(BadInput):
            open_experiment(tmp_path / "exp", changed)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("kept")
    with pytest.raises(BadInput):
        open_experiment(tmp_path / "full", plan)


Settings30 = msgspec.structs.replace(BASE, questions=30)


def test_an_arm_a_world_cannot_have_is_skipped_with_its_reason(tmp_path, made):
    def refusing(arm, world, embedder, seed, summarise):
        if arm == "oracle":
            raise BadInput("no facts here.")
        return prepare(arm, world, embedder, seed)

    again = small_experiment(tmp_path / "exp")
    plan = open_experiment(again, small_plan((0,), ("flat", "oracle")))
    run_seed(again, plan, 0, refusing)
    assert json.loads((again / "seed-0" / "arms" / "oracle.json").read_text())["skipped"] == "no facts here."
    assert not list((again / "seed-0" / "exams").glob("oracle-*"))


def test_ablations_vary_one_thing():
    budgets = trainings("ablation", "budget", ("paper",), BASE)
    assert [one.settings.backward_budget for one in budgets] == [15, 30, 60]
    assert len({one.name for one in budgets}) == 3
    questions = trainings("ablation", "questions", ("paper", "class"), BASE)
    assert [one.settings.questions for one in questions] == [25, 50, 100, 200, 400] * 2
    given = trainings("ablation", "questions", ("class",), BASE, (5, 10))
    assert [(one.name, one.settings.questions) for one in given] == [
        ("trained-class-questions5", 5),
        ("trained-class-questions10", 10),
    ]
    rankings = trainings("ablation", "ranking", ("class",), BASE)
    assert [(one.name, one.settings.ranking) for one in rankings] == [
        ("trained-class-ranking-paper", "paper"),
        ("trained-class-ranking-apart", "apart"),
        ("trained-class-ranking-slot", "slot"),
    ]
    assert [one.settings.gate for one in trainings("ablation", "gate", ("paper",), BASE)] == [0, 10]
    with pytest.raises(BadInput):
        trainings("ablation", "ranking", ("class",), BASE, ("best",))
    assert [one.settings.strategy for one in trainings("ablation", "strategy", ("paper", "class"), BASE)] == [
        "paper",
        "class",
    ]
    with pytest.raises(BadInput):
        trainings("ablation", "colour", ("paper",), BASE)


@pytest.mark.slow
def test_more_training_questions_than_a_world_has_are_drawn_and_none_is_examined_as_unseen(tmp_path):
    settings = msgspec.structs.replace(BASE, questions=10, epochs=1)
    made = trainings("ablation", "questions", ("class",), settings, (10, 180))
    plan = Plan("ablation", made, ("flat",), (0,), n=5, people=150, vary="questions", touched=10)
    run(tmp_path / "exp", plan)
    world = World.load(tmp_path / "exp" / "seed-0" / "world")
    assert len(world.split("train")) == 180 and generate(150, 0).documents == world.documents
    checked = json.loads((tmp_path / "exp" / "seed-0" / "probe" / "probe.json").read_text())
    assert checked["overlap"]["neither"] == checked["overlap"]["one"] == checked["overlap"]["both"] == 0
    asked = {question.text for question in world.split("train")}
    chosen = training_subset(world.split("train"), 10, kind_of(world).difficulty)
    few = {key for question in chosen for key in question.keys}
    for group in ("neither", "both"):
        rows = read_lines(tmp_path / "exp" / "seed-0" / "probe" / f"{group}.jsonl", Question)
        assert rows and not any(row.text in asked for row in rows)
        assert all(sum(key in few for key in row.keys) == (2 if group == "both" else 0) for row in rows)


def test_a_default_world_is_the_one_that_generate_makes(made):
    assert World.load(made / "seed-0" / "world").hash == generate(80, 0).hash


def test_snapshots_lie_in_the_first_epoch_and_at_epoch_ends():
    assert snapshots(msgspec.structs.replace(BASE, questions=100, epochs=2)) == (20, 40, 60, 80, 100)
    assert snapshots(msgspec.structs.replace(BASE, questions=100, epochs=3)) == (20, 40, 60, 80, 100, 200)
    assert snapshots(msgspec.structs.replace(BASE, questions=3, epochs=1)) == (1, 2)


@pytest.mark.slow
def test_two_runs_are_the_same_bytes(tmp_path, made):
    run(tmp_path / "other", small_plan())
    assert contents(tmp_path / "other") == contents(made)


def test_every_arm_is_examined_under_the_trainings_budget(tmp_path):
    base = msgspec.structs.replace(BASE, questions=10, epochs=1, eval=False, forward_budget=3)
    plan = Plan("paper", trainings("paper", "", ("paper",), base), ("flat",), (0,), n=4, people=60)
    run(tmp_path / "exp", plan)
    files = list((tmp_path / "exp" / "seed-0" / "exams").glob("*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert {file.stem.partition("-")[0] for file in files} == {"flat", "trained"}
    assert max(row["actions"] for row in rows) == 3


def test_a_strategy_nobody_knows_is_refused():
    with pytest.raises(BadInput):
        trainings("paper", "", ("paper", "clas"), BASE)


def test_a_model_that_plays_writes_the_summaries_of_communities(tmp_path, made):
    again, asked = small_experiment(tmp_path / "exp"), []

    def preparing(arm, world, embedder, seed, summarise):
        asked.append((arm, type(summarise)))
        return prepare(arm, world, embedder, seed)

    plan = read_plan(again)
    model = msgspec.structs.replace(plan.trainings[0].settings, reader="llm:local/m")
    by_model = msgspec.structs.replace(plan, trainings=(msgspec.structs.replace(plan.trainings[0], settings=model),))
    for one in (plan, by_model):
        SeedRun(again / "seed-0", one, 0, preparing, lambda note: None)._arm("graphrag", {})
        (again / "seed-0" / "arms" / "graphrag.json").unlink()
    assert asked == [("graphrag", type(None)), ("graphrag", Summariser)]

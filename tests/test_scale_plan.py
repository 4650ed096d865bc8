"""The plan in docs/scale.md is what its script prints, and the script's queues behave like queues."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def plan():
    spec = importlib.util.spec_from_file_location("scale_plan", ROOT / "benchmarks" / "scale_plan.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["scale_plan"] = module  # so that its classes can look their own module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_page_shows_what_the_script_prints(plan):
    page = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    for table in plan.tables().strip().split("\n\n"):
        assert table in page, f"docs/scale.md has another table than benchmarks/scale_plan.py prints:\n{table}"


def test_one_curator_never_waits_and_very_many_wait_for_one_another(plan):
    rate, wait = plan.turns(1, 1, seed=0, commits=2_000)
    assert wait == 0
    full, long = plan.turns(20_000, 1, seed=0, commits=40_000)
    limit = 1000 / plan.value("commit")
    assert rate < full <= limit and full > 0.98 * limit
    assert long > 1_000
    _, shorter = plan.turns(20_000, 8, seed=0, commits=40_000)
    assert shorter < long / 10


def test_a_fleet_is_bound_by_its_trainers_then_by_the_turn_then_by_following(plan):
    outside, within, follow, disk = map(plan.value, ("outside the turn", "within the turn", "following", "disk"))
    one, held = plan.fleet(1, seed=0)
    assert abs(one * (outside + within + disk) / 1000 - 1) < 0.02, "alone it waits for nobody"
    assert abs(held - within / (outside + within + disk)) < 0.02
    rate = {trainers: plan.fleet(trainers, seed=0)[0] for trainers in (2, 4, 64)}
    assert one < rate[2] < 2 * one and rate[2] < rate[4] < 1000 / within
    assert abs(rate[64] * 63 * follow / 1000 - 1) < 0.05, "who is next in line follows all others, one after the other"
    assert rate[64] < plan.fleet(64, seed=0, early=True)[0] <= 1000 / within
    slow = [plan.fleet(trainers, seed=0, thinks=6_000)[0] for trainers in (1, 16)]
    assert abs(slow[1] / slow[0] / 16 - 1) < 0.02, "who mostly thinks is in nobody's way"


def test_the_same_seed_gives_the_same_numbers(plan):
    assert plan.turns(200, 2, seed=5, commits=1_000) == plan.turns(200, 2, seed=5, commits=1_000)
    assert plan.turns(200, 2, seed=5, commits=1_000) != plan.turns(200, 2, seed=6, commits=1_000)


def test_search_takes_longer_among_more_documents_except_where_the_index_changes(plan):
    times = [plan.search_ms(count) for count in (1_000, 99_000, 100_000, 10**6, 10**8)]
    assert times[0] < times[1] > times[2] < times[3] < times[4]


def test_the_slowest_of_many_shards_is_waited_for(plan):
    times = [plan.slowest(shards, seed=0) for shards in (1, 10, 100)]
    assert times[0] < times[1] < times[2]
    assert abs(times[0] - plan.value("shard search")) < 0.3, "of one shard it is what one shard takes"


def test_indexes_of_indexes_grow_a_level_for_every_forty_times_the_documents(plan):
    few = plan.levels(10**6)
    assert [plan.levels(10**6 * 40**more) for more in (1, 2)] == [few + 1, few + 2]


def test_lessons_of_rules_cost_more_among_more_documents_by_searching_alone(plan):
    per_million = plan.rules_ms(2_000_000) - plan.rules_ms(1_000_000)
    assert plan.rules_ms(0) == plan.value("lesson of rules") * plan.value("beside search")
    assert abs(plan.rules_ms(10**8) - plan.rules_ms(0) - 100 * per_million) < 1e-6 * plan.rules_ms(10**8)


def test_cores_grow_with_questions(plan):
    few, many = (plan.Size("", 10**6, 1, asked) for asked in (10_000, 40_000_000))
    assert plan.search_cores(few, 0, 4_000) == 1
    busy = plan.search_cores(many, 0, 4_000)
    # At least as many as are busy on average.
    rate = many.asked * plan.value("new queries") * plan.value("peak") / plan.DAY
    assert busy >= rate * (plan.value("new query") + plan.search_ms(many.documents)) / 1000 > 1


def test_every_constant_says_where_it_is_from(plan):
    for name, constant in plan.CONSTANTS.items():
        assert constant.kind in ("measured", "paper", "assumed") and constant.where, name
        assert constant.value > 0
    source = (ROOT / "benchmarks" / "scale_plan.py").read_text(encoding="utf-8")
    unused = [name for name in plan.CONSTANTS if f'value("{name}")' not in source and f"value('{name}')" not in source]
    assert not unused

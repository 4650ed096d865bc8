"""The reference reader of benchmark v3 reads every wording, and gains from indexes in accuracy and actions."""

from __future__ import annotations

import asyncio
from functools import cache

from kbgym.agents.reference.v3 import ReportReader
from kbgym.agents.reference.v3_curator import ReportCurator
from kbgym.agents.registry import make_agent
from kbgym.api.factory import embedder_named
from kbgym.baselines import build_arm
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Backward
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.worlds.people3 import Dials, facts_of, generate
from kbgym.worlds.splits import Sizes
from kbgym.worlds.world import World


@cache
def world() -> World:
    return generate(120, 1, Sizes(train=39, test_in=26, test_out=13, eval_in=0, eval_out=0), Dials(breadth=6))


@cache
def rows(arm: str) -> list[Row]:
    store = build_arm(arm, world()).store
    asked = world().split("test_in") + world().split("test_out-reworded")
    engine = engine_for(store, embedder_named("hash-256"))
    return asyncio.run(examine(store, engine, asked, ReportReader, settings=Settings()))


def mean(found: list[Row], classes: tuple[str, ...] = ()) -> float:
    scores = [row.set_f1 or 0.0 for row in found if not classes or row.class_ in classes]
    return sum(scores) / len(scores)


def test_indexes_raise_accuracy():
    assert mean(rows("oracle")) > mean(rows("flat")) + 0.2


def test_an_index_of_a_value_is_trusted_to_be_whole():
    assert mean(rows("oracle"), ("count", "compare")) > 0.8 > 0.5 > mean(rows("flat"), ("count", "compare"))


def test_every_pass_ends_with_an_answer_within_the_budget():
    assert {row.outcome for arm in ("flat", "oracle") for row in rows(arm)} == {"answered"}
    assert max(row.actions for row in rows("flat")) <= Settings().forward_budget


def test_it_plays_under_its_name():
    assert make_agent("reference-v3", "reader") is ReportReader
    assert make_agent("reference-v3", "curator") is ReportCurator


def test_the_curator_builds_an_index_of_present_members():
    """Its links go to the reports that count, in a world where a third of the values changed."""
    store = build_arm("flat", world()).store
    environment = Environment(store, live_engine_for(store, embedder_named("hash-256")))
    question = next(one for one in world().split("train") if one.template == "count-hobby" and not one.unanswerable)
    task = Backward(question.text, (), question.golds, 0.0, "wrong")
    asyncio.run(play(ReportCurator(), environment, "curator", task, 30, 30))
    (index,) = [record for record in store if record.flag == "authored"]
    value = question.keys[0].value
    assert index.text == f"People whose hobby is {value}"
    current = facts_of(world()).timeline().holders("hobby", value)
    linked = set(index.links)
    assert len(linked & {report.document for report in current.values()}) >= 0.6 * len(current)
    assert all(value in store[id].text for id in linked)

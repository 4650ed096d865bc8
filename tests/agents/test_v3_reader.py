"""The reference reader of benchmark v3 reads every wording, and gains from indexes in accuracy and actions."""

from __future__ import annotations

import asyncio
from functools import cache

import pytest

from kbgym.agents.reference.v3 import NEUTRAL_V3, ReportReader
from kbgym.agents.reference.v3_curator import ReportAgenda, ReportCurator
from kbgym.agents.registry import make_agenda, make_agent
from kbgym.api.factory import embedder_named
from kbgym.api.training import train
from kbgym.baselines import build_arm
from kbgym.chronicle.timeline import ATTRIBUTES
from kbgym.errors import BadInput
from kbgym.gym.actions import Add, LinkMany, Search
from kbgym.gym.environment import Environment
from kbgym.gym.episode import play
from kbgym.gym.policy import Agent, Backward
from kbgym.index_keys import IndexKey
from kbgym.search.factory import engine_for, live_engine_for
from kbgym.store import Store
from kbgym.training.exam import Row, examine
from kbgym.training.run import Settings
from kbgym.worlds.people.kind import INDEX_TEXTS
from kbgym.worlds.people3 import Dials, facts_of, generate
from kbgym.worlds.people3.kind import ReportedTruth
from kbgym.worlds.splits import Sizes
from kbgym.worlds.world import Key, World


@cache
def world() -> World:
    return generate(120, 1, Sizes(train=39, test_in=26, test_out=13, eval_in=0, eval_out=0), Dials(breadth=6))


def exam(store: Store, reader: Agent) -> list[Row]:
    asked = world().split("test_in") + world().split("test_out-reworded")
    engine = engine_for(store, embedder_named("hash-256"))
    return asyncio.run(examine(store, engine, asked, reader, settings=Settings()))


@cache
def rows(arm: str) -> list[Row]:
    return exam(build_arm(arm, world()).store, ReportReader)


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


def test_they_play_under_their_names():
    assert make_agent("reference-v3", "reader") is ReportReader
    assert make_agent("reference-v3", "curator") is ReportCurator
    assert isinstance(make_agenda("reference-v3"), ReportAgenda)
    for name, reader in NEUTRAL_V3.items():
        assert make_agent(f"neutral-v3:{name}", "reader") is reader
    with pytest.raises(BadInput):
        make_agent("neutral-v3:trusting", "curator")


@pytest.mark.parametrize("name", NEUTRAL_V3)
def test_neutral_readers_gain_from_indexes(name):
    answered = [exam(build_arm(arm, world()).store, NEUTRAL_V3[name]) for arm in ("flat", "oracle")]
    assert mean(answered[1]) > mean(answered[0]) + 0.1
    assert {row.outcome for found in answered for row in found} == {"answered"}


def test_the_strategy_class_builds_right_indexes_of_values_that_nobody_asked_for(tmp_path):
    settings = {"questions": 39, "epochs": 1, "strategy": "class", "embedder": "none", "search": "words", "eval": False}
    store = train(world(), tmp_path / "run", **settings).store
    truth = ReportedTruth(world())
    texts = {INDEX_TEXTS[kind].format(value): Key(kind, value) for kind in ATTRIBUTES for value in truth.values[kind]}
    asked = {key for one in world().split("train") for key in one.keys}
    right = total = unasked = 0
    for record in store:
        if record.flag == "authored" and (key := texts.get(record.text)):
            served = [bool(truth.serves(key, target)) for target in record.links]
            right, total, unasked = right + sum(served), total + len(served), unasked + (key not in asked)
    assert total > 100 and right > 0.85 * total and unasked > 3


def test_an_agenda_names_links_that_a_later_report_made_wrong():
    agenda = ReportAgenda()
    agenda.note_question("How many people have curling as a hobby?")
    index, told = "i1", {"d1": "Gazette, May 3, 2015: The hobby of Una Vance is curling."}
    agenda.saw(Search("hobby is curling"), list(told.items()))
    agenda.saw(Add("People whose hobby is curling"), [(index, "People whose hobby is curling")])
    agenda.saw(LinkMany(index, ("d1",)), [])
    key = IndexKey("hobby", "curling")
    assert agenda.task(key, "named").stale == ()
    agenda.saw(Search("x"), [("d2", "Gazette, May 3, 2019: The hobby of Una Vance is chess.")])
    task = agenda.task(key, "named")
    assert (task.index, task.stale, task.known) == (index, ("d1",), ())
    assert task in agenda.index_tasks("How many people have curling as a hobby?")


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

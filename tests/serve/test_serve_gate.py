"""Reasons for edits, withheld documents, and the agenda after a rollback."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import msgspec
import pytest
from family import documents, family
from serving import HASH, family_store, opened, replayed

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.gym.actions import Action, Add, Delete, Done, Edit, LinkMany, Search, Unlink
from kbgym.gym.environment import apply
from kbgym.gym.observations import documents as shown
from kbgym.gym.policy import PlannedPolicy, Steps, View
from kbgym.serving.learning.agenda import AgendaFollower
from kbgym.serving.learning.setup import held_out_questions, open_online
from kbgym.serving.sessions import ClientSession, act
from kbgym.store import Store
from kbgym.store.record import source
from kbgym.trace.events import Began, Noted
from kbgym.trace.folder import StoreFolder
from kbgym.trace.replay import replaying
from kbgym.training.gate import Gate, QAPair
from kbgym.training.reasons import Words, words_of
from kbgym.worlds.people import generate

IDS = documents(family())
QUESTION, GOLD = "Who is the baker who lives in the city of Lund?", "Ada Alm"
ADA, CY = IDS["Ada Alm's job is baker"], IDS["Cy Alm's job is baker"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return family_store(tmp_path / "store")


def family_of_documents() -> Store:
    return Store(source(document.id, document.text) for document in family().documents)


def unreasoned(*actions: Action, first: tuple[Action, ...] = ()) -> list[str]:
    before = family_of_documents()
    for action in first:
        apply(before, action)
    after = before.copy()
    touched = set()
    for action in actions:
        result = apply(after, action)
        touched |= {getattr(result, name) for name in ("id", "source") if hasattr(result, name)}
    words = Words()
    words.follow(before)
    return list(words.unreasoned(before, after, touched))


BAKERS = (Add("People whose job is baker."), LinkMany("n1", (ADA, CY)))
MILLER = next(id for text, id in IDS.items() if text.endswith("job is miller"))


def test_words_speak_for_an_index_and_against_strangers_in_it() -> None:
    assert unreasoned(*BAKERS) == []
    assert unreasoned(BAKERS[0], LinkMany("n1", (ADA, MILLER))) == ["n1"]
    assert unreasoned(LinkMany("n1", (MILLER,)), first=BAKERS) == ["n1"]
    assert unreasoned(Add("Ada Alm's job is swindler.")) == ["n1"], "a sentence that links nothing has no reason in it"


def test_words_speak_through_one_document_between() -> None:
    lives = next(id for text, id in IDS.items() if text.startswith("Ada Alm lives"))
    cy_lives = next(id for text, id in IDS.items() if text.startswith("Cy Alm lives"))
    assert unreasoned(Add("Cities of people whose job is baker."), LinkMany("n1", (lives, cy_lives))) == []


def test_words_speak_against_taking_away_and_for_taking_back() -> None:
    assert unreasoned(Unlink("n1", ADA), first=BAKERS) == ["n1"]
    assert unreasoned(Delete("n1"), first=BAKERS) == ["n1"]
    assert unreasoned(Unlink("n1", MILLER), first=(*BAKERS, LinkMany("n1", (MILLER,)))) == []
    assert unreasoned(Edit(ADA, "Ada Alm's job is miller.")) == [ADA]
    assert unreasoned(Delete(ADA)) == [ADA]


def test_nothing_an_agent_wrote_is_evidence() -> None:
    said = (Add("Hal Ost's job is baker."),)
    hal = next(id for text, id in IDS.items() if text.startswith("Hal Ost"))
    assert unreasoned(Add("People whose job is baker"), LinkMany("n2", (ADA, CY, hal)), first=said) == ["n2"]


def test_an_index_with_few_of_its_documents_is_not_whole() -> None:
    many = [source(f"d{n}", f"Person{n} Alm's job is baker.") for n in range(12)]
    before = Store(many)
    after = before.copy()
    apply(after, Add("People whose job is baker."))
    apply(after, LinkMany("n1", ("d1",)))
    words = Words()
    words.follow(before)
    assert list(words.unreasoned(before, after, {"n1"})) == ["n1"]
    apply(after, LinkMany("n1", tuple(record.id for record in many)))
    assert list(words.unreasoned(before, after, {"n1"})) == []


def test_words_follow_the_store() -> None:
    store = family_of_documents()
    words = Words()
    words.follow(store)
    assert words.rarest("People whose job is baker.") == ["baker"]
    apply(store, Delete(ADA))
    apply(store, Delete(CY))
    words.follow(store)
    assert "baker" not in words.rarest("People whose job is baker.")
    assert words_of("Friends of X9") == {"friend", "of", "x9"}


class Mixed(PlannedPolicy):
    """A good index, and a wrong one in its company."""

    def __init__(self) -> None:
        super().__init__(self._plan, lambda view: Done())

    def _plan(self, view: View) -> Steps[Action]:
        wrong = shown((yield Add("People whose hobby is chess.")))
        found = shown((yield Search("job is miller")))
        yield LinkMany(wrong[0][0], tuple(id for id, text in found if "miller" in text))
        good = shown((yield Add("People whose job is baker.")))
        yield LinkMany(good[0][0], (ADA, CY))
        return Done()


def gate() -> Gate:
    return Gate(4, [QAPair("h1", QUESTION, (GOLD,))], ReferenceReader)


def test_what_nothing_speaks_for_is_withheld_and_the_rest_lands(place: Path) -> None:
    async def work() -> None:
        async with opened(place, curator=Mixed, gate=gate()) as online:
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            assert (online.admitted, online.refused) == (1, 0)
            written = [record for record in online.live.store if record.flag == "authored"]
            assert [(record.text, set(record.links)) for record in written] == [
                ("People whose job is baker.", {ADA, CY})
            ]

    asyncio.run(work())
    assert replayed(place)
    notes = [event for event in StoreFolder(place).events if isinstance(event, Noted)]
    assert [note.kind for note in notes if note.kind != "asked"] == ["withheld", "withheld", "gate"]
    assert notes[-1].data["withheld"] == ["People whose hobby is chess."]


def test_what_was_withheld_is_not_tried_again_until_a_question_names_it() -> None:
    store, desk = family_of_documents(), AgendaFollower()
    desk(Began(1, "forward", "reference", "q1", QUESTION), store, "")
    assert ("job", "baker") in [(index_task.kind, index_task.value) for index_task in desk.index_tasks(store)]
    data = {"verdict": "admitted", "withheld": ["People whose job is baker"]}
    desk(Noted(2, "gate", data), store, "")
    assert ("job", "baker") not in [(index_task.kind, index_task.value) for index_task in desk.index_tasks(store)]
    assert ("job", "baker") in [(index_task.kind, index_task.value) for index_task in desk.index_tasks(store, QUESTION)]


def test_after_a_rollback_the_agenda_believes_the_store(place: Path) -> None:
    """A refused pass linked a document to an index that stays: the agenda must want it linked again."""

    async def work() -> None:
        async with opened(place, HASH, curator=Vandal, gate=gate()) as online:
            ada = ClientSession("ada")
            await act(online.live, ada, Add("People whose job is baker"), "curator")
            await act(online.live, ada, LinkMany("n1", (ADA,)), "curator")
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            assert online.refused == 1
            replay = AgendaFollower()
            store = StoreFolder(place).store(watch=replaying([replay]))
            for desk in (online.agenda, replay):
                known = [
                    id
                    for index_task in desk.index_tasks(store)
                    if index_task.index == "n1"
                    for id, _ in index_task.known
                ]
                assert known == [CY]
                assert not any("miller" in text and id == CY for e in desk.index_tasks(store) for id, text in e.known)

    asyncio.run(work())


class Vandal(PlannedPolicy):
    def __init__(self) -> None:
        super().__init__(self._plan, lambda view: Done())

    def _plan(self, view: View) -> Steps[Action]:
        yield Search("job is baker")
        yield LinkMany("n1", (CY,))
        yield Edit(CY, "Cy Alm's job is miller.")
        yield Edit(ADA, "Ada Alm's job is miller.")
        return Done()


def test_the_gate_asks_with_the_budget_and_memory_of_the_settings(place: Path, tmp_path: Path) -> None:
    file, seen = tmp_path / "held.jsonl", set()
    file.write_text(json.dumps({"question": QUESTION, "answers": [GOLD]}) + "\n")
    settings = msgspec.structs.replace(HASH, forward_budget=4, memory=2)

    class Searcher:
        async def act(self, view: View) -> Action:
            seen.add((view.remaining, len(view.history)))
            return Search("anything")

    async def asked() -> None:
        online = open_online(place, settings, "hash", gate=1, held_out=file)
        assert online.gate is not None
        online.gate._reader = Searcher
        await online.gate.ask(next(iter(online.gate._held_out.values())), online.live.snapshot().environment())
        await online.live.close()

    asyncio.run(asked())
    assert seen == {(4, 0), (3, 1), (2, 2), (1, 2)}


def test_the_gates_questions_are_the_eval_split_of_the_stores_own_world(tmp_path: Path) -> None:
    world = generate(people=60, seed=3)
    world.save(tmp_path / "w")
    assert [asking.id for asking in held_out_questions(tmp_path / "w", None)] == [q.id for q in world.split("eval")]
    assert held_out_questions(family_store(tmp_path / "bare"), None) == []

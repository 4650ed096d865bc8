"""Questions first, golds later: what is learnt, what is only counted, what the gate keeps out, what a crash leaves."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from family import documents, family
from serving import HASH, family_store, opened, replayed

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.gym.actions import Action, Add, Answer, Delete, Done, Edit, LinkMany, Read, Search
from kbgym.gym.observations import documents as shown
from kbgym.gym.policy import PlannedPolicy, Steps, View
from kbgym.serving.clients import ClientSession, Refusal, act
from kbgym.serving.learning.question_log import QuestionLog
from kbgym.serving.learning.setup import cooperative
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Graded, Noted, RolledBack
from kbgym.trace.folder import StoreFolder
from kbgym.trace.history import log
from kbgym.training.gate import Gate, qa_pair

IDS = documents(family())
QUESTION, GOLD = "Who is the baker who lives in the city of Lund?", "Ada Alm"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return family_store(tmp_path / "store")


class Vandal(PlannedPolicy):
    """A harmful curator: an index of the wrong documents, and a fact turned into another."""

    def __init__(self) -> None:
        super().__init__(self._plan, lambda view: Done())

    def _plan(self, view: View) -> Steps[Action]:
        made = shown((yield Add("People whose job is baker.")))
        wrong = shown((yield Search("job is miller")))
        yield LinkMany(made[0][0], tuple(id for id, text in wrong if "miller" in text))
        yield Edit(IDS["Ada Alm's job is baker"], "Ada Alm's job is miller.")
        return Done()


def held_out(n: int = 4) -> Gate:
    return Gate(n, [qa_pair("h1", QUESTION, (GOLD,))], ReferenceReader)


def test_a_question_is_answered_then_graded_then_learnt_from(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            online.start()
            asked = await online.ask(QUESTION, "rex")
            assert (asked.answer, asked.state, asked.f1) == (GOLD, "answered", None)
            links = online.live.store.links
            await asyncio.sleep(0.05)
            assert online.live.store.links == links, "nothing may be learnt before there is a gold"
            graded = await online.gold(asked.id, (GOLD,))
            assert (graded.f1, graded.em) == (1.0, 1.0)
            while online.questions.to_learn:
                await asyncio.sleep(0.01)
            await online.live.durable()
            assert online.find(asked.id).state == "learnt"
            assert online.live.store.links > links
            again = await online.ask(QUESTION, "rex")
            assert again.answer == GOLD and again.actions <= asked.actions

    asyncio.run(work())
    assert replayed(place)
    phases = [entry.agents for entry in log(StoreFolder(place).events)]
    assert phases == [{"forward": "reference"}, {}, {"backward": "reference"}, {"forward": "reference"}]


def test_a_gold_is_taken_once_and_only_for_a_question_that_was_asked(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            with pytest.raises(Refusal, match="no question"):
                await online.gold("s99", ("x",))
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, ("Bo Alm",))
            with pytest.raises(Refusal, match="already"):
                await online.gold(asked.id, (GOLD,))
            assert online.find(asked.id).golds == ("Bo Alm",)

    asyncio.run(work())


def test_what_was_graded_and_not_learnt_is_learnt_after_a_restart(place: Path) -> None:
    async def before() -> str:
        async with opened(place) as online:
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            return asked.id

    async def after(id: str) -> None:
        async with opened(place) as online:
            assert list(online.questions.to_learn) == [id]
            assert online.find(id).answer == GOLD
            assert online.questions.turns[id], "the trajectory comes back with the trace"
            await online.learn()
            assert online.live.store.links > 0 and online.find(id).state == "learnt"

    id = asyncio.run(before())
    asyncio.run(after(id))
    assert replayed(place)


def test_a_clients_own_agent_answers_on_the_store_as_it_was(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            id = (await online.open(QUESTION, "rex")).id
            await online.act(id, "rex", Search("job is baker"))
            await online.act(id, "rex", Read(IDS["Ada Alm's job is baker"]))
            await act(
                online.live, ClientSession("ada"), Edit(IDS["Ada Alm's job is baker"], "Ada Alm retired."), "curator"
            )
            await act(online.live, ClientSession("ada"), Delete(IDS["Cy Alm's job is baker"]), "curator")
            with pytest.raises(Refusal):
                await online.act(id, "somebody else", Search("job is baker"))
            asked = await online.close(id, "rex", GOLD)
            assert (asked.agent, asked.actions, asked.answer) == ("rex", 3, GOLD)

    asyncio.run(work())
    assert replayed(place), "a pass that began before an edit must not break the replay"
    events = StoreFolder(place).events
    assert [e.kind for e in events if isinstance(e, Noted)] == ["stale", "asked"], "its search found one deleted since"
    assert sum(isinstance(e, Acted) and e.phase == "forward" for e in events) == 2


def test_a_reported_transcript_is_done_again_not_believed(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            calls: list[Action] = [Search("job is baker"), Read("d99999")]
            asked = await online.report(QUESTION, "rex", calls, GOLD)
            assert asked.actions == 3
            observations = [turn.observation.text for turn in online.questions.turns[asked.id]]
            assert "Ada Alm" in observations[0] and observations[1].startswith("Error")

    asyncio.run(work())
    assert replayed(place)


def test_the_gate_keeps_harm_out_and_the_trace_keeps_both(place: Path) -> None:
    async def work() -> str:
        async with opened(place, curator=Vandal, gate=held_out()) as online:
            before = online.live.store.fingerprint
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            assert online.live.store.fingerprint == before
            assert (online.admitted, online.refused) == (0, 1)
            refused = online.find(asked.id)
            assert refused.state == "refused" and "would fall from 1.000" in refused.note
            assert (await online.ask(QUESTION, "rex")).answer == GOLD
            return before

    before = asyncio.run(work())
    folder = StoreFolder(place)
    assert folder.store(at=2).fingerprint == before == folder.store(at=3).fingerprint
    refused = [event.data for event in folder.events if isinstance(event, Noted) and event.kind == "refused"]
    assert [data["action"]["tool"] for data in refused] == ["add", "search", "link_many", "edit"], (
        "what was refused can be looked at"
    )
    assert not any(isinstance(event, RolledBack) for event in folder.events), "the store never had it"
    entries = log(folder.events)
    assert [entry.notes for entry in entries if entry.notes] == [("quarantined",)]
    assert "would fall" in entries[2].reason


def test_without_a_gate_the_same_pass_does_its_harm(place: Path) -> None:
    async def work() -> None:
        async with opened(place, curator=Vandal) as online:
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            assert (await online.ask(QUESTION, "rex")).answer != GOLD

    asyncio.run(work())


class NeedsIndex:
    """A reader that knows the answer where an index is among the results."""

    async def act(self, view: View) -> Action:
        if not view.history:
            return Search("People whose job is baker")
        found = "People whose job is baker" in view.history[-1].observation.text
        return Answer(GOLD if found else "unknown")


def test_the_gate_admits_what_helps(place: Path) -> None:
    async def work() -> None:
        async with opened(place, gate=Gate(4, [qa_pair("h1", QUESTION, (GOLD,))], NeedsIndex)) as online:
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            assert (online.admitted, online.refused) == (1, 0) and online.live.store.links > 0

    asyncio.run(work())
    assert [entry.notes for entry in log(StoreFolder(place).events) if entry.notes] == [("admitted",)]
    assert replayed(place)


def test_a_pass_lands_beside_what_others_did_meanwhile(place: Path) -> None:
    """The curator plays on a copy; another client adds the very index it is building before it ends."""

    async def work() -> None:
        async with opened(place) as online:
            ada, owner = ClientSession("ada"), online.live

            class Slow(PlannedPolicy):
                def __init__(self) -> None:
                    super().__init__(self._plan, lambda view: Done())

                async def act(self, view: View) -> Action:
                    if len(view.history) == 1 and owner.iteration == 2:
                        await act(owner, ada, Add("Nothing to do with it."), "curator")
                        await act(owner, ada, Add("People whose job is baker."), "curator")
                        await act(owner, ada, LinkMany("n2", (IDS["Cy Alm's job is baker"],)), "curator")
                    return await super().act(view)

                def _plan(self, view: View) -> Steps[Action]:
                    made = shown((yield Add("People whose job is baker.")))
                    yield Search("anything")
                    yield Read(made[0][0])
                    yield LinkMany(made[0][0], (IDS["Ada Alm's job is baker"],))
                    return Done()

            online.curator = Slow
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            indexes = [record for record in owner.store if record.text == "People whose job is baker."]
            assert [record.id for record in indexes] == ["n2"]
            assert set(indexes[0].links) == {IDS["Cy Alm's job is baker"], IDS["Ada Alm's job is baker"]}

    asyncio.run(work())
    assert replayed(place)


def test_a_pass_whose_document_changed_under_it_is_played_again(place: Path) -> None:
    baker = IDS["Ada Alm's job is baker"]

    async def work() -> None:
        async with opened(place) as online:
            owner, plays = online.live, []

            class Editing(PlannedPolicy):
                def __init__(self) -> None:
                    super().__init__(self._plan, lambda view: Done())

                async def act(self, view: View) -> Action:
                    if len(view.history) == 1 and len(plays) == 1:
                        await act(owner, ClientSession("bo"), Edit(baker, "Ada Alm's job is queen."), "curator")
                    return await super().act(view)

                def _plan(self, view: View) -> Steps[Action]:
                    plays.append(1)
                    read = shown((yield Read(baker)))
                    yield Edit(baker, read[0][1].replace("job", "only job"))
                    return Done()

            online.curator = Editing
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            assert len(plays) == 2
            assert owner.store[baker].text == "Ada Alm's only job is queen."

    asyncio.run(work())
    assert replayed(place)


def test_strategy_class_learns_from_its_agenda(place: Path) -> None:
    import msgspec

    async def work(strategy: str) -> int:
        where = place if strategy == "class" else family_store(place.parent / "paper")
        async with opened(where, msgspec.structs.replace(HASH, strategy=strategy)) as online:
            asked = await online.ask(QUESTION, "rex")
            await online.gold(asked.id, (GOLD,))
            await online.learn()
            return online.live.store.links

    assert asyncio.run(work("class")) > asyncio.run(work("paper"))


def test_lessons_are_taught_in_the_order_they_came() -> None:
    questions, store = QuestionLog(), Store()
    for number, client in enumerate(["ada", "ada", "ada", "bo", "ada", "cy"]):
        for event in (
            Began(number, "forward", "reader", f"q{number}", "Who?", 0),
            Noted(number, "asked", {"question": f"q{number}", "by": client}),
            Ended(number, "forward", "answered"),
            Graded(number, f"q{number}", ("nobody",), 0.0, 0.0),
        ):
            questions(event, store, "")
    taught = []
    while (lesson := questions.next_lesson()) is not None:
        taught.append(lesson)
        questions(Began(9, "backward", "curator", lesson, "Who?", 0), store, "")
    assert taught == [f"q{number}" for number in range(6)]


def test_a_pass_lets_others_in_between_its_actions() -> None:
    """A policy of rules never waits; beside others it does, before every action."""
    told: list[str] = []

    class Rules:
        usage = None

        async def act(self, view: View) -> Action:
            told.append("acted")
            return Done()

    async def both() -> None:
        policy = cooperative(Rules)()
        acting = asyncio.create_task(policy.act(View("curator", None, (), 1)))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        told.append("somebody else")
        await acting

    asyncio.run(both())
    assert told == ["somebody else", "acted"]

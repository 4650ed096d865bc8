"""Clients of a live store: durable before answered, no lost update, one index for two builders, a past that stays."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest
from family import documents, family
from live_stores import live_store
from serving import family_store, opened, replayed

from kbgym.errors import BadInput, Failed
from kbgym.gym.actions import (
    Add,
    Added,
    Answer,
    Delete,
    Edit,
    Error,
    Found,
    Link,
    LinkMany,
    Merged,
    Opened,
    Read,
    Search,
    Unlink,
)
from kbgym.serving.clients import ClientSession, Sessions, act
from kbgym.store import Store, source
from kbgym.trace import log
from kbgym.trace.folder import StoreFolder

IDS = documents(family())
BAKER, MILLER = IDS["Ada Alm's job is baker"], IDS["Bo Alm's job is miller"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return family_store(tmp_path / "store")


def test_an_edit_is_on_the_disk_when_it_is_answered(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live, ada = online.live, ClientSession("ada")
            reply = await act(live, ada, Add("People whose job is baker."), "curator")
            assert reply.step.result == Added("n1") and reply.version == 1
            on_disk = StoreFolder(place)
            assert on_disk.store().fingerprint == live.store.fingerprint
            found = await act(live, ClientSession("rex"), Search("People whose job is baker."), "reader")
            assert found.step.observation.text.startswith("[n1]")
            assert live.iteration == 1, "a search is no transaction"

    asyncio.run(work())
    entry = log_entries(place)[0]
    assert entry.agents == {"serve": "ada"} and entry.edits == {"adds": 1}


def test_a_search_waits_for_the_disk_only_where_it_shows_what_is_not_there_yet(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, real = threading.Event(), os.fsync

    def slow(file: int) -> None:
        assert written.wait(20)
        real(file)

    async def work() -> None:
        async with opened(place) as online:
            live = online.live
            monkeypatch.setattr(log.os, "fsync", slow)
            adding = asyncio.create_task(act(live, ClientSession("ada"), Add("People whose job is baker."), "curator"))
            while live.last is None:
                await asyncio.sleep(0)
            others = await act(live, ClientSession("rex"), Read(MILLER), "reader")
            assert others.step.result == Opened(MILLER, ()) and not adding.done()
            search = asyncio.create_task(
                act(live, ClientSession("rex"), Search("People whose job is baker."), "reader")
            )
            done, _ = await asyncio.wait([search, adding], timeout=0.05)
            assert not done, "a search showed what a crash would have taken back"
            written.set()
            assert (await search).step.observation.text.startswith("[n1]") and (await adding).version == 1
            written.clear()
            deleting = asyncio.create_task(act(live, ClientSession("ada"), Delete("n1"), "curator"))
            while live.last is None:
                await asyncio.sleep(0)
            after = asyncio.create_task(act(live, ClientSession("rex"), Read(MILLER), "reader"))
            assert not (await asyncio.wait([after], timeout=0.05))[0], "its links may have gone with the other"
            written.set()
            await asyncio.gather(deleting, after)

    asyncio.run(work())


def log_entries(place: Path) -> list[object]:
    from kbgym.trace.history import log as history

    return list(history(StoreFolder(place).events))


def test_a_reader_cannot_edit_whatever_it_sends(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            before = online.live.store.fingerprint
            for action in (Add("x y."), Edit(BAKER, "x."), Delete(BAKER), Link(BAKER, MILLER), Unlink(BAKER, MILLER)):
                reply = await act(online.live, ClientSession("rex"), action, "reader")
                assert isinstance(reply.step.result, Error)
            assert (online.live.store.fingerprint, online.live.iteration) == (before, 0)

    asyncio.run(work())


@pytest.mark.parametrize(
    "action",
    [Edit(BAKER, "Ada Alm's job is judge."), Delete(BAKER), Link(BAKER, MILLER), LinkMany(BAKER, (MILLER,))],
    ids=lambda action: type(action).__name__,
)
def test_a_document_that_changed_since_it_was_seen_is_shown_and_not_touched(place: Path, action: Edit) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live, ada, bo = online.live, ClientSession("ada"), ClientSession("bo")
            await act(live, ada, Search("Ada Alm's job is baker."), "curator")
            await act(live, bo, Read(BAKER), "curator")
            await act(live, bo, Edit(BAKER, "Ada Alm's job is pastry cook."), "curator")
            before = live.store.fingerprint
            reply = await act(live, ada, action, "curator")
            assert reply.conflict and "Ada Alm's job is pastry cook." in reply.step.observation.text
            assert live.store.fingerprint == before
            again = await act(live, ada, action, "curator")
            assert not again.conflict and not isinstance(again.step.result, Error), "it has seen the new text now"

    asyncio.run(work())
    assert replayed(place)


def test_links_count_for_those_who_read_them_only(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live, searched, read, other = online.live, ClientSession("a"), ClientSession("b"), ClientSession("c")
            await act(live, searched, Search("Ada Alm's job is baker."), "curator")
            await act(live, read, Read(BAKER), "curator")
            await act(live, other, Link(BAKER, MILLER), "curator")
            stale = await act(live, read, Unlink(BAKER, MILLER), "curator")
            assert stale.conflict and MILLER in stale.step.observation.text
            fresh = await act(live, searched, Edit(BAKER, "Ada Alm is a baker of bread."), "curator")
            assert not fresh.conflict

    asyncio.run(work())


def test_two_who_build_the_same_index_end_with_one(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live = online.live

            async def build(name: str, member: str, text: str) -> str:
                session = ClientSession(name)
                result = (await act(live, session, Add(text), "curator")).step.result
                id = result.id if isinstance(result, Added) else result.into if isinstance(result, Merged) else ""
                while (await act(live, session, LinkMany(id, (member,)), "curator")).conflict:
                    pass
                return id

            texts = ("People whose job is baker.", "people whose job is baker", "People whose job is baker.")
            members = list(IDS.values())[:3]
            made = await asyncio.gather(*(build(f"c{n}", members[n], texts[n]) for n in range(3)))
            assert len(set(made)) == 1
            assert sorted(live.store[made[0]].links) == sorted(members)
            assert sum(record.flag == "authored" for record in live.store) == 1

    asyncio.run(work())
    assert replayed(place)


def test_edits_that_wait_for_the_disk_are_flushed_together(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live = online.live
            await asyncio.gather(
                *(act(live, ClientSession(f"c{n}"), Add(f"Sentence of {n} about {n}."), "curator") for n in range(40))
            )
            assert live.commits == 40
            assert live.flushes < 20, "every edit paid for a flush of its own"

    asyncio.run(work())
    assert len(log_entries(place)) == 40, "flushed together, they are still transactions of their own"


def test_a_reader_is_shown_nothing_that_is_not_on_the_disk_yet(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live = online.live
            edit = asyncio.create_task(act(live, ClientSession("ada"), Add("Nils Holm keeps geese."), "curator"))
            while live.iteration == 0:
                await asyncio.sleep(0)
            reply = await act(live, ClientSession("rex"), Search("Nils Holm keeps geese."), "reader")
            assert "[n1]" in reply.step.observation.text
            assert StoreFolder(place).iteration == 1  # type: ignore[union-attr]
            await edit

    asyncio.run(work())


def test_a_disk_that_refuses_leaves_the_store_as_it_was(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live = online.live
            await act(live, ClientSession("ada"), Add("Kept, and stays."), "curator")
            before, iteration = live.store.fingerprint, live.iteration
            real = os.fsync

            def full(file: int) -> None:
                raise OSError(28, "No space left on device")

            monkeypatch.setattr(log.os, "fsync", full)
            tries = (act(live, ClientSession(f"c{n}"), Add(f"ConnectionLost number {n}."), "curator") for n in range(5))
            failures = await asyncio.gather(*tries, return_exceptions=True)
            assert all(isinstance(failure, Failed) for failure in failures)
            assert (live.store.fingerprint, live.iteration) == (before, iteration)
            monkeypatch.setattr(log.os, "fsync", real)
            found = await act(live, ClientSession("rex"), Search("ConnectionLost number 3."), "reader")
            assert "ConnectionLost" not in found.step.observation.text
            reply = await act(live, ClientSession("ada"), Add("Written after all."), "curator")
            assert reply.version == iteration + 1

    asyncio.run(work())
    assert replayed(place)


def test_a_snapshot_stays_what_it_was(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            live, ada = online.live, ClientSession("ada")
            question = await online.open("Who bakes?", "rex")
            before = [await question.act(action) for action in (Search("job is baker"), Read(BAKER))]
            await act(live, ada, Edit(BAKER, "Ada Alm retired."), "curator")
            await act(live, ada, Link(BAKER, MILLER), "curator")
            await act(live, ada, Add("The job of Zed Zorn is baker."), "curator")
            await act(live, ada, Delete(IDS["Cy Alm's job is baker"]), "curator")
            after = [await question.act(action) for action in (Search("job is baker"), Read(BAKER))]
            assert after == before
            now = await act(live, ada, Search("job is baker"), "curator")
            assert "Zed Zorn" in now.step.observation.text and "Cy Alm" not in now.step.observation.text

    asyncio.run(work())


def test_a_folder_has_one_writer(place: Path) -> None:
    async def work() -> None:
        async with opened(place):
            with pytest.raises(BadInput, match="another process"):
                live_store(place)

    asyncio.run(work())


def test_an_answer_ends_nothing_here(place: Path) -> None:
    async def work() -> None:
        async with opened(place) as online:
            reply = await act(online.live, ClientSession("rex"), Answer("Ada"), "reader")
            assert (reply.version, online.live.iteration) == (0, 0)

    asyncio.run(work())


def test_old_sessions_are_forgotten_before_new_ones() -> None:
    sessions = Sessions()
    first = sessions.of("ada")
    assert sessions.of("ada") is first and sessions.of("ada", "2") is not first
    for number in range(2_000):
        sessions.of("bo", str(number))
    assert sessions.of("ada") is first, "one client's sessions cost another nothing"
    for number in range(2_000):
        sessions.of("ada", str(number))
    assert sessions.of("ada") is not first and len(sessions) <= 2 * 64


def test_what_was_forgotten_is_shown_before_it_is_changed() -> None:
    store = Store([source("d1", "Ada lives in Lund."), source("d2", "Bo lives in Lund.")])
    sessions = Sessions(most=2)
    sessions.of("ada", "old").saw(Opened("d1", ()), store)
    edit = Edit("d1", "Ada lives in Ystad.")
    assert sessions.of("ada", "new").stale(edit, store) is None, "nothing was forgotten yet"
    store.edit("d1", "Ada lives in Malmö.")
    for name in ("2", "3", "4"):
        sessions.of("ada", name)
    again = sessions.of("ada", "old")
    assert again.stale(edit, store) == "d1", "it may have seen what it was"
    again.show("d1", store)
    assert again.stale(edit, store) is None
    assert again.stale(Edit("gone", "x"), store) is None
    assert sessions.of("bo", "new").stale(edit, store) is None, "another client has lost nothing"


def test_a_client_remembers_so_many_documents_however_many_sessions_it_has() -> None:
    store = Store(source(f"d{n}", f"Sentence {n}.") for n in range(6_000))
    sessions = Sessions()
    for number in range(10):
        sessions.of("ada", str(number)).saw(Found(tuple(f"d{n}" for n in range(6_000)), 1), store)
        assert sum(len(one.seen) for one in sessions._sessions["ada"].values()) <= 12_000


def test_one_who_only_looks_locks_nobody_out_and_sees_what_is_committed(place: Path) -> None:
    async def work() -> None:
        early = live_store(place, write=False)
        assert not (place / "trace.jsonl").exists(), "looking leaves no trace"
        async with opened(place) as online:
            late = live_store(place, write=False)
            await act(online.live, ClientSession("ada"), Add("Nils Holm keeps geese."), "curator")
            await act(online.live, ClientSession("ada"), Delete(BAKER), "curator")
            for looking in (early, late):
                reply = await act(looking, ClientSession("rex"), Search("Nils Holm keeps geese."), "reader")
                assert reply.step.observation.text.startswith("[n1]") and reply.version == 2
                gone = await act(looking, ClientSession("rex"), Read(BAKER), "reader")
                assert isinstance(gone.step.result, Error)
                with pytest.raises(BadInput):
                    await act(looking, ClientSession("rex"), Add("x y."), "curator")
                await looking.close()

    asyncio.run(work())


class SlowJudge:
    """Takes its time, and counts how often it was asked, and what else happened meanwhile."""

    name = "slow"

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.thinking = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def duplicate(self, candidate: str, existing: str) -> bool:
        self.asked.append((candidate, existing))
        self.thinking.set()
        await self.may_go_on.wait()
        return candidate.replace(",", "") == existing


def test_nobody_waits_while_the_judge_thinks(place: Path) -> None:
    async def work() -> None:
        judge = SlowJudge()
        live = live_store(place, judge=judge)
        ada, bo = ClientSession("ada"), ClientSession("bo")
        adding = asyncio.create_task(act(live, ada, Add("Ada Alm's job is, baker."), "curator"))
        await judge.thinking.wait()
        async with asyncio.timeout(10):
            await act(live, bo, LinkMany(BAKER, (MILLER,)), "curator")
            await act(live, ClientSession("rex"), Search("job is baker"), "reader")
        assert not adding.done()
        judge.may_go_on.set()
        reply = await adding
        assert reply.step.result == Merged(BAKER) and reply.step.verdict is not None
        assert judge.asked == [("Ada Alm's job is, baker.", "Ada Alm's job is baker.")], "asked once, not again in turn"
        await live.close()

    asyncio.run(work())
    assert replayed(place)


def test_a_neighbour_that_turned_up_while_the_judge_thought_is_judged_too(place: Path) -> None:
    async def work() -> None:
        judge = SlowJudge()
        live = live_store(place, judge=judge)
        adding = asyncio.create_task(act(live, ClientSession("ada"), Add("Ada Alm's job is, baker."), "curator"))
        await judge.thinking.wait()
        await act(live, ClientSession("bo"), Delete(BAKER), "curator")
        rewritten = asyncio.create_task(act(live, ClientSession("bo"), Add("Ada Alm's job: is baker."), "curator"))
        judge.may_go_on.set()
        replies = await asyncio.gather(adding, rewritten)
        assert {type(reply.step.result) for reply in replies} <= {Added, Merged}
        asked = [existing for candidate, existing in judge.asked if "," in candidate]
        assert len(asked) == len(set(asked)), "nobody is asked the same twice"
        await live.close()

    asyncio.run(work())
    assert replayed(place)

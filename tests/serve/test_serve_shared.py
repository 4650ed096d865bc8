"""Two live stores of one store in PostgreSQL: each sees what the other did, nothing is lost, one history."""

from __future__ import annotations

import asyncio
import itertools

import postgres
import pytest
from family import documents, family
from live_stores import EventListener, live_store

from kbgym.backends.postgres import writer as writer_module
from kbgym.errors import BadInput, Failed
from kbgym.gym.actions import Add, Added, Delete, Edit, Error, LinkMany, Merged, Read, Search
from kbgym.serving.clients import ClientSession, act
from kbgym.store import Store, source
from kbgym.trace.backend import open_backend, save_store
from kbgym.trace.live import LiveStore

IDS = documents(family())
NUMBERS = itertools.count()
BAKER = IDS["Ada Alm's job is baker"]


@pytest.fixture
def url(cluster: postgres.Cluster) -> str:
    place = cluster.url(f"s{next(NUMBERS)}")
    save_store(Store(source(d.id, d.text) for d in family().documents), place)
    return place


def opened_twice(url: str, count: int = 2, write: bool = True) -> list[LiveStore]:
    return [live_store(url, [EventListener()], write=write) for _ in range(count)]


def settled(url: str, *opened: LiveStore) -> None:
    """All agree with each other, with the tables and with the replay; everybody heard the same."""
    place = open_backend(url)
    place.verify()
    for live in opened:
        assert live.store.fingerprint == place.store().fingerprint and live.iteration == place.iteration
        assert live.listeners[0].events == list(place.events)  # type: ignore[attr-defined]
        ids = [id for id, _ in live.environment.engine.search("job", 0, 10_000)]
        assert sorted(ids) == sorted(record.id for record in live.store)


def test_each_sees_what_the_other_did(url: str) -> None:
    async def work() -> None:
        one, other = opened_twice(url)
        assert (await act(one, ClientSession("ada"), Add("Nils Holm keeps geese."), "curator")).step.result == Added(
            "n1"
        )
        found = await act(other, ClientSession("bo"), Search("Nils Holm keeps geese."), "reader")
        assert found.step.observation.text.startswith("[n1]")
        assert (await act(other, ClientSession("bo"), Add("nils holm keeps geese"), "curator")).step.result == Merged(
            "n1"
        )
        await act(other, ClientSession("bo"), Delete(BAKER), "curator")
        gone = await act(one, ClientSession("ada"), Read(BAKER), "curator")
        assert isinstance(gone.step.result, Error)
        settled(url, one, other)
        await one.close()
        await other.close()

    asyncio.run(work())


def test_a_document_the_other_changed_is_shown_and_not_touched(url: str) -> None:
    async def work() -> None:
        one, other = opened_twice(url)
        ada, bo = ClientSession("ada"), ClientSession("bo")
        await act(one, ada, Read(BAKER), "curator")
        await act(other, bo, Edit(BAKER, "Ada Alm's job is pastry cook."), "curator")
        reply = await act(one, ada, Edit(BAKER, "Ada Alm's job is judge."), "curator")
        assert reply.conflict and "pastry cook" in reply.step.observation.text
        again = await act(one, ada, Edit(BAKER, "Ada Alm's job is judge."), "curator")
        assert not again.conflict and one.store[BAKER].text == "Ada Alm's job is judge."
        await act(other, bo, Read(BAKER), "curator")
        settled(url, one, other)
        await one.close()
        await other.close()

    asyncio.run(work())


def test_many_at_once_end_with_one_history(url: str) -> None:
    async def work() -> None:
        opened = opened_twice(url, 3)
        members = list(IDS.values())[:6]

        async def build(number: int) -> str:
            live, session = opened[number % 3], ClientSession(f"c{number}")
            result = (await act(live, session, Add("People whose job is baker."), "curator")).step.result
            id = result.id if isinstance(result, Added) else result.into if isinstance(result, Merged) else ""
            while (await act(live, session, LinkMany(id, (members[number],)), "curator")).conflict:
                pass
            return id

        made = await asyncio.gather(*(build(number) for number in range(6)))
        for live in opened:
            await act(live, ClientSession("rex"), Read(made[0]), "reader")
            assert sorted(live.store[made[0]].links) == sorted(members)
        assert len(set(made)) == 1
        settled(url, *opened)
        for live in opened:
            await live.close()

    asyncio.run(work())


def test_what_could_not_be_committed_is_undone_here_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        one, other = opened_twice(url)
        await act(one, ClientSession("ada"), Add("Kept, and stays."), "curator")
        real, broken = writer_module.send, []

        def send(connection: object, statements: list[object]) -> object:
            if ("COMMIT", ()) in statements and len(broken) < 5:  # as often as it is tried
                broken.append(connection.close())  # type: ignore[attr-defined]
            return real(connection, statements)  # type: ignore[arg-type]

        monkeypatch.setattr(writer_module, "send", send)
        with pytest.raises(Failed, match="not committed"):
            await act(one, ClientSession("ada"), Add("ConnectionLost for now."), "curator")
        assert one.iteration == 1
        await act(other, ClientSession("bo"), Add("Written by another."), "curator")
        found = await act(one, ClientSession("ada"), Search("ConnectionLost for now."), "curator")
        assert "ConnectionLost" not in found.step.observation.text
        assert (await act(one, ClientSession("ada"), Add("ConnectionLost for now."), "curator")).version == 3
        await act(other, ClientSession("bo"), Read(BAKER), "reader")
        settled(url, one, other)
        await one.close()
        await other.close()

    asyncio.run(work())


def test_a_caller_that_goes_away_keeps_nobody_waiting(url: str) -> None:
    async def work() -> None:
        one, other = opened_twice(url)
        async with other.write():
            waiting = asyncio.create_task(act(one, ClientSession("ada"), Add("Given up."), "curator"))
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        reply = await asyncio.wait_for(act(other, ClientSession("bo"), Add("After all."), "curator"), 20)
        assert reply.step.result == Added("n1")
        assert (await act(one, ClientSession("ada"), Add("Later."), "curator")).step.result == Added("n2")
        await one.close()
        await other.close()

    asyncio.run(work())


def test_one_who_only_looks(url: str) -> None:
    async def work() -> None:
        (writing,), (looking,) = opened_twice(url, 1), opened_twice(url, 1, write=False)
        await act(writing, ClientSession("ada"), Add("Nils Holm keeps geese."), "curator")
        reply = await act(looking, ClientSession("rex"), Search("Nils Holm keeps geese."), "reader")
        assert reply.step.observation.text.startswith("[n1]") and reply.version == 1
        with pytest.raises(BadInput):
            await act(looking, ClientSession("rex"), Add("x y."), "curator")
        await writing.close()
        await looking.close()

    asyncio.run(work())


def test_the_password_is_not_in_the_name(url: str) -> None:
    live = live_store(url.replace("kbgym@", "kbgym:s3cretword@"), write=False)
    assert "s3cretword" not in live.name and live.folder is None
    asyncio.run(live.close())

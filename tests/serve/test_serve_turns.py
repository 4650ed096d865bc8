"""A client that asks seldom is not held up by a crowd: its request begins at once, its text is embedded in its turn."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import family_store, make_tokens, opened

from kbgym.search.live import Embedding, wanted_by
from kbgym.serving.http import make_app
from kbgym.serving.server import listen
from kbgym.serving.tokens import Client, Tokens
from kbgym.serving.turns import AN_ACTION, MOST_UNKNOWN, NOBODY, Turns


class Begun:
    """Requests of a crowd that asks again at once, in the order in which they began."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.order: list[str] = []

    async def ask(self, client: str) -> None:
        await self.turns.take(client)
        self.order.append(client)

    async def without_end(self, client: str) -> None:
        while True:
            await self.ask(client)
            await asyncio.sleep(0)

    def crowd(self, size: int) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.without_end(f"hostile {n}")) for n in range(size)]


async def ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_who_asks_seldom_begins_before_the_crowd() -> None:
    async def work() -> list[int]:
        begun, before = Begun(), []
        await begun.ask("ada")
        crowd = begun.crowd(60)
        while len(begun.order) < 200:
            await asyncio.sleep(0)
        for _ in range(5):
            started = len(begun.order)
            await begun.ask("ada")
            before.append(len(begun.order) - started - 1)
            while len(begun.order) < started + 100:
                await asyncio.sleep(0)
        await ended(crowd)
        return before

    assert max(asyncio.run(work())) <= 1


def test_a_few_requests_are_little_even_where_everybody_else_asks_less() -> None:
    async def work() -> list[int]:
        begun, before, now = Begun(), [], [0.0]
        begun.turns = Turns(lambda: now[0])
        await begun.ask("ada")
        crowd = begun.crowd(200)  # so many that each has its turn seldom
        while len(begun.order) < 201:
            await asyncio.sleep(0)
        now[0] += 20  # what newcomers count for has faded
        for _ in range(6):
            started = len(begun.order)
            await begun.ask("ada")
            before.append(len(begun.order) - started - 1)
            now[0] += 0.3
        await ended(crowd)
        return before

    assert max(asyncio.run(work())) <= 1


def test_a_crowd_of_newcomers_goes_before_nobody_for_long() -> None:
    async def work() -> int:
        begun = Begun()
        for _ in range(5):
            await begun.ask("ada")
        crowd = begun.crowd(60)
        while len(begun.order) < 5 + 61:
            await asyncio.sleep(0)
        started = len(begun.order)
        await begun.ask("ada")
        await ended(crowd)
        return len(begun.order) - started

    assert asyncio.run(work()) <= 60


def test_everybody_has_a_turn_and_one_alone_is_not_slowed() -> None:
    async def work() -> None:
        begun = Begun()
        crowd = begun.crowd(20)
        while len(begun.order) < 400:
            await asyncio.sleep(0)
        await ended(crowd)
        counts = [begun.order.count(f"hostile {n}") for n in range(20)]
        assert max(counts) <= 2 * min(counts)
        assert len(begun.turns) == 0, "whoever has gone waits no more"
        alone = Begun()
        await asyncio.gather(*(alone.ask("ada") for _ in range(50)))
        assert alone.order == ["ada"] * 50

    asyncio.run(work())


def test_of_those_nobody_knows_the_newest_comes_first() -> None:
    async def work() -> list[int]:
        turns, order = Turns(), []

        async def ask(number: int) -> None:
            await turns.take(NOBODY)
            order.append(number)

        await asyncio.gather(*(ask(n) for n in range(6)))
        return order

    assert asyncio.run(work()) == [0, 5, 4, 3, 2, 1]


async def asked(place: Path, token: str, path: str, body: dict[str, str]) -> dict[str, Any]:
    """What the server answers to one request."""
    async with opened(place) as online:
        known = Tokens(place / "tokens.jsonl")
        app = make_app(online.live, online, known, "1", Client("anybody", "reader"), None)
        head = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://a", headers=head) as client:
            reply = await client.post(f"/{path}", json=body)
            assert reply.status_code == 200
            return dict(reply.json())


@pytest.mark.parametrize("path", ["search", "questions"])
def test_a_text_is_embedded_in_its_clients_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    place = family_store(tmp_path / "store")
    tokens = make_tokens(place)
    owners: list[str] = []
    real = Embedding.prepare

    async def prepare(self: Embedding, *given: object) -> None:
        owners.append(wanted_by.get())
        await real(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Embedding, "prepare", prepare)

    body = {"query": "a new text"} if path == "search" else {"question": "Where does Ada Alm live?"}
    asyncio.run(asked(place, tokens.reader, path, body))
    assert owners and set(owners) == {"rex"}


def test_every_action_of_a_pass_the_server_plays_waits_for_the_clients_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = family_store(tmp_path / "store")
    tokens, taken, real = make_tokens(place), [], Turns.take

    async def take(self: Turns, client: str, counts: float = 1.0) -> bool:
        taken.append((client, counts))
        return await real(self, client, counts)

    monkeypatch.setattr(Turns, "take", take)

    actions = asyncio.run(asked(place, tokens.reader, "questions", {"question": "Where does Ada Alm live?"}))["actions"]
    assert actions > 1 and taken == [("rex", 1.0)] + [("rex", AN_ACTION)] * actions


def test_small_answers_are_sent_at_once() -> None:
    async def work() -> int:
        listening, _ = listen("127.0.0.1", 0, 8)
        made: list[int] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            made.append(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(serve, sock=listening):
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            await reader.read()
            writer.close()
        return made[0]

    assert asyncio.run(work())


def test_of_those_nobody_knows_only_so_many_wait_and_the_oldest_go() -> None:
    async def work() -> list[bool]:
        turns = Turns()
        return await asyncio.gather(*(turns.take(NOBODY) for _ in range(1 + 3 + MOST_UNKNOWN)))

    assert asyncio.run(work()) == [True] + [False] * 3 + [True] * MOST_UNKNOWN, "the first waits for nobody"

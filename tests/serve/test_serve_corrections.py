"""Corrections by people over MCP, HTTP and Python: what `teach` and `forget` change, and how it is undone."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from family import documents, family
from serving import HASH, Server, Tokens, client, family_store, opened, replayed, serving
from test_serve_mcp import names, over_http, over_stdio

from kbgym.api import import_corpus
from kbgym.cli.main import run
from kbgym.gym.actions import Add, Search
from kbgym.integrations.client import connect
from kbgym.serving.clients import ClientSession, Refusal, act
from kbgym.serving.corrections import Outcome, forget, teach, undo
from kbgym.serving.learning.learner import Online
from kbgym.serving.learning.report import standing
from kbgym.serving.learning.teacher import alias_text, stating
from kbgym.trace.corrections import Corrections
from kbgym.trace.folder import StoreFolder
from kbgym.trace.replay import replaying

IDS = documents(family())
BAKER = IDS["Ada Alm's job is baker"]
QUESTION, OTHER_WORDS = "What is the job of Ada Alm?", "Ada Alm's job is what?"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return family_store(tmp_path / "store")


def played(place: Path, scene: Callable[[Online, ClientSession], Awaitable[None]]) -> None:
    async def work() -> None:
        async with opened(place, HASH) as online:
            online.start()
            await scene(online, ClientSession("ada"))

    asyncio.run(asyncio.wait_for(work(), 60))
    assert replayed(place)


async def searched(online: Online, query: str) -> list[str]:
    step = (await act(online.live, ClientSession("rex"), Search(query), "reader")).step
    return [document.id for document in step.observation.documents]


def lesson_of(outcome: Outcome) -> tuple[int, str]:
    assert outcome.changed and outcome.lesson is not None
    return outcome.lesson.iteration, outcome.lesson.document


def test_an_answer_that_no_document_states_becomes_a_correction(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        before, page = online.live.store.fingerprint, await searched(online, OTHER_WORDS)
        said = {"question": QUESTION, "answers": ["cooper"], "answer": "baker", "note": "Her contract says so."}
        iteration, document = lesson_of(await teach(online, ada, said))
        record = online.live.store[document]
        assert record.flag == "correction" and record.links == (BAKER,)
        assert {"cooper", "ada,", "Her"} <= set(record.text.split())
        shown = await searched(online, OTHER_WORDS)
        assert shown.index(document) < shown.index(BAKER)
        assert set(page) <= set(shown), "a correction pushes nothing out"
        assert lesson_of(await undo(online, ada, {"iteration": iteration}))
        assert online.live.store.fingerprint == before and await searched(online, OTHER_WORDS) == page

    played(place, scene)


def test_an_answer_that_documents_state_becomes_an_alias(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        before = online.live.store.fingerprint
        said = {"question": QUESTION, "answers": ["baker"], "answer": "miller"}
        iteration, document = lesson_of(await teach(online, ada, said))
        assert online.live.store[document].flag == "authored" and BAKER in online.live.store[document].links
        again = await teach(online, ada, said)
        assert not again.changed and again.lesson is None, "there is nothing new to learn"
        await undo(online, ada, {"iteration": iteration})
        assert online.live.store.fingerprint == before

    played(place, scene)


def test_a_correction_that_finds_nothing_to_supersede_says_so(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        said = {"question": "Where is the summer house of Zed Zorn?", "answers": ["Malmo"], "answer": "Ystad"}
        outcome = await teach(online, ada, said)
        assert outcome.lesson is not None and outcome.lesson.supersedes == {} and "forget" in outcome.message

    played(place, scene)


def test_forgotten_documents_stay_and_are_marked(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        before = online.live.store.fingerprint
        iteration, document = lesson_of(await forget(online, ada, {"documents": [BAKER], "note": "She left."}))
        assert online.live.store.superseded_by(BAKER) == (document,) and "She left." in online.live.store[document].text
        with pytest.raises(Refusal):
            await forget(online, ada, {"documents": ["nowhere"]})
        await undo(online, ada, {"iteration": iteration})
        assert online.live.store.fingerprint == before

    played(place, scene)


def test_lessons_are_undone_in_any_order_and_others_only_when_confirmed(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        before, bo = online.live.store.fingerprint, ClientSession("bo")
        jobs = [text for text in IDS if "'s job is" in text][:4]
        made = []
        for text in jobs:
            name, _, job = text.partition("'s job is ")
            said = {"question": f"What is the job of {name}?", "answers": ["cooper"], "answer": job}
            made.append(lesson_of(await teach(online, ada, said)))
        with pytest.raises(Refusal) as refused:
            await undo(online, bo, {"iteration": made[0][0]})
        assert refused.value.kind == "conflict"
        for number in (2, 0, 3, 1):
            await undo(online, bo, {"iteration": made[number][0], "confirm": True})
        assert online.live.store.fingerprint == before
        with pytest.raises(Refusal):
            await undo(online, ada, {"iteration": made[0][0]})

    played(place, scene)


def test_everything_since_an_iteration_is_undone_only_when_confirmed(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        before = online.live.store.fingerprint
        reply = await act(online.live, ada, Add("A sentence."), "curator")
        for given in ({}, {"everything_since": True}):
            with pytest.raises(Refusal):
                await undo(online, ada, {"iteration": reply.version, **given})
        await undo(online, ada, {"iteration": reply.version, "everything_since": True, "confirm": True})
        assert online.live.store.fingerprint == before

    played(place, scene)


def test_what_was_taught_is_read_from_the_trace(place: Path) -> None:
    async def scene(online: Online, ada: ClientSession) -> None:
        await teach(online, ada, {"question": QUESTION, "answers": ["cooper"], "answer": "baker"})
        replay = Corrections()
        store = StoreFolder(place).store(watch=replaying([replay]))
        assert replay.lessons == online.corrections.lessons
        (lesson,) = replay.standing(store)
        assert (lesson.kind, lesson.by, lesson.answers, set(lesson.supersedes)) == (
            "correction",
            "ada",
            ("cooper",),
            {BAKER},
        )
        assert lesson.changed_since(store) == []
        store.edit(BAKER, "Ada Alm's job is smith.")
        assert lesson.changed_since(store) == [BAKER]

    played(place, scene)


@pytest.mark.parametrize(
    ("question", "answer", "found"),
    [
        ("When does support of Python 3.7 end?", "2023-06-27", ["a"]),
        ("When does support of Python 3.8 end?", "2024-10-07", ["b"]),
        ("When does support of Python 3.8 end?", "2023-06-27", []),
        ("When does support of Ruby 3.7 end?", "2023-06-27", []),
        ("When does support of Python 3.7 end?", "2023-06-2", []),
        ("When does support of Python 3.7 end?", "", []),
        ("On what day does Ruby 3.8 reach its end of life (eol)?", "2024-10-07", ["d"]),
        ("On what day does Ruby 3.8 reach its end of life (eol)?", "2019-10-14", []),
        ("Who is the boss of Ada Alm?", "Bo Berg", []),
    ],
)
def test_documents_state_an_answer_about_the_subject(question: str, answer: str, found: list[str]) -> None:
    texts = {
        "a": "Python > Releases: Python 3.7: support ends 2023-06-27.",
        "b": "Python > Releases: Python 3.8: support ends 2024-10-07.",
        "c": "Perl > Releases: nothing of the kind, reached on the last day of its life, in the end.",
        "d": "Ruby: release: cycle 3.8: from: 2019-10-14; eol: 2024-10-07; lts. release: cycle 3.6: eol: 2023-06-27.",
        "e": "Ada Alm's friend is Bo Berg.",
        "f": "Ada Alm's boss is Cy Dahl.",
    }
    assert stating(question, [answer], texts) == found


def test_an_alias_holds_the_question_and_the_names_of_its_evidence() -> None:
    assert (
        alias_text("Who?", ["Lund: A city.", "One two three four five six seven."])
        == "Who? Lund; One two three four five six"
    )


def main(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(arguments)
    return int(stopped.value.code or 0)


# -- one scene over every transport -----------------------------------------------------------------------------------

Call = Callable[..., Awaitable[dict[str, Any]]]
WHO, IN_OTHER_WORDS = "Who is the baker of Ystad?", "Ystad has which baker?"
PAGE = "# Ystad\n\nThe baker of Ystad is Bo Berg. He opens at six.\n\n## Harbour\n\nThe harbour of Ystad is deep.\n"


@asynccontextmanager
async def session_over_mcp(store: Path) -> AsyncIterator[Call]:
    async with over_stdio(store, "--role", "curator", "--client", "ada") as mcp:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            result = await mcp.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return result.structured_content or {}

        yield call


@asynccontextmanager
async def session_over_http(store: Path) -> AsyncIterator[Call]:
    with serving(store, "--no-auth", "--role", "curator") as server, client(server, None) as http:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            reply = await asyncio.to_thread(http.post, f"/v1/{tool}", json=arguments)
            assert reply.status_code == 200, reply.text
            found: dict[str, Any] = reply.json()
            return found

        yield call


@asynccontextmanager
async def session_in_python(store: Path) -> AsyncIterator[Call]:
    with await asyncio.to_thread(connect, str(store), write=True, name="ada") as kb:

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            found = msgspec.to_builtins(await asyncio.to_thread(getattr(kb, tool), **arguments))
            return {"documents": found} if isinstance(found, list) else found

        yield call


async def first(call: Call, question: str) -> tuple[dict[str, Any], str]:
    """Return what an agent would answer from, the first document that nothing supersedes, and the file behind it."""
    shown = (await call("search", query=question))["documents"]
    best = next(one for one in shown if not one["superseded_by"])
    behind = [best, *(one for one in shown if one["id"] in best["links"])]
    return best, next((one["source"]["file"] for one in behind if one["source"]), "")


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("session", [session_over_mcp, session_over_http, session_in_python])
def test_a_correction_outlives_another_import_until_it_is_undone(
    tmp_path: Path, session: Callable[[Path], Any], changed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    files, world, store = tmp_path / "files", tmp_path / "world", tmp_path / "store"
    files.mkdir()
    (files / "ystad.md").write_text(PAGE)
    (files / "lund.md").write_text("# Lund\n\nThe baker of Lund is Ada Alm.\n")
    import_corpus(files, out=world)
    shutil.copytree(world, store)

    async def taught() -> dict[str, Any]:
        async with session(store) as call:
            wrong, file = await first(call, WHO)
            assert "Bo Berg" in wrong["text"] and file == "ystad.md"
            said = await call("teach", question=WHO, answers=["Cy Dahl"], answer="Bo Berg")
            assert said["changed"] and said["lesson"]["document"] in said["message"]
            right, file = await first(call, IN_OTHER_WORDS)
            assert "Cy Dahl" in right["text"] and right["id"] == said["lesson"]["document"] and file == "ystad.md"
            return said["lesson"]  # type: ignore[no-any-return]

    async def undone() -> None:
        async with session(store) as call:
            right, file = await first(call, IN_OTHER_WORDS)
            assert "Cy Dahl" in right["text"] and file == "ystad.md"
            assert (await call("undo", iteration=lesson["iteration"]))["changed"]
            again, file = await first(call, IN_OTHER_WORDS)
            assert "Bo Berg" in again["text"] and file == "ystad.md"

    lesson = asyncio.run(asyncio.wait_for(taught(), 60))
    (files / "ystad.md").write_text(PAGE.replace("six", "seven") if changed else PAGE)
    (files / "ny.md").write_text("# Ny\n\nThe baker of Ny is Di Ek.\n")
    updating = ["import", "corpus", str(files), "--out", str(world), "--update", "--store", str(store), "--json"]
    assert main(updating) == 0
    named = json.loads(capsys.readouterr().out.splitlines()[-1])["store"]["affected"]
    assert [one["id"] for one in named] == ([lesson["document"]] if changed else [])
    corrections = Corrections()
    (found,) = standing(corrections, StoreFolder(store).store(watch=replaying([corrections])))
    assert bool(found.changed) is changed
    asyncio.run(asyncio.wait_for(undone(), 60))
    assert replayed(store)


def test_over_http_for_curators_only(fresh: tuple[Server, Tokens, Path]) -> None:
    server, tokens, _ = fresh

    async def work() -> None:
        async with over_http(server, tokens.reader, "legacy") as rex:
            assert not {"teach", "forget", "undo"} & set(await names(rex))
        async with over_http(server, tokens.curator, "legacy") as ada:
            assert {"teach", "forget", "undo"} < set(await names(ada))

    asyncio.run(asyncio.wait_for(work(), 60))
    bodies = {
        "teach": {"question": QUESTION, "answers": ["cooper"], "answer": "baker"},
        "forget": {"documents": [BAKER]},
        "undo": {"iteration": 1},
    }
    with client(server, tokens.reader) as rex:
        assert {rex.post(f"/v1/{name}", json=body).status_code for name, body in bodies.items()} == {403}
        assert rex.get("/v1/learning").status_code == 403
    with client(server, tokens.curator) as ada:
        taught = ada.post("/v1/teach", json=bodies["teach"]).json()
        (listed,) = ada.get("/v1/learning").json()["corrections"]
        assert listed["lesson"] == json.loads(json.dumps(taught["lesson"]))
        assert ada.get(f"/v1/documents/{BAKER}").json()["superseded_by"] == [taught["lesson"]["document"]]
        assert ada.post("/v1/undo", json={"iteration": taught["lesson"]["iteration"]}).json()["changed"]
        assert ada.get("/v1/learning").json()["corrections"] == []

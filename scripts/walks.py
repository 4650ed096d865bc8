"""Count the files of kbgym that one action goes through: those in which a function is called, by a profiler.

    python scripts/walks.py [--list]

Three walks: one training question, one edit over HTTP, one search of a folder. What is done before (opening the store,
embedding it, starting the server) does not count. Exits with 1 if a walk is longer than its limit.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType

import kbgym
from kbgym.api.factory import agents_named, embedder_named
from kbgym.api.workspace import Workspace
from kbgym.search.factory import engine_for
from kbgym.store import Store, source
from kbgym.trace.backend import save_store
from kbgym.training.lessons import Lesson
from kbgym.training.loop import curate_directly, teach
from kbgym.training.run import Run, Settings
from kbgym.training.session import Session
from kbgym.worlds.world import World

SOURCE = str(Path(kbgym.__file__).parent)
LIMITS = {"a training question": 45, "an edit over HTTP": 20, "a search of a folder": 15}


_files: set[str] | None = None  # where files are collected at the moment


def note(frame: FrameType, event: str, _: object) -> None:
    code = frame.f_code
    if _files is not None and event == "call" and code.co_filename.startswith(SOURCE) and code.co_name != "<module>":
        _files.add(code.co_filename.removeprefix(SOURCE).lstrip("/"))


@contextmanager
def counted(files: set[str]) -> Iterator[None]:
    """Collect the files of kbgym in which a function is called, in any thread."""
    global _files
    _files = files
    try:
        yield
    finally:
        _files = None


def training_question(folder: Path, world: World) -> set[str]:
    settings = Settings(questions=4, epochs=1, embedder="hash", eval=False)
    run = Run.open_or_create(folder / "run", world, settings)
    session = Session(run, agents_named(settings), partial(engine_for, embedder=embedder_named("hash")))
    files: set[str] = set()

    async def work() -> None:
        first, second, *_ = session.lessons
        await step(first)
        with counted(files):
            await step(second)
        await session.live.close()

    async def step(lesson: Lesson) -> None:
        await teach(lesson, settings, session.agents, session, curate_directly)
        await session.commit(lesson)

    asyncio.run(work())
    return files


def http_edit(folder: Path, world: World) -> set[str]:
    import httpx

    from kbgym.serving.http import make_app
    from kbgym.serving.learning.setup import open_online
    from kbgym.serving.tokens import Client

    save_store(Store(source(document.id, document.text) for document in world.documents), folder / "served")
    online = open_online(folder / "served", Settings(embedder="hash"), "hash")
    app = make_app(online.live, online, None, "1", Client("local", "curator"), None)
    files: set[str] = set()

    async def work() -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
            (await client.post("/v1/add", json={"text": "The ferry is late."})).raise_for_status()
            with counted(files):
                (await client.post("/v1/add", json={"text": "The train is early."})).raise_for_status()
        await online.stop()
        await online.live.close()

    asyncio.run(work())
    return files


def folder_search(folder: Path, world: World) -> set[str]:
    world.save(folder / "searched")
    files: set[str] = set()
    with Workspace(folder / "searched", embedder="hash") as opened:
        opened.search("Who is a baker?")
        with counted(files):
            opened.search("Who is a tailor?")
    return files


def main() -> None:
    world, walks = kbgym.generate(people=40, seed=1), (training_question, http_edit, folder_search)
    too_long = False
    sys.setprofile(note)
    threading.setprofile(note)
    with tempfile.TemporaryDirectory() as place:
        for (name, limit), walk in zip(LIMITS.items(), walks, strict=True):
            files = walk(Path(place), world)
            print(f"{name}: {len(files)} files, at most {limit}")
            too_long |= len(files) > limit
            if "--list" in sys.argv:
                print("".join(f"    {file}\n" for file in sorted(files)), end="")
    sys.exit(too_long)


if __name__ == "__main__":
    main()

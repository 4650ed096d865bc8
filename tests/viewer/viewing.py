"""Runs to look at, with hashed vectors: small ones, a default one, a store of hubs, a hostile one; and a viewer."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from family import numbered

from kbgym.api.factory import agents_named, embedder_named
from kbgym.baselines import build_arm
from kbgym.canonical import read_lines, write_lines
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.trace.backend import save_store
from kbgym.trace.folder import StoreFolder
from kbgym.training.exam import examine
from kbgym.training.probe import probe_run
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate
from kbgym.worlds.world import Document, Question, Source, World

SMALL = Settings(questions=12, epochs=2, embedder="hash")

HOSTILE = (
    "<script>window.broken = 1</script> is a friend of Ada.",
    '<img src="x" onerror="window.broken = 2"> lives in Lund.',
    "javascript:window.broken=3",
    '"><svg onload="window.broken = 4"></svg> is a baker.',
    "</title></textarea><iframe src='javascript:parent.broken=5'></iframe>",
)


def trained_run(place: Path, world: World, settings: Settings) -> Run:
    run = Run.open_or_create(place, world, settings)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    asyncio.run(Trainer(run, agents_named(settings), engine).train())
    return run


def examined(run: Run, sets: dict[str, Sequence[Question]]) -> None:
    """Exams of the flat and the trained store on sets of questions, as `kbgym demo` leaves them."""
    reader = agents_named(run.settings).reader
    for arm, at in (("flat", 0), ("trained", None)):
        store = StoreFolder(run.folder).store(at)
        engine = engine_for(store, embedder_named("hash"))
        for name, questions in sets.items():
            asyncio.run(examine(store.copy(), engine, questions, reader, run.exam_path(f"{arm}-{name}")))


def probed(run: Run, n: int) -> dict[str, Sequence[Question]]:
    order = probe_run(run, n).groups
    return {name: tuple(read_lines(run.folder / "probe" / f"{name}.jsonl", Question)) for name in order}


def small_run(place: Path, people: int = 60, settings: Settings = SMALL, n: int = 4) -> Path:
    run = trained_run(place, numbered(generate(people, 0)), settings)
    examined(run, probed(run, n))
    return place


def hub_store(place: Path, world: World) -> Path:
    """B3's store of a world, searched with hashed vectors."""
    save_store(build_arm("hipporag", world).store, place)
    StoreFolder(place).start("hash", {}).close()
    return place


def hostile_world() -> World:
    documents = [
        Document(f"d{at}", text, source=Source(f"<b>{at}</b>.md", 0, len(text))) for at, text in enumerate(HOSTILE)
    ]
    documents.append(Document('d9"><img src=x onerror="window.broken=6">', "Ada lives in Lund."))
    asked = [
        Question(f"<q{at}>", "train", "<i>QC1</i>", "t", f"What is {text}?", (text,), support=(f"d{at}",))
        for at, text in enumerate(HOSTILE)
    ]
    return World(tuple(documents), tuple(asked), {"kind": "<b>hostile</b>"})


def hostile_run(place: Path) -> Path:
    """A run whose every text and name tries to be more than text."""
    world = hostile_world()
    run = trained_run(place, world, Settings(questions=5, epochs=1, embedder="hash"))
    examined(run, {"trained": world.questions})
    return place


def plain_store(place: Path) -> Path:
    """A store folder without a history."""
    place.mkdir()
    write_lines(place / "documents.jsonl", hostile_world().documents)
    return place


def store_at(place: Path, at: int) -> Store:
    return StoreFolder(place).store(at)


@contextmanager
def viewing(*places: Path) -> Iterator[str]:
    """`kbgym view` in a process of its own, always ended; its address without the final slash."""
    command = [sys.executable, "-c", "from kbgym.cli.main import run; run()", "view", "--json", *map(str, places)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise AssertionError(process.stderr.read().decode())
        yield json.loads(line)["url"].rstrip("/")
    finally:
        process.terminate()
        process.communicate(timeout=30)

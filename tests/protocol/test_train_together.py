"""Trainers that share a place, without a database: what is agreed on beforehand, and who teaches what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from shared_place import URL, SharedPlace

from kbgym.artefact.parts import agents_named, embedder_named, engine_for
from kbgym.errors import BadInput
from kbgym.protocol import train as module
from kbgym.protocol.run import Run, Settings
from kbgym.protocol.train import Trainer, join, remembered
from kbgym.store import Store
from kbgym.trace import live
from kbgym.trace.events import Acted, Began
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.world import World

SETTINGS = Settings(questions=3, epochs=1, embedder="hash", eval=False, batch_size=2)


@pytest.fixture
def run(small_world: World, tmp_path: Path) -> Run:
    return Run.open_or_create(tmp_path / "run", small_world, SETTINGS)


@pytest.fixture
def shared(run: Run, monkeypatch: pytest.MonkeyPatch) -> SharedPlace:
    place = SharedPlace(list(StoreFolder(run.folder).initial))
    for one in (module, live):
        monkeypatch.setattr(one, "open_place", place.open)
    monkeypatch.setattr(live, "store_at", place.store_at)
    monkeypatch.setattr(module, "_LOOK_AGAIN", 0.01)
    return place


def joined(place: SharedPlace, **other: Any) -> dict[str, Any]:
    settings = msgspec.structs.replace(SETTINGS, **other)
    join(URL, Store(place.records), "hash", remembered(settings, agents_named(settings)))
    return place.open().genesis.settings  # type: ignore[union-attr]


def test_who_joins_brings_the_same_documents_and_settings_but_for_how_many_it_teaches(shared: SharedPlace) -> None:
    begun = joined(shared)
    assert joined(shared) == joined(shared, batch_size=7) == begun, "the first one's stay"
    with pytest.raises(BadInput, match=r"is being trained with epochs 1, not 2; seed 0, not 4\.$"):
        joined(shared, epochs=2, seed=4)
    with pytest.raises(BadInput, match="other documents"):
        join(URL, Store(shared.records[1:]), "hash", begun)


def test_two_trainers_teach_every_lesson_once(shared: SharedPlace, run: Run) -> None:
    joined(shared)

    def trainer() -> Trainer:
        return Trainer(run, agents_named(SETTINGS), engine_for(Store(shared.records), embedder_named("hash")), URL)

    async def work() -> None:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for one in (trainer(), trainer()):
                group.create_task(one.train())

    asyncio.run(work())
    lessons = [event.question for event in shared.events if isinstance(event, Began) and event.phase == "forward"]
    assert len(lessons) == len(set(lessons)) == 3 and not shared.claims
    acted = [event for event in shared.events if isinstance(event, Acted)]
    for passed in {(event.iteration, event.phase) for event in acted}:
        steps = [event.step for event in acted if (event.iteration, event.phase) == passed]
        assert steps == list(range(1, len(steps) + 1)), "steps are counted"

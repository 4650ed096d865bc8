"""Trainers that share a place, without a database: what is agreed on beforehand, and who teaches what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from shared_place import URL, SharedPlace

from kbgym.api.factory import agents_named, embedder_named
from kbgym.errors import BadInput
from kbgym.search.factory import engine_for
from kbgym.store import Store
from kbgym.trace import live
from kbgym.trace.events import Acted, Began, Event, Graded
from kbgym.trace.folder import StoreFolder
from kbgym.training import train as module
from kbgym.training.run import Run, Settings
from kbgym.training.train import Trainer, join, remembered
from kbgym.worlds.world import World

SETTINGS = Settings(questions=3, epochs=1, embedder="hash", eval=False, batch_size=2)


@pytest.fixture
def run(small_world: World, tmp_path: Path) -> Run:
    return Run.open_or_create(tmp_path / "run", small_world, SETTINGS)


@pytest.fixture
def shared(run: Run, monkeypatch: pytest.MonkeyPatch) -> SharedPlace:
    place = SharedPlace(list(StoreFolder(run.folder).initial))
    for one in (module, live):
        monkeypatch.setattr(one, "open_backend", place.open)
    monkeypatch.setattr(live, "store_at", place.store_at)
    monkeypatch.setattr(module, "_LOOK_AGAIN", 0.01)
    return place


def joined(place: SharedPlace, **other: Any) -> dict[str, Any]:
    settings = msgspec.structs.replace(SETTINGS, **other)
    join(URL, Store(place.records).fingerprint, "hash", remembered(settings, agents_named(settings)))
    return place.open().genesis.settings  # type: ignore[union-attr]


def test_who_joins_brings_the_same_documents_and_settings_but_for_how_many_it_teaches(shared: SharedPlace) -> None:
    begun = joined(shared)
    assert joined(shared) == joined(shared, batch_size=7) == begun, "the first one's stay"
    with pytest.raises(BadInput, match=r"is being trained with epochs 1, not 2; seed 0, not 4\.$"):
        joined(shared, epochs=2, seed=4)
    with pytest.raises(BadInput, match="other documents"):
        join(URL, Store(shared.records[1:]).fingerprint, "hash", begun)


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


def test_a_lesson_that_another_went_on_with_is_left_to_them(shared: SharedPlace, run: Run, tmp_path: Path) -> None:
    """As when a connection breaks in the middle of a lesson: the claim is free, and somebody else takes it."""
    joined(shared)
    settings = msgspec.structs.replace(SETTINGS, batch_size=1)
    engine = engine_for(Store(shared.records), embedder_named("hash"))
    one = Trainer(Run.open_or_create(tmp_path / "one", run.world, settings), agents_named(settings), engine, URL)
    other, stolen = shared.open().resume(), []

    def steal(event: Event, store: Store, observation: str) -> None:
        if isinstance(event, Acted) and event.step == 2 and not stolen:
            (name,) = shared.claims
            shared.claims[name] = other
            stolen.append((name, event.iteration))

    one.live.listeners.append(steal)  # type: ignore[arg-type]

    async def work() -> None:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            task = group.create_task(one.train())
            while len({event.iteration for event in shared.events if isinstance(event, Graded)}) < 2:
                await asyncio.sleep(0.01)
            (name, number), *_ = stolen
            steps = [event.step for event in shared.events if isinstance(event, Acted) and event.iteration == number]
            assert steps == [1, 2], "nothing was done that another may be doing"
            shared.claims.pop(name)
            await task

    asyncio.run(work())
    grades = [event.question for event in shared.events if isinstance(event, Graded)]
    assert len(grades) == len(set(grades)) == 3 and one.ended == 3


def test_a_search_made_before_others_wrote_is_brought_up_to_date(shared: SharedPlace, run: Run) -> None:
    joined(shared)
    known = Store(shared.records)
    engine = engine_for(known, embedder_named("hash"))
    first = Trainer(run, agents_named(SETTINGS), engine_for(known, embedder_named("hash")), URL)
    asyncio.run(first.train())
    new = [record for record in first.store if record.id not in known]
    late = Trainer(run, agents_named(SETTINGS), engine, URL, known)
    assert new and all(late.live.environment.engine.search(record.text, 0, 1)[0][0] == record.id for record in new)

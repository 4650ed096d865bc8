"""Trainers that share a place, without a database: what is agreed on beforehand, and who teaches what."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from shared_place import URL, SharedPlace

from kbgym.api.factory import agents_named
from kbgym.errors import BadInput
from kbgym.store import Store
from kbgym.trace import live
from kbgym.trace.folder import StoreFolder
from kbgym.training import trainer as module
from kbgym.training.run import Run, Settings
from kbgym.training.session import recorded_settings
from kbgym.training.trainer import check_database
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
    return place


def joined(place: SharedPlace, **other: Any) -> dict[str, Any]:
    settings = msgspec.structs.replace(SETTINGS, **other)
    check_database(URL, Store(place.records).fingerprint, "hash", recorded_settings(settings, agents_named(settings)))
    return place.open().genesis.settings  # type: ignore[union-attr]


def test_who_joins_brings_the_same_documents_and_settings_but_for_how_many_it_teaches(shared: SharedPlace) -> None:
    begun = joined(shared)
    assert joined(shared) == joined(shared, batch_size=7) == begun, "the first one's stay"
    with pytest.raises(BadInput, match=r"is being trained with epochs 1, not 2; seed 0, not 4\.$"):
        joined(shared, epochs=2, seed=4)
    with pytest.raises(BadInput, match="other documents"):
        check_database(URL, Store(shared.records[1:]).fingerprint, "hash", begun)

"""Traces of old versions replay for ever: every state, every snapshot, and every word an agent was shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from kbgym.canonical import digest, encode, read_lines
from kbgym.gym.actions import Corrected, Result
from kbgym.gym.observations import render
from kbgym.store import Record, Store
from kbgym.trace.events import Acted, Committed, Event, Imported
from kbgym.trace.folder import StoreFolder
from kbgym.trace.log import TraceWriter

HERE = Path(__file__).parent

# The bytes are pinned here too: a golden file must not be made to fit.
TRACES = {"v1": "ec4ad0ae265c183232cd6e63feb3e088e731b5b847bb9a56efedda6fba087885"}


@pytest.mark.parametrize("version", TRACES)
def test_it_replays(version: str) -> None:
    path = HERE / version
    assert digest((path / "trace.jsonl").read_bytes()) == TRACES[version]
    expected = {row["line"]: row["observation"] for row in read_lines(path / "observations.jsonl", dict[str, Any])}
    compared = 0
    shown: dict[int, str] = {}
    line = 0

    def watch(event: Event, store: Store) -> None:
        nonlocal line, compared
        line += 1
        if isinstance(event, Committed) and (kept := path / "snapshots" / f"{event.iteration}.jsonl").exists():
            assert list(read_lines(kept, Record)) == list(store)
            compared += 1
        if isinstance(event, Acted):
            shown[line] = render(event.result, lambda id: store[id].text)

    folder = StoreFolder(path)
    assert folder.reading is not None and folder.reading.dropped is None
    folder.store(watch=watch)
    assert shown == expected
    assert compared == len(list((path / "snapshots").iterdir())) == 2


@pytest.mark.parametrize("version", TRACES)
def test_it_shows_every_event_and_every_result(version: str) -> None:
    events = StoreFolder(HERE / version).events
    later = {"v1": {Imported, Corrected}}.get(version, set())  # what this version did not have yet
    assert {type(event) for event in events} == set(get_args(Event)) - later
    assert {type(event.result) for event in events if isinstance(event, Acted)} == set(get_args(Result)) - later
    assert any(event.verdict and event.verdict.duplicate_of for event in events if isinstance(event, Acted))


def test_this_version_writes_the_same_bytes(tmp_path: Path) -> None:
    """Stored records and events are encoded to the same bytes again."""
    newest = HERE / list(TRACES)[-1]
    with TraceWriter(tmp_path / "trace.jsonl", None) as writer:
        transaction: list[Event] = []
        for event in StoreFolder(newest).events:
            transaction.append(event)
            if type(event).__name__ in ("Genesis", "Committed"):
                writer.commit(transaction)
                transaction = []
    assert (tmp_path / "trace.jsonl").read_bytes() == (newest / "trace.jsonl").read_bytes()


def test_records_are_canonical() -> None:
    for version in TRACES:
        lines = (HERE / version / "records.jsonl").read_bytes().splitlines()
        assert lines == [encode(record) for record in StoreFolder(HERE / version).initial]

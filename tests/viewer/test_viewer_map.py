"""The map's data: the growth it replays is the growth there was, and the layout is the same every time."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from viewing import hub_store, store_at

from kbgym.analysis import network
from kbgym.trace.events import Committed
from kbgym.trace.folder import StoreFolder
from kbgym.viewer.live import Follower
from kbgym.viewer.maps import ALWAYS, Growth, Map
from kbgym.viewer.places import ViewedPlaces
from kbgym.worlds.people import generate


def unpack(block: bytes) -> tuple[dict, dict[str, np.ndarray]]:
    size = int(np.frombuffer(block, dtype=np.uint32, count=1)[0])
    header = msgspec.json.decode(block[4 : 4 + size])
    arrays, offset = {}, 4 + size
    for name, kind, count in header["arrays"]:
        arrays[name] = np.frombuffer(block, dtype=kind, count=count, offset=offset)
        offset += arrays[name].nbytes
    assert offset == len(block)
    return header, arrays


def viewed_of(place: Path):
    (one,) = ViewedPlaces([place]).values()
    return one.viewed(one.seeds[0])


def shown(header: dict, arrays: dict[str, np.ndarray], at: int) -> tuple[set[str], set[tuple[str, str]]]:
    """Return the nodes and links that the page draws at an iteration."""
    ids = header["ids"]
    nodes = {ids[n] for n in np.flatnonzero((arrays["born"] <= at) & (at < arrays["gone"]))}
    here = np.flatnonzero((arrays["linked"] <= at) & (at < arrays["unlinked"]))
    return nodes, {(ids[arrays["source"][k]], ids[arrays["target"][k]]) for k in here}


def test_every_step_of_the_slider_is_the_store_of_that_iteration(run, tmp_path):
    place = tmp_path / "rolled"
    shutil.copytree(run, place)
    StoreFolder(place).rollback(9, "for the test")
    viewed = viewed_of(place)
    drawn = Map(viewed)
    block = drawn.packed(60)
    assert block is not None, drawn.failure
    header, arrays = unpack(block)
    last = StoreFolder(place).iteration
    assert [frame[0] for frame in header["frames"]] == list(range(1, last + 1))
    for at in range(last + 1):
        store = store_at(place, at)
        nodes, links = shown(header, arrays, at)
        assert nodes == {record.id for record in store}, at
        assert links == {(record.id, target) for record in store for target in record.links}, at


def test_a_store_without_history_is_one_picture(tmp_path):
    viewed = viewed_of(hub_store(tmp_path / "b3", generate(60, 0)))
    growth = Growth(viewed)
    assert growth.frames == [] and all(span[2:] == (0, ALWAYS) for span in growth.link_spans)
    assert len(growth.link_spans) == viewed.store.links


def test_the_layout_is_the_same_every_time_and_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("KBGYM_CACHE", str(tmp_path))
    from kbgym.search.embed import HashEmbedder

    texts = [f"Person {number} lives in the city of {number % 7}." for number in range(80)]
    first = network.layout(texts, HashEmbedder())
    assert list((tmp_path / "layouts").iterdir())
    monkeypatch.setattr(network, "arrange", lambda vectors: pytest.fail("it was kept"))
    assert np.array_equal(network.layout(texts, HashEmbedder()), first)
    monkeypatch.undo()
    assert np.array_equal(network.arrange(HashEmbedder().embed(texts)), first)
    assert np.isfinite(first).all() and np.abs(first).max() == pytest.approx(1)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_few_documents_have_places_too(count):
    from kbgym.search.embed import HashEmbedder

    texts = ["the same", "the same", "another", "a third", "a fourth"][:count]
    found = network.arrange(HashEmbedder().embed(texts))
    assert found.shape == (count, 2) and np.isfinite(found).all()


def test_neighbours_in_meaning_are_neighbours_on_the_map():
    draw = np.random.default_rng(1)
    centres = draw.normal(size=(6, 20))
    points = np.concatenate([centre + 0.05 * draw.normal(size=(40, 20)) for centre in centres]).astype(np.float32)
    found = network.arrange(points)
    group = np.repeat(np.arange(6), 40)
    gaps = ((found[:, None] - found[None]) ** 2).sum(axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert (group[gaps.argmin(axis=1)] == group).mean() > 0.97


def test_following_a_trace_in_pieces_ends_where_reading_it_whole_does(run, tmp_path):
    data = (run / "trace.jsonl").read_bytes()
    events = StoreFolder(run).events
    last = [event for event in events if isinstance(event, Committed)][-1]
    growing = tmp_path / "trace.jsonl"
    follower = Follower(growing)
    follower.look()
    assert follower.values(24)["iteration"] == 0
    seen = []
    for end in range(0, len(data) + 1, 1 + len(data) // 37):
        growing.write_bytes(data[:end])
        follower.look()
        seen.append(follower.values(24)["iteration"])
    growing.write_bytes(data)
    follower.look()
    now = follower.values(24)
    assert seen == sorted(seen) and (now["iteration"], now["links"]) == (last.iteration, last.links)
    whole = Follower(run / "trace.jsonl")
    whole.look()
    assert whole.values(24) == follower.values(24)
    growing.write_bytes(data[: len(data) // 2])
    follower.look()
    assert follower.values(24)["iteration"] < last.iteration

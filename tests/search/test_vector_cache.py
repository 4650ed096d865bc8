"""The cache on disk: what goes in comes out, and nothing that happens to it can stop a run."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from kbgym.search.cache import FILE, VectorCache, cache_folder
from kbgym.search.embed import keys


def vectors(count: int, seed: int = 0, dimensions: int = 8) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dimensions)).astype(np.float32)


def named(count: int) -> list[bytes]:
    return keys("model", [f"text {number}" for number in range(count)])


def read(cache: VectorCache, wanted: list[bytes], dimensions: int = 8) -> tuple[NDArray[np.float32], list[int]]:
    """The rows found and the places of those that were not."""
    out = np.zeros((len(wanted), dimensions), dtype=np.float32)
    unknown = cache.get({name: place for place, name in enumerate(wanted)}, out)
    return out, sorted(unknown.values())


# 3 is looked up by key in one question, 700 in two; 1,500 is more than half of the table and read in one pass.
@pytest.mark.parametrize("wanted", [3, 700, 1500])
def test_what_was_put_comes_back_bit_for_bit(tmp_path: Path, wanted: int) -> None:
    stored, names = vectors(2000), named(2000)
    VectorCache(tmp_path).put(names, stored)
    asked = [*names[:wanted], *keys("model", ["unknown"])]
    out, missed = read(VectorCache(tmp_path), asked)
    assert missed == [wanted]
    assert out[:wanted].tobytes() == stored[:wanted].tobytes()


def test_a_key_depends_on_model_and_text_and_takes_any_string() -> None:
    assert len({*keys("a", ["b", "", "b\ud800"]), *keys("b", ["a"]), *keys("", ["a"])}) == 5


def test_a_row_of_another_size_counts_as_unknown_and_is_replaced(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.put(named(1), vectors(1, dimensions=4))
    assert read(cache, named(1))[1] == [0]
    cache.put(named(1), vectors(1))
    out, missed = read(cache, named(1))
    assert not missed and out.tobytes() == vectors(1).tobytes()


def test_a_row_that_is_there_stays(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.put(named(1), vectors(1, seed=1))
    cache.put(named(1), vectors(1, seed=2))
    assert read(cache, named(1))[0].tobytes() == vectors(1, seed=1).tobytes()


def test_a_missing_file_is_made_with_its_folders(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "a" / "b")
    assert read(cache, named(2))[1] == [0, 1]
    assert (tmp_path / "a" / "b" / FILE).exists()


def works_in_memory(cache: VectorCache) -> None:
    with pytest.warns(UserWarning, match="continuing in memory") as caught:
        assert read(cache, named(2))[1] == [0, 1]
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(named(2), vectors(2))
        out, missed = read(cache, named(2))
    assert not missed and out.tobytes() == vectors(2).tobytes()


def test_a_file_that_is_no_database_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is not a database" * 1000)
    works_in_memory(VectorCache(tmp_path))
    assert (tmp_path / FILE).read_bytes().startswith(b"this is not")


def test_a_folder_that_cannot_be_made_costs_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    works_in_memory(VectorCache(tmp_path / "file" / "cache"))


def test_a_table_of_another_shape_costs_one_warning(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("CREATE TABLE vectors (other TEXT)")
    connection.close()
    works_in_memory(VectorCache(tmp_path))


def test_a_file_damaged_while_open_costs_one_warning(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.put(named(2000), vectors(2000))
    cache.close()
    size = (tmp_path / FILE).stat().st_size
    with (tmp_path / FILE).open("r+b") as file:
        file.seek(8192)
        file.write(b"\xff" * (size - 8192))
    with pytest.warns(UserWarning, match="continuing in memory"):
        out, missed = read(cache, named(2000))
    # Rows read before the damage was met are kept; they are not wrong, and none is invented.
    for place in set(range(2000)) - set(missed):
        assert out[place].tobytes() == vectors(2000)[place].tobytes()


def write_some(folder: Path, start: int) -> None:
    cache = VectorCache(folder)
    names, rows = named(400), vectors(400)
    for at in range(start, 400, 4):
        cache.put(names[at : at + 8], rows[at : at + 8])


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=write_some, args=(tmp_path, start)) for start in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    out, missed = read(VectorCache(tmp_path), named(400))
    assert not missed and out.tobytes() == vectors(400).tobytes()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is a matter of Unix")
def test_a_forked_child_opens_the_file_anew(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.put(named(3), vectors(3))
    mine = cache._open()
    worker = multiprocessing.get_context("fork").Process(target=lambda: os._exit(int(cache._open() is mine)))
    worker.start()
    worker.join(60)
    assert worker.exitcode == 0


def test_the_folder_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KBGYM_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("KBGYM_CACHE")
    assert cache_folder() == tmp_path / "shared" / "kbgym"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "kbgym"

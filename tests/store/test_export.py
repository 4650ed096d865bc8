"""Exports hold every document and link in order, survive hostile texts, and are written whole or not at all."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest
from store_fixtures import records

from kbgym.canonical import read_lines
from kbgym.errors import BadInput
from kbgym.store import Record, Store, source
from kbgym.store.export import export

NASTY = Record(
    "a\"<&>'/b", 'Quote " comma , <b>&amp; line\nbreak \x0b control \ud7ff 😀', ("d1", "d0"), flag="authored"
)


@pytest.fixture
def store() -> Store:
    return Store([*records(), NASTY])


def test_jsonl_is_the_store_again(store: Store, tmp_path: Path) -> None:
    export(store, "jsonl", tmp_path / "deep" / "s.jsonl")
    again = Store(read_lines(tmp_path / "deep" / "s.jsonl", Record))
    assert list(again) == list(store) and again.fingerprint == store.fingerprint


def test_csv_has_documents_and_links_in_order(store: Store, tmp_path: Path) -> None:
    export(store, "csv", tmp_path / "out")
    with (tmp_path / "out" / "documents.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], row["text"], row["flag"]) for row in rows] == [(r.id, r.text, r.flag) for r in store]
    with (tmp_path / "out" / "links.csv").open(newline="", encoding="utf-8") as file:
        links = [(row["source"], row["target"]) for row in csv.DictReader(file)]
    assert links == [(record.id, target) for record in store for target in record.links]


SMALL = [
    Record("d0", "Bo & Ek.", origin="d0"),
    Record("d1", "B.", origin="d1", flag="edited", absorbed=("x", "y")),
    Record("n1", "Both.", ("d1", "d0"), flag="authored"),
]


def test_what_a_small_store_looks_like_to_other_programs(tmp_path: Path) -> None:
    """Empty fields are left out or stay empty; links are numbered from one."""
    export(Store(SMALL), "csv", tmp_path / "a" / "b" / "csv")
    assert (tmp_path / "a/b/csv/documents.csv").read_text().splitlines() == [
        "id,text,origin,flag,absorbed",
        "d0,Bo & Ek.,d0,untouched,",
        'd1,B.,d1,edited,"[""x"",""y""]"',
        "n1,Both.,,authored,",
    ]
    assert (tmp_path / "a/b/csv/links.csv").read_text() == "source,position,target\nn1,1,d1\nn1,2,d0\n"


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_the_same_export_twice_is_fine_and_other_content_is_kept(format: str, store: Store, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export(store, format, out)
    export(store, format, out)
    store.add("Something new.")
    with pytest.raises(BadInput):
        export(store, format, out)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"], "no scratch file stays behind"


class BreaksHalfway(Store):
    def __iter__(self) -> Iterator[Record]:
        yield next(super().__iter__())
        raise RuntimeError("in the middle")


def test_a_folder_is_refused_as_a_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        export(store, "jsonl", tmp_path)


def test_a_failure_leaves_nothing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        export(store, "xlsx", tmp_path / "s")
    for format in ("jsonl", "csv"):
        with pytest.raises(RuntimeError):
            export(BreaksHalfway(records()), format, tmp_path / "out")
    (tmp_path / "file").write_text("x")
    with pytest.raises(BadInput):
        export(store, "jsonl", tmp_path / "file" / "below.jsonl")
    (tmp_path / "folder").mkdir()
    with pytest.raises(BadInput):
        export(store, "jsonl", tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_what_a_table_program_would_run_is_written_as_words(tmp_path: Path) -> None:
    export(Store([source("=a", "=1+1"), Record("n1", "@x", ("=a",))]), "csv", tmp_path / "out")
    documents = (tmp_path / "out/documents.csv").read_text().splitlines()[1:]
    assert documents == ["'=a,'=1+1,'=a,untouched,", "n1,'@x,,untouched,"]
    assert (tmp_path / "out/links.csv").read_text().splitlines()[1:] == ["n1,1,'=a"]

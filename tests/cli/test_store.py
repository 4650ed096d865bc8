"""`kbgym store search|read|stats|export` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from store_fixtures import Live

from kbgym.canonical import write_lines
from kbgym.cli.main import run
from kbgym.gym.actions import Add, LinkMany
from kbgym.store import ledger
from kbgym.trace.folder import StoreFolder

Kbgym = Callable[..., tuple[int, str, str]]


@pytest.fixture
def kbgym(capfd: pytest.CaptureFixture[str]) -> Kbgym:
    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            run(["store", *(str(argument) for argument in arguments)])
        printed = capfd.readouterr()
        return int(stopped.value.code or 0), printed.out, printed.err

    return call


@pytest.fixture
def place(tmp_path: Path) -> Path:
    live = Live(tmp_path / "run")
    live.act(Add("Residents of Malmö."))
    live.act(LinkMany("n3", ("d0", "d1")))
    live.commit()
    live.close()
    return live.path


def ok(called: tuple[int, str, str]) -> Any:
    code, out, err = called
    assert (code, err) == (0, "")
    return json.loads(out)


def test_search_finds_as_an_agent_would(kbgym: Kbgym, place: Path) -> None:
    result = ok(kbgym("search", place, "residents of Malmö", "--json"))
    assert result["results"][0]["id"] == "n3" and result["results"][0]["text"] == "Residents of Malmö."
    pages = [ok(kbgym("search", place, "Lund", "--page", page, "--json"))["results"] for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [5, 5, 0]
    found = [hit["id"] for page in pages for hit in page]
    assert sorted(found) == sorted(record.id for record in StoreFolder(place).store())
    scores = [hit["score"] for page in pages for hit in page]
    assert scores == sorted(scores, reverse=True)
    code, out, _ = kbgym("search", place, "residents of Malmö")
    assert code == 0 and "[n3] Residents of Malmö." in out.splitlines()[0]
    assert kbgym("search", place, "x", "--page", 99)[1].strip() == "Nothing found."


def test_search_at_an_iteration_does_not_see_what_came_later(kbgym: Kbgym, place: Path) -> None:
    before = ok(kbgym("search", f"{place}@0", "residents of Malmö", "--json"))
    assert "n3" not in [hit["id"] for hit in before["results"]]


@pytest.mark.parametrize("page", ["0", "-1", "x", "1.5"])
def test_search_refuses_a_page_that_is_none(kbgym: Kbgym, place: Path, page: str) -> None:
    assert kbgym("search", place, "x", "--page", page)[0] == 2


def test_read(kbgym: Kbgym, place: Path) -> None:
    result = ok(kbgym("read", place, "n3", "--json"))
    assert [link["id"] for link in result["links"]] == ["d0", "d1"] and result["flag"] == "authored"
    out = kbgym("read", place, "d0")[1]
    assert "[d0] Anna Berg lives in Lund." in out and "<- [n3] Residents of Malmö." in out and "untouched" in out
    code, _, err = kbgym("read", place, "zz")
    assert code == 2 and "no document 'zz'" in err


def test_read_with_its_source(kbgym: Kbgym, tmp_path: Path) -> None:
    span = {"file": "a.md", "start": 0, "end": 4}
    write_lines(tmp_path / "documents.jsonl", [{"id": "a", "text": "A.", "source": span}, {"id": "b", "text": "B."}])
    assert ok(kbgym("read", tmp_path, "a", "--source", "--json"))["sources"] == {"a": span}
    assert "a.md, characters 0 to 4" in kbgym("read", tmp_path, "a", "--source")[1]
    assert "no source is known" in kbgym("read", tmp_path, "b", "--source")[1]
    assert "a.md" not in kbgym("read", tmp_path, "a")[1]


def test_stats_is_the_ledger(kbgym: Kbgym, place: Path) -> None:
    store = StoreFolder(place).store()
    expected = {**msgspec.to_builtins(ledger(store)), "hash": store.fingerprint}
    assert ok(kbgym("stats", place, "--json")) == expected
    out = kbgym("stats", f"{place}@0")[1]
    assert out.splitlines()[0].split() == ["documents", "9"] and "lost_origins" in out


@pytest.mark.parametrize(
    ("format", "files"),
    [("jsonl", ["out"]), ("csv", ["out", "out/documents.csv", "out/links.csv"])],
)
def test_export(kbgym: Kbgym, place: Path, tmp_path: Path, format: str, files: list[str]) -> None:
    result = ok(kbgym("export", place, "--format", format, "--out", tmp_path / "e" / "out", "--json"))
    assert result == {"out": str(tmp_path / "e" / "out"), "format": format, "documents": 10, "links": 6}
    assert sorted(str(path.relative_to(tmp_path / "e")) for path in (tmp_path / "e").rglob("*")) == files
    code, _, err = kbgym("export", f"{place}@0", "--format", format, "--out", tmp_path / "e" / "out")
    assert code == 2 and "other content" in err


def test_export_needs_a_known_format(kbgym: Kbgym, place: Path, tmp_path: Path) -> None:
    assert kbgym("export", place, "--format", "parquet", "--out", tmp_path / "x")[0] == 2
    assert not (tmp_path / "x").exists()

"""A stranger's ids and texts on a terminal: no escape reaches it, and none of them begins a line of its own."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kbgym.canonical import write_lines
from kbgym.sanitize import is_plain
from kbgym.store import Record
from kbgym.trace.folder import StoreFolder

Kbgym = Callable[..., tuple[int, str, str]]
EVIL = "Ada\x1b[2J\x1b]0;owned\x07 lives\nkbgym: all is well\r in \u202eLund\u2069\u200b\U000e0041."
ID = "d1\x1b[31m\n[d2] forged"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    place = tmp_path / "store"
    place.mkdir()
    write_lines(
        place / "records.jsonl", [Record(ID, EVIL, ("d2",), origin=ID), Record("d2", "=cmd()", (), origin="d2")]
    )
    StoreFolder(place).start("hash", {}).close()
    return place


def checked(printed: str, lines: int | None = None) -> str:
    assert all(is_plain(line) for line in printed.split("\n")), printed
    assert "forged" not in [line.partition("] ")[2] for line in printed.split("\n") if line.startswith("[d2]")]
    assert not any(line.startswith("kbgym: all is well") for line in printed.split("\n"))
    if lines is not None:
        assert printed.count("\n") == lines
    return printed


@pytest.mark.parametrize("flags", [(), ("--json",)])
@pytest.mark.parametrize(
    "verb",
    [
        ("store", "search", "{store}", "Lund"),
        ("store", "read", "{store}", ID),
        ("store", "stats", "{store}"),
        ("store", "log", "{store}"),
        ("store", "diff", "{store}@0", "{store}"),
        ("store", "blame", "{store}", ID),
        ("audit", "{store}"),
        ("learn", "{store}", "--agenda"),
        ("store", "replay", "{store}"),
    ],
    ids=lambda verb: "-".join(verb[:2]).replace("{store}", "").strip("-"),
)
def test_every_verb_that_shows_a_store(
    kbgym: Kbgym, store: Path, verb: tuple[str, ...], flags: tuple[str, ...]
) -> None:
    code, out, err = kbgym(*(word.replace("{store}", str(store)) for word in verb), *flags)
    assert code == 0 and err == ""
    checked(out)
    if flags:
        json.loads(out)


def test_one_document_is_one_line(kbgym: Kbgym, store: Path) -> None:
    checked(kbgym("store", "search", store, "Lund")[1], lines=2)


def test_errors_are_one_line_too(kbgym: Kbgym, store: Path) -> None:
    for arguments in (
        ("store", "read", store, EVIL),
        ("store", "log", f"{store}\x1b[2J\nx"),
        ("store", f"no\x1b[2J{EVIL}"),
    ):
        code, out, err = kbgym(*arguments)
        assert code == 2 and out == ""
        assert all(is_plain(line) for line in err.split("\n"))


def test_advice_can_be_pasted_into_a_shell(kbgym: Kbgym, tmp_path: Path) -> None:
    place = tmp_path / "store"
    place.mkdir()
    evil = "n1; touch owned"
    write_lines(place / "records.jsonl", [Record(id, "Ada lives.", (), origin=id) for id in ("d1", evil)])
    _, out, _ = kbgym("audit", place)
    assert f"store read {place} '{evil}'" in out


def test_csv_holds_no_formula(kbgym: Kbgym, store: Path, tmp_path: Path) -> None:
    assert kbgym("store", "export", store, "--format", "csv", "--out", tmp_path / "out")[0] == 0
    with (tmp_path / "out" / "documents.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["id"]: row["text"] for row in csv.DictReader(file)}
    assert rows["d2"] == "'=cmd()"


def test_a_folder_whose_name_is_no_text(kbgym: Kbgym, store: Path, tmp_path: Path) -> None:
    out = tmp_path / "\udcff\x1b[2J.jsonl"
    for flags in ((), ("--json",)):
        code, printed, err = kbgym("store", "export", store, "--out", out, *flags)
        assert code == 0, err
        checked(printed)
    assert json.loads(printed)["documents"] == 2

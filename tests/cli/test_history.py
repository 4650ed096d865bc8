"""`kbgym replay`, `log`, `diff`, `blame`, `rollback` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store_fixtures import Live, records

from kbgym.canonical import write_lines
from kbgym.gym.actions import Add, Delete, Edit, Link, LinkMany
from kbgym.store import Store
from kbgym.trace.backend import save_store
from kbgym.trace.folder import StoreFolder

Kbgym = Callable[..., tuple[int, str, str]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Two iterations of a curator: an index written and filled, then a document deleted and one edited."""
    live = Live(tmp_path / "run")
    live.act(Add("Residents of Malmö."))
    live.act(LinkMany("n3", ("d0", "d1")))
    live.commit(graded=0.5)
    live.act(Delete("d0"))
    live.act(Edit("d4", "Bo Ek bakes bread."))
    live.act(Link("n3", "d4"))
    live.commit()
    live.close()
    return live.path


def ok(called: tuple[int, str, str]) -> Any:
    code, out, err = called
    assert (code, err) == (0, "")
    return json.loads(out)


class TestReplay:
    def test_it_verifies_and_says_so(self, kbgym: Kbgym, place: Path) -> None:
        result = ok(kbgym("store", "replay", place, "--json"))
        store = StoreFolder(place).store()
        assert result["identical"] is True and result["hash"] == store.fingerprint and result["events"] == 12
        assert result["seconds"] >= 0 and result["dropped"] is None
        code, out, _ = kbgym("store", "replay", place)
        assert code == 0 and "12 events" in out and store.fingerprint in out

    def test_at_an_iteration_either_way(self, kbgym: Kbgym, place: Path) -> None:
        store = StoreFolder(place).store(1)
        assert ok(kbgym("store", "replay", place, "--at", 1, "--json"))["hash"] == store.fingerprint
        assert ok(kbgym("store", "replay", f"{place}@1", "--json"))["hash"] == store.fingerprint
        code, _, err = kbgym("store", "replay", place, "--at", 9)
        assert code == 2 and "no iteration 9: this store has 0 to 2" in err

    def test_damage_is_exit_2_and_not_identical(self, kbgym: Kbgym, place: Path) -> None:
        trace = place / "trace.jsonl"
        trace.write_bytes(trace.read_bytes().replace(b"bread", b"cakes"))
        code, out, err = kbgym("store", "replay", place, "--json")
        assert code == 2 and "line 10: the hash chain breaks here" in err
        assert json.loads(out)["identical"] is False

    def test_a_torn_tail_is_reported(self, kbgym: Kbgym, place: Path) -> None:
        with (place / "trace.jsonl").open("ab") as file:
            file.write(b'{"event":"act"')
        assert "torn last line of 14 bytes" in ok(kbgym("store", "replay", place, "--json"))["dropped"]
        assert "torn last line" in kbgym("store", "replay", place)[1]

    def test_no_trace(self, kbgym: Kbgym, tmp_path: Path) -> None:
        save_store(Store(records()), tmp_path / "plain")
        code, _, err = kbgym("store", "replay", tmp_path / "plain")
        assert code == 2 and "has no trace" in err
        assert kbgym("store", "replay", tmp_path / "nowhere")[0] == 2


class TestLog:
    def test_a_line_an_iteration(self, kbgym: Kbgym, place: Path) -> None:
        code, out, _ = kbgym("store", "log", place)
        first, second = out.splitlines()
        assert code == 0
        assert "q1" in first and "f1 0.500" in first and "1 adds, 2 links" in first and "answered" in first
        assert "1 edits, 1 deletes, 1 links" in second and "What is question 2?" in second

    def test_json_limit_and_rollbacks(self, kbgym: Kbgym, place: Path) -> None:
        kbgym("store", "rollback", place, "--to", 1, "--reason", "no")
        result = ok(kbgym("store", "log", place, "--json", "--limit", 2))
        assert result["total"] == 3
        assert [(entry["iteration"], entry["undone"], entry["rollback_to"]) for entry in result["iterations"]] == [
            (2, True, None),
            (3, False, 1),
        ]
        out = kbgym("store", "log", place)[1].splitlines()
        assert out[1].split()[0] == "2x" and "rolled back to 1: no" in out[2]
        assert ok(kbgym("store", "log", f"{place}@1", "--json"))["total"] == 1

    def test_no_history(self, kbgym: Kbgym, tmp_path: Path) -> None:
        save_store(Store(records()), tmp_path / "plain")
        assert "no history yet" in kbgym("store", "log", tmp_path / "plain")[1]
        assert kbgym("store", "log", f"{tmp_path / 'plain'}@4")[0] == 2


class TestDiff:
    def test_text(self, kbgym: Kbgym, place: Path) -> None:
        code, out, _ = kbgym("store", "diff", f"{place}@0", place)
        assert code == 0
        assert out.splitlines() == [
            "+ [n3] Residents of Malmö.",
            "- [d0] Anna Berg lives in Lund.",
            "~ [d4] Bo Ek works as a baker.",
            "    now: Bo Ek bakes bread.",
            "+ link [n3] -> [d1] Bo Ek lives in Lund.",
            "+ link [n3] -> [d4] Bo Ek bakes bread.",
            "- link [hub/lund] -> [d0] Anna Berg lives in Lund.",
            "~ the provenance of [d4] Bo Ek bakes bread. differs",
            "1 documents added, 1 removed, 1 edited; 2 links added, 1 removed.",
        ]

    def test_json_and_the_way_back(self, kbgym: Kbgym, place: Path) -> None:
        there = ok(kbgym("store", "diff", f"{place}@0", place, "--json"))
        back = ok(kbgym("store", "diff", place, f"{place}@0", "--json"))
        assert (
            there["links_added"]
            == back["links_removed"]
            == [
                {"source": "n3", "target": "d1"},
                {"source": "n3", "target": "d4"},
            ]
        )
        assert [record["id"] for record in back["added"]] == ["d0"]
        assert there["edited"] == [{"id": "d4", "before": "Bo Ek works as a baker.", "after": "Bo Ek bakes bread."}]

    def test_the_same(self, kbgym: Kbgym, place: Path) -> None:
        assert "are the same" in kbgym("store", "diff", place, f"{place}@2")[1]


class TestBlame:
    def test_text(self, kbgym: Kbgym, place: Path) -> None:
        code, out, _ = kbgym("store", "blame", place, "n3")
        assert code == 0
        assert "[n3] Residents of Malmö." in out
        assert 'written by tester: iteration 1, backward step 1, question q1 "What is question 1?"' in out
        assert "-> [d4] Bo Ek bakes bread.\n       added by tester: iteration 2, backward step 3" in out

    def test_json(self, kbgym: Kbgym, place: Path) -> None:
        result = ok(kbgym("store", "blame", place, "n3", "--json"))
        assert result["record"]["links"] == ["d1", "d4"]
        assert [link["by"]["iteration"] for link in result["links"]] == [1, 2]
        assert [change["kind"] for change in result["changes"]] == ["written", "linked", "linked", "linked"]
        assert result["changes"][2]["removed"] == ["d0"], "d0 was deleted, and its inbound link with it"

    def test_where_it_stands_in_the_users_files(self, kbgym: Kbgym, tmp_path: Path) -> None:
        document = {"id": "a", "text": "A.", "source": {"file": "notes/a.md", "start": 5, "end": 9}}
        write_lines(tmp_path / "documents.jsonl", [document])
        out = kbgym("store", "blame", tmp_path, "a")[1]
        assert "stood in the initial store" in out and "notes/a.md, characters 5 to 9" in out
        assert ok(kbgym("store", "blame", tmp_path, "a", "--json"))["sources"] == {"a": document["source"]}

    def test_gone_and_never_there(self, kbgym: Kbgym, place: Path) -> None:
        out = kbgym("store", "blame", place, "d0")[1]
        assert "[d0] is gone." in out and "deleted by tester: iteration 2" in out
        code, _, err = kbgym("store", "blame", place, "zz")
        assert code == 2 and "no document 'zz'" in err


class TestRollback:
    def test_it_adds_to_history(self, kbgym: Kbgym, place: Path) -> None:
        before = (place / "trace.jsonl").read_bytes()
        result = ok(kbgym("store", "rollback", place, "--to", 1, "--json"))
        assert (result["iteration"], result["to"]) == (3, 1)
        assert (place / "trace.jsonl").read_bytes().startswith(before)
        assert result["hash"] == StoreFolder(place).store().fingerprint == StoreFolder(place).store(1).fingerprint
        assert "back at iteration 0" in kbgym("store", "rollback", place, "--to", 0)[1]
        assert StoreFolder(place).store().fingerprint == Store(records()).fingerprint

    def test_what_it_refuses(self, kbgym: Kbgym, place: Path) -> None:
        before = (place / "trace.jsonl").read_bytes()
        for arguments, message in (
            ((place, "--to", 7), "no iteration 7"),
            ((place, "--to", -1), "no iteration -1"),
            ((f"{place}@1", "--to", 0), "names an iteration"),
            ((place,), "--to"),
        ):
            code, _, err = kbgym("store", "rollback", *arguments)
            assert code == 2 and message in err
        assert (place / "trace.jsonl").read_bytes() == before

    def test_not_while_somebody_writes(self, kbgym: Kbgym, place: Path) -> None:
        with StoreFolder(place).resume():
            code, _, err = kbgym("store", "rollback", place, "--to", 1)
        assert code == 2 and "another process" in err


def test_quiet_says_nothing(kbgym: Kbgym, place: Path) -> None:
    for arguments in (
        ("store", "replay", place),
        ("store", "log", place),
        ("store", "diff", place, place),
        ("store", "blame", place, "n3"),
    ):
        assert kbgym(*arguments, "--quiet") == (0, "", "")

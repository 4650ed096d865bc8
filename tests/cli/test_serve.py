"""`kbgym serve`, `learn`, `agenda` and `curate` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from family import documents, family

from kbgym.canonical import write_lines
from kbgym.gym.actions import Edit
from kbgym.gym.environment import apply
from kbgym.integrations.client import connect
from kbgym.trace.events import Acted, Began, Committed, Ended
from kbgym.trace.folder import StoreFolder
from kbgym.worlds.people import generate

Kbgym = Callable[..., tuple[int, str, str]]
QUESTIONS = [
    ("Who is the baker who lives in the city of Lund?", "Ada Alm"),
    ("Who is the hatter who lives in the city of Oslo?", "Hal Ost"),
    ("Who is the baker who lives in the city of Oslo?", "Cy Alm"),
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    folder.mkdir()
    write_lines(folder / "documents.jsonl", family().documents)
    (folder / "world.json").write_text(
        '{"kind": "people"}', encoding="utf-8"
    )  # whose grammar the reference agents know
    return folder


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    file = tmp_path / "traffic.jsonl"
    write_lines(file, [{"question": question, "answers": [gold]} for question, gold in QUESTIONS])
    return file


def ok(called: tuple[int, str, str]) -> Any:
    code, out, err = called
    assert code == 0, err
    return json.loads(out)


# -- serve -------------------------------------------------------------------------------------------------------------


def test_a_token_is_shown_once_and_kept_as_a_hash(kbgym: Kbgym, place: Path) -> None:
    made = ok(kbgym("serve", place, "--new-token", "ada", "--role", "curator", "--json"))
    kept = (place / "tokens.jsonl").read_text()
    assert made["role"] == "curator" and made["token"] not in kept and '"name":"ada"' in kept
    code, _, err = kbgym("serve", place, "--new-token", "ada")
    assert code == 2 and "already" in err
    code, _, err = kbgym("serve", place, "--new-token", "a\nb")
    assert code == 2 and "printable" in err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "say how to serve"),
        (["--mcp", "--http", "127.0.0.1:0"], "say how to serve"),
        (["--http", "127.0.0.1:0"], "there are no tokens"),
        (["--http", "0.0.0.0:0", "--no-auth"], "loopback only"),
        (["--http", "nonsense"], "HOST:PORT"),
        (["--http", "127.0.0.1:99999"], "HOST:PORT"),
        (["--http", "127.0.0.1:0", "--no-auth", "--set", "strategy=wild"], "no strategy"),
    ],
)
def test_it_refuses_to_serve(kbgym: Kbgym, place: Path, flags: list[str], message: str) -> None:
    code, _, err = kbgym("serve", place, *flags)
    assert code == 2 and message in err


@pytest.mark.parametrize("content", ["{}", "not json", '{"name": "a", "role": "king", "sha256": "00"}', '{"name": "a"'])
def test_a_bad_tokens_file_is_named_and_not_repeated(kbgym: Kbgym, place: Path, content: str) -> None:
    (place / "tokens.jsonl").write_text(content + "\n")
    code, _, err = kbgym("serve", place, "--http", "127.0.0.1:0", "--set", "embedder=hash")
    assert code == 2 and "tokens.jsonl, line 1" in err and "king" not in err


# -- learn -------------------------------------------------------------------------------------------------------------


def test_learning_from_traffic(kbgym: Kbgym, place: Path, traffic: Path) -> None:
    learning = ("learn", place, "--traffic", traffic, "--set", "embedder=hash", "--window", 2)
    found = ok(kbgym(*learning, "--json"))
    assert (found["n"], found["f1"], found["f1_flat"]) == (3, 1.0, 1.0)
    assert found["actions"] <= found["actions_flat"] and found["links"] > 0
    assert [(w["first"], w["last"]) for w in found["windows"]] == [(1, 2), (3, 3)]
    again = ok(kbgym(*learning, "--json"))
    assert again["iteration"] == found["iteration"], "what was learnt is not learnt again"
    assert again["windows"] == found["windows"]
    code, out, _ = kbgym(*learning)
    assert code == 0 and "each answered before it was learnt from" in out
    code, out, _ = kbgym("store", "log", place)
    assert QUESTIONS[0][0] in out and code == 0
    assert ok(kbgym("store", "replay", place, "--json"))["identical"]


def test_the_gate_is_visible_in_the_log(kbgym: Kbgym, place: Path, traffic: Path) -> None:
    flags = ("--set", "embedder=hash", "--gate", "5", "--set", f"held_out={traffic}", "--json")
    found = ok(kbgym("learn", place, "--traffic", traffic, *flags))
    assert found["admitted"] + found["rolled_back"] == 3
    _, out, _ = kbgym("store", "log", place)
    assert (out.count("admitted: "), out.count("quarantined: ")) == (found["admitted"], found["rolled_back"])


@pytest.mark.parametrize("line", ['{"question": "x"}', "{", '{"answers": ["x"]}'])
def test_bad_traffic_is_named_by_line(kbgym: Kbgym, place: Path, tmp_path: Path, line: str) -> None:
    (tmp_path / "bad.jsonl").write_text('{"question": "Who?", "answers": ["Ada"]}\n' + line + "\n")
    code, _, err = kbgym("learn", place, "--traffic", tmp_path / "bad.jsonl", "--set", "embedder=hash")
    assert code == 2 and "line 2" in err


# -- agenda and idle curation ------------------------------------------------------------------------------------------


def test_the_agenda_and_working_it_off(kbgym: Kbgym, tmp_path: Path) -> None:
    world = generate(people=60, seed=2)
    place = tmp_path / "store"
    world.save(place)
    assert ok(kbgym("learn", place, "--agenda", "--json")) == {
        "items": [],
        "counts": {"changed": 0, "unfinished": 0, "not indexed": 0, "sibling": 0},
    }
    write_lines(tmp_path / "t.jsonl", [{"question": q.text, "answers": q.golds} for q in world.split("train")[:4]])
    ok(kbgym("learn", place, "--traffic", tmp_path / "t.jsonl", "--set", "embedder=hash", "--json"))
    before = ok(kbgym("learn", place, "--agenda", "--json"))
    assert before["counts"]["sibling"] > 0
    done = ok(kbgym("learn", place, "--idle", "--budget", 60, "--json"))
    assert 0 < done["actions"] <= 60 and done["links_added"] > 0
    after = ok(kbgym("learn", place, "--agenda", "--json"))
    assert after["items"] != before["items"]
    code, out, _ = kbgym("learn", place, "--agenda")
    assert code == 0 and "of a kind that is asked for" in out
    assert ok(kbgym("store", "replay", place, "--json"))["identical"]
    phases = {event.phase for event in StoreFolder(place).events if isinstance(event, Began)}
    assert "idle" in phases
    assert kbgym("learn", place)[0] == 2


def test_an_index_whose_facts_changed_is_mended(kbgym: Kbgym, place: Path, traffic: Path) -> None:
    ok(kbgym("learn", place, "--traffic", traffic, "--set", "embedder=hash", "--json"))
    folder = StoreFolder(place)
    store, number = folder.store(), folder.iteration + 1  # type: ignore[union-attr]
    baker = documents(family())["Ada Alm's job is baker"]
    (index,) = [source for source in store.inbound(baker) if "job" in store[source].text]
    result = apply(store, action := Edit(baker, "Ada Alm's job is judge."))
    with folder.resume() as writer:
        writer.commit(
            [
                Began(number, "serve", "ada"),
                Acted(number, "serve", 1, action, result),
                Ended(number, "serve", "done"),
                Committed(number, 0, store.fingerprint, len(store), store.links),
            ]
        )
    found = ok(kbgym("learn", place, "--agenda", "--json"))["items"][0]
    assert (found["what"], found["index"], found["known"]) == ("changed", index, 1)
    ok(kbgym("learn", place, "--idle", "--budget", 30, "--json"))
    assert baker not in StoreFolder(place).store()[index].links
    assert ok(kbgym("learn", place, "--agenda", "--json"))["counts"]["changed"] == 0


def test_corrections_are_listed_and_reported(kbgym: Kbgym, place: Path) -> None:
    assert ok(kbgym("store", "corrections", place, "--json")) == {"corrections": []}
    with connect(str(place), write=True, name="ada") as store:
        store.teach("What is the job of Ada Alm?", ["cooper"], answer="baker")
    (found,) = ok(kbgym("store", "corrections", place, "--json"))["corrections"]
    assert found["lesson"]["by"] == "ada" and found["changed"] == []
    code, out, _ = kbgym("learn", place, "--report")
    assert code == 0 and f"[{found['lesson']['document']}]" in out and "# What" in out
    assert ok(kbgym("learn", place, "--report", "--json"))["graded"] == 1

"""Submissions: what was done comes out the same, and nothing that was changed afterwards does."""

from __future__ import annotations

import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kbgym
from kbgym.api.submission import check, pack
from kbgym.canonical import digest, digest_of
from kbgym.cli.main import run
from kbgym.errors import BadInput, Failed, KbgymError
from kbgym.worlds.people import generate
from kbgym.worlds.people.questions import Sizes

Files = dict[str, bytes]


@pytest.fixture(scope="module")
def submitted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run with an exam, and the file that was packed from it."""
    folder = tmp_path_factory.mktemp("submitted")
    world = generate(40, 3, Sizes(train=8, test_in=6, test_out=2, eval_in=1, eval_out=1))
    world.save(folder / "world")
    kbgym.train(folder / "world", folder / "run", questions=6, epochs=1, embedder="hash", eval=False)
    rows = folder / "run" / "exams" / "trained-test_in.jsonl"
    with kbgym.open(folder / "run") as opened:
        opened.examine(set="test_in", out=rows)
    pack(rows, str(folder / "run"), None, folder / "made.zip")
    return folder / "run", folder / "made.zip"


def test_what_was_done_comes_out_the_same_and_so_do_the_bytes(submitted: tuple[Path, Path], tmp_path: Path) -> None:
    place, file = submitted
    checked = check(file)
    assert checked.is_split and len(checked.rows) == 6 and checked.header.agent == "reference"
    pack(place / "exams" / "trained-test_in.jsonl", str(place), None, tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == file.read_bytes()
    with kbgym.open(place) as opened:
        world = opened.world
    assert world is not None
    check(file, world.hash)
    with pytest.raises(Failed, match="another world"):
        check(file, "0" * 64)


def test_an_arm_without_a_world_of_its_own_is_packed_with_it(submitted: tuple[Path, Path], tmp_path: Path) -> None:
    world = submitted[0] / "world"
    words = ["--world", str(world), "--out", str(tmp_path / "arm"), "--quiet"]
    assert _exit("baseline", "hipporag", *words) == 0
    how = ["--world", str(world), "--set", "embedder=hash", "--out", str(tmp_path / "rows.jsonl"), "--quiet"]
    assert _exit("exam", str(tmp_path / "arm"), *how) == 0
    store = ["--store", str(tmp_path / "arm"), "--world", str(world)]
    assert _exit("submit", "pack", str(tmp_path / "rows.jsonl"), *store, "--out", str(tmp_path / "arm.zip")) == 0
    assert _exit("submit", "verify", str(tmp_path / "arm.zip"), "--world", str(world)) == 0
    assert check(tmp_path / "arm.zip").header.arm == "hipporag"
    assert _exit("submit", "pack", str(tmp_path / "rows.jsonl"), "--out", str(tmp_path / "x.zip")) == 2, "which store?"
    other = ["--store", str(submitted[0]), "--out", str(tmp_path / "x.zip")]
    assert _exit("submit", "pack", str(tmp_path / "rows.jsonl"), *other) == 2 and not (tmp_path / "x.zip").exists()


def test_what_one_conversation_played_can_be_checked_too(submitted: tuple[Path, Path], tmp_path: Path) -> None:
    rows = tmp_path / "played.jsonl"
    with kbgym.open(submitted[0]) as opened:
        header = opened.exam_header("play", "test_in")
        opened.examine("reference", "test_in", out=rows, header=header)
    pack(rows, str(submitted[0]), None, tmp_path / "played.zip")
    checked = check(tmp_path / "played.zip")
    assert checked.header.conversation == header.conversation
    assert f'"conversation":"{header.conversation}"' in rows.read_text()


def _exit(*words: str) -> int:
    with pytest.raises(SystemExit) as end:
        run(list(words))
    return int(end.value.code or 0)


def _row(name: str, value: Any) -> Callable[[Files, random.Random], None]:
    def change(files: Files, draw: random.Random) -> None:
        rows = [json.loads(line) for line in files["rows.jsonl"].splitlines()]
        row = draw.choice(rows)
        row[name] = value(row[name], draw)
        files["rows.jsonl"] = b"".join(json.dumps(one).encode() + b"\n" for one in rows)

    return change


def _lines(name: str, change: Callable[[list[bytes], random.Random], list[bytes]]) -> Callable[..., None]:
    def changed(files: Files, draw: random.Random) -> None:
        files[name] = b"\n".join([*change(files[name].splitlines(), draw), b""])

    return changed


def _header(name: str, value: Any) -> Callable[[Files, random.Random], None]:
    def change(files: Files, _: random.Random) -> None:
        about = json.loads(files["submission.json"])
        about["header"][name] = value
        files["submission.json"] = json.dumps(about).encode()

    return change


def _without_one(lines: list[bytes], draw: random.Random) -> list[bytes]:
    gone = draw.randrange(len(lines))
    return lines[:gone] + lines[gone + 1 :]


def _one_word(lines: list[bytes], draw: random.Random) -> list[bytes]:
    place = draw.choice([number for number, line in enumerate(lines) if b'"text":"' in line])
    return [line.replace(b'"text":"', b'"text":"Not ', 1) if n == place else line for n, line in enumerate(lines)]


def _other_shot(shots: Any, draw: random.Random) -> Any:
    found = [shot for shot in shots if shot["result"].get("ids")]
    shot = draw.choice(found)
    shot["result"]["ids"] = shot["result"]["ids"][::-1] if len(shot["result"]["ids"]) > 1 else []
    return shots


CHANGES: dict[str, Callable[[Files, random.Random], None]] = {
    "f1": _row("f1", lambda old, draw: 0.5 if old in (0.0, 1.0) else 1.0),
    "em": _row("em", lambda old, draw: 1.0 - old),
    "answer": _row("answer", lambda old, draw: f"{old} and more"),
    "actions": _row("actions", lambda old, draw: old - 1),
    "characters": _row("characters", lambda old, draw: old // 2),
    "golds": _row("golds", lambda old, draw: [*old, "anything"]),
    "outcome": _row("outcome", lambda old, draw: "out_of_budget" if old == "answered" else "answered"),
    "steps": _row("shots", lambda old, draw: old[1:]),
    "results": _row("shots", _other_shot),
    "missing row": _lines("rows.jsonl", _without_one),
    "missing question": _lines("asked.jsonl", _without_one),
    "trace, a word": _lines("store/trace.jsonl", _one_word),
    "trace, a line": _lines("store/trace.jsonl", _without_one),
    "documents": _lines("store/world/documents.jsonl", _one_word),
    "world's questions": _lines("store/world/questions.jsonl", _one_word),
    "budget": _header("forward_budget", 2),
    "search": _header("search", "words"),
    "store": _header("store", "f" * 64),
    "iteration": _header("iteration", 1),
    "world": _header("world", "f" * 64),
}


def test_a_hundred_changed_submissions_are_refused(submitted: tuple[Path, Path], tmp_path: Path) -> None:
    with zipfile.ZipFile(submitted[1]) as packed:
        whole = {name: packed.read(name) for name in packed.namelist()}
    for number in range(100):
        name = list(CHANGES)[number % len(CHANGES)]
        draw, files = random.Random(number), dict(whole)
        CHANGES[name](files, draw)
        assert files != whole, name
        if number >= len(CHANGES):  # whoever changes something can hash it again
            about = json.loads(files["submission.json"])
            about["files"] = {one: digest(data) for one, data in files.items() if one != "submission.json"}
            about["seal"] = digest_of([about["header"], about["files"]])
            files["submission.json"] = json.dumps(about).encode()
        with zipfile.ZipFile(tmp_path / "changed.zip", "w") as packed:
            for one, data in files.items():
                packed.writestr(one, data)
        with pytest.raises(KbgymError):
            check(tmp_path / "changed.zip")
            pytest.fail(f"{name} was changed ({number}), and it holds")


def test_what_is_no_submission_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.zip").write_bytes(b"PK nothing")
    with pytest.raises(BadInput, match="is no submission"):
        check(tmp_path / "x.zip")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as packed:
        packed.writestr("../../evil", b"x")
    with pytest.raises(BadInput, match="other files than a submission has"):
        check(tmp_path / "y.zip")

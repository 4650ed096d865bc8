"""The benchmark as a data set: its bytes are pinned by name, and questions can be handed out without golds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbgym.cli.main import run
from kbgym.errors import BadInput
from kbgym.worlds.benchmark import export, named

# A name stands for these bytes: what changes them is another version, under another name.
PINNED = {
    "kbgym-people-v2": "b0cde889d85268e5af0bb5471cd1828198c196d069449da82981526a06313e55",
    "kbgym-people-v2-hard": "fe93583432c60632761f210314ea1238296374208aaab8047a03848cb0fd37e7",
}


@pytest.mark.parametrize("name", PINNED)
def test_a_name_stands_for_the_same_bytes_for_ever(name: str, tmp_path: Path) -> None:
    assert export(name, (0,), "0", tmp_path / "out") == PINNED[name]


def test_questions_and_golds_lie_apart_and_belong_together(tmp_path: Path) -> None:
    whole = export("kbgym-people-v2", (3, 4), "3-4", tmp_path / "out")
    parts = {
        part: [json.loads(line) for line in (tmp_path / "out" / f"{part}.jsonl").read_text().splitlines()]
        for part in ("documents", "questions", "golds")
    }
    assert [(row["seed"], row["id"]) for row in parts["questions"]] == [(r["seed"], r["id"]) for r in parts["golds"]]
    assert not {"golds", "support", "unanswerable"} & {name for row in parts["questions"] for name in row}
    world = named("kbgym-people-v2", 4)
    golds = {row["id"]: row["golds"] for row in parts["golds"] if row["seed"] == 4}
    assert golds == {question.id: [*question.golds] for question in world.questions}
    texts = [row["text"] for row in parts["documents"] if row["seed"] == 4]
    assert texts == [document.text for document in world.documents]
    card = (tmp_path / "out" / "README.md").read_text()
    assert whole in card and f"| 4 | {len(world.documents)} | 150 | 100 | 50 | 30 |" in card


def test_v3_exports_updates_and_a_card_that_names_a_file_for_each_part(tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    export("kbgym-people-v3", (3,), "3", tmp_path / "out")
    head = yaml.safe_load((tmp_path / "out" / "README.md").read_text().split("---")[1])
    files = {one["config_name"]: one["data_files"] for one in head["configs"]}
    assert set(files) == {"documents", "questions", "golds", "updates"}
    rows = {part: [json.loads(line) for line in (tmp_path / "out" / file).open()] for part, file in files.items()}
    ids = {row["id"] for part in ("documents", "updates") for row in rows[part]}
    assert all(set(row["support"]) <= ids for row in rows["golds"])
    assert [row["id"] for row in rows["questions"]] == [row["id"] for row in rows["golds"]]
    assert {"test_in-reworded", "test_out-update2"} <= {row["split"] for row in rows["questions"]}
    assert len({tuple(sorted(row)) for part in rows for row in rows[part]}) == 4, "the rows of a part have one schema"


def test_the_command_writes_all_or_nothing(tmp_path: Path) -> None:
    words = ["export", "benchmark", "--seeds", "1", "--out", str(tmp_path / "out"), "--quiet"]
    for _ in range(2):  # the same again changes nothing
        with pytest.raises(SystemExit) as end:
            run(words)
        assert end.value.code == 0
    with pytest.raises(BadInput, match="there is no benchmark 'x'"):
        named("x", 0)

"""Experiments on real text: arms, trainings, questions whose pages are apart, and a table of evidence."""

from __future__ import annotations

import json
from pathlib import Path

from kbgym.worlds.splits import sharing
from kbgym.worlds.world import Document, Question, World


def corpus(folder: Path) -> Path:
    """Nine boats; the questions of the last two stand on pages that training questions stand on."""
    documents = tuple(Document(f"d{n}", f"Boat {n}: builder: Yard {n % 3}", about=(f"Boat {n}",)) for n in range(9))
    asked = tuple(
        Question(
            f"q{n}",
            "train" if n < 6 else "test_in",
            "",
            "",
            f"Who was the builder of Boat {n % 7}, asked {n} times?",
            (f"Yard {n % 7 % 3}",),
            support=(f"d{n % 7}",),
        )
        for n in range(9)
    )
    World(documents, asked, {"kind": "corpus"}).save(folder)
    return folder


def test_arms_and_trainings_on_real_text(kbgym, tmp_path):
    world, out = corpus(tmp_path / "w"), tmp_path / "exp"
    strategies = ("--strategy", "paper,paper+hipporag")
    given = ("--world", world, "--out", out, "--n", "all", "--epochs", "1", "--set", "embedder=hash", "--json")
    code, printed, error = kbgym("experiment", "run", "public", *given, "--arms", "flat,bm25", *strategies)
    assert code == 0, error
    result = json.loads(printed)
    assert {"flat", "bm25", "trained-paper", "trained-paper-from-hipporag"} <= set(result["arms"])
    assert result["sharing"] == {"given": 2, "drawn": 0}
    assert sharing(World.load(out / "seed-0" / "world")) == 0
    begun = json.loads((out / "seed-0" / "trained-paper-from-hipporag" / "run.json").read_text())
    assert begun["settings"]["begins"].startswith("hipporag ") and begun["settings"]["reader"] == "general"
    assert kbgym("experiment", "run", "public", *given, "--arms", "flat,bm25", *strategies)[0] == 0
    assert kbgym("report", out, "--quiet")[0] == 0
    evidence = (out / "report" / "tables" / "evidence.csv").read_text(encoding="utf-8")
    assert "all within 4" in evidence and "BM25" in evidence


def test_public_needs_a_world(kbgym, tmp_path):
    code, _, error = kbgym("experiment", "run", "public", "--out", tmp_path / "e")
    assert code == 2 and "needs a world of real text" in error and not (tmp_path / "e").exists()

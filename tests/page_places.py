"""Places and files that a documentation page uses but does not create.

Files are written here, in the formats they have, with made-up boats for their contents.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from documented import ROOT, blocks

BOATS = 40
_TRAINED = "--questions 20 --epochs 1"
_MINI = "--agent llm:openai/gpt-5-mini"

# In the order in which they are made: a place may need those before it.
COMMANDS = {
    "worlds-out/w0": "kbgym generate --people 80 --out worlds-out/w0"
    " --set train=40 --set test_in=4 --set eval_in=4 --set eval_out=2",
    "worlds/skarn": "kbgym import corpus examples/skarn/pages --questions examples/skarn/questions.jsonl"
    " --links --out worlds/skarn",
    "worlds/musique": "kbgym import musique musique_ans_v1.0_dev.jsonl --out worlds/musique",
    "worlds/harbour": "kbgym import corpus examples/harbour/notes --questions examples/harbour/questions.csv"
    " --unit sentence --links --out worlds/harbour",
    "runs/r0": f"kbgym prove worlds-out/w0 --out runs/r0 {_TRAINED} --n 4",
    "runs/first": "kbgym train --world worlds-out/w0 --out runs/first --questions 30 --epochs 2",
    "runs/demo": f"kbgym train --world worlds-out/w0 --out runs/demo {_TRAINED}",
    "runs/other": f"kbgym train --world worlds-out/w0 --out runs/other --set strategy=class {_TRAINED}",
    "runs/skarn": f"kbgym train --world worlds/skarn --out runs/skarn {_TRAINED}",
    "runs/gpt": f"kbgym train --world worlds-out/w0 --out runs/gpt {_MINI} --questions 2 --epochs 1 --yes",
    "runs/harbour": "kbgym train --world worlds/harbour --out runs/harbour --questions 12 --epochs 2"
    " --agent cassette:examples/harbour/scripted.cassette.jsonl",
    "stores/graphrag": "kbgym baseline graphrag --world worlds-out/w0 --out stores/graphrag",
    "stores/b3": "kbgym baseline hipporag --world worlds-out/w0 --out stores/b3",
    "exp/paper": "kbgym experiment run paper --out exp/paper --people 60 --questions 6 --epochs 1 --n 3"
    " --arms flat --strategy paper",
}


def _hotpot() -> list[dict[str, Any]]:
    return [
        {
            "_id": f"q{n}",
            "question": f"Who founded the yard that built the Gannet {n}?",
            "answer": f"Ada Holm {n}",
            "type": "bridge",
            "level": "easy",
            "supporting_facts": [[f"Gannet {n}", 0], [f"Yard {n}", 0]],
            "context": [
                [f"Gannet {n}", [f"The Gannet {n} was built by Yard {n}."]],
                [f"Yard {n}", [f"Yard {n} was founded by Ada Holm {n}."]],
            ],
        }
        for n in range(BOATS)
    ]


def _musique() -> list[dict[str, Any]]:
    return [
        {
            "id": f"2hop__{one['_id']}",
            "paragraphs": [
                {"idx": at, "title": title, "paragraph_text": text, "is_supporting": True}
                for at, (title, (text,)) in enumerate(one["context"])
            ],
            "question": one["question"],
            "question_decomposition": [],
            "answer": one["answer"],
            "answer_aliases": [],
            "answerable": True,
        }
        for one in _hotpot()
    ]


def _lines(values: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def _module(page: str, name: str) -> Callable[[], str]:
    return lambda: next(code for code in blocks(ROOT / "docs" / page, "python") if code.startswith(f"# {name}"))


FILES: dict[str, Callable[[], str]] = {
    "hotpot_dev_distractor_v1.json": lambda: json.dumps(_hotpot()),
    "dev.json": lambda: json.dumps([{**one, "evidences": [], "entity_ids": ""} for one in _hotpot()]),
    "musique_ans_v1.0_dev.jsonl": lambda: _lines(_musique()),
    "traffic.jsonl": lambda: _lines([{"question": q["question"], "answers": [q["answer"]]} for q in _hotpot()[:3]]),
    "my_agent.py": _module("custom-agent.md", "my_agent.py"),
    "my_policy.py": _module("start-policy.md", "my_policy.py"),
    "mixed/quay.md": lambda: "# The quay\n\n<!-- a note -->\nThe quay is long. The quay has a crane.\n",
    "mixed/plan.odt": lambda: "",
    "paper-universe.json": (ROOT / "tests" / "worlds" / "paper-sample.json").read_text,
    "pw-output/articles.json": (ROOT / "tests" / "worlds" / "phantomwiki" / "sample" / "articles.json").read_text,
    "pw-output/questions.json": (ROOT / "tests" / "worlds" / "phantomwiki" / "sample" / "questions.json").read_text,
}


def write_files(folder: Path) -> None:
    for name, contents in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(contents(), encoding="utf-8")
    (folder / "mixed" / "old.txt").write_bytes("Käpt’n\n".encode("cp1252"))
    shutil.copytree(ROOT / "examples" / "harbour" / "notes", folder / "notes")
    shutil.copy(ROOT / "examples" / "harbour" / "questions.csv", folder)

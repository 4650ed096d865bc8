"""Run the benchmarks one after the other and write what they print to benchmarks/RESULTS.md, with the command of each.

    python benchmarks/run.py [name ...]

With names, only those sections are measured anew; the rest of the page stays. Without, all but `mutants`: that one is
about the tests and has a `make` target of its own. The table of goals at the top is written by hand, from the sections.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE / "RESULTS.md"
HEAD = """# Results

Ratios against a peer or a limit measured in the same run; absolute times are of one shared two-core machine and are
here only to give an idea. `make benchmarks` writes this page.
"""
COMMANDS = {
    "search": ["search.py"],
    "embedding": ["embedding.py"],
    "slot": ["slot.py"],
    "startup": ["startup.py"],
    "store": ["store.py"],
    "replay": ["replay.py"],
    "train": ["train.py"],
    "generate": ["generate.py"],
    "baselines": ["baselines.py"],
    "corpus": ["corpus.py"],
    "large": ["large.py"],
    "recall": ["recall.py"],
    "real_text": ["real_text.py"],
    "trained_text": ["trained_text.py"],
    "wordings": ["wordings.py"],
    "llm": ["llm_concurrency.py"],
    "experiment": ["experiment.py"],
    "gym": ["gym.py"],
    "serve": ["serve.py"],
    "memory": ["memory.py"],
    "players": ["players.py"],
    "postgres": ["postgres.py"],
    "database": ["database.py"],
    "database_exam": ["database_exam.py"],
    "writers": ["writers.py", "--before", "8e8ce01"],
    "online": ["online.py"],
    "gate": ["gate.py"],
    "intervals": ["intervals.py"],
    "scale": ["scale.py"],
    "hundredfold": ["hundredfold.py"],
    "ray": ["ray_exam.py"],
    "ray_vectors": ["ray_exam.py", *"--people 60000 --embedder hash-384 --questions 160 --times 2".split()],
    "mutants": ["../scripts/mutants.py", "--least", "85"],
}


def main() -> None:
    wanted = sys.argv[1:] or [name for name in COMMANDS if name != "mutants"]
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else HEAD
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    for name in wanted:
        words = COMMANDS[name]
        if not (HERE / words[0]).exists():
            continue
        print(f"{name} ...", file=sys.stderr, flush=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, str(HERE / words[0]), *words[1:]], stdout=subprocess.PIPE, text=True, env=environment
        )
        if done.returncode:
            sys.exit(f"{name} failed")
        command = " ".join(["OMP_NUM_THREADS=1 python", os.path.normpath(f"benchmarks/{words[0]}"), *words[1:]])
        sections[name] = f"\n`{command}`\n\n{done.stdout.strip()}\n\n"
        body = "\n".join(f"## {key}\n{sections[key].rstrip()}\n" for key in ("goals", *COMMANDS) if key in sections)
        PAGE.write_text(f"{HEAD}\n{body}", encoding="utf-8")


if __name__ == "__main__":
    main()

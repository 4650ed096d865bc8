"""Exams over a store in a database whose documents are read when asked for, beside a process that holds them.

    OMP_NUM_THREADS=1 python benchmarks/database_exam.py [--people 860 26000] [--questions 60]

Worlds of people, untrained, searched by words, in a private PostgreSQL from the package pgserver on the same machine.
Each exam is `kbgym exam URL --set FILE` in a process of its own, so its memory is all it ever held; the server's is not
counted. The first exam that reads also makes the tables of words and is not shown. Prints Markdown.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres import MISSING, Cluster, installed

RAY = ("--engine", "ray", "--workers", "2")


def exam(url: str, asked: Path, out: Path, *more: str) -> tuple[float, float]:
    """Seconds, and the most memory in MB the process itself held."""
    command = ["-m", "kbgym", "exam", url, "--set", str(asked), "--agent", "reference", "--out", str(out), "--quiet"]
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, *command, *more], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"the exam ended with {status}"
    assert isinstance(used, resource.struct_rusage)
    return time.perf_counter() - started, used.ru_maxrss / 1024


# In a process of its own: a child's memory is never less than its parent's was when it began.
_MAKE = """
import sys
from pathlib import Path
import kbgym
from kbgym.canonical import write_lines
from kbgym.trace.copying import copy_store

folder, url, people, questions = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
world = kbgym.generate(people=people)
world.save(folder / "world")
write_lines(folder / "asked.jsonl", world.split("test_in")[:questions])
copy_store(str(folder / "world"), url)
with kbgym.open(url) as opened:
    opened.place.start("none", {"search": "words"}).close()
print(len(world.documents))
"""


def measure(cluster: Cluster, folder: Path, people: int, questions: int) -> None:
    url, asked = cluster.url(f"p{people}"), folder / "asked.jsonl"
    words = [sys.executable, "-c", _MAKE, str(folder), url, str(people), str(questions)]
    documents_made = int(subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout)
    ways = {"held": ("held", ()), "read": ("read", ()), "read, two workers on Ray": ("read", RAY)}
    exam(f"{url}&documents=read", asked, folder / "first.jsonl")
    rows = set()
    for name, (documents, more) in ways.items():
        out = folder / f"{name}.jsonl"
        took, held = exam(f"{url}&documents={documents}", asked, out, *more)
        rows.add(out.read_bytes())
        print(f"| {documents_made:,} | {name} | {took:.1f} s | {held:.0f} MB |", flush=True)
    assert len(rows) == 1, "an exam came out otherwise"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, nargs="+", default=[860, 26_000])
    parser.add_argument("--questions", type=int, default=60)
    given = parser.parse_args()
    if installed() is None:
        sys.exit(MISSING)
    cluster = Cluster("shared_buffers = 512MB", "max_wal_size = 4GB")
    print("| documents | they are | exam | memory of its process |\n| ---: | --- | ---: | ---: |")
    try:
        for people in given.people:
            with tempfile.TemporaryDirectory() as name:
                measure(cluster, Path(name), people, given.questions)
    finally:
        cluster.remove()
    print(f"\n{given.questions} questions each, the same rows in every byte; one-minute load average ", end="")
    print(f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()

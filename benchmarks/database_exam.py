"""Exams, training and serving over a database store, with documents read on demand or held in memory.

    OMP_NUM_THREADS=1 python benchmarks/database_exam.py [--worlds 860 26000 26000x33] [--questions 60]

Worlds of people, untrained, searched by words, in a private PostgreSQL from the package pgserver on the same machine.
`26000x33` is 33 worlds of so many people in one store, ten million documents; the questions are about the first. Each
exam is `kbgym exam URL --set FILE` in a process of its own, so its memory is all it ever held; the server's is not
counted. The first exam that reads also makes the tables of words. Past a million documents nobody holds them. Then
comes a training on as many questions, for which the world's folder has no documents either, and last `kbgym serve` is
asked the exam's questions as searches. Prints Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres import MISSING, Cluster, installed

MOST_HELD = 1_000_000
ALIKE = ("--agent", "reference", "--search", "words", "--quiet")
RAY = ("--set", "engine=ray", "--set", "workers=2")


def measured(*words: str) -> tuple[float, float]:
    """Seconds of a command, and the most memory in MB its process itself held."""
    started = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-m", "kbgym", *words, *ALIKE], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    assert status == 0, f"kbgym {words[0]} ended with {status}"
    assert isinstance(used, resource.struct_rusage)
    return time.perf_counter() - started, used.ru_maxrss / 1024


def served(url: str, queries: list[str]) -> tuple[float, float, float]:
    """The median and the longest wait for a search in ms, one at a time, and the server's most memory in MB."""
    command = [sys.executable, "-m", "kbgym", "serve", url, "--http", "127.0.0.1:0", "--no-auth", "--json"]
    server = subprocess.Popen([*command, "--search", "words"], stdout=subprocess.PIPE)
    assert server.stdout is not None
    address = json.loads(server.stdout.readline())["url"]
    waits = []
    for query in queries:
        body, started = json.dumps({"query": query}).encode(), time.perf_counter()
        request = urllib.request.Request(f"{address}/search", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            answer.read()
        waits.append(1000 * (time.perf_counter() - started))
    status = Path(f"/proc/{server.pid}/status").read_text()
    server.terminate()
    server.wait()
    held = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return statistics.median(waits), max(waits), held / 1024


# In a process of its own: a child's memory is never less than its parent's was when it began.
_MAKE = """
import sys
from pathlib import Path
import msgspec
import kbgym
from kbgym.canonical import encode, write_lines
from kbgym.trace.backend import write
from kbgym.trace.folder import StoreLines
from kbgym.worlds.people import NO_QUESTIONS

folder, url, (people, worlds, questions) = Path(sys.argv[1]), sys.argv[2], map(int, sys.argv[3:])
lines = []
for seed in range(worlds):
    world = kbgym.generate(people, seed, NO_QUESTIONS if seed else None)
    if seed == 0:
        write_lines(folder / "asked.jsonl", world.split("test_in")[:questions])
        (folder / "world").mkdir()
        write_lines(folder / "world" / "questions.jsonl", world.split("train")[:questions])
    named = (msgspec.structs.replace(one, id=f"{seed}-{one.id}" if seed else one.id) for one in world.documents)
    lines += [encode(document).decode() for document in named]
write(StoreLines("documents.jsonl", lines, [], ()), url)
print(len(lines))
"""


def measure(cluster: Cluster, folder: Path, people: int, worlds: int, questions: int) -> None:
    url = cluster.url(f"p{people}_{worlds}")
    making = [sys.executable, "-c", _MAKE, str(folder), url, str(people), str(worlds), str(questions)]
    documents_made = int(subprocess.run(making, check=True, stdout=subprocess.PIPE, text=True).stdout)
    ways: dict[str, tuple[str, tuple[str, ...]]] = {
        "read, and the tables of words made": ("read", ()),
        "held": ("held", ()),
        "read": ("read", ()),
        "read, two workers on Ray": ("read", RAY),
    }
    if documents_made > MOST_HELD:
        del ways["held"]
    rows = set()
    for name, (documents, more) in ways.items():
        out = folder / f"{name}.jsonl"
        asked = ("--set", str(folder / "asked.jsonl"), "--out", str(out))
        took, held = measured("exam", f"{url}&documents={documents}", *asked, *more)
        rows.add(out.read_bytes())
        print(f"| {documents_made:,} | exam, {name} | {took:.1f} s | {held:.0f} MB |", flush=True)
    assert len(rows) == 1, "an exam came out otherwise"
    taught = ("--world", str(folder / "world"), "--out", str(folder / "run"), "--set", f"store={url}&documents=read")
    took, held = measured("train", *taught, "--set", "strategy=class", "--epochs", "1", "--set", "eval=false")
    print(f"| {documents_made:,} | training, read | {took:.1f} s | {held:.0f} MB |", flush=True)
    queries = [json.loads(line)["text"] for line in (folder / "asked.jsonl").read_text().splitlines()]
    median, longest, held = served(f"{url}&documents=read", queries)
    waits = f"a search {median:.0f} ms, the longest {longest:.0f} ms"
    print(f"| {documents_made:,} | serving, read | {waits} | {held:.0f} MB |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--worlds", nargs="+", default=["860", "26000", "26000x33"], metavar="PEOPLE[xWORLDS]")
    parser.add_argument("--questions", type=int, default=60)
    given = parser.parse_args()
    if installed() is None:
        sys.exit(MISSING)
    cluster = Cluster("shared_buffers = 512MB", "max_wal_size = 4GB")
    print("| documents | what, and they are | time | memory of its process |\n| ---: | --- | ---: | ---: |")
    try:
        for size in given.worlds:
            people, _, worlds = size.partition("x")
            with tempfile.TemporaryDirectory() as name:
                measure(cluster, Path(name), int(people), int(worlds or 1), given.questions)
    finally:
        cluster.remove()
    print(f"\n{given.questions} questions each, the same rows in every byte; one-minute load average ", end="")
    print(f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.")


if __name__ == "__main__":
    main()

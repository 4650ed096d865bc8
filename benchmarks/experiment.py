"""The whole paper experiment, one seed, all arms, warm: python benchmarks/experiment.py
    [--people N] [--n N] [--times N]

Prints what each part takes, as seconds and as a multiple of embedding the same world's documents cold (measured on a
sample of them in the same process), and the report's time; then how two seeds in two processes compare with one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from kbgym.search.embed import default_embedder
from kbgym.worlds.people import generate

SAMPLE = 400
LIMIT = 360  # seconds, of one seed with all arms


def kbgym(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "from kbgym.cli.main import run; run()", *arguments, "--quiet"], check=True)
    return time.perf_counter() - started


def cold_embedding(people: int) -> float:
    texts = [document.text for document in generate(people, 0).documents]
    embedder = default_embedder()
    sample = texts[:: max(1, len(texts) // SAMPLE)]
    started = time.perf_counter()
    embedder.embedder.embed(sample)
    cold = (time.perf_counter() - started) * len(texts) / len(sample)
    embedder.embed(texts)
    return cold


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--n", default="34")
    parser.add_argument("--times", type=int, default=1)
    chosen = parser.parse_args()
    cold = cold_embedding(chosen.people)
    size = ("--people", str(chosen.people), "--n", chosen.n)
    with tempfile.TemporaryDirectory() as scratch:
        warm = Path(scratch) / "warm"
        kbgym("experiment", "run", "paper", "--out", str(warm), *size, "--seeds", "0,1")  # fills the vector cache
        times = []
        for number in range(chosen.times):
            out = Path(scratch) / f"one-{number}"
            times.append(kbgym("experiment", "run", "paper", "--out", str(out), *size))
        parts: Counter[str] = Counter()
        for line in (out / "seed-0" / "timing.jsonl").read_text().splitlines():
            took = json.loads(line)
            what, arm = took["what"].split()[:2]
            parts[what if what == "exam" else f"{what} {arm}"] += took["seconds"]
        both = kbgym(
            "experiment", "run", "paper", "--out", str(Path(scratch) / "two"), *size, "--seeds", "0,1", "--jobs", "2"
        )
        report = kbgym("report", str(out), "--no-map")
    one = min(times)
    print(f"\n{chosen.people} people, n = {chosen.n} a group; embedding the documents cold takes about {cold:.1f} s\n")
    print("| part | seconds | of cold embedding |\n| --- | ---: | ---: |")
    for name, seconds in [("one seed, all arms", one), *parts.most_common(), ("report, no map", report)]:
        print(f"| {name} | {seconds:.1f} | {seconds / cold:.2f} |")
    print(f"| two seeds, two processes | {both:.1f} | {both / cold:.2f} |")
    fine = "yes" if one < LIMIT else "NO"
    print(f"\none seed within {LIMIT} s: {fine}; two seeds at {2 * one / both:.2f} times the speed")


if __name__ == "__main__":
    main()

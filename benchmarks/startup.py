"""Start-up cost of commands: processor and wall-clock time against a bare interpreter's, in turn.

    python benchmarks/startup.py [--rounds 9] [--against FOLDER]

`store search` runs on the people world of 5,842 documents whose vectors are in the cache. `--against` is the `src` of
another version, measured in the same rounds. Prints a Markdown table of medians.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kbgym.api import open
from kbgym.worlds.people import generate

HERE = Path(__file__).resolve().parents[1] / "src"


def once(words: list[str], source: Path) -> tuple[float, float]:
    """Wall-clock and processor seconds of one process."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = {**os.environ, "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, env=environment)
    wall, after = time.perf_counter() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--against", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        world = Path(name) / "world"
        generate().save(world)
        with open(world) as opened:
            opened.search("who lives in Eastmere")
        commands = {
            "python -c pass": ["-c", "pass"],
            "python -c 'import numpy'": ["-c", "import numpy"],
            "kbgym --help": ["-m", "kbgym", "--help"],
            "kbgym store search": ["-m", "kbgym", "store", "search", str(world), "who lives in Eastmere"],
        }
        ways = [(said, words, HERE) for said, words in commands.items()]
        if given.against is not None:
            ways += [(f"{said}, before", commands[said], given.against) for said in list(commands)[2:]]
        taken: dict[str, list[tuple[float, float]]] = {said: [] for said, _, _ in ways}
        for _ in range(given.rounds):
            for said, words, source in ways:
                taken[said].append(once(words, source))
    print(f"| command (n = {given.rounds}) | wall clock | processor | processor, times a bare interpreter's |")
    print("| --- | --- | --- | --- |")
    bare = statistics.median(used for _, used in taken["python -c pass"])
    for said, times in taken.items():
        wall, used = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"| `{said}` | {wall * 1e3:.0f} ms | {used * 1e3:.0f} ms | {used / bare:.1f} |")


if __name__ == "__main__":
    main()

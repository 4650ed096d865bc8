"""Growth of time and memory with the size of a generated world: python benchmarks/generate.py [--people N ...]

Each size runs in a fresh process: generation, counting all 26 pools, and saving to a temporary folder. Prints a
Markdown table and the exponents of a fit of log(time) and log(memory) over log(people); 1 is linear.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def measure(people: int) -> dict[str, float]:
    from kbgym.worlds.people import TEMPLATES, PeopleGraph, generate

    start = time.perf_counter()
    world = generate(people, 0)
    made = time.perf_counter()
    graph = PeopleGraph.from_facts(world.facts)
    instances = sum(1 for template in TEMPLATES.values() for _ in template.instances(graph))
    counted = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        world.save(Path(folder) / "world")
    saved = time.perf_counter()
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "people": people,
        "documents": len(world.documents),
        "instances": instances,
        "generate": made - start,
        "pools": counted - made,
        "save": saved - counted,
        "total": saved - start,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20,
    }


def exponent(rows: list[dict[str, float]], column: str) -> float:
    """The slope of the least-squares line through (log people, log column)."""
    points = [(math.log(row["people"]), math.log(row[column])) for row in rows]
    x_mean = sum(x for x, _ in points) / len(points)
    y_mean = sum(y for _, y in points) / len(points)
    return sum((x - x_mean) * (y - y_mean) for x, y in points) / sum((x - x_mean) ** 2 for x, _ in points)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, nargs="+", default=[500, 5_000, 50_000])
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    rows: list[dict[str, float]] = []
    print("| people | documents | pool instances | generate s | pools s | save s | total s | peak memory MiB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for people in arguments.people:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(people)], check=True, capture_output=True, text=True
        )
        row = json.loads(done.stdout)
        rows.append(row)
        print(
            f"| {row['people']:,} | {row['documents']:,} | {row['instances']:,} | {row['generate']:.2f} | "
            f"{row['pools']:.2f} | {row['save']:.2f} | {row['total']:.2f} | {row['memory']:.0f} |",
            flush=True,
        )
    if len(rows) > 1:
        print(f"\ntime grows with people to the power {exponent(rows, 'total'):.2f},", end=" ")
        print(f"memory to the power {exponent(rows, 'memory'):.2f}.")


if __name__ == "__main__":
    main()

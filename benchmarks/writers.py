"""Additions to one store in PostgreSQL by many processes, each acknowledged before its client's next one.

    python benchmarks/writers.py [--additions N] [--times N]

The server is a private one from the package pgserver, on the same machine, with its usual durability (fsync on).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from kbgym.trace.backend import open_backend

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres import MISSING, Cluster, installed

HERE = Path(__file__).resolve().parents[1]
LOADS = ((1, 1), (16, 1), (16, 4), (16, 16))  # processes, and clients of each
MUST = 1500  # a second, from sixteen processes

_BEGIN = """
import sys
from kbgym.store import Store, source
from kbgym.trace.backend import save_store
from kbgym.trace.backend import open_backend

save_store(Store(source(f"d{n}", f"Document {n} of all.") for n in range(1000)), sys.argv[1])
open_backend(sys.argv[1]).start("none", {}).close()
"""
_CLIENT = """
import asyncio, os, sys, time
from kbgym.gym.actions import Add
from kbgym.serving.clients import ClientSession, act
from kbgym.trace.live import LiveStore
from live_stores import NoSearch

where, name, clients, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

async def one(live, number):
    session = ClientSession(f"{name}.{number}")
    for count in range(each):
        await act(live, session, Add(f"Sentence {count} of client {number} in process {name}."), "curator")

async def main():
    live = LiveStore(where, lambda store: NoSearch())
    print("ready", flush=True)
    sys.stdin.readline()
    spent = time.process_time()
    await asyncio.gather(*(one(live, number) for number in range(clients)))
    print(time.process_time() - spent, flush=True)
    os._exit(0)

asyncio.run(main())
"""


def actions(cluster: Cluster, store: str, processes: int, clients: int, total: int) -> tuple[float, float]:
    """Additions by so many processes to one store, each acknowledged before its client's next one.

    Gives how many there were a second, and the milliseconds of processor time one took of all processes together.
    """
    place = cluster.url(store)
    each = total // (processes * clients)
    environment = {**os.environ, "PYTHONPATH": f"{HERE / 'src'}:{HERE / 'tests'}"}
    subprocess.run([sys.executable, "-c", _BEGIN, place], env=environment, check=True)
    running = []
    for number in range(processes):
        command = [sys.executable, "-c", _CLIENT, place, f"p{number}", str(clients), str(each)]
        piped = subprocess.PIPE
        running.append(subprocess.Popen(command, stdin=piped, stdout=piped, text=True, env=environment))
    for process in running:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    started = time.perf_counter()
    for process in running:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    spent = sum(float(process.communicate()[0]) for process in running)
    seconds = time.perf_counter() - started
    opened = open_backend(place)
    opened.verify()
    made = processes * clients * each
    assert opened.iteration == made, "an acknowledged addition is missing"
    opened.close()
    return made / seconds, 1000 * spent / made


def writing(cluster: Cluster, total: int, times: int) -> None:
    """Measure each load several times and print the best, since others may use the machine."""
    print("| processes | clients of each | a second | processor, ms each |\n| ---: | ---: | ---: | ---: |")
    reached = 0.0
    for processes, clients in LOADS:
        rows = [
            actions(cluster, f"a_{processes}_{clients}_{again}", processes, clients, total) for again in range(times)
        ]
        reached = max(rate for rate, _ in rows)
        print(f"| {processes} | {clients} | {reached:,.0f} | {min(cost for _, cost in rows):.2f} |", flush=True)
    print(f"\n{total:,} additions a run, best of {times}; one-minute load average {os.getloadavg()[0]:.1f} on ", end="")
    print(f"{os.cpu_count()} cores. Processor time is the clients'.")
    print(f"At least {MUST:,} a second from sixteen processes: {'yes' if reached >= MUST else 'NO'}.")


def main() -> None:
    if installed() is None:
        sys.exit(MISSING)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--additions", type=int, default=3200)
    parser.add_argument("--times", type=int, default=2)
    chosen = parser.parse_args()
    cluster = Cluster("shared_buffers = 512MB", "max_wal_size = 4GB")
    try:
        writing(cluster, chosen.additions, chosen.times)
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()

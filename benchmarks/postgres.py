"""A store in PostgreSQL: copying there and back. What a search there takes is measured by `database.py`.

    python benchmarks/postgres.py

The server is a private one from the package pgserver, on the same machine, with its usual durability (fsync on).
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from kbgym.store import Store, source
from kbgym.trace.backend import copy_store, open_backend, save_store

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from postgres import MISSING, Cluster, installed


def copying(cluster: Cluster, count: int) -> None:
    """There and back, and opening."""
    with tempfile.TemporaryDirectory() as name:
        folder, place = Path(name) / "folder", cluster.url("copy")
        save_store(
            Store(source(f"d{n}", f"Document {n} says something of {n % 97}.") for n in range(count)), str(folder)
        )
        times = []
        for work in (
            lambda: copy_store(str(folder), place),
            lambda: open_backend(place).store(),
            lambda: copy_store(place, str(Path(name) / "again")),
        ):
            started = time.perf_counter()
            work()
            times.append(time.perf_counter() - started)
        same = (folder / "records.jsonl").read_bytes() == (Path(name) / "again" / "records.jsonl").read_bytes()
        assert same, "a copy there and back is other bytes"
        print(
            f"\n{count:,} documents: copied there in {times[0]:.1f} s, opened in {times[1]:.1f} s, ",
            end="",
        )
        print(f"copied back in {times[2]:.1f} s, the same bytes.", flush=True)


def main() -> None:
    if installed() is None:
        sys.exit(MISSING)
    cluster = Cluster("shared_buffers = 512MB", "max_wal_size = 4GB")
    try:
        copying(cluster, 100_000)
    finally:
        cluster.remove()


if __name__ == "__main__":
    main()

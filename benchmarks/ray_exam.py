"""The same exam in one process and on Ray's workers, one after the other in the same run.

    OMP_NUM_THREADS=1 python benchmarks/ray_exam.py [--people N] [--embedder NAME] [--questions N] [--times N]

Flat store of so many people, exact vectors, reference reader, every query's vector in the disk cache. Neither side is
timed while it starts: one process has its modules loaded, and so have Ray's workers; the store travels while the clock
runs. Times are the best of several. Beside the clock stands processor time, which other people on the machine change
less: that of one process, and that of workers and driver together for each of as many cores. Their ratio is the
speed-up on free cores. Then the store travels once more, every worker searches it, and says what it holds in memory:
60,000 people are 1 GB of vectors (`--people 60000 --embedder hash-384`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.api.factory import embedder_named
from kbgym.experiments.chunks import CHUNK, ExamSetup, examine_in_chunks
from kbgym.experiments.engines import EngineChoice, WorkEngine
from kbgym.search.embed import CachedEmbedder
from kbgym.search.factory import engine_for
from kbgym.search.index import ExactIndex
from kbgym.store import Store, source
from kbgym.training.exam import examine
from kbgym.training.run import Settings
from kbgym.worlds import people
from kbgym.worlds.world import Question, World

MUST = 1.6
GB = 1e9
PAUSE = 0.5  # seconds in which a worker takes no second question of the same kind


def processor(shared: None, item: int) -> tuple[int, float]:
    """Return the process and processor time of one worker; slow enough that every worker gets one."""
    time.sleep(PAUSE)
    return os.getpid(), time.process_time()


def used(workers: WorkEngine) -> dict[int, float]:
    return dict(workers.run(processor, None, range(2 * workers.workers)))


class Held(NamedTuple):
    """Memory of a worker in bytes; the last two fields are the mapping of the exact vectors."""

    process: int
    private: int
    mapped: int = 0
    copied: int = 0


def held(desk: ExamSetup | None, item: int) -> Held:
    """Return the memory of one worker after a search over all vectors; slow enough that every worker gets one."""
    place = 0
    if desk is not None:
        desk.engine.search("Who lives in Lund?", 0, 5)
        place = desk.engine.index._matrix.ctypes.data
    maps = Path("/proc/self/smaps").read_text()
    found = Held(os.getpid(), private(maps))
    for said in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", maps, flags=re.MULTILINE)[1:]:
        start, end = (int(edge, 16) for edge in said.split(" ", 1)[0].split("-"))
        if start <= place < end:
            found = found._replace(mapped=total(said, "Rss"), copied=private(said))
    time.sleep(PAUSE)
    return found


def private(said: str) -> int:
    return total(said, "Private_Clean") + total(said, "Private_Dirty")


def total(said: str, what: str) -> int:
    return sum(1024 * int(amount) for amount in re.findall(rf"^{what}: +(\d+) kB", said, re.MULTILINE))


def shared_memory() -> int:
    """Bytes of the machine's shared memory that are in use; Ray's object store is there."""
    disk = os.statvfs("/dev/shm")
    return (disk.f_blocks - disk.f_bfree) * disk.f_frsize


def show_memory(workers: WorkEngine, desk: ExamSetup, before: int, travels: int) -> None:
    """Print the memory of each worker without and with the store; `before` is the shared memory without workers."""
    rounds = range(2 * workers.workers)
    without = {one.process: one.private for one in workers.run(held, None, rounds)}
    started, reached = time.perf_counter(), 0.0
    found: dict[int, Held] = {}
    for one in workers.run(held, desk, rounds):
        reached = reached if one.process in found else time.perf_counter() - started - PAUSE
        found[one.process] = one
    print("\n| GB | private, without the store | private, with it | vectors mapped | of them private |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for number, one in enumerate(found.values(), 1):
        cells = (without[one.process], *one[1:])
        print(f"| worker {number} |" + "".join(f" {size / GB:.2f} |" for size in cells))
    size = desk.engine.index._matrix.nbytes
    print(f"\n{len(desk.store):,} documents, {size / GB:.2f} GB of vectors: in every worker, and searched once, after")
    print(
        f"{reached:.1f} s. Shared memory in use grew by {(shared_memory() - before) / GB:.2f} GB since the start of the"
    )
    print(f"cluster, though the store has travelled {travels + 1} times.")


class Best:
    """The shortest of several times, with the processor time of that one."""

    def __init__(self) -> None:
        self.seconds = float("inf")
        self.processor = 0.0

    def take(self, seconds: float, processor: float) -> None:
        if seconds < self.seconds:
            self.seconds, self.processor = seconds, processor


def here(desk: ExamSetup, questions: tuple[Question, ...], out: Path) -> tuple[float, float]:
    embedder = CachedEmbedder(embedder_named(desk.settings.embedder).embedder)  # remembers no query, as a worker's
    engine = engine_for((), embedder, index=desk.engine.index)
    started, spent = time.perf_counter(), time.process_time()
    asyncio.run(examine(desk.store, engine, questions, ReferenceReader, out))
    return time.perf_counter() - started, time.process_time() - spent


def there(workers: WorkEngine, desk: ExamSetup, questions: tuple[Question, ...], out: Path) -> tuple[float, float]:
    before = used(workers)
    started, spent = time.perf_counter(), time.process_time()
    examine_in_chunks(workers, desk, questions, out)
    seconds, driver = time.perf_counter() - started, time.process_time() - spent
    after = used(workers)
    return seconds, (driver + sum(after[worker] - before.get(worker, 0.0) for worker in after)) / workers.workers


def setup_of(world: World, name: str) -> ExamSetup:
    store, embedder = Store(source(document.id, document.text) for document in world.documents), embedder_named(name)
    index = ExactIndex(embedder.dimensions)
    index.put_many([record.id for record in store], embedder.embed([record.text for record in store]), own=True)
    return ExamSetup(store, engine_for((), embedder, index=index), Settings(embedder=name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=500)
    parser.add_argument("--embedder", default="all-MiniLM-L6-v2")
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # or others on the machine go before the workers
    world = people.generate(chosen.people, 0, people.Sizes(test_in=chosen.questions))
    questions, desk = world.split("test_in"), setup_of(world, chosen.embedder)
    one, many = Best(), Best()
    with tempfile.TemporaryDirectory() as scratch:
        local, ray = Path(scratch) / "local", Path(scratch) / "ray"
        here(desk, questions, local)  # fills the cache
        expected = local.read_bytes()
        started, before = time.perf_counter(), shared_memory()
        with EngineChoice("ray", chosen.workers).opened() as workers:
            start = time.perf_counter() - started
            there(workers, desk, questions[: min(4 * CHUNK, len(questions) // 2)], ray)  # loads the modules
            same = True
            for _ in range(chosen.times):
                for file in (local, ray):
                    file.unlink()
                one.take(*here(desk, questions, local))
                many.take(*there(workers, desk, questions, ray))
                same = same and ray.read_bytes() == local.read_bytes() == expected
            ratio, bound = one.seconds / many.seconds, one.processor / many.processor
            print(f"{len(questions):,} questions, {chosen.workers} workers, chunks of at most {CHUNK}\n")
            print("| | seconds | processor seconds |\n| --- | ---: | ---: |")
            print(f"| one process | {one.seconds:.2f} | {one.processor:.2f} |")
            print(f"| Ray, workers and driver, a core | {many.seconds:.2f} | {many.processor:.2f} |")
            print(f"| one process / Ray | {ratio:.2f} | {bound:.2f} |")
            fast = "yes" if ratio >= MUST else "NO"
            print(f"\nsame bytes: {'yes' if same else 'NO'}; at least {MUST} times the speed: {fast}")
            print(f"(the cluster itself started in {start:.0f} s; one-minute load average {os.getloadavg()[0]:.1f})")
            show_memory(workers, desk, before, chosen.times + 1)


if __name__ == "__main__":
    main()

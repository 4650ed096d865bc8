"""The same exam in one process and on Ray's workers, one after the other in the same run.

    OMP_NUM_THREADS=1 python benchmarks/ray_exam.py [--questions N] [--workers N] [--times N]

Flat store of 500 people, reference reader, every query's vector in the disk cache. Neither side is timed while it
starts: one process has its modules loaded, and so have Ray's workers; the store travels while the clock runs. Times are
the best of several. Beside the clock stands processor time, which other people on the machine change less: that of one
process, and that of workers and driver together for each of as many cores. Their ratio is the speed-up on free cores.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from pathlib import Path

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.artefact.parts import embedder_named, engine_for
from kbgym.experiment.chunks import CHUNK, ExamSetup, examine_in_chunks
from kbgym.experiment.engines import WorkEngine, opened
from kbgym.protocol.exam import examine
from kbgym.protocol.run import Settings
from kbgym.search.embed import CachedEmbedder
from kbgym.store import Store, source
from kbgym.worlds import people
from kbgym.worlds.world import Question

EMBEDDER = "all-MiniLM-L6-v2"
MUST = 1.6


def processor(shared: None, item: int) -> tuple[int, float]:
    """Of whatever worker gets this: its process, and the processor time it has used; slow enough for all to get one."""
    time.sleep(0.5)
    return os.getpid(), time.process_time()


def used(workers: WorkEngine) -> dict[int, float]:
    return dict(workers.run(processor, None, range(2 * workers.workers)))


class Best:
    """The shortest of several times, with the processor time of that one."""

    def __init__(self) -> None:
        self.seconds = float("inf")
        self.processor = 0.0

    def take(self, seconds: float, processor: float) -> None:
        if seconds < self.seconds:
            self.seconds, self.processor = seconds, processor


def here(store: Store, questions: tuple[Question, ...], out: Path) -> tuple[float, float]:
    embedder = CachedEmbedder(embedder_named(EMBEDDER).embedder)  # its memory of queries is empty, as a worker's is
    engine = engine_for(store, embedder)
    started, spent = time.perf_counter(), time.process_time()
    asyncio.run(examine(store.copy(), engine, questions, ReferenceReader, out))
    return time.perf_counter() - started, time.process_time() - spent


def there(workers: WorkEngine, store: Store, questions: tuple[Question, ...], out: Path) -> tuple[float, float]:
    desk = ExamSetup(store, engine_for(store, embedder_named(EMBEDDER)), Settings(embedder=EMBEDDER))
    before = used(workers)
    started, spent = time.perf_counter(), time.process_time()
    examine_in_chunks(workers, desk, questions, out)
    seconds, driver = time.perf_counter() - started, time.process_time() - spent
    after = used(workers)
    return seconds, (driver + sum(after[worker] - before.get(worker, 0.0) for worker in after)) / workers.workers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    chosen = parser.parse_args()
    os.environ.setdefault("RAY_worker_niceness", "0")  # or others on the machine go before the workers
    world = people.generate(500, 0, people.Sizes(test_in=chosen.questions))
    questions = world.split("test_in")
    store = Store(source(document.id, document.text) for document in world.documents)
    one, many = Best(), Best()
    with tempfile.TemporaryDirectory() as scratch:
        local, ray = Path(scratch) / "local", Path(scratch) / "ray"
        here(store, questions, local)  # fills the cache
        expected = local.read_bytes()
        started = time.perf_counter()
        with opened("ray", chosen.workers) as workers:
            start = time.perf_counter() - started
            there(workers, store, questions[: 4 * CHUNK], ray)  # loads the modules
            same = True
            for _ in range(chosen.times):
                for file in (local, ray):
                    file.unlink()
                one.take(*here(store, questions, local))
                many.take(*there(workers, store, questions, ray))
                same = same and ray.read_bytes() == local.read_bytes() == expected
    ratio, bound = one.seconds / many.seconds, one.processor / many.processor
    print(f"{len(questions):,} questions, {chosen.workers} workers, chunks of at most {CHUNK}\n")
    print("| | seconds | processor seconds |\n| --- | ---: | ---: |")
    print(f"| one process | {one.seconds:.2f} | {one.processor:.2f} |")
    print(f"| Ray, workers and driver, a core | {many.seconds:.2f} | {many.processor:.2f} |")
    print(f"| one process / Ray | {ratio:.2f} | {bound:.2f} |")
    print(
        f"\nsame bytes: {'yes' if same else 'NO'}; at least {MUST} times the speed: {'yes' if ratio >= MUST else 'NO'}"
    )
    print(f"(the cluster itself started in {start:.0f} s; one-minute load average {os.getloadavg()[0]:.1f})")


if __name__ == "__main__":
    main()

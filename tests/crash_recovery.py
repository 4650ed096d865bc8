"""Crash recovery: kill work repeatedly with SIGKILL and check that the resumed result has the same bytes.

    python tests/crash_recovery.py train FOLDER KILLS
    python tests/crash_recovery.py prove FOLDER KILLS WORLD

Kill points are counted file operations, not times, so a busy machine changes nothing; a trace block being written is
left half written. One process imports everything and forks the children, since importing takes longer than the work.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from experiments import contents

from kbgym.api.factory import agents_named, embedder_named
from kbgym.cli import prove as _loaded  # noqa: F401 - before the first fork
from kbgym.cli.main import run as verb
from kbgym.search.factory import engine_for
from kbgym.training.exam import ResultWriter
from kbgym.training.run import Run, Settings
from kbgym.training.trainer import Trainer
from kbgym.worlds.people import generate

Work = Callable[[Path], None]
APART = "verdict.json"  # says where it lies


def train(folder: Path) -> None:
    settings = Settings(questions=20, epochs=2, embedder="hash", eval=False)
    run = Run.open_or_create(folder, generate(people=80, seed=3), settings)
    engine = partial(engine_for, embedder=embedder_named("hash"))
    asyncio.run(Trainer(run, agents_named(settings), engine).train())


def prove(folder: Path) -> None:
    flags = ["--set", "embedder=hash", "--questions", "12", "--epochs", "1", "--n", "10", "--quiet"]
    try:
        verb(["prove", sys.argv[4], "--out", str(folder), *flags])
    except SystemExit as ended:
        if ended.code:
            raise


def watch(moment: int) -> list[int]:
    """Kill this process at the given file operation. Return a counter of file operations."""
    seen = [0]

    def reached(before: Callable[[], object] = lambda: None) -> None:
        seen[0] += 1
        if seen[0] == moment:
            before()
            os.kill(os.getpid(), signal.SIGKILL)

    def heard(event: str, given: tuple[object, ...]) -> None:
        flags = given[2] if event == "open" else 0
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
        if writes or event in ("os.rename", "os.remove", "os.mkdir", "os.truncate"):
            reached()

    write, fsync, add = os.write, os.fsync, ResultWriter.add
    os.write = lambda file, data: (reached(lambda: write(file, data[: len(data) // 2])), write(file, data))[1]
    os.fsync = lambda file: (reached(), fsync(file))[1]
    ResultWriter.add = lambda self, row: (reached(), add(self, row))[1]
    sys.addaudithook(heard)
    return seen


def dies(work: Work, folder: Path, moment: int) -> bool:
    """Run the work in a child process. Return True if it was killed; else write its operation count to a file."""
    child = os.fork()
    if child == 0:
        try:
            seen = watch(moment)
            work(folder)
            folder.with_name("moments").write_text(str(seen[0]))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, -signal.SIGKILL):
        sys.exit(f"moment {moment}: it ended with {status}")
    return status != 0


def differing(folder: Path, whole: Path) -> list[str]:
    ours, theirs = contents(folder), contents(whole)
    names = sorted((ours.keys() | theirs.keys()) - {APART})
    return [name for name in names if ours.get(name) != theirs.get(name)]


def main(work: Work, place: Path, kills: int) -> None:
    whole, cut, chance, moments = place / "whole", place / "cut", Random(0), []
    dies(work, whole, 0)
    length = int((place / "moments").read_text())
    while kills:
        moments.append(chance.randrange(1, length // 3))
        if dies(work, cut, moments[-1]):
            kills -= 1
        elif different := differing(cut, whole):
            sys.exit(f"{different} after {moments}")
        else:
            shutil.rmtree(cut)
    if (cut / "exams").is_dir():
        (cut / "exams" / ".4194305-scratch.jsonl").write_text("{")  # as by one that was killed while it wrote
    dies(work, cut, 0)
    if different := differing(cut, whole):
        sys.exit(f"{different} after {moments}")


def killed(what: str, place: Path, kills: int, *more: object) -> None:
    """Run this module in its own process and fail with its output if the bytes differ."""
    arguments = [sys.executable, __file__, what, place, kills, *more]
    done = subprocess.run([str(one) for one in arguments], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    main({"train": train, "prove": prove}[sys.argv[1]], Path(sys.argv[2]), int(sys.argv[3]))

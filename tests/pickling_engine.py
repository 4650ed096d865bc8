"""Test doubles for distributed work: an engine that pickles everything and readers that crash."""

from __future__ import annotations

import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from kbgym.agents.reference.reader import ReferenceReader
from kbgym.gym.actions import Action
from kbgym.gym.policy import View

FOLDER = "KBGYM_TEST_ASKED"


class Here:
    """An engine that processes items one after another."""

    workers = 1

    def run(self, work: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            yield work(shared, item)


class Posted:
    """An in-process engine that pickles inputs and results, as a remote engine does."""

    def __init__(self, workers: int = 2) -> None:
        self.workers = workers
        self.chunks = 0
        self.sent: list[bytes] = []

    def run(self, work: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]) -> Iterator[Any]:
        self.sent = [pickle.dumps(shared)]
        there = pickle.loads(self.sent[0])
        for item in items:
            self.chunks += 1
            self.sent.append(pickle.dumps(item))
            yield pickle.loads(pickle.dumps(work(there, pickle.loads(self.sent[-1]))))


class Mortal(ReferenceReader):
    """Log every question with its process id. The first process to see the fatal question kills itself."""

    async def act(self, view: View) -> Action:
        if not view.history:
            folder = Path(os.environ[FOLDER])
            with (folder / "asked").open("a") as asked:
                asked.write(f"{os.getpid()} {view.task.question}\n")
            fatal = folder / "fatal"
            if fatal.read_text() == view.task.question and not _exists(folder / "dead"):
                os.kill(os.getpid(), signal.SIGKILL)
        return await super().act(view)


class Broken(ReferenceReader):
    """Raise ZeroDivisionError on every action."""

    async def act(self, view: View) -> Action:
        raise ZeroDivisionError("division by zero")


def _exists(file: Path) -> bool:
    """Create the file. Return True if it existed before."""
    try:
        os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False

"""Work engines, which run one function over many items in this process or in many on several machines.

The module is independent of exams, stores and experiments, which supply the function, the shared data and the items.
An engine yields results as they finish, in any order; callers that need an order sort them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from importlib.util import find_spec
from typing import Literal, Protocol, TypeVar, get_args

from kbgym import plugins
from kbgym.errors import BadInput, Missing

Name = Literal["local", "ray"]
NAMES: tuple[Name, ...] = get_args(Name)

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")


class WorkEngine(Protocol):
    """An engine that runs a function over items. A `KbgymError` of the function is raised unchanged."""

    @property
    def workers(self) -> int:
        """Return the number of items processed concurrently."""

    def run(self, work: Callable[[S, T], R], shared: S, items: Iterable[T]) -> Iterator[R]:
        """Yield `work(shared, item)` for every item; an item is drawn only when a worker is free.

        `work`, `shared`, items and results must be picklable if they are sent to other processes.
        """


class EngineChoice:
    """The work engine that a verb was told to use: `local` means none."""

    def __init__(self, name: Name, workers: int | None = None, address: str | None = None) -> None:
        """Raise an error if the options do not fit the engine."""
        if name != "ray" and (workers or address):
            raise BadInput("workers and address are settings of Ray; they need --set engine=ray.")
        if name == "ray" and find_spec("ray") is None:
            raise Missing("--set engine=ray needs Ray; run `pip install 'kbgym[ray]'`.")
        self.is_here = name == "local"
        self._chosen = (name, workers, address)

    @contextmanager
    def opened(self) -> Iterator[WorkEngine]:
        """Yield the engine and close it at the end. Ray prints messages about lost workers, so stdout is redirected."""
        name, *how = self._chosen
        with redirect_stdout(sys.stderr), closing(plugins.load("kbgym.engines", name)(*how)) as engine:
            yield engine


def cut(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, in chunks."""
    for start in range(0, len(items), size):
        yield items[start : start + size]

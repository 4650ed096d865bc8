"""Where work is done: one function over many items, in this process or in many on several machines.

It knows nothing of exams, stores or experiments: those say what the function, what all items share and the items are.
An engine gives every result as it comes, in any order; what must be in order is put in order by whoever asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
    """Runs a function over items. An error the function means to tell a user (`KbgymError`) comes out as it is."""

    @property
    def workers(self) -> int:
        """How many items are worked on at a time."""

    def run(self, work: Callable[[S, T], R], shared: S, items: Iterable[T]) -> Iterator[R]:
        """`work(shared, item)` for every item. An item is drawn only when a worker is free for it.

        `work`, `shared`, items and results must be values that can be pickled, where they are sent to other processes.
        """


class Here:
    """One item after the other, in this process."""

    workers = 1

    def run(self, work: Callable[[S, T], R], shared: S, items: Iterable[T]) -> Iterator[R]:
        for item in items:
            yield work(shared, item)


@contextmanager
def opened(name: Name, workers: int | None = None, address: str | None = None) -> Iterator[WorkEngine]:
    """The engine of this name, closed at the end."""
    check(name, workers, address)
    if name == "local":
        yield Here()
        return
    engine = plugins.load("kbgym.engines", name)(workers, address)
    try:
        yield engine
    finally:
        engine.close()


def check(name: Name, workers: int | None, address: str | None) -> None:
    """Refuse what cannot be, before any work."""
    if name != "ray" and (workers or address):
        raise BadInput("workers and address are settings of Ray; they need --set engine=ray.")
    if name == "ray" and find_spec("ray") is None:
        raise Missing("--set engine=ray needs Ray; run `pip install 'kbgym[ray]'`.")


def cut(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """The items in order, in chunks."""
    for start in range(0, len(items), size):
        yield items[start : start + size]

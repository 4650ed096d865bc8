"""Where a verb's work is done: the flags, as one value."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

import click

from kbgym.cli.common import flags
from kbgym.experiments.engines import NAMES, Name, WorkEngine, check, opened

engine_options = flags(
    click.option("--engine", type=click.Choice(NAMES), default="local", show_default=True, help="Where to work."),
    click.option("--workers", type=click.IntRange(min=1), help="Ray's workers.  [default: as many as cores]"),
    click.option("--address", help="Ray's cluster: auto or ray://HOST:PORT.  [default: one started here]"),
)


class Where:
    """The flags as values."""

    def __init__(self, given: dict[str, Any]) -> None:
        """Take this module's flags out of all the flags of a verb."""
        self.name: Name = given.pop("engine")
        self._workers: int | None = given.pop("workers")
        self._address: str | None = given.pop("address")
        check(self.name, self._workers, self._address)

    @property
    def is_here(self) -> bool:
        return self.name == "local"

    @contextmanager
    def opened(self) -> Iterator[WorkEngine]:
        """Ray prints what it has to say of a lost worker to stdout, which is the verb's."""
        with redirect_stdout(sys.stderr), opened(self.name, self._workers, self._address) as engine:
            yield engine

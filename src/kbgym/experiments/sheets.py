"""The exams of a seed: who reads, which questions, and in which file the rows are kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Question, World


class AskedSet(msgspec.Struct, frozen=True):
    """One exam of an arm: who reads (empty for the reader that trained), the file, the set of questions."""

    reader: str
    file: Path
    name: str
    questions: Sequence[Question]

    @property
    def is_whole(self) -> bool:
        """A file in progress has fewer lines than questions."""
        return self.file.exists() and self.file.read_bytes().count(b"\n") >= len(self.questions)


def exams_of(seed: Path, reader: str = "") -> Path:
    """Where the exams of a seed lie: those of the reader that trained, or of another one."""
    return seed / "readers" / re.sub(r"[^A-Za-z0-9_.]+", "-", reader) / "exams" if reader else seed / "exams"


def tested(world: World, readers: Sequence[str]) -> dict[str, tuple[Question, ...]]:
    """The test splits, where several readers are asked; not where the groups are drawn from them."""
    if not readers or not kind_of(world).has_pools:
        return {}
    return {name: found for name in ("test_in", "test_out") if (found := tuple(world.split(name)))}

"""A store that is kept in step with a folder: look, and when files changed bring them in as one iteration.

Whether to read at all is told by the files' names, times and sizes; what changed, by what they say. Files that are
still being written are left until two looks agree. It prints nothing, and does not know who else has the store open.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from kbgym.corpus.build import ReadingOptions
from kbgym.corpus.landing import Reimport, reimport
from kbgym.corpus.make import KIND, Made, Structure, make
from kbgym.errors import BadInput
from kbgym.trace.folder import StoreFolder, originals
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import World

Seen = dict[str, tuple[int, int]]  # files with their time and size


class Followed(msgspec.Struct, frozen=True):
    """What the files changed, and what that did to the store."""

    made: Made
    store: Reimport


class Watcher:
    """`world` is what the store was made from: its questions, and how its files were read."""

    def __init__(self, paths: Sequence[Path], place: Path, world: World, structure: Structure | None = None) -> None:
        if kind_of(world).name != KIND:
            raise BadInput(f"{place} was not made by `kbgym import corpus`, so there is no folder it could follow.")
        if world.facts.get("rewrite"):
            raise BadInput("the sentences of this store were rewritten by a model; bring it up to date with --rewrite.")
        self._paths, self._place, self._world = paths, place, world
        self._structure = structure if world.facts.get("structure") else None
        facts = world.facts
        self._options = ReadingOptions(
            facts.get("language", "en"),
            facts.get("links", False),
            facts.get("code", "keep"),
            site=facts.get("site", ""),
        )
        self._last: Seen | None = None
        self._done: Seen | None = None

    def look(self) -> Followed | None:
        """Bring the store up to date, if files changed and no longer do; None where nothing came of it."""
        seen = dict(_files(self._paths))
        settled, self._last = self._last in (None, seen), seen
        if not settled or seen == self._done:
            return None
        folder = StoreFolder(self._place)
        old = msgspec.structs.replace(self._world, documents=tuple(originals(self._place, folder.events).values()))
        made = make(self._paths, None, self._options, old.facts.get("seed", 0), old, structure=self._structure)
        followed = Followed(made, reimport(self._place, made.world))
        self._done = seen
        return followed if made.changed else None


def _files(paths: Sequence[Path]) -> Iterator[tuple[str, tuple[int, int]]]:
    for path in paths:
        if not path.exists():
            raise BadInput(f"{path} is not there.")
        folders = os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]
        for folder, _, names in folders:
            for name in names:
                file = os.path.join(folder, name)
                try:
                    found = os.stat(file, follow_symlinks=False)
                except OSError:  # gone since
                    continue
                yield file, (found.st_mtime_ns, found.st_size)

"""Updates of a trained store from its files, once or continuously, in one committed transaction per update.

Files take precedence: an original that an agent edited is reset to the file's text, which is reported. Documents
that agents wrote are kept; indexes that point at changed or removed documents are listed. Files are compared with the
store's own sources, never with a world folder that may be ahead of it, so an update is idempotent and safe to repeat
after a crash. `Watcher` polls names, times and sizes of files, and waits until two polls agree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from kbgym.corpus.documents import ReadingOptions
from kbgym.corpus.importing import KIND, Made, Structure, make
from kbgym.corpus.update import Changes, changes
from kbgym.errors import BadInput
from kbgym.gym.actions import Action, LinkMany, Unlink
from kbgym.gym.environment import apply
from kbgym.gym.tools import MOST_TARGETS
from kbgym.store import Store
from kbgym.trace.events import Acted, Began, Ended, Event, Imported, Noted, committed
from kbgym.trace.folder import StoreFolder
from kbgym.trace.replay import follow_import
from kbgym.worlds.kinds import kind_of
from kbgym.worlds.world import Document, World

AGENT = "import corpus"


class Affected(msgspec.Struct, frozen=True):
    """A document an agent wrote or edited, and those of its targets that changed or were removed."""

    id: str
    text: str
    edited: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class Reimport(msgspec.Struct, frozen=True):
    """The effect of an import on a store."""

    iteration: int
    added: int = 0
    edited: int = 0
    removed: int = 0
    restored: int = 0
    overwritten: tuple[str, ...] = ()
    affected: tuple[Affected, ...] = ()


def affected_indexes(store: Store, changed: Changes) -> tuple[Affected, ...]:
    """Return indexes and corrections of documents that changed or were removed; call it before applying the update."""
    edited = {document.id for document in changed.edited}
    removed = set(changed.removed)
    touched = edited | removed
    sources = dict.fromkeys(source for id in sorted(touched) if id in store for source in store.inbound(id))
    found = []
    for id in sources:
        record = store[id]
        if record.flag in ("authored", "correction"):
            links = [target for target in record.links if target in touched]
            gone = tuple(target for target in links if target in removed)
            found.append(Affected(id, record.text, tuple(t for t in links if t in edited), gone))
    return tuple(found)


def reimport(place: Path, world: World) -> Reimport:
    """Bring a store up to date with a world, in one committed transaction; without changes, write nothing."""
    folder = StoreFolder(place)
    known = folder.originals()
    if not known:
        raise BadInput(f"{place} does not say which documents it was made from, so it cannot follow an import.")
    if known.keys().isdisjoint(document.id for document in world.documents):
        raise BadInput(f"{place} was not made from this corpus: they have no document in common.")
    changed = changes(known.values(), world.documents)
    store = folder.store()
    iteration = folder.iteration
    if not changed:
        return Reimport(iteration)
    affected = affected_indexes(store, changed)
    overwritten = tuple(d.id for d in changed.edited if d.id in store and store[d.id].flag == "edited")
    iteration += 1
    event = _event(store, changed, {document.id: document for document in world.documents}, iteration)
    follow_import(store, event)
    acts = _relink(store, changed, event, known, world, iteration)
    counts = {name: len(getattr(event, name)) for name in ("added", "edited", "removed", "restored")}
    events: list[Event] = [
        Began(iteration, "idle", AGENT),
        event,
        *acts,
        Noted(iteration, "import", counts),
        Ended(iteration, "idle", "done"),
        committed(iteration, folder.position, store),
    ]
    with folder.resume() if folder.reading else folder.start("", {}) as writer:
        writer.commit(events)
    return Reimport(iteration, **counts, overwritten=overwritten, affected=affected)


def _event(store: Store, changed: Changes, now: Mapping[str, Document], iteration: int) -> Imported:
    """Return the event of an update, given the edits by agents."""
    edited = [document for document in changed.edited if document.id in store]
    restored = {document.id: document for document in changed.edited if document.id not in store}
    gone = set(changed.removed)
    for id in (*(document.id for document in edited), *changed.removed):
        if id in store:  # its merged text was the old sentence; merged documents that remain represent themselves
            absorbed = (origin for origin in store[id].absorbed if origin in now and origin not in gone)
            restored |= {origin: now[origin] for origin in absorbed}
    return Imported(
        iteration,
        changed.removed,
        tuple(edited),
        tuple(restored.values()),
        changed.added,
        {document.id: document.source for document in changed.moved},
        {document.id: document.links for document in changed.relinked},
    )


def _relink(
    store: Store, changed: Changes, event: Imported, known: Mapping[str, Document], world: World, iteration: int
) -> list[Event]:
    """Update the links of the texts by ordinary actions; links of training are left alone."""
    fresh = {document.id for document in (*event.restored, *event.added)}
    wanted = fresh | {document.id for document in changed.relinked}
    events: list[Event] = []

    def act(action: Action) -> None:
        result = apply(store, action)
        events.append(Acted(iteration, "idle", len(events) + 1, action, result))

    for document in world.documents:
        if document.id in wanted and document.id in store:
            before = known[document.id].links if document.id in known and document.id not in fresh else ()
            for target in before:
                if target not in document.links and target in store[document.id].links:
                    act(Unlink(document.id, target))
            new = [t for t in document.links if t in store and t not in store[document.id].links]
            for batch in _batches(new):
                act(LinkMany(document.id, batch))
    return events


def _batches(targets: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(targets[at : at + MOST_TARGETS]) for at in range(0, len(targets), MOST_TARGETS)]


Seen = dict[str, tuple[int, int]]  # files with their modification time and size


class Followed(msgspec.Struct, frozen=True):
    """The changes of the files, and their effect on the store."""

    made: Made
    store: Reimport


class Watcher:
    """Polls files and updates a store; `world` is its source: the questions, and how its files were read."""

    def __init__(self, paths: Sequence[Path], place: Path, world: World, structure: Structure | None = None) -> None:
        if kind_of(world).name != KIND:
            raise BadInput(f"{place} was not made by `kbgym import corpus`, so there is no folder it could follow.")
        self._paths, self._place, self._world = paths, place, world
        self._structure = structure if world.facts.get("structure") else None
        facts = world.facts
        self._options = ReadingOptions(
            facts.get("language", "en"),
            facts.get("unit", "sentence"),
            facts.get("links", False),
            site=facts.get("site", ""),
        )
        self._last: Seen | None = None
        self._done: Seen | None = None

    def look(self) -> Followed | None:
        """Bring the store up to date if files changed and have settled; return None if nothing was updated."""
        seen = dict(_files(self._paths))
        settled, self._last = self._last in (None, seen), seen
        if not settled or seen == self._done:
            return None
        folder = StoreFolder(self._place)
        old = msgspec.structs.replace(self._world, documents=tuple(folder.originals().values()))
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
                except OSError:  # removed since
                    continue
                yield file, (found.st_mtime_ns, found.st_size)

"""One store opened for looking at: an arm of a run or an experiment, a plain store, or any of them at an iteration.

Everything expensive (search engine, audit, growth) is worked out at the first look and kept. Nothing is ever written
to the store or its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property

from kbgym import environment
from kbgym.actions import Opened
from kbgym.analysis.audit import Index
from kbgym.analysis.health import Health, health
from kbgym.baselines.registry import ARMS, engine_for_arm
from kbgym.protocol.session import embedder_named, search_of
from kbgym.search.choice import default_search
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Engine
from kbgym.store import Store
from kbgym.trace.events import Acted, Event
from kbgym.trace.folder import StoreFolder, originals
from kbgym.trace.history import Blame, blame
from kbgym.worlds.world import Document, World


@cache
def embedder(name: str) -> CachedEmbedder:
    """One embedder of a name for the whole process: a model is loaded once."""
    return embedder_named(name)


class Shelf:
    """`folder` is where the store's history stands; an arm that was built in memory has none."""

    def __init__(
        self,
        arm: str,
        label: str,
        store: Store,
        folder: StoreFolder | None = None,
        world: Callable[[], World | None] = lambda: None,
        embedder: str = "",
        at: int | None = None,
        built: str = "",
    ) -> None:
        self.arm, self.label, self.store = arm, label, store
        self.folder, self.at = folder, at
        self.embedder = embedder
        self._built = built or arm  # the baseline it is, if it is one: that decides how it is searched
        self._world = world

    @cached_property
    def world(self) -> World | None:
        return self._world()

    @property
    def events(self) -> Sequence[Event]:
        return self.folder.events if self.folder else ()

    @cached_property
    def engine(self) -> environment.Engine:
        """What agents search with. What somebody types is embedded in memory only: the disk cache is for documents."""
        named = embedder(self.embedder)
        facts = self.world.facts if self.world else {}
        how = search_of(self.folder, facts) if self.folder else default_search(facts)
        engine = engine_for_arm(self._built if self._built in ARMS else "flat", self.store, named, search=how)
        if isinstance(engine, Engine):
            engine.embedder = CachedEmbedder(named.embedder, remember=4_096)
        return engine

    @cached_property
    def health(self) -> Health:
        began = self.folder.initial if self.folder else self.store
        return health(self.store, self.world, tuple(origin for record in began for origin in record.origins))

    @cached_property
    def indexes(self) -> dict[str, Index]:
        return {index.id: index for index in self.health.audit.indexes}

    @cached_property
    def suspects(self) -> frozenset[tuple[str, str]]:
        """Links that are wrong, or look wrong where nothing is known: (source, target)."""
        return frozenset((suspect.index, suspect.target) for suspect in self.health.suspects)

    @cached_property
    def originals(self) -> dict[str, Document]:
        """The user's sentences by id, with where they stand in their files."""
        if self.folder is None:
            return {document.id: document for document in self.world.documents} if self.world else {}
        known = originals(self.folder.folder, self.events)
        return known or ({document.id: document for document in self.world.documents} if self.world else {})

    def kind(self, id: str) -> str:
        """What a document is, in one word: source, edited, index or stub."""
        if id not in self.store:
            return "gone"
        record = self.store[id]
        if record.flag == "authored":
            return "index" if record.links else "stub"
        return "edited" if record.flag == "edited" else "source"

    def text(self, id: str) -> str:
        return self.store[id].text if id in self.store else "(no longer in this store)"

    def blame(self, id: str) -> Blame | None:
        """The whole life of a document; None where there is no history."""
        if self.folder is None or not self.events:
            return None
        return blame(self.folder.initial.copy, self.events, id, self.at)

    @cached_property
    def readings(self) -> dict[str, list[int]]:
        """In which iterations' forward passes each document was opened."""
        found: dict[str, list[int]] = {}
        for event in self.events:
            if isinstance(event, Acted) and event.phase == "forward" and isinstance(event.result, Opened):
                found.setdefault(event.result.id, []).append(event.iteration)
        return found

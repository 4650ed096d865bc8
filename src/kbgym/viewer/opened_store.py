"""A store opened for viewing: an arm of a run or an experiment, a plain store, or any of them at an iteration.

Expensive results (search engine, audit, growth) are computed on first use and cached. Nothing is ever written to the
store or its folder.
"""

from __future__ import annotations

from functools import cached_property

from kbgym.analysis.audit import Index
from kbgym.analysis.health import Health, health
from kbgym.analysis.index_use import openings
from kbgym.api import Workspace
from kbgym.api.factory import embedder_named
from kbgym.progress import ProgressCallback
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Engine
from kbgym.trace.history import Blame, blame
from kbgym.worlds.world import Document, pages_of


class ViewedStore(Workspace):
    """A store to view. `name` identifies it in requests (`trained-paper`, `flat`), `label` is shown to people."""

    label = ""

    def embedded(self, tick: ProgressCallback | None = None) -> Engine:
        """Return the search engine; typed queries are embedded in memory only, not in the disk cache."""
        engine = super().embedded(tick)
        if isinstance(engine, Engine) and engine.embedder is embedder_named(self.settings.embedder):
            engine.embedder = CachedEmbedder(engine.embedder.embedder, remember=4_096)
        return engine

    @cached_property
    def health(self) -> Health:
        began = self.place.initial if self.events else self.store
        return health(self.store, self.world, tuple(origin for record in began for origin in record.origins))

    @cached_property
    def indexes(self) -> dict[str, Index]:
        return {index.id: index for index in self.health.audit.indexes}

    @cached_property
    def suspects(self) -> frozenset[tuple[str, str]]:
        """Return links (source, target) that are wrong, or suspected if no facts are known."""
        return frozenset((suspect.index, suspect.target) for suspect in self.health.suspects)

    @cached_property
    def originals(self) -> dict[str, Document]:
        """Return the user's sentences by id, with their places in the files."""
        known = self.place.originals()
        return known or ({document.id: document for document in self.world.documents} if self.world else {})

    @cached_property
    def pages(self) -> dict[str, str]:
        """Return the source page of each original, by id."""
        return pages_of(self.originals.values())

    def kind_of(self, id: str) -> str:
        """Return the kind of a document: source, edited, index, stub, correction or gone."""
        if id not in self.store:
            return "gone"
        record = self.store[id]
        if record.flag == "correction":
            return "correction"
        if record.flag == "authored":
            return "index" if record.links else "stub"
        return "edited" if record.flag == "edited" else "source"

    def text(self, id: str) -> str:
        return self.store[id].text if id in self.store else "(no longer in this store)"

    def blame(self, id: str) -> Blame | None:
        """Return the whole history of a document, or None if the store has none."""
        return blame(self.place.initial.copy, self.events, id, self.at) if self.events else None

    @cached_property
    def readings(self) -> dict[str, list[int]]:
        """Return the iterations in whose forward passes each document was opened."""
        return openings(self.events)

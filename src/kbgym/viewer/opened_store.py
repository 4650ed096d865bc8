"""One store opened for looking at: an arm of a run or an experiment, a plain store, or any of them at an iteration.

Everything expensive (search engine, audit, growth) is worked out at the first look and kept. Nothing is ever written
to the store or its folder.
"""

from __future__ import annotations

from functools import cached_property

from kbgym.analysis.audit import Index
from kbgym.analysis.health import Health, health
from kbgym.analysis.index_use import openings
from kbgym.api import Workspace
from kbgym.api.factory import embedder_named
from kbgym.gym import environment
from kbgym.progress import ProgressCallback
from kbgym.search.embed import CachedEmbedder
from kbgym.search.engine import Engine
from kbgym.trace.history import Blame, blame
from kbgym.worlds.world import Document, pages_of


class ViewedStore(Workspace):
    """`name` is what requests call it (`trained-paper`, `flat`), `label` what a person reads."""

    label = ""

    def embedded(self, tick: ProgressCallback | None = None) -> environment.SearchEngine:
        """What agents search with. What somebody types is embedded in memory only: the disk cache is for documents."""
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
        """Links that are wrong, or look wrong where nothing is known: (source, target)."""
        return frozenset((suspect.index, suspect.target) for suspect in self.health.suspects)

    @cached_property
    def originals(self) -> dict[str, Document]:
        """The user's sentences by id, with where they stand in their files."""
        known = self.place.originals()
        return known or ({document.id: document for document in self.world.documents} if self.world else {})

    @cached_property
    def pages(self) -> dict[str, str]:
        """The page of the source that each original stands on, by id."""
        return pages_of(self.originals.values())

    def kind_of(self, id: str) -> str:
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
        return blame(self.place.initial.copy, self.events, id, self.at) if self.events else None

    @cached_property
    def readings(self) -> dict[str, list[int]]:
        """In which iterations' forward passes each document was opened."""
        return openings(self.events)

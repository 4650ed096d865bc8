"""The map's data: every document and link that a store ever had, and the iterations in which each existed.

Growth is read from the trace once, as the difference between successive commits. The result is one block of typed
arrays, which a browser uses unchanged; 200,000 links take 3 MB.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec
import numpy as np

from kbgym.analysis.network import layout
from kbgym.api.factory import embedder_named
from kbgym.store import Store
from kbgym.trace.events import Committed, Event, Graded
from kbgym.trace.history import diff, log
from kbgym.viewer.places import ViewedStore

ALWAYS = 2**31 - 1
MOST_FRAMES = 2_000
KINDS = {"source": 0, "edited": 1, "index": 2, "stub": 3, "gone": 4}


class Growth:
    """Documents and links with their first and last iteration, in order of appearance."""

    def __init__(self, viewed: ViewedStore) -> None:
        self.texts: dict[str, str] = {}
        self.authored: set[str] = set()
        self.nodes: dict[str, int] = {}
        self.node_spans: list[tuple[str, int, int]] = []
        self.link_spans: list[tuple[str, str, int, int]] = []
        self.frames: list[list[int]] = []
        self._open_links: dict[tuple[str, str], int] = {}
        self._before, self._seen = Store(), ""
        if not viewed.events:
            self._take(viewed.store, 0)
        else:
            commits = [event.iteration for event in viewed.events if isinstance(event, Committed)]
            every = max(1, -(-len(commits) // MOST_FRAMES))
            wanted = {*commits[::every], *commits[-1:]}
            self._take(viewed.place.initial, 0)

            def watch(event: Event, store: Store) -> None:
                if isinstance(event, Committed) and event.iteration in wanted:
                    if event.store != self._seen:
                        self._take(store, event.iteration)
                        self._seen = event.store
                    self.frames.append([event.iteration, event.documents, event.links])

            viewed.place.store(viewed.at, watch)
        self.node_spans += [(id, born, ALWAYS) for id, born in self.nodes.items()]
        self.link_spans += [(*link, born, ALWAYS) for link, born in self._open_links.items()]

    def _take(self, store: Store, iteration: int) -> None:
        """Record documents and links that were added or removed."""
        found = diff(self._before, store)
        self.node_spans += [(gone.id, self.nodes.pop(gone.id), iteration) for gone in found.removed]
        self.nodes |= {new.id: iteration for new in found.added}
        self.authored |= {new.id for new in found.added if new.flag == "authored"}
        self.texts |= {new.id: new.text for new in found.added} | {one.id: one.after for one in found.edited}
        for source, target in ((link.source, link.target) for link in found.links_removed):
            self.link_spans.append((source, target, self._open_links.pop((source, target)), iteration))
        self._open_links |= {(link.source, link.target): iteration for link in found.links_added}
        self._before = store.copy()


class Map:
    """A store's map: growth at once, positions from the cache or from a background thread."""

    def __init__(self, viewed: ViewedStore) -> None:
        self._viewed = viewed
        self.growth = Growth(viewed)
        self.failure = ""
        self._places: Any = None
        self._packed = b""
        self._thread = threading.Thread(target=self._lay_out, daemon=True)
        self._thread.start()

    def _lay_out(self) -> None:
        try:
            self._places = layout(list(self.growth.texts.values()), embedder_named(self._viewed.settings.embedder))
        except Exception as error:  # the thread has no caller to raise to; the page shows the error
            self.failure = str(error) or type(error).__name__

    def packed(self, wait: float) -> bytes | None:
        """Return everything as one block, or None while the layout is computed."""
        self._thread.join(wait)
        if self._places is None:
            return None
        if not self._packed:
            self._packed = pack(self._viewed, self.growth, self._places)
        return self._packed


def pack(viewed: ViewedStore, growth: Growth, spots: Any) -> bytes:
    """Pack a length, a JSON header padded to four bytes, and the arrays in the order of the header."""
    ids = list(growth.texts)
    at = {id: place for place, id in enumerate(ids)}
    # A document that was deleted and restored has two spans: draw it as if it had always existed.
    born, gone = np.full(len(ids), ALWAYS, dtype=np.int32), np.zeros(len(ids), dtype=np.int32)
    for id, first, last in growth.node_spans:
        born[at[id]] = min(born[at[id]], first)
        gone[at[id]] = max(gone[at[id]], last)
    links = growth.link_spans
    arrays = {
        "xy": np.ascontiguousarray(spots, dtype=np.float32).ravel(),
        "born": born,
        "gone": gone,
        "source": np.fromiter((at[link[0]] for link in links), dtype=np.uint32, count=len(links)),
        "target": np.fromiter((at[link[1]] for link in links), dtype=np.uint32, count=len(links)),
        "linked": np.fromiter((link[2] for link in links), dtype=np.int32, count=len(links)),
        "unlinked": np.fromiter((link[3] for link in links), dtype=np.int32, count=len(links)),
    }
    suspects = [place for place, link in enumerate(links) if link[:2] in viewed.suspects and link[3] == ALWAYS]
    grades = {event.iteration: event for event in viewed.events if isinstance(event, Graded)}
    asked = {entry.commit: entry.text for entry in log(viewed.events)} if viewed.events else {}
    frames = [
        [*frame, asked.get(frame[0], ""), grades[frame[0]].f1 if frame[0] in grades else None]
        for frame in growth.frames
    ]
    header = {
        "ids": ids,
        "texts": list(growth.texts.values()),
        "kinds": [KINDS[_kind(viewed, growth, id)] for id in ids],
        "frames": frames,
        "suspects": suspects,
        "arrays": [[name, str(array.dtype), len(array)] for name, array in arrays.items()],
    }
    coded = msgspec.json.encode(header)
    coded += b" " * (-len(coded) % 4)
    return b"".join([np.uint32(len(coded)).tobytes(), coded, *(array.tobytes() for array in arrays.values())])


def _kind(viewed: ViewedStore, growth: Growth, id: str) -> str:
    """Return the kind of a document; for a deleted one, the kind it had."""
    kind = viewed.kind_of(id)
    if kind == "gone":
        return "index" if id in growth.authored else "source"
    return "edited" if kind == "correction" else kind

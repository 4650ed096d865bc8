"""Search kinds, and the interface of texts stored in a backend.

Settings and command-line options import this module, so it loads no numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, get_args

from kbgym.errors import BadInput

if TYPE_CHECKING:
    from kbgym.progress import ProgressCallback
    from kbgym.search.bm25 import WordIndex
    from kbgym.search.embed import CachedEmbedder
    from kbgym.search.index import VectorIndex

SearchKind = Literal["vectors", "words", "hybrid"]  # `vectors` is the paper's protocol
SEARCHES: tuple[SearchKind, ...] = get_args(SearchKind)


def search_named(name: object) -> SearchKind:
    """Return the kind of search of this name. Raise `BadInput` if there is none."""
    found = next((search for search in SEARCHES if search == name), None)
    if found is None:
        raise BadInput(f"there is no search by {name!r}; use {', '.join(SEARCHES[:-1])} or {SEARCHES[-1]}.")
    return found


class TextBase(Protocol):
    """Immutable texts in a backend, which supplies their search indexes."""

    def indexes(
        self,
        gone: Sequence[str],
        changed: Sequence[tuple[str, str]],
        embedder: CachedEmbedder,
        search: SearchKind,
        tick: ProgressCallback | None = None,
    ) -> tuple[VectorIndex, WordIndex | None]:
        """Return an index of vectors and one of words over these texts and the changes made to them.

        `gone` are the ids of texts that were changed or removed, `changed` the current texts of changed and new ids.
        An index that the kind of search does not use is empty.
        """

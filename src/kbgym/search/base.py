"""Names of the kinds of search, and the interface of texts that a backend keeps.

Settings and command-line options import this module, so it loads no numpy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from kbgym.errors import BadInput

if TYPE_CHECKING:
    from kbgym.progress import ProgressCallback
    from kbgym.search.embed import CachedEmbedder
    from kbgym.search.index import KeptIndex
    from kbgym.search.words import KeptWords

SearchKind = Literal["vectors", "words", "hybrid"]  # `vectors` is the paper's protocol
SEARCHES: tuple[SearchKind, ...] = get_args(SearchKind)


def search_named(name: object) -> SearchKind:
    """Return the kind of search of this name. Raise `BadInput` if there is none."""
    found = next((search for search in SEARCHES if search == name), None)
    if found is None:
        raise BadInput(f"there is no search by {name!r}; use {', '.join(SEARCHES[:-1])} or {SEARCHES[-1]}.")
    return found


class TextBase(Protocol):
    """Immutable texts in a backend, numbered from 1 without gaps. Thread-safe.

    A store over such texts is searched through the indexes that the backend supplies. In a database the texts lie in
    the table `initial (number, id, ...)`.
    """

    def __len__(self) -> int: ...

    def indexes(
        self,
        gone: Sequence[str],
        changed: Sequence[tuple[str, str]],
        embedder: CachedEmbedder,
        search: SearchKind,
        tick: ProgressCallback | None = None,
    ) -> tuple[KeptIndex, KeptWords | None]:
        """Return an index of vectors and one of words over these texts and the changes made to them.

        `gone` are the ids of texts that were changed or removed, `changed` the current texts of changed and new ids.
        An index that the kind of search does not use is empty.
        """

    def texts(self) -> Iterator[tuple[int, str, str]]:
        """Yield number, id and text of every text in the order of the numbers."""

    def fetch(self, ids: Sequence[str]) -> None:
        """Read the texts under these ids into the cache with one query."""

    def text(self, id: str) -> str | None:
        """Return the text under an id, or None."""

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the numbers of those ids that exist."""

    def ids(self, numbers: Sequence[int]) -> dict[int, str]: ...

    def connection(self) -> AbstractContextManager[Any]:
        """Return an autocommit connection whose first schema is the store's and whose second is `public`."""

"""What a search can go by. Apart from the rest, since settings and options name it where nothing is searched.

Very many texts that never change and lie in a database.

A store is such a base and what was changed since, which lies in memory on top. Because a base never changes, what was
read of it is never stale: it may be remembered for as long as there is room. It knows nothing of words or vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

SearchKind = Literal["vectors", "words", "hybrid"]  # `vectors` is the paper's protocol
SEARCHES: tuple[SearchKind, ...] = get_args(SearchKind)


class TextBase(Protocol):
    """The texts, numbered from 1 on without a gap; their table is `initial (number, id, ...)`. Safe for threads."""

    def __len__(self) -> int: ...

    def texts(self) -> Iterator[tuple[int, str, str]]:
        """Number, id and text of all of them, in the order of the numbers, a few at a time in memory."""

    def fetch(self, ids: Sequence[str]) -> None:
        """Have the texts under these ids at hand, and that there is none: all of them in one question."""

    def text(self, id: str) -> str | None:
        """The text under an id, none where there is none; either answer is remembered for a while."""

    def numbers(self, ids: Sequence[str]) -> dict[str, int]:
        """The numbers of those ids that are there."""

    def ids(self, numbers: Sequence[int]) -> dict[int, str]: ...

    def connection(self) -> AbstractContextManager[Connection]:
        """A connection that commits by itself; its first schema is the store's, the next `public`."""

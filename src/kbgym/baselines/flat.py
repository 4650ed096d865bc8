"""The arms without structure: B1, the documents as they stand; the same searched by words; and no documents at all."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kbgym.baselines.arm import Built, flat_store
from kbgym.search.bm25 import BM25Index
from kbgym.search.index import Hit
from kbgym.store import Store
from kbgym.worlds.world import Document


def build(documents: Sequence[Document]) -> Built:
    """B1, the untrained store: no link, no cost."""
    return Built(flat_store(documents))


def nothing(documents: Sequence[Document]) -> Built:
    """The no-store arm: every search comes back empty, so what is scored is what a reader knew, or guessed."""
    return Built(Store(), notes={"left_out": len(documents)})


class WordEngine(BM25Index):
    """BM25 where an environment expects an engine, over words as search servers usually prepare them.

    Small words are left out, and a plural or a possessive is its singular: "Friends of Ann" finds "Ann is a friend of".
    """

    async def prepare(self, texts: Iterable[str]) -> None:
        """Nothing: words need no vectors."""

    def put(self, id: str, text: str) -> None:
        super().put(id, plain(text))

    def search(self, query: str, offset: int, limit: int) -> list[Hit]:
        return super().search(plain(query), offset, limit)

    def nearest(self, text: str, limit: int, exclude: tuple[str, ...] = ()) -> list[Hit]:
        """Nothing: a BM25 score is no cosine, so it proposes no near duplicate; equal texts are caught without it."""
        return []


_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_SMALL = frozenset(
    "a an and are as at be by for from in is it of on or that the to was were who whose will with".split()
)


def plain(text: str) -> str:
    """The words that count, each in its plain form; a text of small words only is kept as it is."""
    words = [word.removesuffix("'s").removesuffix("’s") for word in _WORD.findall(text.lower())]
    return " ".join(_singular(word) for word in words if word not in _SMALL) or text


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word

"""A DSPy retrieval module over a store: passages with their sources."""

from __future__ import annotations

from typing import Any

import dspy
import msgspec

from kbgym.integrations.client import connect


class KbgymRetriever(dspy.Retrieve):
    """Retrieve passages of a store: a folder, the URL of a database, or the URL of a kbgym server with a token."""

    def __init__(self, place: str, token: str = "", k: int = 5, file: str = "") -> None:
        super().__init__(k=k)
        self._client, self._file = connect(place, token), file

    def forward(self, query: str, k: int | None = None, **kwargs: Any) -> dspy.Prediction:
        """Return the passages for a query, and the documents they come from."""
        found = self._client.search(query, k or self.k, file=self._file)
        documents = [msgspec.to_builtins(one) for one in found]
        return dspy.Prediction(passages=[one.text for one in found], documents=documents)

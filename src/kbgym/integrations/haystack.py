"""A Haystack retriever over a store: documents with their sources in the metadata."""

from __future__ import annotations

from typing import Any

import msgspec
from haystack import Document, component, default_from_dict, default_to_dict

from kbgym.integrations.client import connect


@component
class KbgymRetriever:
    """Retrieve documents of a store: a folder, the URL of a database, or the URL of a kbgym server with a token."""

    def __init__(self, place: str, token: str = "", top_k: int = 5, file: str = "") -> None:
        self.place, self.token, self.top_k, self.file = place, token, top_k, file
        self._client = connect(place, token)

    def to_dict(self) -> dict[str, Any]:
        """Return the component for a pipeline file; the token is left out."""
        kept: dict[str, Any] = default_to_dict(self, place=self.place, top_k=self.top_k, file=self.file)
        return kept

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KbgymRetriever:
        """Return a component from a pipeline file."""
        made: KbgymRetriever = default_from_dict(cls, data)
        return made

    @component.output_types(documents=list[Document])
    def run(self, query: str, top_k: int | None = None) -> dict[str, list[Document]]:
        """Return the documents for a query."""
        found = self._client.search(query, top_k or self.top_k, file=self.file)
        fields = ((one, msgspec.to_builtins(one)) for one in found)
        return {"documents": [Document(id=one.id, content=one.text, score=one.score, meta=of) for one, of in fields]}

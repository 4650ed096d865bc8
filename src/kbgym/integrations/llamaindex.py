"""A LlamaIndex retriever over a store: nodes with their sources in the metadata."""

from __future__ import annotations

import msgspec
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from kbgym.integrations.client import connect


class KbgymRetriever(BaseRetriever):
    """Retrieve nodes of a store: a folder, the URL of a database, or the URL of a kbgym server with a token."""

    def __init__(self, place: str, token: str = "", k: int = 5, file: str = "") -> None:
        self._client, self._k, self._file = connect(place, token), k, file
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = []
        for one in self._client.search(query_bundle.query_str, self._k, file=self._file):
            node = TextNode(id_=one.id, text=one.text, metadata=msgspec.to_builtins(one))
            node.excluded_llm_metadata_keys = node.excluded_embed_metadata_keys = list(node.metadata)
            nodes.append(NodeWithScore(node=node, score=one.score))
        return nodes

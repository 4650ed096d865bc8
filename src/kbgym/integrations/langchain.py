"""A LangChain retriever over a store: documents with their sources in the metadata."""

from __future__ import annotations

from typing import Any

import msgspec
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from kbgym.integrations.client import StoreClient, connect


class KbgymRetriever(BaseRetriever):
    """Retrieve documents of a store.

    Args:
        place: a folder, the URL of a database, or the URL of a kbgym server.
        token: the token for a server.
        k: documents for a query.
        file: only documents of this file.
    """

    place: str
    token: str = ""
    k: int = 5
    file: str = ""
    _client: StoreClient = PrivateAttr()

    def model_post_init(self, context: Any) -> None:
        self._client = connect(self.place, self.token)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        found = self._client.search(query, self.k, file=self.file)
        return [Document(page_content=one.text, id=one.id, metadata=msgspec.to_builtins(one)) for one in found]

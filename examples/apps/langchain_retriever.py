"""A LangChain retriever alone: rank metrics, and no answers to judge."""

from __future__ import annotations

from desk import PASSAGES, search
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever


class KeywordRetriever(BaseRetriever):
    """The passages that share most words with the question."""

    k: int = 3

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [Document(PASSAGES[name], id=name) for name in search(query, self.k)]


app = KeywordRetriever()

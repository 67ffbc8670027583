"""A small RAG app in LangChain: keyword search, a prompt, and a stand-in for a language model.

The stand-in copies the sentence of its prompt that shares most words with the question, so the app
needs no key and gives the same answers every time. Put your own retriever and model in its place.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnablePassthrough


def words(text: str) -> set[str]:
    """Return the lower-case words of a text that have at least three letters."""
    return {word for word in re.findall(r"\w+", text.lower()) if len(word) > 2}


class KeywordRetriever(BaseRetriever):
    """Return the k passages that share most words with the question or its synonyms."""

    documents: list[Document]
    k: int = 2
    synonyms: dict[str, str] = {}

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        wanted = words(query)
        for word in wanted & self.synonyms.keys():
            wanted = wanted | words(self.synonyms[word])
        shared = [len(wanted & words(document.page_content)) for document in self.documents]
        order = sorted(range(len(shared)), key=lambda index: -shared[index])
        return [self.documents[index] for index in order[: self.k]]


class CopyingModel(SimpleChatModel):
    """Answer with the sentence of the prompt that shares most words with the question."""

    @property
    def _llm_type(self) -> str:
        return "copying"

    def _call(self, messages: list[BaseMessage], *_: Any, **__: Any) -> str:
        passages, question = str(messages[-1].content).split("\nQuestion: ")
        sentences = re.split(r"(?<=\.)\s+", passages)
        best = max(sentences, key=lambda sentence: len(words(sentence) & words(question)))
        return best if words(best) & words(question) else "I don't know."


def load_documents() -> list[Document]:
    """Return the passages of corpus.jsonl, which is beside this file."""
    lines = (Path(__file__).parent / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [Document(id=row["id"], page_content=row["text"]) for row in rows]


def build(retriever: BaseRetriever) -> Runnable[str, str]:
    """Return the app with this retriever."""
    prompt = ChatPromptTemplate.from_template("{passages}\nQuestion: {question}")
    passages = retriever | (lambda found: "\n".join(item.page_content for item in found))
    steps = {"passages": passages, "question": RunnablePassthrough()}
    return steps | prompt | CopyingModel() | StrOutputParser()


chain = build(KeywordRetriever(documents=load_documents()))

"""A search by a raw client is seen if the app reports it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

import misslink
from misslink.capture import Watcher, manual
from misslink.types import Case


def watched(app, question="When?"):
    return asyncio.run(Watcher(app).watch(Case(question=question)))


@pytest.mark.parametrize(
    "passages",
    [
        [{"id": "times", "text": "Seven.", "score": 0.5}],
        [(Document(id="times", page_content="Seven."), 0.5)],
        {"ids": [["times"]], "documents": [["Seven."]], "distances": [[0.5]]},
    ],
)
def test_a_reported_search_is_a_retrieval(passages):
    def app(question):
        misslink.record_retrieval(question.upper(), passages, name="raw")
        return "At seven."

    trace = watched(app)
    assert [(p.id, p.text, p.score) for p in trace.retrieved] == [("times", "Seven.", 0.5)]
    assert [(call.query, call.retriever) for call in trace.calls] == [("WHEN?", "raw")]
    assert trace.unmeasured is None


def test_several_searches_and_none_found():
    async def app(question):
        misslink.record_retrieval(question, ["a text with blanks"])
        misslink.record_retrieval(question, [])
        return "At seven."

    trace = watched(app)
    assert [len(call.passages) for call in trace.calls] == [1, 0]
    assert watched(lambda question: misslink.record_retrieval(question, []) or "A").retrieved == ()


def test_a_search_inside_a_retriever_is_nested():
    class Raw(BaseRetriever):
        def _get_relevant_documents(
            self, query: str, *, run_manager: CallbackManagerForRetrieverRun
        ) -> list[Document]:
            misslink.record_retrieval(query, [{"id": "raw", "text": "Raw."}])
            return [Document(id="times", page_content="Seven.")]

    trace = watched(Raw())
    assert [p.id for p in trace.retrieved] == ["times"]
    assert [call.nested for call in trace.calls] == [False, True]


def test_what_is_no_list_of_passages_is_an_error_of_the_app():
    trace = watched(lambda question: misslink.record_retrieval(question, 5) or "A")
    assert "record_retrieval got int" in trace.error


def test_outside_an_evaluation_it_does_nothing_and_imports_nothing():
    code = (
        "import sys, misslink; misslink.record_retrieval('q', 5);"
        "print([m for m in sys.modules if m.split('.')[0] in ('langchain_core', 'httpx')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_search_in_a_thread_of_the_app_s_own_is_warned_of(caplog):
    def app(question):
        thread = threading.Thread(target=misslink.record_retrieval, args=(question, ["A text."]))
        thread.start()
        thread.join()
        return "At seven."

    manual._warn_of_lost_search.cache_clear()
    assert watched(app).unmeasured is not None
    assert "belongs to no case" in caplog.text
    caplog.clear()
    misslink.record_retrieval("When?", ["A text."])  # in production
    assert not caplog.text

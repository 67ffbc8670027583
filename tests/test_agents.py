"""Agents and other apps that search several times: what each search found, and where a passage got lost."""

from __future__ import annotations

import asyncio
import json

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import create_retriever_tool, tool

import misslink
from misslink.capture import Watcher
from misslink.text.bm25 import Bm25Index
from misslink.text.normalization import stems
from misslink.types import Case
from watched_apps import tool_caller

TEXTS = {
    "holm": "The ferry to Holm leaves at seven in the morning.",
    "price": "A ticket for the ferry costs twelve crowns.",
    "dog": "Dogs travel for free on the ferry.",
    "coach": "The coach to Varby leaves at nine in the evening.",
    "salt": "Salt was traded here for centuries.",
}
GOLD = {
    "id": "trip",
    "question": "When does the ferry to Holm leave, and what does a ticket cost?",
    "relevant": ["holm", "price"],
    "reference": "It leaves at seven and costs twelve crowns.",
}
WRONG = "It sails at midnight for ninety pounds."


class Keywords(BaseRetriever):
    """The best passages by BM25."""

    k: int = 1

    def _get_relevant_documents(self, query, *, run_manager):
        del run_manager
        scores = Bm25Index(map(stems, TEXTS.values())).scores(stems(query))
        ranked = sorted(zip(scores, TEXTS, strict=True), reverse=True)
        return [Document(TEXTS[name], id=name) for score, name in ranked[: self.k] if score > 0]


def evaluate(app, depth=100):
    corpus = [{"id": name, "text": text} for name, text in TEXTS.items()]
    run = misslink.evaluate(
        app, [GOLD], corpus=corpus, judge="heuristic", cache=None, embedding="none", depth=depth
    )
    return run.links[0], run.traces[0]


def agent(*calls, tools=(), answer=WRONG):
    agents = pytest.importorskip("langchain.agents")
    look_up = create_retriever_tool(Keywords(), "look_up", "Looks things up.")
    return agents.create_agent(tool_caller(*calls, answer=answer), [look_up, *tools])


@pytest.mark.slow
def test_every_search_has_its_query_its_tool_and_what_it_found_of_what_was_missing():
    link, trace = evaluate(agent(("look_up", "dogs free"), ("look_up", "ferry Holm leaves")))
    assert [(s.number, s.query, s.tool) for s in link.searches] == [
        (1, "dogs free", "look_up"),
        (2, "ferry Holm leaves", "look_up"),
    ]
    assert [(s.missing, s.found, s.recall) for s in link.searches] == [
        (2, (), 0.0),
        (2, ("holm",), 0.5),
    ]
    assert [call.tool for call in trace.calls] == ["look_up", "look_up"]
    (missed,) = link.missed
    assert (missed.passage_id, missed.lost_at, missed.search) == ("price", "ranked_low", 2)


@pytest.mark.slow
def test_a_passage_that_no_search_asked_for():
    link, _ = evaluate(agent(("look_up", "salt centuries")))
    losses = {miss.passage_id: (miss.lost_at, miss.search) for miss in link.missed}
    assert losses == {"holm": ("not_searched", None), "price": ("not_searched", None)}
    assert link.evidence[0].lost_at == "not_searched"
    assert (link.failure, link.evidence[0].reason_code) == ("lost_context", "question_finds_it")


def chain(keep, *, grader=None):
    """Three passages; `grader`, a model, may look at them; those that `keep` names are shown."""
    retriever = Keywords(k=3)
    model = GenericFakeChatModel(messages=iter([AIMessage(WRONG)] * 3))

    def app(question):
        documents = retriever.invoke(question)
        if grader:
            grader.invoke("Which help? " + " ".join(d.page_content for d in documents))
        shown = " ".join(d.page_content for d in documents if d.id in keep)
        return model.invoke(f"{shown} {question}").content

    return app


def test_a_passage_that_a_grader_dropped_and_one_that_the_prompt_left_out():
    link, _ = evaluate(chain({"coach"}))
    losses = {miss.passage_id: (miss.lost_at, miss.search) for miss in link.missed}
    assert losses == dict.fromkeys(("holm", "price"), ("cut_from_prompt", 1))
    assert link.failure == "dropped_from_prompt"
    assert "search 1 returned it; cut from the prompt" in link.reason
    grader = GenericFakeChatModel(messages=iter([AIMessage("The third one.")]))
    link, trace = evaluate(chain({"coach"}, grader=grader))
    assert set(trace.graded) == {"holm", "price"}
    assert {miss.lost_at for miss in link.missed} == {"dropped_by_grader"}
    assert (link.evidence[0].search, link.evidence[0].lost_at) == (1, "dropped_by_grader")


def test_a_passage_that_a_compressor_dropped_inside_of_a_search():
    class First(BaseRetriever):
        """The first passage of another retriever."""

        def _get_relevant_documents(self, query, *, run_manager):
            inner = Keywords(k=3).invoke(query, config={"callbacks": run_manager.get_child()})
            return inner[:1]

    link, _ = evaluate(lambda question: {"answer": WRONG, "docs": First().invoke(question)})
    losses = {miss.passage_id: (miss.lost_at, miss.search) for miss in link.missed}
    assert set(losses.values()) == {("dropped_by_grader", 1)}
    assert len(link.searches) == 1
    assert {(miss.status, miss.miss_type) for miss in link.missed} == {
        ("dropped_from_prompt", None)
    }


@pytest.mark.parametrize(
    ("query", "failure", "owner"),
    [
        ("coach in the evening", "lost_context", "prompt"),
        ("Holm ferry, cost of a ticket", "retrieval_miss", "retriever"),
    ],
)
def test_a_query_that_lost_what_the_question_names(query, failure, owner):
    def app(_):
        misslink.record_retrieval(query, [{"id": "coach", "text": TEXTS["coach"]}])
        return {"answer": "I do not know.", "prompted": ["coach"]}

    corpus = [{"id": name, "text": text} for name, text in TEXTS.items()]
    run = misslink.evaluate(app, [{**GOLD, "relevant": ["price"]}], corpus=corpus, k=2, cache=None)
    (link,) = run.links
    assert (link.failure, link.owner) == (failure, owner)
    code = "question_finds_it" if owner == "prompt" else "passage_missing"
    assert link.evidence[0].reason_code == code


@pytest.mark.parametrize(("query", "failure"), [
    ("range", "lost_context"), ("Pika range", "retrieval_miss"),
])  # fmt: skip
def test_a_query_that_lost_a_name_finds_no_passage_by_its_length(query, failure):
    texts = {
        "pika": "The Pika has a range of 18 km.",
        "nimbus": "The Nimbus has a range of 45 km, and its battery sits in the deck.",
        "heron": "The Heron has a range of 62 km, and its battery can be taken out.",
        "shop": "Our workshop is open on weekdays.",
    }

    def app(_):
        misslink.record_retrieval(query, [{"id": "nimbus", "text": texts["nimbus"]}])
        return {"answer": "I do not know.", "prompted": ["nimbus"]}

    gold = {"id": "1", "question": "What is the range of the Pika?", "relevant": ["pika"]}
    corpus = [{"id": name, "text": text} for name, text in texts.items()]
    run = misslink.evaluate(app, [gold], corpus=corpus, k=1, cache=None)
    assert run.links[0].failure == failure


@pytest.mark.slow
@pytest.mark.parametrize(
    ("app", "warned"),
    [
        (lambda question: WRONG + str(Keywords(k=3).invoke(question))[:0], True),
        (lambda question: {"answer": WRONG, "docs": Keywords(k=3).invoke(question)[:1]}, False),
        (lambda _: {"answer": WRONG, "contexts": [TEXTS["holm"]]}, False),
    ],
)
def test_a_prompt_that_was_not_seen_is_warned_of(app, warned):
    run = misslink.evaluate(app, [GOLD], cache=None)
    assert ("prompt_unseen" in {w["code"] for w in run.summary["warnings"]}) == warned


def watched(*returned):
    """What is seen of an agent that calls a tool for each of these, and then the retriever."""

    def tool_that_returns(name, value):
        @tool(name, description="Look around.")
        def look_around(query: str):
            del query
            return value

        return look_around

    tools = [tool_that_returns(f"tool_{n}", value) for n, value in enumerate(returned)]
    calls = [(one.name, f"ask {one.name}") for one in tools]
    app = agent(*calls, ("look_up", "ferry Holm"), tools=tools)
    return asyncio.run(Watcher(app).watch(Case(question="When?")))


def test_tools_that_return_documents_are_searches():
    def hit(name):
        return {"title": "Times", "url": name, "content": f"{name}: {TEXTS['holm']}", "score": 0.9}

    trace = watched(
        {"query": "q", "results": [hit("a")]},  # web searches
        json.dumps([hit("b")]),
        [{"type": "text", "text": json.dumps({"documents": [hit("c")]})}],  # an MCP server
        [{"snippet": f"d: {TEXTS['holm']}", "link": "d"}],
    )
    *calls, last = [(call.query, call.tool, call.passages) for call in trace.calls]
    assert calls == [
        (f"ask tool_{n}", f"tool_{n}", (name,)) for n, name in enumerate(("a", "b", "c", "d"))
    ]
    assert last[1] == "look_up"
    texts = {passage.id: passage.text for passage in trace.retrieved}
    assert [texts[name] for name in "abcd"] == [f"{name}: {TEXTS['holm']}" for name in "abcd"]


def test_tools_that_return_something_else_are_none():
    trace = watched("It is noon.", {"temperature": 7}, [1, 2], [{"name": "x"}])
    assert [call.tool for call in trace.calls] == ["look_up"]


@pytest.mark.slow
def test_the_case_view_lists_the_searches_and_the_step(tmp_path):
    misslink.evaluate(
        agent(("look_up", "dogs free"), ("look_up", "ferry Holm leaves")),
        [GOLD],
        judge="heuristic",
        cache=None,
        embedding="none",
        out=tmp_path / "run",
    )
    page = (tmp_path / "run" / "report.html").read_text()
    search = '{"query":"dogs free","tool":"look_up","passages":1,"found":"0 of 2 missing relevant passages"}'
    assert search in page
    assert "ranked too low (search 2)" in page
    (line,) = (tmp_path / "run" / "links.jsonl").read_text().splitlines()
    assert [search["found"] for search in json.loads(line)["searches"]] == [[], ["holm"]]

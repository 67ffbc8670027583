"""What was shown where no model call gave the answer."""

import pytest
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.retrievers import BaseRetriever

import misslink
from misslink.capture import settle_prompts
from misslink.types import Passage, RetrieverCall, Trace

DOCUMENTS = [
    Document(id="times", page_content="The ferry to the island leaves at seven in the morning."),
    Document(id="pets", page_content="Dogs travel free of charge on all of our ferries."),
]
NOTHING = "I could not find anything about that."


class Found(BaseRetriever):
    def _get_relevant_documents(self, query, *, run_manager):
        return DOCUMENTS


def gold(n=4):
    return [
        {"id": f"c{i}", "question": f"When does ferry number {i} leave?", "relevant": ["times"]}
        for i in range(n)
    ]


def evaluate(app, questions=None):
    return misslink.evaluate(app, questions or gold(), judge="heuristic", embedding="none", k=2)


def dropping(question):
    kept = [document for document in Found().invoke(question) if False]
    return kept[0].page_content if kept else NOTHING


def graded_by_score(question):
    """Keeps what the question names, and answers by copying it."""
    kept = [d for d in Found().invoke(question) if "number 0" in question]
    return kept[0].page_content if kept else NOTHING


def graded_by_model(question):
    model = FakeListChatModel(responses=["no"])
    kept = [d for d in Found().invoke(question) if model.invoke(d.page_content).content == "yes"]
    return kept[0].page_content if kept else NOTHING


def with_state(question):
    """The final state of a graph whose grader drops everything."""
    model = FakeListChatModel(responses=["no"])
    kept = [d for d in Found().invoke(question) if model.invoke(d.page_content).content == "yes"]
    return {
        "question": question,
        "documents": kept,
        "generation": f"I could not find anything on this: {question}",
    }


@pytest.mark.parametrize("app", [dropping, graded_by_model, with_state])
def test_where_a_grader_drops_every_passage_the_prompt_was_empty(app):
    run = evaluate(app)
    assert {(link.failure, link.owner) for link in run.links} == {("dropped_from_prompt", "prompt")}
    assert {trace.prompted for trace in run.traces} == {()}
    assert {trace.graded for trace in run.traces} == {() if app is dropping else ("times", "pets")}


def test_where_no_model_is_at_work_what_the_answer_holds_was_shown():
    traces = evaluate(graded_by_score).traces
    assert [trace.prompted for trace in traces] == [("times",), (), (), ()]


def answering(question):
    """Asks its model, unless it found nothing."""
    found = [d.page_content for d in Found().invoke(question) if "number 3" not in question]
    model = FakeListChatModel(responses=["It leaves at seven in the morning."])
    return model.invoke("\n".join(["Answer from:", *found])).content if found else NOTHING


def test_a_case_without_a_model_call_had_no_prompt_where_other_cases_have_one():
    traces = evaluate(answering).traces
    assert [trace.prompted for trace in traces] == [("times", "pets")] * 3 + [()]
    assert [trace.model_calls for trace in traces] == [1, 1, 1, 0]


def unseen_model(question):
    Found().invoke(question)
    return (
        f"It leaves {'early' if '1' in question else 'late'}, I think, as for ferry {question[-8]}"
    )


def test_where_no_prompt_is_seen_the_first_passages_stand_for_it_and_the_run_says_so():
    run = evaluate(unseen_model)
    assert {trace.prompted for trace in run.traces} == {None}
    assert "prompt_unseen" in {warning["code"] for warning in run.summary["warnings"]}


@pytest.mark.parametrize("key", ["documents", "context", "retrieved"])
def test_the_documents_of_the_final_state_are_what_the_prompt_had(key):
    def app(question):
        return {"answer": f"It leaves late: {question}", key: Found().invoke(question)[1:]}

    traces = evaluate(app).traces
    assert {(tuple(p.id for p in t.retrieved), t.prompted) for t in traces} == {
        (("times", "pets"), ("pets",))
    }


def test_texts_in_the_final_state_are_retrieved_passages():
    texts = [document.page_content for document in DOCUMENTS]
    run = evaluate(lambda question: {"answer": f"It leaves late: {question}", "documents": texts})
    assert {tuple(p.text for p in t.retrieved) for t in run.traces} == {tuple(texts)}


def test_an_empty_list_of_retrieved_passages_is_believed():
    run = evaluate(lambda question: {"answer": f"No idea about {question}", "retrieved": []})
    assert {(t.retrieved, t.unmeasured) for t in run.traces} == {((), None)}


def trace(name, answer, *, calls=0, prompt=None):
    found = (Passage(id="p", text="The ferry leaves at seven.", rank=1),)
    searches = (RetrieverCall(query="q", passages=("p",)),)
    return Trace(
        case_id=name,
        answer=answer,
        retrieved=found,
        calls=searches,
        model_calls=calls,
        prompt=prompt,
    )


@pytest.mark.parametrize(
    ("others", "is_empty"),
    [
        ((trace("b", "Yes."), trace("c", "No."), trace("d", "Yes.")), False),  # of an unseen model
        ((trace("b", "It leaves late."), trace("c", "At seven.")), False),
        ((trace("b", "I do not know."), trace("c", "I do not know.")), True),
        ((trace("b", "I do not know."), trace("c", "The ferry leaves at seven.")), True),
        ((trace("b", "It leaves late.", calls=1, prompt="Context: ..."),), True),
    ],
)  # fmt: skip
def test_an_unseen_model_is_not_taken_for_none(others, is_empty):
    traces = {one.case_id: one for one in (trace("a", "I do not know."), *others)}
    assert (settle_prompts(traces)["a"].prompted == ()) == is_empty

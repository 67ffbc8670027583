"""A run of canaries against real apps: stores, hanging ones, raising ones, judged ones."""

import asyncio
import re
import threading

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from misslink.canary.canary_set import build_canary_set
from misslink.canary.results import run_figures
from misslink.canary.runner import CanaryRequest, run_canaries
from misslink.io.jsonl import SourceItem
from misslink.judge.session import open_judge

SKY = {"sky": "By day the sky is blue.", "grass": "Grass is green.", "snow": "Snow is white."}


class Letters(Embeddings):
    """Counts letters: near texts are near, and nothing is drawn."""

    def embed_query(self, text):
        return [float(len(re.findall(letter, text.lower()))) for letter in "abcdefghilmnorstuwy"]

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]


def store(texts):
    made = InMemoryVectorStore(Letters())
    made.add_documents([Document(id=name, page_content=text) for name, text in texts.items()])
    return made


def canaries(*items):
    return build_canary_set(
        [SourceItem(item, "canaries.jsonl", line) for line, item in enumerate(items, start=1)],
        "canaries.jsonl",
    )


def asks(name, **more):
    return {"id": name, "question": f"What colour is {name}?", "relevant": [name], **more}


def seen(app, *items, **more):
    return asyncio.run(run_canaries(CanaryRequest(app, canaries(*items), **more)))


def healths(found):
    return {one.canary: one.healthy for one in found.results}


def keyed(texts, **more):
    """A retriever whose ids are of its own, and the canaries' in the metadata."""
    made = InMemoryVectorStore(Letters())
    made.add_documents(
        [Document(id=f"row-{name}", page_content=text, metadata={"slug": name, **more})
         for name, text in texts.items()]
    )  # fmt: skip
    return made.as_retriever(search_kwargs={"k": 3})


def test_the_metadata_key_that_holds_the_ids_is_used_and_named():
    found = seen(keyed(SKY), asks("sky"), asks("grass"), k=3)
    assert set(healths(found).values()) == {True}
    assert any("metadata key 'slug'" in note for note in found.notes)


def test_ids_that_nothing_holds_fail_and_say_so():
    found = seen(store({f"row-{name}": text for name, text in SKY.items()}).as_retriever(),
                 asks("sky"), asks("grass"), k=2)  # fmt: skip
    assert set(healths(found).values()) == {False}
    assert any("no retrieved passage of the run has an id" in note for note in found.notes)


def test_a_store_is_scored_by_its_own_embedding_and_fingerprinted():
    retriever = store(SKY).as_retriever(search_kwargs={"k": 2})
    found = seen(retriever, asks("sky"), asks("grass"), asks("snow"), k=2)
    assert found.basis == "cosine"
    assert all(one.answered and 0 < one.score <= 1 for one in found.results if one.rank)
    assert set(found.fingerprint.documents) == set(SKY)
    assert found.fingerprint.embedding.startswith("Letters")
    assert found.notes == ()


def test_the_cosine_is_that_of_the_question_and_the_first_expected_passage():
    import numpy as np

    (one,) = seen(store(SKY).as_retriever(), asks("sky")).results
    question, passage = (
        np.array(Letters().embed_query(text)) for text in ("What colour is sky?", SKY["sky"])
    )
    cosine = question @ passage / np.linalg.norm(question) / np.linalg.norm(passage)
    assert one.score == pytest.approx(cosine, abs=1e-6)


def test_a_chroma_store_is_seen_too(tmp_path):
    chroma = pytest.importorskip("langchain_chroma").Chroma(
        "canaries", Letters(), persist_directory=str(tmp_path)
    )
    chroma.add_texts(list(SKY.values()), ids=list(SKY))
    found = seen(chroma.as_retriever(search_kwargs={"k": 3}), asks("sky"), asks("snow"))
    assert healths(found) == {"sky": True, "snow": True}
    assert set(found.fingerprint.documents) == set(SKY)


def test_an_expected_passage_beyond_k_is_ill_and_found_is_its_share():
    def app(question):
        return [Document(id=name, page_content=name) for name in ("a", "b", "c")]

    found = seen(app, asks("c"), {**asks("x"), "relevant": ["a", "c"]}, k=2)
    assert healths(found) == {"c": False, "x": True}
    assert [one.coverage for one in found.results] == [0.0, 0.5]
    assert found.results[0].reason == "no expected passage is among the first 2"


def test_a_relevance_below_the_least_is_ill():
    retriever = store(SKY).as_retriever(search_kwargs={"k": 3})
    found = seen(retriever, asks("sky", min_relevance=0.999), asks("snow", min_relevance=0.01))
    assert healths(found) == {"sky": False, "snow": True}
    assert "below 0.999" in found.results[0].reason


@pytest.mark.parametrize(("scores", "healthy"), [((0.9, 0.5), True), ((0.1, 0.7), None)])
def test_without_an_embedding_scores_serve_unless_they_are_distances(scores, healthy):
    def app(question):
        named = zip(("sky", "other"), scores, strict=True)
        return {"answer": "", "retrieved": [{"id": n, "text": n, "score": s} for n, s in named]}

    (one,) = seen(app, asks("sky", min_relevance=0.4)).results
    assert one.healthy is healthy
    assert healthy or "they are distances" in one.reason


@pytest.mark.slow
def test_what_hangs_and_what_raises_is_not_measured_and_no_zero():
    never = threading.Event()

    def app(question):
        if "hang" in question:
            never.wait()
        if "raise" in question:
            raise RuntimeError("boom")
        return [Document(id="sky", page_content="blue")]

    try:
        found = seen(app, asks("sky"), asks("hang"), asks("raise"), timeout_s=3)
    finally:
        never.set()
    assert healths(found) == {"sky": True, "hang": None, "raise": None}
    assert [one.status for one in found.results] == ["answered", "hung", "failed"]
    assert found.hung == 1
    made = run_figures(found.results)
    assert (made.health.value, made.health.n) == (1.0, 1)
    assert made.values["errors"] == pytest.approx(2 / 3)


@pytest.mark.slow
def test_an_app_that_always_hangs_is_bounded_by_the_deadline():
    never = threading.Event()
    items = [asks(f"q{n}") for n in range(50)]
    try:
        found = seen(lambda _: never.wait(), *items, timeout_s=0.5, deadline_s=0.75, concurrency=2)
    finally:
        never.set()
    statuses = [one.status for one in found.results]
    assert set(statuses) == {"hung", "not_asked"}
    assert statuses.count("hung") <= 4
    assert run_figures(found.results).health.reason.startswith(
        "the health of no canary was measured"
    )


def test_answers_are_judged_and_declining_is_right_where_nothing_is_to_be_found():
    answers = {
        "What colour is sky?": "By day the sky is blue.",
        "What colour is snow?": "Bananas grow on tall plants in warm countries.",
        "Who is the king?": "I do not know.",
    }

    def app(question):
        texts = [{"id": name, "text": text} for name, text in SKY.items()]
        return {"answer": answers[question], "retrieved": texts}

    judge = open_judge("heuristic", cache=None, concurrency=2)
    found = seen(
        app,
        asks("sky", reference="The sky is blue by day."),
        asks("snow", reference="Snow is white."),
        {"id": "king", "question": "Who is the king?", "answerable": False},
        judge=judge,
    )
    assert healths(found) == {"sky": True, "snow": False, "king": True}
    assert [one.right for one in found.results] == [True, False, True]


def test_an_expected_answer_that_nobody_judges_does_not_make_ill():
    found = seen(store(SKY).as_retriever(), asks("sky", reference="blue"))
    assert healths(found) == {"sky": True}
    assert found.results[0].right is None

"""Texts asked once, in batches, checked and normalised."""

import asyncio
import subprocess
import sys

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from embedded_models import Counting, Giving
from misslink.embedding import Embedder
from misslink.embedding.embedder import BATCH_SIZE, QUERY_CONCURRENCY
from misslink.errors import InputError


def documents(embedder, *texts):
    return asyncio.run(embedder.documents(texts))


def queries(embedder, *texts):
    return asyncio.run(embedder.queries(texts))


def unit(rows):
    rows = np.asarray(rows)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rows_are_the_models_vectors_at_length_one_in_the_texts_order():
    found = documents(Embedder(Counting()), "b", "a", "b")
    expected = unit(DeterministicFakeEmbedding(size=8).embed_documents(["b", "a", "b"]))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)


def test_of_nothing_there_is_nothing_and_nobody_is_asked():
    model = Counting()
    assert documents(Embedder(model)).shape == (0, 0)
    assert model.asked() == []


def test_a_repeated_text_is_asked_once_and_at_most_a_batch_in_a_call():
    model = Counting()
    embedder = Embedder(model)
    texts = [f"text {at % (BATCH_SIZE + 10)}" for at in range(3 * BATCH_SIZE)]
    assert documents(embedder, *texts).shape == (3 * BATCH_SIZE, 8)
    assert [len(asked) for asked in model.calls.lists] == [BATCH_SIZE, 10]
    documents(embedder, *texts)
    assert len(model.calls.lists) == 2
    assert (embedder.computed, embedder.from_cache) == (BATCH_SIZE + 10, BATCH_SIZE + 10)


def test_queries_go_the_models_way_for_queries_and_are_kept_apart():
    model = Counting()
    embedder = Embedder(model)
    asked, given = queries(embedder, "one"), documents(embedder, "one")
    assert not np.allclose(asked, given)
    expected = unit([DeterministicFakeEmbedding(size=8).embed_query("query: one")])
    np.testing.assert_allclose(asked, expected, atol=1e-7)


def test_two_askers_at_once_embed_a_text_once():
    model = Counting()
    embedder = Embedder(model)

    async def both():
        return await asyncio.gather(embedder.documents(["a", "b"]), embedder.documents(["b", "a"]))

    one, other = asyncio.run(both())
    assert sorted(model.asked()) == ["a", "b"]
    np.testing.assert_array_equal(one, other[::-1])


def test_a_blank_text_is_near_nothing_and_is_not_asked_about():
    model = Counting()
    found = documents(Embedder(model), "a", " \n", "")
    assert model.asked() == ["a"]
    assert found.shape == (3, 8)
    assert not found[1:].any()


def test_blank_texts_alone_have_the_models_dimension():
    assert documents(Embedder(Counting(size=5)), "", " ").tolist() == [[0.0] * 5] * 2


def test_half_a_surrogate_pair_is_read_as_a_question_mark():
    embedder = Embedder(Counting())
    one, other = documents(embedder, "caf\ud83d", "caf?")
    np.testing.assert_array_equal(one, other)


def test_a_zero_vector_stays_zero_and_huge_numbers_do_not_overflow():
    found = documents(Embedder(Giving([[0.0, 0.0], [3e200, 4e200], [3e-200, 4e-200]])), *"abc")
    np.testing.assert_allclose(found, [[0, 0], [0.6, 0.8], [0.6, 0.8]], atol=1e-7)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([[1.0, 2.0]], "1 vectors for 2 texts"),
        ([[1.0, 2.0], [1.0]], "vectors of different lengths"),
        ([["a"], ["b"]], "not numbers"),
        ([[1.0, float("nan")], [1.0, 2.0]], "not finite"),
        ([[], []], "no vectors"),
        ([1.0, 2.0], "no vectors"),
        (None, "no vectors"),
    ],
)
def test_what_are_no_vectors_is_said_with_the_models_name(rows, said):
    with pytest.raises(InputError, match=rf"^the embedding model Giving\(model=giving\) .*{said}"):
        documents(Embedder(Giving(rows)), "a", "b")


def test_a_change_of_length_between_calls_is_said():
    model = Giving([[1.0, 2.0]])
    embedder = Embedder(model)
    documents(embedder, "a")
    model.rows = lambda: [[1.0, 2.0, 3.0]]
    with pytest.raises(InputError, match="3 numbers after others of 2"):
        documents(embedder, "b")


class Failing(Counting):
    """Fails on the text 'bad', and tells its key."""

    def embed_documents(self, texts):
        if "bad" in texts:
            raise ConnectionError(f"refused\nfor key {'sesame' * 4}")
        return super().embed_documents(texts)


def test_a_failure_is_one_sentence_without_the_key_and_loses_nothing(monkeypatch):
    monkeypatch.setenv("SOMEBODYS_API_KEY", "sesame" * 4)
    model = Failing()
    embedder = Embedder(model)
    good = [f"text {at}" for at in range(BATCH_SIZE)]
    with pytest.raises(InputError) as failed:
        documents(embedder, *good, "bad")
    said = str(failed.value)
    assert said.startswith("the embedding model Failing(model=counting-1, dimensions=8) failed: ")
    assert "ConnectionError: refused for key ***" in said
    assert "sesame" not in said
    assert "\n" not in said
    documents(embedder, *good)
    assert len(model.calls.lists) == 1


class Asynchronous(Embeddings):
    """Has methods of its own for the event loop, and no others."""

    model = "asynchronous"

    def __init__(self):
        self.seen = set()
        self.running = [0, 0]

    def embed_documents(self, texts):
        raise AssertionError("asked in a thread")

    embed_query = embed_documents

    async def aembed_documents(self, texts):
        return [[float(len(text)), 1.0] for text in texts]

    async def aembed_query(self, text):
        self.running[0] += 1
        self.running[1] = max(self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running[0] -= 1
        if text == "bad":
            raise TimeoutError
        self.seen.add(text)
        return [float(len(text)), 2.0]


def test_a_models_own_asynchronous_methods_are_used_a_few_queries_at_once():
    model = Asynchronous()
    embedder = Embedder(model)
    np.testing.assert_allclose(documents(embedder, "abc"), unit([[3.0, 1.0]]), atol=1e-7)
    queries(embedder, *(f"question {at}" for at in range(5 * QUERY_CONCURRENCY)))
    assert model.running == [0, QUERY_CONCURRENCY]


def test_queries_that_came_are_kept_when_another_failed():
    model = Asynchronous()
    embedder = Embedder(model)
    with pytest.raises(InputError, match="failed: TimeoutError; fix it"):
        queries(embedder, "one", "bad", "other")
    model.seen.clear()
    queries(embedder, "one", "other")
    assert model.seen == set()


def test_a_model_without_langchain_is_a_model_too():
    class Plain:
        def embed_documents(self, texts):
            return np.ones((len(texts), 3))

        def embed_query(self, text):
            return (1, 0, 0)

    embedder = Embedder(Plain())
    assert embedder.name == "Plain"
    np.testing.assert_allclose(documents(embedder, "a") @ queries(embedder, "a").T, 3**-0.5)


def test_importing_it_imports_no_heavy_package():
    heavy = "{'numpy', 'langchain', 'langchain_core', 'torch', 'sentence_transformers', 'chromadb'}"
    code = f"import sys, misslink.embedding; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_vectors_that_somebody_else_has_made_are_not_asked_for_again():
    model = Counting()
    embedder = Embedder(model)
    embedder.know({"a": [3.0, 4.0]})
    found = asyncio.run(embedder.documents(["a", "a"]))
    assert found.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]] * 2
    assert embedder.computed == 0
    with pytest.raises(InputError, match="finite"):
        embedder.know({"b": [float("nan"), 1.0]})

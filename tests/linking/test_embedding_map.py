"""The map of questions and passages."""

import asyncio
from importlib.util import find_spec

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

from misslink.embedding import Embedder
from misslink.embedding.projection import project_pca, scale_to_unit_square
from misslink.linking import embedding_map as drawing
from misslink.linking.embedding_map import build_embedding_map
from misslink.types import Case, Link, Passage, RetrievalMiss, Trace


def passage(name, rank=1, text=None):
    return Passage(id=name, text=f"text of {name}" if text is None else text, rank=rank)


def link(case_id, *missed, failure="retrieval_miss"):
    return Link(
        case_id=case_id, retrieval="miss", answer="unfaithful", failure=failure, reason="r",
        missed=missed,
    )  # fmt: skip


CASES = [
    Case(id="c1", question="one?", relevant={"a": 1}),
    Case(id="c2", question="two?", relevant={"b": 1}),
    Case(id="c3", question="three?", evidence=["lost words"]),
    Case(id="c4", question="four?"),
]
TRACES = [
    Trace(case_id="c1", retrieved=(passage("b"), passage("x", 2)), deeper=(passage("a", 9),)),
    Trace(case_id="c2", retrieved=(passage("b"),), deeper=(passage("y", 7),)),
    Trace(case_id="c3", retrieved=(passage("empty", text=" "),)),
]
LINKS = [
    link("c1", RetrievalMiss(passage_id="a", true_rank=9), RetrievalMiss(passage_id="gone")),
    link("c2", failure="passed"),
    link(
        "c3", RetrievalMiss(passage_id="evidence-1", evidence="lost words"), failure="inconclusive"
    ),
]


def drawn(cases=CASES, traces=TRACES, links=LINKS, seed=0, size=16):
    embedder = Embedder(DeterministicFakeEmbedding(size=size))
    return asyncio.run(build_embedding_map(cases, traces, links, embedder=embedder, seed=seed))


def test_points_are_the_questions_and_what_was_needed_or_retrieved():
    found = drawn()
    assert (found["method"], found["embedding"]) == ("pca", "DeterministicFakeEmbedding")
    assert [(q["id"], q["failure"], q["text"]) for q in found["queries"]] == [
        ("c1", "retrieval_miss", "one?"),
        ("c2", "passed", "two?"),
        ("c3", "inconclusive", "three?"),
        ("c4", None, "four?"),
    ]
    assert {p["id"]: p["text"] for p in found["passages"]} == {
        "a": "text of a",
        "b": "text of b",
        "x": "text of x",
        "c3: evidence-1": "lost words",
    }
    assert found["left_out"] == found["queries_left_out"] == 0


def test_a_line_leads_from_each_missed_question_to_what_has_a_place():
    assert drawn()["lines"] == [
        {"case_id": "c1", "passage_id": "a", "failure": "retrieval_miss"},
        {"case_id": "c3", "passage_id": "c3: evidence-1", "failure": "inconclusive"},
    ]


def test_places_are_the_first_two_components_as_scikit_learn_has_them():
    decomposition = pytest.importorskip("sklearn.decomposition")
    for rows, columns in ((40, 12), (12, 40), (20, 2_000), (5, 1)):
        vectors = np.random.default_rng(1).normal(size=(rows, columns)).astype(np.float32)
        ours = project_pca(vectors, 0)
        parts = min(2, columns)
        theirs = decomposition.PCA(parts, svd_solver="full").fit_transform(
            vectors.astype(np.float64)
        )
        np.testing.assert_allclose(np.abs(ours[:, :parts]), np.abs(theirs), atol=1e-8)
        assert not ours[:, parts:].any()


def test_places_fill_the_unit_square_at_one_scale():
    spots = scale_to_unit_square(np.array([[0.0, 10.0], [4.0, 10.0], [2.0, 12.0]]))
    assert spots.tolist() == [[0.0, 0.25], [1.0, 0.25], [0.5, 0.75]]
    found = drawn()
    values = [point[axis] for point in found["queries"] + found["passages"] for axis in "xy"]
    assert (min(values), max(values)) == (0, 1)
    assert all(isinstance(value, float) and round(value, 4) == value for value in values)


def test_equal_texts_lie_in_the_middle():
    cases = [Case(id=name, question="the same?") for name in "abc"]
    found = drawn(cases, [], [])
    assert [(q["x"], q["y"]) for q in found["queries"]] == [(0.5, 0.5)] * 3


def test_without_an_embedder_or_with_two_texts_there_is_no_map():
    assert asyncio.run(build_embedding_map(CASES, TRACES, LINKS, embedder=None, seed=0)) is None
    assert drawn(CASES[:2], [], []) is None
    assert drawn([], [], []) is None


def test_of_too_many_the_missed_stay_and_the_seed_decides_the_rest(monkeypatch):
    monkeypatch.setattr(drawing, "MAX_POINTS", 6)
    many = tuple(passage(f"p{at}", at + 1) for at in range(20))
    cases = [Case(id=f"c{at}", question=f"question {at}?", relevant={"p7": 1}) for at in range(10)]
    traces = [Trace(case_id="c0", retrieved=many)]
    links = [
        link(f"c{at}", RetrievalMiss(passage_id=f"m{at}", text=f"missed {at}")) for at in (8, 9)
    ]
    shown = [drawn(cases, traces, links, seed=seed) for seed in range(8)]
    for found in shown:
        ids = [p["id"] for p in found["passages"]]
        assert len(ids) == len(found["queries"]) == 6
        assert {"m8", "m9", "p7"} <= set(ids)
        assert {"c8", "c9"} <= {q["id"] for q in found["queries"]}
        assert (found["left_out"], found["queries_left_out"]) == (16, 4)
        assert len(found["lines"]) == 2
    assert len({tuple(p["id"] for p in found["passages"]) for found in shown}) > 1
    assert drawn(cases, traces, links, seed=3) == shown[3]


def test_long_texts_are_cut_to_300_characters():
    case = Case(id="c", question="why " * 200)
    traces = [Trace(case_id="c", retrieved=(passage("a"), passage("b", 2)))]
    (query,) = drawn([case], traces, [])["queries"]
    assert len(query["text"]) <= 300
    assert query["text"].endswith("why\N{HORIZONTAL ELLIPSIS}")


@pytest.mark.slow
def test_umap_is_used_where_it_is_installed_and_is_seeded(monkeypatch):
    pytest.importorskip("umap", reason="the extra 'map' is not installed")
    monkeypatch.setattr(drawing, "_UMAP_MIN_POINTS", 100)
    assert find_spec("umap")
    cases = [Case(id=f"c{at}", question=f"question {at}?") for at in range(120)]
    one, other = (drawn(cases, TRACES, LINKS, seed=1) for _ in range(2))
    assert one["method"] == "umap"
    assert one == other

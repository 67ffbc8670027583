"""UMAP lays the map out only for a page that is written, and only if it may."""

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding

import misslink
from misslink.embedding import projection
from misslink.errors import InputError
from misslink.linking import embedding_map

CASES = [{"id": str(n), "question": f"Question {n}?", "relevant": ["p1"]} for n in range(3)]
TRACES = [
    {"case_id": str(n), "retrieved": [{"id": f"p{n}", "text": f"passage {n}"}], "answer": "So."}
    for n in range(3)
]


@pytest.mark.parametrize(
    ("written", "options", "method"),
    [
        (True, {}, "umap"),
        (False, {}, "pca"),
        (True, {"map_method": "pca"}, "pca"),
        (True, {"map_method": "none"}, None),
    ],
)
def test_umap_has_a_switch(tmp_path, monkeypatch, written, options, method):
    monkeypatch.setattr(embedding_map, "_UMAP_MIN_POINTS", 3)
    monkeypatch.setattr(embedding_map, "find_spec", lambda name: name == "umap")
    monkeypatch.setattr(projection, "project_umap", projection.project_pca)
    run = misslink.evaluate(
        traces=TRACES,
        goldset=CASES,
        judge="none",
        cache=None,
        out=tmp_path / "run" if written else None,
        embedding=DeterministicFakeEmbedding(size=4),
        **options,
    )
    assert (run.map or {"method": None})["method"] == method


def test_another_method_is_refused():
    with pytest.raises(InputError, match="--map is 'tsne'; give umap, pca or none"):
        misslink.evaluate(traces=TRACES, goldset=CASES, map_method="tsne")

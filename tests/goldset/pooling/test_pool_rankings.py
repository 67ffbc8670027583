"""What retrievers bring: from run files in the order of trec_eval, and live."""

from __future__ import annotations

import asyncio
import json

import pytest

from made_pools import corpus, goldset
from misslink.errors import AppUnreachableError, InputError
from misslink.goldset.pooling.rankings import (
    match_corpus_ids,
    query_retriever,
    read_rankings,
    retriever_names,
)
from misslink.text.normalization import content_id


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


TREC = "q0 Q0 d1 1 2.0 a\nq0 Q0 d2 2 3.0 a\nq9 Q0 d5 1 1 a\nq0 Q0 d0 3 3.0 a\n"


def test_a_trec_run_is_ranked_by_score_and_ties_by_id_descending(tmp_path):
    found = read_rankings(written(tmp_path / "a.trec", TREC), "a", {"q0"}, 2)
    assert found.passages == {"q0": ("d2", "d0")}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps({"q0": ["d2", "d0", "d1"]})),
        ("a.json", json.dumps({"q0": {"d1": 1, "d0": 2, "d2": 2.5}})),
        ("a.tsv", "query_id\tdoc_id\trank\nq0\td1\t3\nq0\td2\t1\nq0\td0\t2\n"),
        ("a.jsonl", json.dumps({"case_id": "q0", "retrieved": ["d2", "d0", "d1"]}) + "\n"),
    ],
    ids=["lists", "scores", "ranks", "traces"],
)
def test_every_form_of_a_run_gives_the_same_ranking(tmp_path, name, text):
    if name == "a.jsonl":
        rows = [{"id": i, "text": i} for i in ("d2", "d0", "d1")]
        text = json.dumps({"case_id": "q0", "retrieved": rows}) + "\n"
    found = read_rankings(written(tmp_path / name, text), "a", {"q0"}, 10)
    assert found.passages == {"q0": ("d2", "d0", "d1")}


def test_a_run_of_other_questions_is_told(tmp_path):
    with pytest.raises(InputError, match="contains no question of the gold set"):
        read_rankings(written(tmp_path / "a.trec", TREC), "a", {"other"}, 2)


def test_a_passage_ranked_twice_is_told(tmp_path):
    text = "q0 Q0 d1 1 2.0 a\nq0 Q0 d1 2 1.0 a\n"
    with pytest.raises(InputError, match="'d1' twice"):
        read_rankings(written(tmp_path / "a.trec", text), "a", {"q0"}, 2)


def test_a_passage_that_the_corpus_lacks_is_told_with_the_way_out(tmp_path):
    found = read_rankings(written(tmp_path / "a.trec", TREC), "a", {"q0"}, 5)
    with pytest.raises(InputError, match=r"a\.trec: .*\('d1', 'd2'\). Give the corpus"):
        match_corpus_ids(found, {"d0": "text"})


def test_a_retriever_given_twice_is_told_and_files_of_one_name_keep_their_folders():
    assert retriever_names(["x/run.trec", "y/run.trec"]) == ["run", "y/run.trec"]
    with pytest.raises(InputError, match="named twice"):
        retriever_names(["a.trec", "a.trec", "a.trec"])
    with pytest.raises(InputError, match="named twice"):
        retriever_names(["a.trec", "./a.trec"])


def asked(app, **options):
    return asyncio.run(query_retriever(app, "app", goldset(2).cases, 4, **options))


def bm25_retriever(**options):
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    class Retriever(BaseRetriever):
        k: int = 2

        def _get_relevant_documents(self, query, *, run_manager):
            topic = query.rstrip("?").split()[-1]
            found = [one for one in corpus() if topic in one.text][: self.k]
            return [Document(one.text, id=one.id if options.get("ids", True) else None)
                    for one in found]  # fmt: skip

    return Retriever()


def test_a_live_retriever_is_asked_as_deep_as_the_pool():
    assert asked(bm25_retriever()).passages == {
        "q0": ("d0", "d6", "d12", "d18"),
        "q1": ("d1", "d7", "d13", "d19"),
    }


def test_passages_without_an_id_are_found_in_the_corpus_by_their_text():
    found = asked(bm25_retriever(ids=False))
    texts = {passage.id: passage.text for passage in corpus()}
    assert found.passages["q0"][0] == content_id(texts["d0"])
    assert match_corpus_ids(found, texts).passages["q0"] == ("d0", "d6", "d12", "d18")


def test_a_retriever_that_never_answers_is_an_outage():
    def broken(question):
        raise ConnectionError("no such host")

    with pytest.raises(AppUnreachableError, match="no such host"):
        asked(broken)

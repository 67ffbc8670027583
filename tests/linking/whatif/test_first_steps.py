"""A what-if never replaces a right first step by a wrong one: real apps, evaluated and tried."""

import hashlib
import re
import uuid

import chromadb
import pytest
from langchain_chroma import Chroma
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda

import misslink
from misslink.io import read_run
from misslink.report.fixes import count_fixes, fix_records
from misslink.report.json_document import build_document
from misslink.report.page import build_page, render_markdown
from misslink.report.summary import first_step
from town import Hashed, case, corpus

CORPUS = corpus()
CASES = [case(number, reference=f"It opens at {number % 12 + 1}.") for number in range(12)]
HIDDEN = {"p1", "p4", "p7", "p10"}
UNINDEXED = "p11"


class Rough(Hashed):
    """No two passages are equally far from a question: a store may put such in any order."""

    def one(self, text):
        return [*super().one(text), int(hashlib.sha256(text.encode()).hexdigest(), 16) % 997 / 1e4]


def app_of(dimensions, **search):
    """A chain that answers from the ward's passage, and without it names a wrong time."""
    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.EphemeralClient(settings)
    store = Chroma(uuid.uuid4().hex, Rough(dimensions), client=client)
    store.add_documents(
        [
            Document(id=p.id, page_content=p.text, metadata={"open": p.id not in HIDDEN})
            for p in CORPUS
            if p.id != UNINDEXED or "filter" not in search
        ]
    )
    retriever = store.as_retriever(search_kwargs=search)

    def answer(question):
        documents = retriever.invoke(question)
        ward = re.search(r"ward (\d+)", question)[1]
        texts = " ".join(document.page_content for document in documents)
        found = re.search(rf"ward {ward} opens at (\d+) ", texts)
        said = found[1] if found else "77"
        return {"answer": f"It opens at {said}.", "retrieved": documents}

    return RunnableLambda(answer)


def evaluated(app, folder):
    misslink.evaluate(app, CASES, judge="heuristic", out=folder, cache=None)
    return read_run(folder)


def fixes(run):
    return [(fix.fix.name, len(fix.cases), fix.fix.basis) for fix in count_fixes(run)]


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """An app whose k = 1 is too small, over a rough embedding; and the folder of its run."""
    folder, app = tmp_path_factory.mktemp("narrow") / "run", app_of(64, k=1)
    assert fixes(evaluated(app, folder)) == [
        ("larger_k", 3, "measured_rank"),
        ("hybrid_search", 3, "measured_rank"),
        ("rerank", 3, "at_most"),
    ]
    return app, folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "widths", "bases"),
    [
        (["k"], (2,), ("measured_rank", "measured_rank")),  # the ranks know of a better k
        (["k"], (), ("whatif", "measured_rank")),
        (["k", "bm25"], (5, 3), ("whatif", "whatif")),
        (None, (), ("whatif", "whatif")),
    ],
)
def test_a_search_that_reaches_as_many_does_not_replace_the_larger_k(
    narrow, options, widths, bases
):
    app, folder = narrow
    misslink.whatif(folder, app=app, options=options, passages=widths, cache=folder / "c")
    run = read_run(folder)
    assert fixes(run) == [
        ("larger_k", 3, bases[0]),
        ("hybrid_search", 3, bases[1]),
        ("rerank", 3, "at_most"),
    ]
    assert first_step(run).action == "Retrieve 3 passages, not 1."


@pytest.mark.slow
def test_what_is_checked_by_new_answers_keeps_its_place(narrow, tmp_path):
    app, folder = narrow
    misslink.whatif(folder, app=app, check=4, cache=tmp_path / "cache.sqlite")
    assert first_step(read_run(folder)).fix == "larger_k"


@pytest.mark.slow
def test_one_number_stands_for_a_fix_in_every_view(narrow):
    app, folder = narrow
    misslink.whatif(folder, app=app, options=["k", "bm25"], passages=(3,), cache=folder / "c")
    run = read_run(folder)
    records = fix_records(run)
    assert [(one["action"], one["cases"]) for one in records][:2] == [
        ("Retrieve 3 passages, not 1.", 3),
        ("Add keyword search.", 3),
    ]
    assert build_document(run)["fixes"] == records
    assert "Retrieve 3 passages, not 1" in (page := render_markdown(build_page(run)))
    assert "What-if: it reaches 3 failed cases" in page


@pytest.mark.slow
def test_no_other_search_reaches_what_a_filter_hides_or_the_index_lacks(tmp_path):
    folder = tmp_path / "run"
    run = evaluated(app_of(256, k=2, filter={"open": True}), folder)
    found = [("check_filter", 4, "measured_rank"), ("index_documents", 1, "at_most")]
    assert fixes(run) == found
    link = next(link for link in run.links if link.case_id == "c4")
    assert [miss.lost_at for miss in link.missed] == ["filtered_out"]
    assert "(a filter hides it)" in link.reason

    tried = misslink.whatif(folder, corpus=CORPUS, options=["k", "bm25"], cache=tmp_path / "c")
    by_words = next(option for option in tried.options if option.name == "bm25")
    assert (by_words.reached, by_words.newly_retrieved) == ((), 0)
    assert by_words.metrics["recall@2"].difference.value == 0
    assert any("no other search reaches: 5." in note for note in tried.notes)
    run = read_run(folder)
    assert fixes(run) == found
    assert first_step(run).fix == "check_filter"

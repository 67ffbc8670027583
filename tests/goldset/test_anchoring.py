"""Labels as spans of documents: they mean the same text in any chunks."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import pytest
from typer.testing import CliRunner

from misslink.errors import InputError
from misslink.goldset.anchoring import anchor_goldset
from misslink.goldset.checks import check_goldset
from misslink.goldset.checks.passage_search import PassageSearch
from misslink.goldset.checks.protocol import (
    CheckInputs,
    accepted_proposals,
    apply_proposals,
    derive_ids,
)
from misslink.goldset.cli import app
from misslink.io.goldset import read_goldset
from misslink.retrieval.matching import case_needs, match_needs
from misslink.types import Case, Passage

FACTS = [
    f"The {name} leaves pier {number} at {number + 7} o'clock and returns {number} hours later."
    for number, name in enumerate(
        ["Heron", "Gannet", "Curlew", "Dunlin", "Plover", "Petrel", "Fulmar", "Skua"], 2
    )
]
DOCUMENTS = {"north.md": " ".join(FACTS[:4]), "south.md": "\n\n".join(FACTS[4:])}
PLACES = {}  # document and start of each chunk, by its id and text
LENGTH = len(DOCUMENTS["north.md"])
WHOLE = [Passage(id=name, text=text, rank=1) for name, text in DOCUMENTS.items()]


def chunks(bounds, ids="{document}#{number}"):
    made = []
    for document, text in DOCUMENTS.items():
        for number, (start, end) in enumerate(bounds(text)):
            name = ids.format(
                document=document,
                number=number,
                hash=f"{crc32(f'{document} {number}'.encode()):x}",
            )
            if part := text[start:end].strip():
                passage = Passage(id=name, rank=1, text=part, metadata={"source": document})
                made.append(passage)
                PLACES[name, part] = document, text.index(part, start)
    return made


def one_fact(text):
    ends = [place + 1 for place, sign in enumerate(text) if sign == "."]
    return pairwise([0, *ends])


def every(size, step):
    return lambda text: [(at, at + size) for at in range(0, len(text), step)]


OLD = chunks(one_fact)
GOLD = read_goldset(
    [
        Case(id=f"q{n}", question=f"Question {n}?", relevant={OLD[n].id: 2, OLD[-1 - n].id: 1})
        for n in range(4)
    ]
)
RECHUNKINGS = [
    *(chunks(one_fact, ids) for ids in ("{hash}", "{number}-of-{document}")),
    *(chunks(every(size, size)) for size in (7, 15, 30, 50, 77, 100, 150, 200, 290)),
    *(chunks(every(size, step), "{hash}") for size, step in (
        (40, 20), (60, 45), (90, 70), (120, 60), (160, 140), (200, 100), (240, 120), (300, 250),
        (500, 500),
    )),
]  # fmt: skip


@pytest.fixture(scope="module")
def anchored():
    return anchor_goldset(GOLD, WHOLE, OLD)


def share(case, retrieved):
    (needs,) = case_needs(case, retrieved)
    return len(match_needs(needs, retrieved)) / len(needs)


def test_each_label_becomes_the_place_of_its_text(anchored):
    assert (anchored.spans, anchored.moved, anchored.missing) == (8, (), ())
    for case in anchored.cases:
        for span in case.spans:
            assert DOCUMENTS[span.id][span.start : span.end] == span.quote
    assert sorted(span.grade for span in anchored.cases[0].spans) == [1, 2]
    again = read_goldset([json.loads(case.model_dump_json()) for case in anchored.cases])
    assert again.cases == anchored.cases


def test_20_rechunkings_give_the_same_share_for_the_same_text(anchored):
    assert len(RECHUNKINGS) == 20
    for case, known in zip(anchored.cases, (0, 1, 2, 2), strict=True):
        for new in RECHUNKINGS:
            # What is retrieved of each new chunk: its part of the first labels.
            found = [
                passage.model_copy(update={"text": part})
                for passage in new
                for span in case.spans[:known]
                if (part := _shared(passage, span))
            ]
            assert share(case, found) == known / 2, (case.id, new[0].text)


def _shared(chunk, span):
    document, start = PLACES[chunk.id, chunk.text]
    low, high = max(start, span.start), min(start + len(chunk.text), span.end)
    return DOCUMENTS[document][low:high].strip() if document == span.id else ""


@pytest.mark.parametrize("number", range(20))
def test_ids_are_repaired_by_the_text_that_they_meant(number):
    new = RECHUNKINGS[number]
    by_id = {passage.id: passage for passage in new}
    inputs = CheckInputs(corpus=PassageSearch(new), before=PassageSearch(OLD))
    accepted = accepted_proposals(check_goldset(GOLD, inputs), 0.9)
    old = {passage.id: passage.text for passage in OLD}
    for proposal in accepted:
        text = old[proposal.before]
        holders = {(passage.id,) for passage in new if text in passage.text}
        if holders:
            assert set(proposal.sets) == holders
        else:
            (parts,) = proposal.sets
            places = [PLACES[name, by_id[name].text] for name in parts]
            covered = {
                at
                for name, (_, start) in zip(parts, places, strict=True)
                for at in range(start, start + len(by_id[name].text))
            }
            (document,) = {document for document, _ in places}
            start = DOCUMENTS[document].index(text)
            lacking = set(range(start, start + len(text))) - covered
            assert not "".join(DOCUMENTS[document][at] for at in lacking).strip()
    fixed = apply_proposals(GOLD.cases, accepted)
    for case in fixed:
        for name in case.relevant:
            assert name in by_id
    assert not any(f.severity == "error" for f in check_goldset(read_goldset(fixed), inputs)
                   if f.check == "unreachable")  # fmt: skip


def test_spans_give_the_ids_of_the_index_at_hand(anchored):
    case = anchored.cases[0]
    merged = derive_ids(case, PassageSearch(chunks(every(500, 500))))
    assert merged.relevant == {"north.md#0": 2, "south.md#0": 1}
    overlapping = derive_ids(case, PassageSearch(chunks(every(300, 60))))
    assert len(overlapping.relevant_any) > 1
    assert overlapping.spans == case.spans


def test_alternatives_stay_alternatives():
    gold = read_goldset(
        [Case(id="a", question="Why?", relevant_any=((OLD[0].id,), (OLD[1].id, OLD[2].id)))]
    )
    (case,) = anchor_goldset(gold, WHOLE, OLD).cases
    assert [len(needs) for needs in case_needs(case, OLD)] == [1, 2]
    assert len(match_needs(case_needs(case, OLD)[1], OLD)) == 2


def test_spans_move_with_an_edited_document(anchored):
    edited = [
        document.model_copy(update={"text": f"A new first line.\n{document.text}"})
        for document in WHOLE
    ]
    moved = anchor_goldset(read_goldset(anchored.cases), edited)
    assert len(moved.moved) == 8
    assert {move.after.start - move.before.start for move in moved.moved} == {18}
    assert {s.start for c in moved.cases for s in c.spans} == {
        s.start + 18 for c in anchored.cases for s in c.spans
    }


def test_a_short_text_counts_in_its_own_document_alone():
    span = {"id": "north.md", "start": 0, "end": 9, "quote": "The Heron"}
    case = Case(id="a", question="Which?", evidence=[span])
    elsewhere = Passage(id="x", rank=1, text="The Heron", metadata={"source": "south.md"})
    own = elsewhere.model_copy(update={"metadata": {"source": "docs/north.md"}})
    assert (share(case, [elsewhere]), share(case, [own])) == (0, 1)


@pytest.mark.parametrize(
    ("spans", "problem"),
    [
        ([{"id": "a", "start": 2, "end": 9, "quote": "short"}], "has 5 characters"),
        ([{"id": "a", "start": 0, "end": 3, "quote": "one"},
          {"id": "a", "start": 2, "end": 5, "quote": "eno"}], "overlap"),
        ([{"id": "none.md", "start": 0, "end": 3, "quote": "The"}], "no document 'none.md'"),
        ([{"id": "north.md", "start": 9000, "end": 9003, "quote": "xyz"}],
         f"case 'q': the span 9000 to 9003 is outside 'north.md', which has {LENGTH} characters"),
        ([{"id": "north.md", "start": 9000, "end": 9006, "quote": "leaves"}], "the quote 4 times"),
        ([{"id": "north.md", "start": 1, "end": 4, "quote": "xyz"}], "does not have the quote"),
        (["text", {"id": "north.md", "start": 0, "end": 3, "quote": "The"}], "not both"),
        ([{"id": "north.md", "start": 0}], "end"),
    ],
)  # fmt: skip
def test_a_bad_span_is_one_sentence(spans, problem):
    with pytest.raises(InputError) as error:
        anchor_goldset(read_goldset([{"id": "q", "question": "Why?", "evidence": spans}]), WHOLE)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command_writes_spans_and_lists_what_has_no_place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("docs").mkdir()
    for name, text in DOCUMENTS.items():
        Path("docs", name).write_text(text)
    rows = "\n".join(
        json.dumps({"id": p.id, "text": p.text, "source": p.metadata["source"]}) for p in OLD
    )
    Path("chunks.jsonl").write_text(rows)
    lines = [case.model_dump_json(exclude_defaults=True) for case in GOLD.cases]
    Path("gold.jsonl").write_text("\n".join(lines))
    options = ["anchor", "gold.jsonl", "--corpus", "chunks.jsonl", "--documents", "docs", "--json"]
    done = CliRunner().invoke(app, [*options, "--out", "spans.jsonl"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["spans"] == 8
    Path("docs/south.md").write_text("Another text.")
    done = CliRunner().invoke(app, [*options, "--out", "other.jsonl"])
    assert done.exit_code == 1
    assert len(json.loads(done.stdout)["missing"]) == 4


SIZE = len(FACTS[0])
SPAN = {"id": "north.md", "start": 0, "end": SIZE, "quote": FACTS[0]}
AFAR = SPAN | {"start": 9000, "end": 9000 + SIZE}
NEAR = SPAN | {"start": 5, "end": 5 + SIZE}


def with_span(folder, span):
    (folder / "docs").mkdir()
    for name, text in DOCUMENTS.items():
        (folder / "docs" / name).write_text(text)
    row = {"id": "dogs", "question": "When does the Heron leave?", "evidence": [span]}
    (folder / "gold.jsonl").write_text(json.dumps(row))
    chunks = [{"id": f"c{n}", "text": text, "source": "north.md"} for n, text in enumerate(FACTS)]
    (folder / "chunks.jsonl").write_text("\n".join(map(json.dumps, chunks)))


@pytest.mark.parametrize("option", ["--documents", "--corpus"])
@pytest.mark.parametrize(
    ("span", "code", "severity", "says"),
    [
        (SPAN, 0, None, ""),
        (AFAR, 1, "error", [f"9000 to {9000 + SIZE} is outside 'north.md'", f"has {LENGTH} characters"]),
        (NEAR, 0, "warning", ["'north.md' does not have the quote at 5 to "]),
        (NEAR | {"quote": "x" * SIZE}, 1, "error", ["does not have the quote"]),
    ],
)  # fmt: skip
def test_check_finds_a_span_outside_of_its_document(
    tmp_path, monkeypatch, option, span, code, severity, says
):
    with_span(tmp_path, span)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["check", "gold.jsonl", option, "docs", "--json"])
    assert done.exit_code == code, done.output
    document = json.loads(done.stdout)
    found = [f for f in document["findings"] if f["check"] == "spans"]
    assert [f["severity"] for f in found] == [severity] * bool(severity)
    assert "spans" in document["checked"]
    for finding in found:
        assert finding["cases"] == ["dogs"]
        assert all(text in finding["message"] for text in says)
        assert finding["numbers"]["length"] == LENGTH


def test_chunks_alone_do_not_tell_where_a_document_ends(tmp_path, monkeypatch):
    with_span(tmp_path, AFAR)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["check", "gold.jsonl", "--corpus", "chunks.jsonl", "--json"])
    assert json.loads(done.stdout)["not_checked"]["spans"] == "no --documents was given"
    (Path("docs") / "north.md").unlink()
    options = ["--corpus", "chunks.jsonl", "--documents", "docs"]
    done = CliRunner().invoke(app, ["check", "gold.jsonl", *options, "--json"])
    assert done.exit_code == 1
    assert "there is no document 'north.md'" in done.stdout


def test_anchor_says_that_it_moved_a_span_from_outside(tmp_path, monkeypatch):
    with_span(tmp_path, AFAR)
    monkeypatch.chdir(tmp_path)
    options = ["anchor", "gold.jsonl", "--documents", "docs", "--out", "moved.jsonl"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    said = (
        f"dogs: the span 9000 to {9000 + SIZE} is outside 'north.md', which has {LENGTH} characters"
    )
    assert f"{said}; moved to 0 to {SIZE}." in " ".join(done.output.split())
    done = CliRunner().invoke(app, [*options, "--overwrite", "--json"])
    [move] = json.loads(done.stdout)["moves"]
    assert (move["before"]["start"], move["after"]["start"]) == (9000, 0)

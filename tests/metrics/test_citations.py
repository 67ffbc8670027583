"""What in an answer is a citation, of which sentence, and of which passage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.metrics.citation_correctness import _MARKER, _OPENS, find_cited_statements
from misslink.types import Passage

DOCS = tuple(Passage(id=f"doc-{n}", text="t", rank=n) for n in (1, 2, 3))


def read(answer, passages=DOCS):
    return [(each.text, each.cited, each.lost) for each in find_cited_statements(answer, passages)]


@pytest.mark.parametrize(
    ("marker", "cited"),
    [
        ("[1]", ["doc-1"]),
        ("[2, 3]", ["doc-2", "doc-3"]),
        ("[1][3]", ["doc-1", "doc-3"]),
        ("[1-3]", ["doc-1", "doc-2", "doc-3"]),
        ("[1\u20132]", ["doc-1", "doc-2"]),
        ("[^2]", ["doc-2"]),
        ("[doc-2]", ["doc-2"]),
        ("[Doc-2; doc-3]", ["doc-2", "doc-3"]),
        ("[Source 1]", ["doc-1"]),
        ("(source 2)", ["doc-2"]),
        ("(see sources 1 and 3)", ["doc-1", "doc-3"]),
        ("(Document #3)", ["doc-3"]),
        ("(doc-3)", ["doc-3"]),
        ("[1, p. 7]", ["doc-1"]),
        ("[2](https://example.org/2)", ["doc-2"]),
        ("\u30103\u2020source\u3011", ["doc-3"]),
        ("<sup>1,2</sup>", ["doc-1", "doc-2"]),
        ("\u00b9", ["doc-1"]),
        ("\u00b2,\u00b3", ["doc-2", "doc-3"]),
        (" \u00b9", ["doc-1"]),
        (" (see the harbour [2])", ["doc-2"]),
    ],
)
def test_every_usual_way_of_citing_is_read(marker, cited):
    found = read(f"Gulls nest{marker}.")
    assert [(names, lost) for _, names, lost in found] == [(tuple(cited), ())]
    assert found[0][0] in ("Gulls nest.", "Gulls nest (see the harbour).")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "[1]",
        "Sources: [1], [2]",
        "He said that it [sic] opened in [2019] [citation needed].",
        "It has (1) a pier and (2) a crane.",
        "See [the manual](https://example.org).",
        "Call `rows[1]`.\n```\nrows = [[1]]\n```",
        "It covers 12 km\u00b2 and 10\u00b2 piers.",
        "Take [0] of it.",
        "Take x[1] and y[2] from the array.",
        "The ids are in row_ids[1][2].",
        "Then rows[1] = 5 and rows[2].name follow.",
        "Call ``x `[1]` `` or\n~~~\nsort rows[1]\n~~~",
        "Press [2] to go on.",
        "To go on, press key [1] or [2].",
        "It is 12 km \u00b2 wide, 10 \u00b2 long, x \u00b2 high.",
    ],
)
def test_what_only_looks_like_a_citation_is_none(answer):
    assert read(answer) == []


def test_a_marker_behind_the_full_stop_belongs_to_the_sentence_before_it():
    assert read("Gulls nest. [1] Ships pay.[2][3] Nobody swims.") == [
        ("Gulls nest.", ("doc-1",), ()),
        ("Ships pay.", ("doc-2", "doc-3"), ()),
    ]


def test_one_at_the_start_of_a_line_belongs_to_what_follows():
    assert read("[doc-2] says blue.\n[1] says red.") == [
        ("says blue.", ("doc-2",), ()),
        ("says red.", ("doc-1",), ()),
    ]


def test_what_does_not_exist_is_cited_and_lost():
    assert read("Gulls nest [4]. Ships pay [doc-9, 1].") == [
        ("Gulls nest.", (), ("4",)),
        ("Ships pay.", ("doc-1",), ("doc-9",)),
    ]
    assert read("Gulls nest [1].", ()) == [("Gulls nest.", (), ("1",))]


def test_an_id_goes_before_a_place():
    numbered = tuple(Passage(id=name, text="t", rank=n) for n, name in enumerate("21", 1))
    assert read("Gulls nest [1].", numbered) == [("Gulls nest.", ("1",), ())]


def test_glued_to_a_word_it_cites_and_an_index_beside_it_does_not():
    assert read("It opens at seven[1], where x[2] is a gull[3]. Vitamin C[2] helps.") == [
        ("It opens at seven, where x[2] is a gull.", ("doc-1", "doc-3"), ()),
        ("Vitamin C helps.", ("doc-2",), ()),
    ]
    assert read("Users press keys [1]. In 1904 \u00b2 it opened.") == [
        ("Users press keys.", ("doc-1",), ()),
        ("In 1904 it opened.", ("doc-2",), ()),
    ]


def test_a_page_number_ends_no_sentence():
    assert read("A recipe [see p. 3] is good [1, p. 3]. It is on p. 4 [2].") == [
        ("A recipe [see p. 3] is good.", ("doc-1",), ()),
        ("It is on p. 4.", ("doc-2",), ()),
    ]


def test_a_closing_list_of_sources_states_nothing():
    answer = "Gulls nest [1].\n\n**Sources:**\n[1] A book of gulls.\n[2] Another one."
    assert read(answer) == [("Gulls nest.", ("doc-1",), ())]
    assert read("Gulls nest [1].\n[1]: A book of gulls.") == [("Gulls nest.", ("doc-1",), ())]


def test_the_same_passage_twice_in_a_sentence_is_one_citation():
    assert read("Gulls [1] nest [doc-1].") == [("Gulls nest.", ("doc-1",), ())]


@given(st.text(alphabet="ab .\n[](),-123\u00b9\u00b2^`dosurce<>/p", max_size=80))
def test_any_text_can_be_read_and_statements_lie_in_it(answer):
    for each in find_cited_statements(answer, DOCS):
        assert 0 <= each.start < each.end <= len(answer)
        assert each.cited or each.lost
        assert len(set(each.cited)) == len(each.cited)


@given(st.text(alphabet="[](){}<>sup/^1a, \u3010\u3011\u2070\u00b2\u2079", max_size=30))
def test_where_no_marker_can_begin_there_is_none(text):
    markers = [marker.start() for marker in _MARKER.finditer(text)]
    assert set(markers) <= {opening.start() for opening in _OPENS.finditer(text)}

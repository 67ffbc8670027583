from __future__ import annotations

import json

import pytest

from misslink.judge.backends.label_probabilities import find_label_spans, schema_labels
from misslink.judge.protocol import Examination, ExaminationWithReference, strict_schema

SCHEMA = strict_schema(Examination)
SAID = {
    "claims": [
        {"text": 'He said: "{yes}"', "support": "supported", "quote": None},
        {"text": "", "support": "unsupported", "quote": "\\"},
    ],
    "passages": [{"passage": 1, "relevant": True}, {"passage": 2, "relevant": False}],
    "sufficient": None,
    "response": "answers",
    "helpful": 4,
}


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}])
def test_every_label_is_found_at_its_place_however_the_text_is_laid_out(layout):
    text = json.dumps(SAID, **layout)
    found = {place.name: text[place.start : place.end] for place in find_label_spans(text, SCHEMA)}
    assert found == {
        "claims.0.support": '"supported"',
        "claims.1.support": '"unsupported"',
        "passages.0.relevant": "true",
        "passages.1.relevant": "false",
        "sufficient": "null",
        "response": '"answers"',
        "helpful": "4",
    }


def test_every_label_place_of_the_schema_with_references_has_its_labels():
    claim = {**SAID["claims"][0], "reference": "agrees"}
    said = {
        **SAID,
        "claims": [claim],
        "reference_claims": [{"reference": 1, "text": "", "answer": "omits"}],
    }
    places = find_label_spans(json.dumps(said), strict_schema(ExaminationWithReference))
    labels = {place.name: set(place.labels) for place in places}
    assert labels["claims.0.reference"] == {"agrees", "contradicts", "silent"}
    assert labels["reference_claims.0.answer"] == {"states", "contradicts", "omits"}
    assert labels["sufficient"] == {"yes", "partly", "no", "null"}
    assert labels["helpful"] == {"1", "2", "3", "4", "5", "null"}
    assert labels["passages.0.relevant"] == {"true", "false"}


def test_keys_that_the_schema_does_not_know_are_passed_over():
    text = '{"note": {"response": "evades", "x": [1, "}"]}, "response": "partly"}'
    (place,) = find_label_spans(text, SCHEMA)
    assert (place.name, text[place.start : place.end]) == ("response", '"partly"')


def test_of_a_key_that_stands_twice_the_last_counts():
    text = '{"response": "evades", "response": "partly"}'
    (place,) = find_label_spans(text, SCHEMA)
    assert text[place.start : place.end] == '"partly"'


@pytest.mark.parametrize(
    "text", ["", "{", '{"response"', '{"response": "evades"', "{1: 2}", "[1 2"]
)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError, match=r".*"):
        find_label_spans(text, SCHEMA)


@pytest.mark.parametrize(
    ("node", "labels"),
    [
        ({"type": "boolean"}, {"true": "true", "false": "false"}),
        ({"type": ["boolean", "null"]}, {"true": "true", "false": "false", "null": "null"}),
        ({"enum": ["a", None], "type": ["string", "null"]}, {"a": '"a"', "null": "null"}),
        ({"enum": [1, 2], "type": "integer"}, {"1": "1", "2": "2"}),
        ({"type": "string"}, {}),
        ({"type": ["string", "null"]}, {}),
        ({"const": "a"}, {}),
        ({"enum": ["null", None]}, {}),  # two labels of one name
        ({}, {}),
    ],
)
def test_labels_are_what_a_schema_leaves(node, labels):
    assert schema_labels(node) == labels

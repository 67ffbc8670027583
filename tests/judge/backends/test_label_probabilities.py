"""Probabilities of labels, from the log-probabilities of tokens."""

from __future__ import annotations

import json
import math
import re
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from misslink.judge.backends.label_probabilities import find_label_spans, schema_labels
from misslink.judge.backends.response_parsing import ParsedResponse
from misslink.judge.examination import Examination, ExaminationWithReference
from misslink.judge.protocol import strict_schema

QUOTE = '"'


class Verdict(BaseModel):
    support: Literal["supported", "contradicted", "unsupported", "unknown"]
    sure: bool | None = None
    score: Literal[1, 2, 10] | None = None


class Word(BaseModel):
    supported: Literal["yes", "no"]


def token(text, chance=1.0, **others):
    """A token with its probability and those of alternatives; `_` stands for a leading blank."""
    shares = {text: chance} | {name.replace("_", " "): share for name, share in others.items()}
    return listed(shares, text)


def listed(shares, text):
    each = [{"token": name, "logprob": math.log(p), "bytes": None} for name, p in shares.items()]
    return {**next(one for one in each if one["token"] == text), "top_logprobs": each}


def chances(tokens, schema=Verdict, *, content=None):
    text = "".join(one["token"] for one in tokens) if content is None else content
    reply = ParsedResponse(text, "", logprobs=tokens).reply(schema)
    assert reply.parsed is not None
    return reply.probabilities


def verdict(*tokens):
    """The tokens of a verdict whose label is these."""
    return [token('{"support":'), *tokens, token("}")]


def test_alternatives_at_the_labels_token_share_its_probability():
    found = chances(
        verdict(token(' "'), token("supported", 0.6, contradicted=0.2, unsupported=0.1), token('"'))
    )
    assert found["support"] == pytest.approx(
        {"supported": 6 / 9, "contradicted": 2 / 9, "unsupported": 1 / 9, "unknown": 0.0}
    )


@pytest.mark.parametrize(
    "cut",
    [
        ['{"support":', ' "', "supported", '"', "}"],
        ['{"support":', ' "supported"', "}"],
        ['{"support":', ' "supported', '"}'],
        ['{"support', '":"', "supported", '"}'],
        ['{"support":', '"', "supp", "orted", '"}'],
        ['{\n  "support"', ": ", '"supported"', "\n}"],
        ['{\n\t"support"', ":", '\n "supported"}'],
        ["```json\n", '{"support": ', '"supported"', "}\n```"],
        ["<think>", 'or {"support": "unknown"}?', "</think>", '{"support": "', "supported", '"}'],
    ],
)
def test_the_same_probability_comes_from_every_way_to_cut_a_reply(cut):
    tokens = [token(piece) for piece in cut]
    # The last token with the label's first letters is where it could have become another one.
    at = max(n for n, piece in enumerate(cut) if re.search(r'^\s*"?supp(orted|$)', piece))
    other = re.sub("supp(orted)?", "contradicted", cut[at])
    tokens[at] = listed({cut[at]: 0.75, other: 0.25}, cut[at])
    found = chances(tokens)["support"]
    assert (found["supported"], found["contradicted"]) == pytest.approx((0.75, 0.25))


def test_labels_that_begin_alike_are_told_apart_where_they_differ():
    found = chances(
        verdict(
            token(' "'),
            token("un", 0.5, supported=0.5),
            token("known", 0.8, supported=0.2),
            token(QUOTE),
        )
    )
    assert found["support"] == pytest.approx(
        {"supported": 0.5, "contradicted": 0.0, "unsupported": 0.1, "unknown": 0.4}
    )


def test_an_alternative_that_fits_some_labels_and_was_not_followed_gives_no_probability():
    tokens = verdict(token(' "'), token("supported", 0.6, un=0.4), token('"'))
    assert "support" not in chances(tokens)


def test_a_blank_that_any_label_could_follow_takes_nothing_from_them():
    tokens = [
        token('{"support":'),
        listed({' "supported"': 0.5, ' "contradicted"': 0.3, " ": 0.2}, ' "supported"'),
        token("}"),
    ]
    assert chances(tokens)["support"]["supported"] == pytest.approx(0.5 / 0.8)


def test_two_spellings_of_one_label_are_one_label():
    tokens = [
        token('{"support":'),
        listed({' "supported"': 0.4, '"supported"': 0.2, ' "contradicted"': 0.4}, ' "supported"'),
        token("}"),
    ]
    assert chances(tokens)["support"]["supported"] == pytest.approx(0.6)


def test_labels_with_less_than_half_of_the_probability_have_none():
    label = token("supported", 0.4, maybe=0.5)
    assert chances(verdict(token(' "'), label, token('"'))) == {}


def test_null_numbers_and_truth_values_are_labels_too():
    tokens = [
        token('{"support":"unknown","sure":', 1.0),
        token(" true", 0.7, _null=0.2, _false=0.1),
        token(', "score":'),
        token(" ", 1.0),
        listed({"1": 0.5, "10": 0.25, "2": 0.25}, "1"),
        token("}"),
    ]
    found = chances(tokens)
    assert found["sure"] == pytest.approx({"true": 0.7, "false": 0.1, "null": 0.2})
    assert found["score"] == pytest.approx({"1": 0.5, "2": 0.25, "10": 0.25})


def test_a_number_that_goes_on_is_another_number():
    head = token('{"support":"unknown","score":')
    tokens = [
        head,
        listed({"1": 0.9, "2": 0.1}, "1"),
        listed({"0": 0.75, "}": 0.25}, "0"),
        token("}"),
    ]
    found = chances(tokens)["score"]
    assert found == pytest.approx({"1": 0.225, "2": 0.1, "10": 0.675})


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: None,
        lambda _: [],
        lambda _: {},
        lambda tokens: tokens[1:],
        lambda tokens: [*tokens[:-1], {"token": "]"}],
        lambda tokens: [*tokens[:-1], "}"],
        lambda tokens: [{**one, "logprob": None} for one in tokens],
        lambda tokens: [{**one, "logprob": math.nan} for one in tokens],
        lambda tokens: [{**one, "logprob": True} for one in tokens],
        lambda tokens: [{**one, "logprob": 10**400} for one in tokens],
        lambda tokens: [{**one, "token": f"token_id:{n}"} for n, one in enumerate(tokens)],
        lambda tokens: [
            {**one, "bytes": [0, 300]} if n else {**one, "token": 1} for n, one in enumerate(tokens)
        ],
    ],
)
def test_tokens_that_are_not_those_of_the_reply_give_no_probability(damage):
    tokens = verdict(token(' "'), token("supported", 0.6, contradicted=0.4), token('"'))
    content = "".join(one["token"] for one in tokens)
    assert chances(tokens, content=content)
    assert chances(damage(tokens), content=content) == {}


def test_a_list_without_alternatives_says_what_the_label_itself_says():
    tokens = verdict(token(' "'), token("supported", 0.7), token('"'))
    bare = [{name: one[name] for name in ("token", "logprob")} for one in tokens]
    assert chances(bare, content="".join(t["token"] for t in tokens))["support"]["supported"] == 1.0


def test_characters_cut_in_half_are_put_together_by_their_bytes():
    text = '{"note": "café 世", "support": "supported"}'
    raw = text.encode()
    at = raw.index(b"supported", raw.index(b"support") + 8)
    tokens = [
        {"token": "\ufffd", "logprob": 0.0, "bytes": [byte], "top_logprobs": []}
        for byte in raw[:at]
    ]
    label = token("supported", 0.9, contradicted=0.1)
    found = chances([*tokens, label, token('"}')], content=text)
    assert found["support"]["contradicted"] == pytest.approx(0.1)


LABELS = ["supported", "contradicted", "unsupported", "unknown"]


@given(
    st.sampled_from(LABELS),
    st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4),
    st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}]),
    st.data(),
)
def test_one_token_a_label_gives_back_the_probabilities_however_the_rest_is_cut(
    label, weights, layout, data
):
    shares = dict(zip(LABELS, (w / sum(weights) for w in weights), strict=True))
    text = json.dumps({"support": label, "sure": None, "score": 2}, **layout)
    at = text.index(f'"{label}"') + 1
    before, after = text[:at], text[at + len(label) :]
    pieces = [token(piece) for piece in data.draw(cuts(before))]
    pieces.append(listed(shares, label))
    pieces += [token(piece) for piece in data.draw(cuts(after))]
    found = chances(pieces)
    assert found["support"] == pytest.approx(shares)
    assert all(sum(of.values()) == pytest.approx(1) for of in found.values())


@st.composite
def cuts(draw, text):
    """`text` cut anywhere."""
    places = (
        sorted(draw(st.sets(st.integers(1, len(text) - 1), max_size=8))) if len(text) > 1 else []
    )
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


SCHEMA = strict_schema(Examination)
# Fields of one word that the metrics after these have added, each with its first value.
OTHERS = {
    name: json.loads(next(iter(labels.values())))
    for name, field in SCHEMA["properties"].items()
    if name not in {"sufficient", "response", "helpful"} and (labels := schema_labels(field))
}
SAID = {
    "claims": [
        {"claim": 'He said: "{yes}"', "support": "supported", "quote": None},
        {"claim": "", "support": "unsupported", "quote": "\\"},
    ],
    "passages": [{"passage": 1, "relevant": True}, {"passage": 2, "relevant": False}],
    "sufficient": None,
    "response": "answers",
    "helpful": 4,
    **OTHERS,
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
        **{name: json.dumps(value) for name, value in OTHERS.items()},
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
    assert labels["sufficient"] == {"yes", "partly", "no"}
    assert labels["helpful"] == {"1", "2", "3", "4", "5"}
    assert labels["passages.0.relevant"] == {"true", "false"}


def test_keys_that_the_schema_does_not_know_are_passed_over():
    text = '{"note": {"response": "evades", "x": [1, "}"]}, "response": "partly"}'
    (place,) = find_label_spans(text, SCHEMA)
    assert (place.name, text[place.start : place.end]) == ("response", '"partly"')


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"response"',
        '{"response": "evades"',
        "{1: 2}",
        "[1 2",
        '{"response": 1, "response": 2}',
    ],
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

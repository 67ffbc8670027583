from __future__ import annotations

import pytest

from misslink.judge.middleware.throttle import CircuitBreaker
from misslink.judge.protocol import RetryableError


def refused(circuit, said, count=30):
    return [
        circuit.refused(f"the judge refused the question: {said}", f"{n}") for n in range(count)
    ]


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 3000 tokens. However, you requested 5120 tokens",
        "Your request was rejected as a result of our safety system.",
    ],
)
def test_what_is_refused_for_its_length_or_by_a_policy_says_nothing_of_the_judge(said):
    assert set(refused(CircuitBreaker("judge"), said)) == {None}


@pytest.mark.parametrize(
    "said", ["Bad Request", "this is an embedding model", "messages: Field required"]
)
def test_other_refusals_of_ten_questions_do_where_nothing_was_ever_answered(said):
    *before, last = refused(CircuitBreaker("judge"), said, 10)
    assert set(before) == {None}
    assert "refused 10 different questions and answered none" in last
    assert said in last
    for known in (CircuitBreaker.answers, lambda circuit: circuit.answered(1)):
        circuit = CircuitBreaker("judge")
        known(circuit)
        assert set(refused(circuit, said)) == {None}


def test_one_that_is_too_long_leaves_the_count_of_others_as_it_is():
    circuit = CircuitBreaker("judge")
    refused(circuit, "Bad Request", 9)
    assert circuit.refused("the prompt is too long", "another") is None
    assert circuit.refused("Bad Request", "one more")


def test_refusals_between_failures_of_the_server_neither_count_nor_hide_them():
    circuit, trouble = CircuitBreaker("judge"), RetryableError("the server answers 500", "server")
    told = []
    for call in range(1, 6):
        told.append(circuit.failed(trouble.problem, call, trouble))
        circuit.refused("the prompt is too long", f"{call}")
    assert told[:4] == [None] * 4
    assert "failed 5 questions in a row" in told[4]

from __future__ import annotations

from dataclasses import asdict

import pytest

from misslink.judge.backends.request_format import CapabilityProbe, RequestFormat


def wordings(settling, *complaints):
    """In what a question is put to a server that has these complaints, one after the other."""
    tried = [settling.request_format]
    for complaint in complaints:
        other = settling.refused(tried, complaint)
        if other is None:
            return tried, False
        tried.append(other)
    settling.accepted(tried[-1])
    return tried, True


BAREST = RequestFormat("plain", "max_tokens", *[False] * 4)


def test_the_third_wording_is_the_barest_and_the_last():
    tried, accepted = wordings(CapabilityProbe(RequestFormat()), *["Bad Request"] * 9)
    assert tried == [RequestFormat(), RequestFormat(structure="json_object"), BAREST]
    assert not accepted


def test_the_barest_keeps_the_limit_unless_it_is_complained_of():
    assert wordings(CapabilityProbe(RequestFormat()), "hm", "hm")[0][-1] == BAREST
    assert wordings(CapabilityProbe(RequestFormat()), "hm", "max_tokens?")[0][-1].limit is None


def test_a_question_refused_in_every_wording_teaches_nothing():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling, *["Bad Request"] * 9)
    assert not settling.settled
    assert wordings(settling) == ([RequestFormat()], True)


def test_after_three_refusals_the_next_question_has_one_more_wording():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling, *["Bad Request"] * 9)
    assert wordings(settling, *["Bad Request"] * 9) == ([RequestFormat(), BAREST], False)


def test_a_settled_server_may_refuse_one_question_a_parameter():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling)
    complaint = "maximum context length is 4096, you asked for 4096 in the completion"
    assert wordings(settling, complaint) == ([RequestFormat(), RequestFormat(limit=None)], True)
    assert settling.request_format == RequestFormat()  # the next one is put with its limit again
    assert wordings(settling, "Bad Request") == ([RequestFormat()], False)


def test_what_another_question_found_out_is_taken_over():
    settling = CapabilityProbe(RequestFormat())
    early = [settling.request_format]
    wordings(settling, "Bad Request")
    assert settling.refused(early, "Bad Request") == RequestFormat(structure="json_object")


def test_what_is_known_is_learnt_again():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling, "logprobs", "Bad Request")
    known = settling.abilities()
    other = CapabilityProbe(RequestFormat())
    assert other.abilities() == {}
    other.learn(known)
    assert (other.request_format, other.settled, other.abilities()) == (
        settling.request_format,
        True,
        known,
    )


@pytest.mark.parametrize(
    "change",
    [{"structure": "xml"}, {"structure": []}, {"limit": "max"}, {"seed": 1}, {"store": None}],
)
def test_what_is_no_dialect_is_not_learnt(change):
    settling = CapabilityProbe(RequestFormat())
    settling.learn({**asdict(BAREST), **change})
    assert (settling.request_format, settling.settled) == (RequestFormat(), False)


def test_a_format_is_given_up_once_where_the_server_ignores_it():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling)
    settling.record_obedience(RequestFormat(), obeyed=False, ignored=True)
    assert settling.request_format == RequestFormat(structure="plain")
    assert settling.abilities() == {
        **asdict(RequestFormat()),
        "gives_logprobs": None,
    }  # an inference, so for this run only


def test_a_server_that_obeyed_is_not_taken_to_ignore_the_format():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling)
    settling.record_obedience(RequestFormat(), obeyed=True, ignored=False)
    settling.record_obedience(RequestFormat(), obeyed=False, ignored=True)
    assert settling.request_format == RequestFormat()


@pytest.mark.parametrize("left_out", sorted(asdict(BAREST)))
def test_a_dialect_of_an_older_shape_is_not_learnt(left_out):
    """Without its limit, say, requests would go out without one."""
    settling = CapabilityProbe(RequestFormat())
    settling.learn({name: value for name, value in asdict(BAREST).items() if name != left_out})
    assert (settling.request_format, settling.settled) == (RequestFormat(), False)


PLAIN = RequestFormat(structure="plain")


def test_a_server_that_fails_on_the_same_question_again_is_asked_without_a_structure_once():
    settling = CapabilityProbe(RequestFormat())
    assert settling.broken("a", [RequestFormat()]) is None
    assert settling.broken("b", [RequestFormat()]) is None
    assert settling.broken("a", [RequestFormat()]) == PLAIN
    assert settling.broken("a", [RequestFormat(), PLAIN]) is None
    assert settling.broken("a", [RequestFormat()]) is None  # it is down, and no longer suspected


def test_what_a_failing_server_took_is_for_this_run_only():
    settling = CapabilityProbe(RequestFormat())
    settling.broken("a", [RequestFormat()])
    settling.accepted(settling.broken("a", [RequestFormat()]))
    assert (settling.request_format, settling.settled) == (PLAIN, True)
    assert settling.abilities() == {**asdict(RequestFormat()), "gives_logprobs": None}
    assert settling.takes("json_schema") is False


def test_a_server_that_was_only_down_is_asked_as_before():
    settling = CapabilityProbe(RequestFormat())
    settling.broken("a", [RequestFormat()])
    settling.broken("a", [RequestFormat()])
    assert wordings(settling) == ([RequestFormat()], True)
    assert settling.abilities() == {**asdict(RequestFormat()), "gives_logprobs": None}


def test_what_an_earlier_run_found_out_is_doubted_where_the_server_fails_now():
    settling = CapabilityProbe(RequestFormat())
    settling.learn(asdict(RequestFormat()))
    settling.broken("a", [RequestFormat()])
    settling.accepted(settling.broken("a", [RequestFormat()]))
    assert settling.request_format == PLAIN


def test_a_server_that_was_heard_is_not_suspected():
    settling = CapabilityProbe(RequestFormat())
    wordings(settling)
    assert [settling.broken("a", [RequestFormat()]) for _ in range(3)] == [None] * 3


def test_after_three_wordings_a_fourth_is_left_to_the_next_call():
    settling = CapabilityProbe(RequestFormat())
    complaints = "response_format", "seed", "max_tokens"
    assert wordings(settling, *complaints) == (
        [RequestFormat(), RequestFormat(structure="json_object"), BAREST],
        False,
    )
    assert wordings(settling) == ([RequestFormat("plain", None, *[False] * 4)], True)


def test_what_was_given_up_uncomplained_of_is_not_known():
    settling = CapabilityProbe(RequestFormat())
    assert settling.takes("seed") is None
    wordings(settling, "logprobs", "Bad Request")
    taken = {name: settling.takes(name) for name in ("seed", "logprobs", "json_schema")}
    assert taken == {"seed": None, "logprobs": False, "json_schema": False}


def test_what_was_never_offered_is_not_taken():
    settling = CapabilityProbe(RequestFormat(seed=False))
    wordings(settling)
    assert (settling.takes("seed"), settling.takes("logprobs")) == (False, True)


@pytest.mark.parametrize(("known", "believed"), [(True, True), (False, False), (1, None)])
def test_whether_a_server_gives_probabilities_is_learned(known, believed):
    settling = CapabilityProbe(RequestFormat())
    settling.learn({"gives_logprobs": known})
    assert settling.gives_logprobs is believed

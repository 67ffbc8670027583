from __future__ import annotations

from dataclasses import asdict

import pytest

from misslink.judging.models.dialect import Dialect
from misslink.judging.models.settling import Settling


def wordings(settling, *complaints):
    """In what a question is put to a server that has these complaints, one after the other."""
    tried = [settling.dialect]
    for complaint in complaints:
        other = settling.refused(tried, complaint)
        if other is None:
            return tried, False
        tried.append(other)
    settling.accepted(tried[-1])
    return tried, True


BAREST = Dialect("plain", "max_tokens", *[False] * 4)


def test_the_third_wording_is_the_barest_and_the_last():
    tried, accepted = wordings(Settling(Dialect()), *["Bad Request"] * 9)
    assert tried == [Dialect(), Dialect(structure="json_object"), BAREST]
    assert not accepted


def test_the_barest_keeps_the_limit_unless_it_is_complained_of():
    assert wordings(Settling(Dialect()), "hm", "hm")[0][-1] == BAREST
    assert wordings(Settling(Dialect()), "hm", "max_tokens?")[0][-1].limit is None


def test_a_question_refused_in_every_wording_teaches_nothing():
    settling = Settling(Dialect())
    wordings(settling, *["Bad Request"] * 9)
    assert not settling.settled
    assert wordings(settling) == ([Dialect()], True)


def test_after_three_refusals_the_next_question_has_one_more_wording():
    settling = Settling(Dialect())
    wordings(settling, *["Bad Request"] * 9)
    assert wordings(settling, *["Bad Request"] * 9) == ([Dialect(), BAREST], False)


def test_a_settled_server_may_refuse_one_question_a_parameter():
    settling = Settling(Dialect())
    wordings(settling)
    complaint = "maximum context length is 4096, you asked for 4096 in the completion"
    assert wordings(settling, complaint) == ([Dialect(), Dialect(limit=None)], True)
    assert settling.dialect == Dialect()  # the next one is put with its limit again
    assert wordings(settling, "Bad Request") == ([Dialect()], False)


def test_what_another_question_found_out_is_taken_over():
    settling = Settling(Dialect())
    early = [settling.dialect]
    wordings(settling, "Bad Request")
    assert settling.refused(early, "Bad Request") == Dialect(structure="json_object")


def test_what_is_known_is_learnt_again():
    settling = Settling(Dialect())
    wordings(settling, "logprobs", "Bad Request")
    known = settling.known()
    other = Settling(Dialect())
    assert other.known() == {}
    other.learn(known)
    assert (other.dialect, other.settled, other.known()) == (settling.dialect, True, known)


@pytest.mark.parametrize(
    "change",
    [{"structure": "xml"}, {"structure": []}, {"limit": "max"}, {"seed": 1}, {"store": None}],
)
def test_what_is_no_dialect_is_not_learnt(change):
    settling = Settling(Dialect())
    settling.learn({**asdict(BAREST), **change})
    assert (settling.dialect, settling.settled) == (Dialect(), False)


def test_a_format_is_given_up_once_where_the_server_ignores_it():
    settling = Settling(Dialect())
    wordings(settling)
    settling.heard(Dialect(), obeyed=False, ignored=True)
    assert settling.dialect == Dialect(structure="plain")
    assert settling.known() == asdict(Dialect())  # an inference, so for this run only


def test_a_server_that_obeyed_is_not_taken_to_ignore_the_format():
    settling = Settling(Dialect())
    wordings(settling)
    settling.heard(Dialect(), obeyed=True, ignored=False)
    settling.heard(Dialect(), obeyed=False, ignored=True)
    assert settling.dialect == Dialect()


@pytest.mark.parametrize("left_out", sorted(asdict(BAREST)))
def test_a_dialect_of_an_older_shape_is_not_learnt(left_out):
    """Without its limit, say, requests would go out without one."""
    settling = Settling(Dialect())
    settling.learn({name: value for name, value in asdict(BAREST).items() if name != left_out})
    assert (settling.dialect, settling.settled) == (Dialect(), False)


PLAIN = Dialect(structure="plain")


def test_a_server_that_fails_on_the_same_question_again_is_asked_without_a_structure_once():
    settling = Settling(Dialect())
    assert settling.broken("a", [Dialect()]) is None
    assert settling.broken("b", [Dialect()]) is None
    assert settling.broken("a", [Dialect()]) == PLAIN
    assert settling.broken("a", [Dialect(), PLAIN]) is None
    assert settling.broken("a", [Dialect()]) is None  # it is down, and no longer suspected


def test_what_a_failing_server_took_is_for_this_run_only():
    settling = Settling(Dialect())
    settling.broken("a", [Dialect()])
    settling.accepted(settling.broken("a", [Dialect()]))
    assert (settling.dialect, settling.settled) == (PLAIN, True)
    assert settling.known() == asdict(Dialect())
    assert settling.takes("json_schema") is False


def test_a_server_that_was_only_down_is_asked_as_before():
    settling = Settling(Dialect())
    settling.broken("a", [Dialect()])
    settling.broken("a", [Dialect()])
    assert wordings(settling) == ([Dialect()], True)
    assert settling.known() == asdict(Dialect())


def test_what_an_earlier_run_found_out_is_doubted_where_the_server_fails_now():
    settling = Settling(Dialect())
    settling.learn(asdict(Dialect()))
    settling.broken("a", [Dialect()])
    settling.accepted(settling.broken("a", [Dialect()]))
    assert settling.dialect == PLAIN


def test_a_server_that_was_heard_is_not_suspected():
    settling = Settling(Dialect())
    wordings(settling)
    assert [settling.broken("a", [Dialect()]) for _ in range(3)] == [None] * 3


def test_after_three_wordings_a_fourth_is_left_to_the_next_call():
    settling = Settling(Dialect())
    complaints = "response_format", "seed", "max_tokens"
    assert wordings(settling, *complaints) == (
        [Dialect(), Dialect(structure="json_object"), BAREST],
        False,
    )
    assert wordings(settling) == ([Dialect("plain", None, *[False] * 4)], True)


def test_what_was_given_up_uncomplained_of_is_not_known():
    settling = Settling(Dialect())
    assert settling.takes("seed") is None
    wordings(settling, "logprobs", "Bad Request")
    taken = {name: settling.takes(name) for name in ("seed", "logprobs", "json_schema")}
    assert taken == {"seed": None, "logprobs": False, "json_schema": False}


def test_what_was_never_offered_is_not_taken():
    settling = Settling(Dialect(seed=False))
    wordings(settling)
    assert (settling.takes("seed"), settling.takes("logprobs")) == (False, True)

"""What the lines of a batch's files bring: an answer, a refusal, nothing, or nonsense."""

from __future__ import annotations

import json
import logging

import pytest

from batch_server import EXPIRED, MISSING
from in_batches import ask_all, came
from judge_faults import error
from misslink.errors import JudgeUnreachableError
from misslink.judge.protocol import Reply


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_line_that_brought_nothing_goes_into_a_further_batch(server, tmp_path, status):
    server.line = lambda _, tries: error(status, "busy") if tries == 1 else None
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert [len(batch) for batch in server.questions] == [5, 5]
    assert set(server.asked.values()) == {1}


def test_a_line_that_is_missing_goes_into_a_further_batch(server, tmp_path):
    seen = []

    def line(key, tries):
        seen.append(key)
        return MISSING if key == seen[0] and tries == 1 else None

    server.line = line
    replies, _ = ask_all(server, tmp_path, 6)
    assert came(replies) == [True] * 6
    assert [len(batch) for batch in server.questions] == [5, 1]


def test_after_so_many_retries_the_question_has_brought_nothing(server, tmp_path):
    server.line = lambda *_: error(503, "overloaded")
    replies, _ = ask_all(server, tmp_path, 3, retries=2)
    assert sorted(came(replies)) == [False, False, True]
    assert [len(batch) for batch in server.questions] == [2, 2, 2]
    told = [reply.problem for reply in replies if reply.problem]
    assert told == ["the server answers 503: overloaded (tried 3 times, in batches)"] * 2


def test_a_refused_question_is_refused_as_live_and_asked_once(server, tmp_path):
    refused = error(400, "Your prompt was flagged by the content policy", "content_policy")
    flagged = []

    def line(key, _):
        flagged.append(key)
        return refused if key == flagged[0] else None

    server.line = line
    replies, _ = ask_all(server, tmp_path, 5)
    assert sum(came(replies)) == 4
    (lost,) = [reply for reply in replies if reply.parsed is None]
    assert lost.problem.startswith("the judge refused the question: Your prompt was flagged")
    assert len(server.batches) == 1


def test_a_line_that_says_that_the_key_is_refused_ends_the_run(server, tmp_path):
    server.line = lambda *_: error(401, "Incorrect API key provided", "invalid_api_key")
    with pytest.raises(JudgeUnreachableError, match=r"refuses the key \(401\)"):
        ask_all(server, tmp_path, 4)


def test_lines_of_no_question_broken_ones_and_second_ones_do_no_harm(server, tmp_path, caplog):
    again = {"custom_id": "nobody's", "response": {"status_code": 200, "body": {}}, "error": None}
    server.stray = ["{broken", "[]", '"text"', "", json.dumps(again), "{}"]
    with caplog.at_level(logging.WARNING):
        replies, _ = ask_all(server, tmp_path, 5)
    assert came(replies) == [True] * 5
    assert "4 lines of file file-1 are not lines of a batch" in caplog.text


def test_a_judge_s_words_may_hold_what_others_take_for_the_end_of_a_line(server, tmp_path):
    def odd(body):
        asked = next(m["content"] for m in body["messages"] if m["role"] == "user")
        return None if "town 0" in asked else '{"no": "\u2028\x85\u2029 JSON of ours"}'

    server.script = odd
    replies, _ = ask_all(server, tmp_path, 3)
    assert [reply.raw for reply in replies[1:]] == ['{"no": "\u2028\x85\u2029 JSON of ours"}'] * 2


def test_a_file_that_breaks_off_is_fetched_again_and_nothing_asked_twice(server, tmp_path):
    broken = iter([True, True])

    def meddle(method, path):
        if path.endswith("/content") and next(broken, False):
            content = server.files[path.split("/")[3]]
            return 200, {"content-length": str(len(content))}, iter([content[:-100]])
        return None

    server.meddle = meddle
    replies, _ = ask_all(server, tmp_path, 20)
    assert came(replies) == [True] * 20
    assert set(server.asked.values()) == {1}


def test_no_reply_is_not_the_same_as_an_empty_one(server, tmp_path):
    server.line = lambda _, tries: (200, {}, {"error": {"message": "lost"}}) if tries < 3 else None
    replies, _ = ask_all(server, tmp_path, 3)
    assert came(replies) == [True] * 3
    assert all(isinstance(reply, Reply) for reply in replies)
    assert len(server.batches) == 3


def test_questions_that_were_not_reached_in_time_are_asked_again(server, tmp_path):
    server.line = lambda _, tries: EXPIRED if tries == 1 else None
    replies, _ = ask_all(server, tmp_path, 3)
    assert came(replies) == [True] * 3
    assert len(server.batches) == 2


def test_answers_under_other_names_than_the_questions_end_the_run_and_are_paid_once(
    server, tmp_path
):
    def meddle(_, path):
        if not path.endswith("/content"):
            return None
        content = server.files[path.split("/")[3]]
        return 200, {}, iter([content.replace(b'"custom_id": "', b'"custom_id": "their-')])

    server.meddle = meddle
    told = r"batch batch_0 have other names \(custom_id\) .* use --engine local"
    for _ in range(2):
        with pytest.raises(JudgeUnreachableError, match=told):
            ask_all(server, tmp_path, 6)
    assert len(server.batches) == 1

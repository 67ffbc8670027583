"""A judge asked in batches: as few as can be, worded as live, and found again."""

from __future__ import annotations

import json

from honest_judge import small_ask
from in_batches import ask_all, came, opened
from judge_faults import error
from misslink.judge.middleware.cache import cache_key, identity_json
from misslink.judge.session import with_limits


def test_all_but_the_first_question_go_out_in_one_batch(server, tmp_path):
    replies, spent = ask_all(server, tmp_path, 30)
    assert came(replies) == [True] * 30
    assert len(server.calls) == 1  # live, by which it was found out what the server takes
    assert [len(batch) for batch in server.questions] == [29]
    assert (spent["calls"], spent["in_batches"]) == (30, 29)


def test_a_later_run_puts_nothing_live_where_the_server_is_known(server, tmp_path):
    ask_all(server, tmp_path, 2)
    ask_all(server, tmp_path, 5)
    assert len(server.calls) == 1
    assert [len(batch) for batch in server.questions] == [1, 3]


def test_the_keys_of_the_lines_are_those_of_the_cache(server, tmp_path):
    ask_all(server, tmp_path, 4)
    identity = identity_json(opened(server, tmp_path))
    asked = set(server.questions[0])
    assert asked < {cache_key(small_ask(n), identity) for n in range(4)}
    assert len(asked) == 3
    replies, spent = ask_all(server, tmp_path, 4, reach=with_limits)
    assert spent["from_cache"] == 4
    assert came(replies) == [True] * 4


def test_a_line_is_what_would_have_been_sent_live(server, tmp_path):
    ask_all(server, tmp_path / "batches", 6)
    ask_all(server, tmp_path / "live", 6, reach=with_limits)
    content = server.files[next(iter(server.batches.values()))["input_file_id"]]
    lines = [json.loads(line) for line in content.split(b"\n") if line]
    live = [call.body for call in server.calls[1:]]
    assert len(lines) == 5
    assert all(line["body"] in live for line in lines)
    assert {(line["method"], line["url"]) for line in lines} == {("POST", "/v1/chat/completions")}


def test_the_responses_interface_has_batches_too(server, tmp_path):
    replies, _ = ask_all(server, tmp_path, 4, judge="openai-responses:test-judge")
    assert came(replies) == [True] * 4
    (batch,) = server.batches.values()
    assert batch["endpoint"] == "/v1/responses"


def test_log_probabilities_come_through_a_batch(server, tmp_path):
    server.logprobs = True
    replies, _ = ask_all(server, tmp_path, 3)
    assert all(reply.chance("claims.0.support", "supported") > 0.5 for reply in replies)


def test_a_server_that_has_changed_since_is_asked_live_what_it_takes(server, tmp_path):
    ask_all(server, tmp_path, 2)

    def no_seed(body):
        return error(400, "unknown parameter: seed") if "seed" in body else None

    server.script = no_seed
    replies, _ = ask_all(server, tmp_path, 8)
    assert came(replies) == [True] * 8
    assert [len(batch) for batch in server.questions] == [1, 6, 5]
    live = [call.status for call in server.calls]
    assert live == [200, 200]  # one to learn it at the first run, one now

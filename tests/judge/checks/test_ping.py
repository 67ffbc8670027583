import asyncio
import json
import sys

import pytest

from judge_faults import after, broken_json, error_body, no_schema, no_structure, status
from misslink.cli.main import main
from misslink.errors import InputError
from misslink.judge.checks.ping import ping_judge_spec
from misslink.judge.config import JudgeConfig


def found(server, spec="openai:test-judge"):
    return asyncio.run(ping_judge_spec(spec, JudgeConfig(base_url=server.url)))


@pytest.mark.parametrize("spec", ["openai:test-judge", "openai-responses:test-judge"])
def test_a_ping_says_all_that_a_server_can_do_in_one_question(judge_server, spec):
    judge_server.logprobs = True
    judge_server.offer = {
        "context_length": 8192,
        "pricing": {"prompt": "0.000001", "completion": "0.000002"},
    }
    said = found(judge_server, spec)
    assert said["ok"]
    assert (said["structure"], said["json_schema"]) == ("json_schema", True)
    assert (said["logprobs"], said["seed"]) == (True, spec.startswith("openai:"))
    assert said["context_length"] == 8192
    assert said["price"] == {"prompt": 1.0, "completion": 2.0}
    assert said["prompt_tokens"] > 0
    assert said["latency_s"] > 0
    json.dumps(said)
    assert len(judge_server.calls) == 1


@pytest.mark.parametrize("spec", ["openai:test-judge", "langchain:openai:test-judge"])
@pytest.mark.parametrize("gives", [True, False])
def test_probabilities_are_told_of_where_they_came_and_not_where_they_were_taken(
    judge_server, monkeypatch, spec, gives
):
    """This server takes ``logprobs`` in either case, and leaves them out in one."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    judge_server.logprobs = gives
    assert found(judge_server, spec)["logprobs"] is gives


def test_what_a_server_does_not_say_is_not_known(judge_server):
    said = found(judge_server)
    assert (said["context_length"], said["price"], said["logprobs"]) == (None, None, False)


def test_a_server_without_schemas_is_asked_for_json_in_its_other_mode(judge_server):
    judge_server.script = no_schema
    said = found(judge_server)
    assert (said["structure"], said["json_schema"]) == ("json_object", False)
    assert len(judge_server.calls) == 2


def test_a_ping_stops_at_three_questions(judge_server):
    judge_server.script = no_structure
    said = found(judge_server)
    assert (said["ok"], said["structure"]) == (True, "plain")
    assert (said["json_schema"], said["seed"]) == (False, None)
    assert len(judge_server.calls) == 3


def test_a_ping_says_no_of_a_parameter_that_was_complained_of(judge_server):
    def without_seed(body):
        return status(400, "Unknown parameter: seed")(body) if "seed" in body else None

    judge_server.script = without_seed
    said = found(judge_server)
    assert (said["json_schema"], said["seed"]) == (True, False)


def test_a_ping_says_all_that_a_server_that_complains_in_turn_takes(judge_server):
    def particular(body):
        for name in ("response_format", "seed", "max_tokens"):
            if name in body:
                return status(400, f"{name} is not supported")(body)
        return None

    judge_server.script = particular
    said = found(judge_server)
    taken = {name: said[name] for name in ("ok", "structure", "seed", "token_limit", "temperature")}
    assert taken == {
        "ok": True,
        "structure": "plain",
        "seed": False,
        "token_limit": None,
        "temperature": True,
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "first", [status(500, "oops"), error_body, status(400, "Bad Request"), status(429, "slow down")]
)
@pytest.mark.parametrize("then", [status(500, "oops"), status(400, "Bad Request"), error_body])
def test_whatever_a_server_answers_a_ping_asks_it_four_times_at_most(judge_server, first, then):
    judge_server.script = after(1, first, then)
    assert not found(judge_server)["ok"]
    assert len(judge_server.calls) <= 4


def test_a_server_that_fails_at_the_answer_format_is_found_out(judge_server):
    judge_server.script = lambda body: (
        status(500, "grammar crashed")(body) if "response_format" in body else None
    )
    said = found(judge_server)
    assert (said["ok"], said["structure"], said["json_schema"]) == (True, "plain", False)
    assert len(judge_server.calls) == 3


@pytest.mark.parametrize("content", ["The sky is blue.", '{"colour": "blue"}'])
def test_a_server_that_ignores_the_answer_format_answers_all_the_same(judge_server, content):
    judge_server.script = lambda body: content if "response_format" in body else None
    said = found(judge_server)
    assert (said["ok"], said["structure"], said["json_schema"]) == (True, "plain", False)
    assert len(judge_server.calls) <= 3


@pytest.mark.parametrize(
    ("script", "why"),
    [
        (broken_json, "not JSON"),
        (status(500, "out of memory"), "the server answers 500: out of memory"),
    ],
)
def test_what_kept_an_answer_from_being_read_is_the_problem_of_the_ping(judge_server, script, why):
    judge_server.script = script
    said = found(judge_server)
    assert not said["ok"]
    assert why in said["problem"]


def test_no_judge_cannot_be_pinged():
    with pytest.raises(InputError, match="no model calls"):
        asyncio.run(ping_judge_spec("none"))


def test_a_server_that_hangs_is_left_at_the_deadline_of_a_call(judge_server):
    judge_server.script = lambda _: judge_server.wait_until_stopped()
    terms = JudgeConfig(base_url=judge_server.url, timeout=0.3)
    said = asyncio.run(ping_judge_spec("openai:test-judge", terms))
    assert (said["ok"], said["problem"]) == (False, "no reply came within 0.3 s")


def test_a_judge_that_is_no_server_has_none_of_it():
    said = asyncio.run(ping_judge_spec("heuristic"))
    assert said["ok"]
    assert {said[name] for name in ("json_schema", "seed", "price")} == {None}


OWN = """
from misslink.judge.protocol import Reply

class Mine:
    name = "mine"
    identity = {{"version": 1}}

    async def ask(self, ask):
        {ask}

    async def close(self):
        {close}
"""


def own(folder, ask, close="pass"):
    """Where the file of a judge of one's own is that does this."""
    path = folder / "judge.py"
    path.write_text(OWN.format(ask=ask, close=close))
    return f"{path}:Mine"


@pytest.fixture
def exit_code(monkeypatch):
    """Runs the command; gives its exit code."""

    def run(spec):
        monkeypatch.setattr(sys, "argv", ["misslink", "judge", "ping", "--judge", spec])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    return run


def test_what_a_judge_of_ones_own_raises_is_the_problem_of_the_ping(tmp_path, capsys, exit_code):
    spec = own(tmp_path, 'raise ValueError("no\\nluck")')
    said = asyncio.run(ping_judge_spec(spec))
    assert (said["ok"], said["problem"]) == (False, "the judge raised ValueError: no luck")
    assert exit_code(spec) == 3
    assert "ValueError: no luck" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("ask", "close", "why"),
    [
        ('return "yes"', "pass", r"the judge mine returned str. Its ask() must return a"),
        ("return None", "pass", r"the judge mine returned NoneType. Its ask() must return a"),
        (
            'return Reply.nothing("hm")',
            "raise OSError(5)",
            "closing the judge mine: the judge raised OSError: 5",
        ),
    ],
)
def test_what_is_wrong_with_a_judge_of_ones_own_is_said_in_a_sentence(
    tmp_path, capsys, exit_code, ask, close, why
):
    assert exit_code(own(tmp_path, ask, close)) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "Traceback" not in said


def test_an_answer_to_something_else_is_not_ok(tmp_path):
    said = asyncio.run(ping_judge_spec(own(tmp_path, "return Reply({'claims': []}, 'x', usage=5)")))
    assert (said["ok"], said["prompt_tokens"]) == (False, None)
    assert said["problem"] == "the judge returned dict, not Examination"

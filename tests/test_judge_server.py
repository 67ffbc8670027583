"""The server that stands in for a judge is checked too: what it lets pass, tests cannot find."""

import json
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from honest_judge import small_ask
from judge_server import MODEL


def request_for(ask, **changes):
    schema = {"name": ask.name, "schema": ask.json_schema, "strict": True}
    return {
        "model": MODEL,
        "messages": [dict(message) for message in ask.messages],
        "response_format": {"type": "json_schema", "json_schema": schema},
        **changes,
    }


def post(url, body):
    with urlopen(Request(f"{url}/chat/completions", json.dumps(body).encode())) as answer:  # noqa: S310 - loopback
        return json.load(answer)


def test_a_client_that_leaves_is_no_fault_of_the_server_and_anything_else_is(judge_server, capfd):
    for problem, told in ((ConnectionResetError("gone"), ""), (KeyError("oops"), "oops")):
        try:
            raise problem
        except (ConnectionResetError, KeyError):
            judge_server._http.handle_error(None, ("127.0.0.1", 1))
        printed = capfd.readouterr().err
        assert told in printed
        assert bool(told) is bool(printed)


OPEN_SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    "changes",
    [
        {"messages": []},
        {"messages": [{"role": "wizard", "content": "hi"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"tempreature": 0},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a b", "schema": {}}}},
        {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "a", "strict": True, "schema": OPEN_SCHEMA},
            }
        },
    ],
)
def test_it_refuses_what_a_strict_server_refuses(judge_server, changes):
    with pytest.raises(HTTPError, match="400"):
        post(judge_server.url, request_for(small_ask(1), **changes))


@pytest.mark.slow
def test_it_runs_as_a_command():
    command = [
        sys.executable,
        Path(__file__).parent / "builders" / "judge_server.py",
        "--port",
        "0",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        url = running.stdout.readline().strip()
        answer = post(url, request_for(small_ask(1)))
        running.terminate()
    assert answer["choices"][0]["finish_reason"] == "stop"

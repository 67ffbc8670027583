"""News reaches a real webhook, signed; what does not arrive waits for the next run."""

from __future__ import annotations

import functools
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from canary_runs import finished
from misslink.canary.history import CanaryHistory
from misslink.canary.webhook import deliver, notify, sign, webhook_from_options
from misslink.errors import InputError

ONCE = functools.partial(deliver, tries=1, timeout_s=5.0)


class Receiver(HTTPServer):
    """Keeps what it is sent, and answers with `status`."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.got = 204, []
        self.first = []  # what it answers before that
        self.url = f"http://127.0.0.1:{self.server_port}/hook"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((dict(self.headers), body))
        first = self.server.first
        self.send_response(first.pop(0) if first else self.server.status)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server
        server.shutdown()


@pytest.fixture
def history(tmp_path):
    """A history in which an alarm opened and waits to be told."""
    with CanaryHistory(tmp_path / "canary.sqlite") as history:
        for number in range(12):
            history.enter(finished(number, tell=True))
        history.enter(finished(12, ill=range(8), tell=True))
        yield history


def test_an_alarm_is_delivered_signed_and_only_once(history, receiver, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "long and secret")
    to = webhook_from_options(receiver.url, "HOOK_SECRET")
    delivered = notify(history, "main", to, ONCE)
    assert (delivered["ok"], delivered["sent"], delivered["waiting"]) == (True, 1, 0)
    ((headers, body),) = receiver.got
    told = json.loads(body)
    assert (told["event"], told["name"], told["run"]) == ("alarm", "main", 13)
    assert {news["measure"] for news in told["news"]} >= {"health"}
    given = {name.lower(): value for name, value in headers.items()}
    stamp = given["misslink-timestamp"]
    assert sign("long and secret", stamp, body) in given.values()
    assert notify(history, "main", to, ONCE) is None
    assert len(receiver.got) == 1


def test_what_does_not_arrive_waits_and_arrives_in_its_order(history, receiver):
    receiver.status = 503
    to = webhook_from_options(receiver.url, None)
    lost = notify(history, "main", to, ONCE)
    assert (lost["ok"], lost["sent"], lost["waiting"], lost["status"]) == (False, 0, 1, 503)
    assert lost["error"]
    for number in range(13, 60):
        history.enter(finished(number, tell=True))
    receiver.got.clear()
    receiver.status = 200
    delivered = notify(history, "main", to, ONCE)
    assert delivered["waiting"] == 0
    events = [json.loads(body)["event"] for _, body in receiver.got]
    assert events[0] == "alarm"
    assert events[-1] == "recovered"
    assert len(events) == delivered["sent"]


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_what_is_refused_for_good_is_kept_as_failed_and_holds_nothing_up(history, receiver, status):
    for number in range(13, 60):  # until it has recovered
        history.enter(finished(number, tell=True))
    waiting = len(history.outbox.letters("main"))
    assert waiting >= 2
    receiver.first = [status]
    told = notify(history, "main", webhook_from_options(receiver.url, None), ONCE)
    assert (told["ok"], told["sent"], told["refused"]) == (False, waiting - 1, 1)
    assert (told["waiting"], told["status"]) == (0, status)
    assert len(receiver.got) == waiting
    assert history.outbox.letters("main") == ()
    (kept,) = history.outbox.refused("main")
    assert (kept.run, kept.content["event"]) == (13, "alarm")
    assert f"status {status}" in kept.error
    assert notify(history, "main", webhook_from_options(receiver.url, None), ONCE) is None


@pytest.mark.parametrize("status", [302, 408, 425, 429, 500, 503])
def test_what_may_be_taken_another_time_waits(history, receiver, status):
    receiver.status = status
    told = notify(history, "main", webhook_from_options(receiver.url, None), ONCE)
    assert (told["refused"], told["waiting"]) == (0, 1)
    assert history.outbox.refused("main") == ()


def test_a_webhook_that_is_down_is_told_and_keeps_the_news(history, receiver):
    receiver.shutdown()
    receiver.server_close()
    lost = notify(history, "main", webhook_from_options(receiver.url, None), ONCE)
    assert (lost["ok"], lost["status"], lost["waiting"]) == (False, None, 1)
    assert len(history.outbox.letters("main")) == 1


def test_an_address_and_its_secret_are_never_stored(history, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "long-and-secret")
    to = webhook_from_options("http://user:pass@127.0.0.1:9/hook?token=12345", "HOOK_SECRET")
    notify(history, "main", to, ONCE)
    content = b"".join(one.read_bytes() for one in history.path.parent.iterdir())
    for secret in (b"long-and-secret", b"token=12345", b"user:pass"):
        assert secret not in content
    assert "secret" not in repr(to)


@pytest.mark.parametrize(
    "url", ["", "hook", "ftp://host/x", "http://", "http://[::1", "http://h:x"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InputError, match="--webhook takes an address"):
        webhook_from_options(url, None)


def test_a_secret_that_is_not_set_or_signs_nothing_is_refused(monkeypatch):
    monkeypatch.delenv("HOOK_SECRET", raising=False)
    with pytest.raises(InputError, match="HOOK_SECRET is not set"):
        webhook_from_options("http://127.0.0.1:9/hook", "HOOK_SECRET")
    with pytest.raises(InputError, match="give both"):
        webhook_from_options(None, "HOOK_SECRET")


def test_without_a_webhook_nothing_is_sent(history):
    assert webhook_from_options(None, None) is None
    assert notify(history, "main", None, ONCE) is None
    assert len(history.outbox.letters("main")) == 1

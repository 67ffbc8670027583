"""News reaches a real webhook, signed, in bounded time; what does not arrive waits."""

import functools
import http.server
import json
import random
import re
import socket
import threading
import time
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from canary_runs import finished
from misslink.canary.history import CanaryHistory
from misslink.canary.webhook import (
    DeliveryFailedError,
    deliver,
    http_post,
    notify,
    sign,
    url_origin,
    webhook_from_options,
)
from misslink.errors import InputError

NEWS = {"name": "main", "run": 41, "text": "h\u00e9alth \ud83d fell"}
DOCS = Path(__file__).parents[2] / "docs" / "canary.md"
ONCE = functools.partial(deliver, tries=1, timeout_s=5.0)


class Receiver(http.server.ThreadingHTTPServer):
    """A webhook that gives each of `answers` (a status and headers) once, then `status`."""

    def __init__(self, answers=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers, self.status, self.got = list(answers), 200, []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers, body))
        answers = self.server.answers
        status, headers = answers.pop(0) if answers else (self.server.status, {})
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@contextmanager
def receiver(*answers):
    with Receiver(answers) as server:
        yield server.url, server.got
        server.shutdown()


@pytest.fixture
def hook():
    with Receiver() as server:
        yield server
        server.shutdown()


class Time:
    """A clock that only waits move."""

    def __init__(self):
        self.at, self.waits = 0.0, []

    def monotonic(self):
        return self.at

    def time(self):
        return 1_700_000_000.0

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.at += seconds


def sent(url, **options):
    passing = Time()
    options = {"secret": None, "rng": random.Random(0), "clock": passing, **options}
    return deliver(url, NEWS, **options), passing


def verifier():
    """The function that docs/canary.md gives to receivers."""
    code = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL).group(1)
    names = {}
    exec(code, names)  # noqa: S102 (our own page)
    return names["is_ours"]


def test_what_is_sent_arrives_and_its_signature_holds_as_the_docs_verify_it():
    with receiver() as (url, got):
        delivery, _ = sent(f"{url}/hook/x?y=1", secret="s3cret", clock=time)
    assert (delivery.ok, delivery.status, delivery.attempts, delivery.error) == (True, 200, 1, None)
    ((path, headers, body),) = got
    assert path == "/hook/x?y=1"
    assert json.loads(body) == NEWS
    is_ours = verifier()
    assert is_ours("s3cret", headers, body)
    assert not is_ours("other", headers, body)
    assert not is_ours("s3cret", headers, body + b" ")
    assert not is_ours("s3cret", {}, body)


def test_an_old_message_is_not_taken_again():
    with receiver() as (url, got):
        sent(url, secret="s3cret")
    ((_, headers, body),) = got
    assert headers["Misslink-Signature"] == sign("s3cret", "1700000000", body)
    assert not verifier()("s3cret", headers, body)


def test_without_a_secret_nothing_looks_signed():
    with receiver() as (url, got):
        sent(url)
    assert "Misslink-Signature" not in got[0][1]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_it_is_sent_again_where_that_may_help_and_known_as_the_same(status):
    with receiver((status, {}), (status, {})) as (url, got):
        delivery, passing = sent(url)
    assert (delivery.ok, delivery.attempts) == (True, 3)
    assert len({headers["Misslink-Delivery"] for _, headers, _ in got}) == 1
    assert len(passing.waits) == 2
    assert all(0 <= wait <= 2 for wait in passing.waits)


def test_a_refusal_is_not_repeated():
    with receiver((404, {})) as (url, _):
        delivery, passing = sent(f"{url}/services/T0/SECRETPATH")
    assert (delivery.ok, delivery.status, delivery.attempts) == (False, 404, 1)
    assert delivery.error == f"the webhook at {url} did not take it: status 404"
    assert passing.waits == []


@pytest.mark.parametrize("asked", ["7", "date"])
def test_it_waits_as_long_as_it_is_asked_to(asked):
    told = {"Retry-After": "7"}
    if asked == "date":
        told = {
            "Retry-After": formatdate(4e9 + 7, usegmt=True),
            "Date": formatdate(4e9, usegmt=True),
        }
    with receiver((503, told)) as (url, _):
        delivery, passing = sent(url)
    assert delivery.ok
    assert passing.waits == [7.0]


def test_a_wait_beyond_its_time_is_not_waited_for():
    with receiver((503, {"Retry-After": "3600"})) as (url, got):
        delivery, passing = sent(url)
    assert not delivery.ok
    assert "not tried again within 30 s" in delivery.error
    assert passing.waits == []
    assert len(got) == 1


def test_a_webhook_that_is_down_is_told_after_all_its_tries():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    delivery, passing = sent(f"http://u:p4ss@127.0.0.1:{port}/SECRETPATH", secret="s3cret")
    assert (delivery.ok, delivery.status, delivery.attempts) == (False, None, 4)
    assert delivery.error == (
        f"the webhook at http://127.0.0.1:{port} did not take it: connection refused"
    )
    assert len(passing.waits) == 3


def test_a_redirect_on_the_same_server_keeps_the_body_and_one_elsewhere_is_not_followed():
    with receiver() as (other, got_elsewhere), receiver((308, {"Location": "/new"})) as (url, got):
        assert sent(url)[0].ok
        assert [path for path, _, _ in got] == ["/", "/new"]
        assert got[0][2] == got[1][2]
        with receiver((307, {"Location": f"{other}/x"})) as (away, _):
            delivery, _ = sent(away)
    assert not delivery.ok
    assert f"a redirect to {other} that is not followed" in delivery.error
    assert got_elsewhere == []


@pytest.mark.parametrize("place", ["http://[", "", "javascript:1", "/\x7f"])
def test_a_strange_redirect_is_told(place):
    with receiver((302, {"Location": place})) as (url, _):
        delivery, _ = sent(url, tries=1)
    assert not delivery.ok


@pytest.fixture
def history(tmp_path):
    """A history in which an alarm opened and waits to be told."""
    with CanaryHistory(tmp_path / "canary.sqlite") as history:
        for number in range(12):
            history.enter(finished(number, notify=True))
        history.enter(finished(12, ill=range(8), notify=True))
        yield history


def test_an_alarm_is_delivered_signed_and_only_once(history, hook, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "long and secret")
    to = webhook_from_options(hook.url, "HOOK_SECRET")
    delivered = notify(history, "main", to, ONCE)
    assert (delivered["ok"], delivered["sent"], delivered["waiting"]) == (True, 1, 0)
    ((_, headers, body),) = hook.got
    told = json.loads(body)
    assert (told["event"], told["name"], told["run"]) == ("alarm", "main", 13)
    assert {news["measure"] for news in told["news"]} >= {"health"}
    signature = sign("long and secret", headers["Misslink-Timestamp"], body)
    assert headers["Misslink-Signature"] == signature
    assert notify(history, "main", to, ONCE) is None
    assert len(hook.got) == 1


@pytest.mark.slow
def test_what_does_not_arrive_waits_and_arrives_in_its_order(history, hook):
    hook.status = 503
    to = webhook_from_options(hook.url, None)
    lost = notify(history, "main", to, ONCE)
    assert (lost["ok"], lost["sent"], lost["waiting"], lost["status"]) == (False, 0, 1, 503)
    assert lost["error"]
    for number in range(13, 60):
        history.enter(finished(number, notify=True))
    hook.got.clear()
    hook.status = 200
    delivered = notify(history, "main", to, ONCE)
    assert delivered["waiting"] == 0
    events = [json.loads(body)["event"] for *_, body in hook.got]
    assert events[0] == "alarm"
    assert events[-1] == "recovered"
    assert len(events) == delivered["sent"]


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_what_is_refused_for_good_does_not_wait(history, hook, status):
    hook.status = status
    told = notify(history, "main", webhook_from_options(hook.url, None), ONCE)
    assert (told["refused"], told["waiting"], told["status"]) == (1, 0, status)
    (kept,) = history.refused("main")
    assert f"status {status}" in kept["error"]


@pytest.mark.slow
def test_what_is_refused_for_good_is_kept_as_failed_and_holds_nothing_up(history, hook):
    for number in range(13, 60):  # until it has recovered
        history.enter(finished(number, notify=True))
    waiting = len(history.letters("main"))
    assert waiting >= 2
    hook.answers = [(404, {})]
    told = notify(history, "main", webhook_from_options(hook.url, None), ONCE)
    assert (told["ok"], told["sent"], told["refused"]) == (False, waiting - 1, 1)
    assert (told["waiting"], told["status"]) == (0, 404)
    assert len(hook.got) == waiting
    assert history.letters("main") == {}
    (kept,) = history.refused("main")
    assert kept["run"] == 13
    assert notify(history, "main", webhook_from_options(hook.url, None), ONCE) is None


@pytest.mark.slow
@pytest.mark.parametrize("status", [302, 408, 425, 429, 500, 503])
def test_what_may_be_taken_another_time_waits(history, hook, status):
    hook.status = status
    told = notify(history, "main", webhook_from_options(hook.url, None), ONCE)
    assert (told["refused"], told["waiting"]) == (0, 1)
    assert history.refused("main") == []


def test_an_address_and_its_secret_are_never_stored(history, monkeypatch):
    monkeypatch.setenv("HOOK_SECRET", "long-and-secret")
    to = webhook_from_options("http://user:pass@127.0.0.1:9/hook?token=12345", "HOOK_SECRET")
    notify(history, "main", to, ONCE)
    content = b"".join(one.read_bytes() for one in history.path.parent.iterdir())
    for secret in (b"long-and-secret", b"token=12345", b"user:pass"):
        assert secret not in content
    assert "secret" not in repr(to)


@pytest.mark.parametrize(
    "url", ["", "hook", "ftp://host/x", "http://", "http://[::1", "http://h:x", "http://h:99999/"]
)
def test_what_is_no_address_is_refused(url):
    with pytest.raises(InputError, match="--webhook must begin with http"):
        webhook_from_options(url, None)


def test_a_secret_that_is_not_set_or_signs_nothing_is_refused(monkeypatch):
    monkeypatch.delenv("HOOK_SECRET", raising=False)
    with pytest.raises(InputError, match="HOOK_SECRET is not set"):
        webhook_from_options("http://127.0.0.1:9/hook", "HOOK_SECRET")
    with pytest.raises(InputError, match="needs --webhook URL"):
        webhook_from_options(None, "HOOK_SECRET")


def test_without_a_webhook_nothing_is_sent(history):
    assert webhook_from_options(None, None) is None
    assert notify(history, "main", None, ONCE) is None
    assert len(history.letters("main")) == 1


@contextmanager
def listener(talk):
    """A server that takes one connection and does with it what `talk` does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve():
            connection, _ = server.accept()
            with connection:
                talk(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/hook"
        finally:
            thread.join()


def test_a_server_that_never_answers_is_left_in_time():
    with (
        listener(lambda connection: connection.makefile("rb").read()) as url,
        pytest.raises(DeliveryFailedError, match="no answer"),
    ):
        http_post(url, b"{}", {}, timeout_s=0.2)


def test_an_answer_that_comes_in_drops_is_left_in_time():
    """Each drop comes within the timeout of a read; all of them do not."""
    left = threading.Event()

    def drip(connection):
        try:
            while not left.wait(0.02):
                connection.sendall(b"H")
        except OSError:
            left.set()

    with listener(drip) as url:
        with pytest.raises(DeliveryFailedError, match=r"no answer|HTTP"):
            http_post(url, b"{}", {}, timeout_s=0.3)
        left.set()


@pytest.mark.parametrize("answer", [b"", b"hello\r\n\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_what_is_no_http_is_told(answer):
    def talk(connection):
        connection.recv(65536)
        connection.sendall(answer)

    with listener(talk) as url, pytest.raises(DeliveryFailedError):
        http_post(url, b"", {}, timeout_s=5)


def test_a_body_that_never_ends_is_not_read():
    def talk(connection):
        connection.recv(65536)
        connection.sendall(
            b"HTTP/1.1 204 No Content\r\nContent-Length: 999999999\r\nX-A: b\r\n\r\n"
        )

    with listener(talk) as url:
        status, headers, _ = http_post(url, b"{}", {}, timeout_s=5)
    assert (status, headers["x-a"]) == (204, "b")


def test_only_the_origin_of_an_address_is_shown():
    assert url_origin("https://u:p@host:8443/T0/SECRET?k=v") == "https://host:8443"
    assert url_origin("http://[::1]:80/x") == "http://[::1]:80"


def test_a_host_with_control_characters_cannot_be_used():
    with pytest.raises(DeliveryFailedError):
        http_post("http://a b/x", b"", {}, timeout_s=2)

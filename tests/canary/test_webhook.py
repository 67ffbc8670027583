import http.server
import json
import random
import re
import socket
import threading
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest

from misslink.canary.webhook import DeliveryClock, deliver, sign

NEWS = {"name": "main", "run": 41, "text": "h\u00e9alth \ud83d fell"}
DOCS = Path(__file__).parents[2] / "docs" / "canary.md"


class Time:
    """A clock that only waits move."""

    def __init__(self):
        self.at, self.waits = 0.0, []

    def clock(self, wall=lambda: 1_700_000_000.0):
        return DeliveryClock(now=lambda: self.at, wall=wall, sleep=self.sleep)

    def sleep(self, seconds):
        self.waits.append(seconds)
        self.at += seconds


@contextmanager
def receiver(*answers):
    """A webhook that gives each answer (a status and headers) once, then 200; and what it got."""
    got, left = [], list(answers)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got.append((self.path, self.headers, body))
            status, headers = left.pop(0) if left else (200, {})
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sent(url, **options):
    passing = Time()
    options = {"secret": None, "rng": random.Random(0), "clock": passing.clock(), **options}
    return deliver(url, NEWS, **options), passing


def verifier():
    """The function that docs/canary.md gives to receivers."""
    code = re.search(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL).group(1)
    names = {}
    exec(code, names)  # noqa: S102 (our own page)
    return names["is_ours"]


def test_what_is_sent_arrives_and_its_signature_holds_as_the_docs_verify_it():
    with receiver() as (url, got):
        delivery, _ = sent(f"{url}/hook/x?y=1", secret="s3cret", clock=DeliveryClock())
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
        delivery, _ = sent(url)
    assert not delivery.ok
    assert delivery.status == 302


@pytest.mark.parametrize(
    ("url", "options", "told"),
    [
        ("ftp://host/x", {}, "no address"),
        ("http://[::1", {}, "no address"),
        ("http://host:99999/", {}, "no address"),
        ("http://127.0.0.1/", {"secret": ""}, "secret is empty"),
    ],
)
def test_what_cannot_be_sent_is_told_and_nothing_raised(url, options, told):
    delivery, _ = sent(url, **options)
    assert (delivery.ok, delivery.attempts) == (False, 0)
    assert told in delivery.error


def test_a_document_that_is_not_json_is_told():
    delivery = deliver("http://127.0.0.1:1/", {"value": float("nan")}, secret=None)
    assert (delivery.ok, delivery.attempts) == (False, 0)
    assert "not JSON" in delivery.error

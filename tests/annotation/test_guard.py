"""The page's server answers its own page alone: no other site, name, method or kind of content."""

import asyncio
import json
import socket
import urllib.parse
import urllib.request

import pytest

from labelled_runs import TOKEN, ask, put, run_of, served
from misslink.annotation import AnnotationSession
from misslink.annotation.server import BODY_LIMIT, RequestGuard, user_token


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    folder = put(tmp_path_factory.mktemp("guarded") / "run", run_of([0.2, 0.8]))
    with AnnotationSession(folder) as desk, served(desk) as port:
        yield port


def label(**more):
    return {"annotator": "ada", "at": 0, "metric": "faithfulness", "label": 1, **more}


def labels(port):
    return json.loads(ask(port, "/api/item?annotator=ada&at=0")[2])["labels"]


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example"]
)
@pytest.mark.parametrize(
    "path", ["/", "/page/annotate.js", "/api/session?annotator=", "/api/export"]
)
def test_another_name_for_this_machine_is_refused(port, host, path):
    status, _, body = ask(port, path, headers={"Host": host})
    assert (status, "127.0.0.1 only" in json.loads(body)["error"]) == (421, True)


def test_localhost_is_this_machine_too(port):
    assert ask(port, "/", headers={"Host": f"localhost:{port}"})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_from_elsewhere_can_neither_read_nor_label(port, headers):
    before = labels(port)
    assert ask(port, "/api/session?annotator=ada", headers=headers)[0] == 403
    assert ask(port, "/api/label", label(), headers=headers)[0] == 403
    assert ask(port, "/api/reveal", label(), headers=headers)[0] == 403
    assert labels(port) == before


def test_the_page_itself_may_ask(port):
    own = {"Origin": f"http://127.0.0.1:{port}", "Sec-Fetch-Site": "same-origin"}
    assert ask(port, "/api/label", label(), headers=own)[0] == 200


@pytest.mark.parametrize("token", ["", "guessed", TOKEN.upper(), "\u00fc"])
def test_another_user_of_this_machine_can_neither_read_nor_label(port, token):
    before = labels(port)
    for path, content in (
        ("/api/session?annotator=ada", None),
        ("/api/item?annotator=ada&at=0", None),
        (f"/api/export?format=csv&token={urllib.parse.quote(token)}", None),
        ("/api/label", label()),
        ("/api/undo", label()),
    ):
        status, _, body = ask(port, path, content, token=token)
        assert (status, "carries a token" in json.loads(body)["error"]) == (403, True)
    assert labels(port) == before


def test_a_download_has_the_token_in_its_address(port):
    ask(port, "/api/label", label())
    path = f"/api/export?format=csv&token={TOKEN}"
    assert ask(port, path, headers={"X-Misslink-Token": ""})[0] == 403
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as reply:
        assert reply.status == 200


def test_a_token_is_kept_only_in_a_file_that_is_its_users_own(tmp_path):
    file = tmp_path / ".misslink" / "annotate-token"
    token = user_token(file)
    assert (len(token) > 30, user_token(file) == token) == (True, True)
    assert file.stat().st_mode & 0o77 == 0
    file.chmod(0o644)
    fresh = user_token(file)
    assert fresh != token
    assert (file.read_text(), file.stat().st_mode & 0o77) == (fresh, 0)
    assert user_token(tmp_path) not in ("", user_token(tmp_path))  # nowhere to write


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_can_send_is_refused(port, kind):
    raw = json.dumps(label()).encode()
    assert ask(port, "/api/label", raw=raw, headers={"Content-Type": kind})[0] == 415


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "PATCH", "TRACE"])
def test_other_methods_are_refused(port, method):
    assert ask(port, "/api/label", method=method)[0] == 405


def test_too_much_is_refused_whether_or_not_its_length_is_said(port):
    big = json.dumps(label(comment="x" * BODY_LIMIT)).encode()
    assert ask(port, "/api/label", raw=big)[0] == 413
    head = (
        f"POST /api/label HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"X-Misslink-Token: {TOKEN}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"%x\r\n%s\r\n" % (BODY_LIMIT + 1, b"x" * (BODY_LIMIT + 1))
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(head.encode() + chunk)
        assert b" 413 " in raw.recv(1000)


@pytest.mark.parametrize("path", ["/", "/page/annotate.css", "/api/session?annotator=", "/nowhere"])
def test_every_reply_forbids_what_the_page_does_not_need(port, path):
    headers = {name.lower(): value for name, value in ask(port, path)[1].items()}
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_a_length_that_is_no_number_is_refused_and_no_crash():
    """Python calls a raised two a digit, but reads no number from it."""
    said = []

    async def send(message):
        said.append(message)

    headers = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json")]
    headers.append((b"content-length", "\u00b2".encode("latin-1")))
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers}
    asyncio.run(RequestGuard(None, 1, TOKEN)(scope, None, send))
    assert said[0]["status"] == 413


@pytest.mark.parametrize(
    ("port", "host", "status"),
    [
        (80, "127.0.0.1", 200),
        (80, "localhost", 200),
        (80, "127.0.0.1:80", 200),
        (80, "evil.example", 421),
        (8080, "127.0.0.1", 421),
    ],
)
def test_a_host_without_port_is_that_of_port_80(port, host, status):
    """A browser leaves the port 80 out, of Host and of Origin."""
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive():
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message):
        sent.append(message)

    headers = {"host": host, "origin": f"http://{host}", "content-type": "application/json"}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": raw}
    asyncio.run(RequestGuard(app, port, TOKEN)(scope, receive, send))
    assert sent[0]["status"] == status

"""An app behind HTTP, asked over a real server on the loopback."""

import asyncio
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from misslink.capture import Watcher, load_app
from misslink.errors import InputError
from misslink.types import Case

PASSAGES = [{"doc": {"key": "times"}, "body": "The ferry leaves at seven.", "rank_score": 0.5}]


@pytest.fixture
def server():
    """A server that answers with what `replies` has for the path, and keeps what it was asked."""
    requests, replies = [], {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length).decode()
            requests.append((self.command, self.path, self.headers.get("Authorization"), body))
            path = self.path.partition("?")[0]
            if path == "/hang":
                released.wait(20)
            status, reply = replies.get(path, (200, {}))
            content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST  # noqa: N815 - the name that the server calls

        def log_message(self, *_):
            pass

    released = threading.Event()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{httpd.server_port}", replies, requests
    released.set()
    httpd.shutdown()
    httpd.server_close()


def ask(app, **options):
    return asyncio.run(Watcher(app, **options).watch(Case(question='When "exactly"?')))


def described(tmp_path, text):
    (tmp_path / "app.toml").write_text(text)
    return load_app("app.toml", tmp_path)


def test_an_address_alone_gets_the_question_and_is_read_as_a_function_is(server):
    url, replies, requests = server
    replies["/ask"] = 200, {"answer": "At seven.", "sources": [{"id": "times", "text": "Seven."}]}
    trace = ask(load_app(f"{url}/ask"))
    assert (trace.answer, [p.id for p in trace.retrieved]) == ("At seven.", ["times"])
    assert json.loads(requests[0][3]) == {"question": 'When "exactly"?'}


def test_a_file_says_how_to_ask_and_where_the_answer_is(server, tmp_path, monkeypatch):
    url, replies, requests = server
    monkeypatch.setenv("APP_TOKEN", "s3cret")
    replies["/v1"] = 200, {"choices": [{"text": "At seven."}], "found": PASSAGES}
    app = described(
        tmp_path,
        f"""
url = "{url}/v1"
answer = "choices.0.text"
passages = "$.found"
[headers]
Authorization = "Bearer ${{APP_TOKEN}}"
[body]
messages = [{{role = "user", content = "Q: {{question}}"}}]
[passage]
id = "doc.key"
text = "body"
score = "rank_score"
""",
    )
    trace = ask(app, settings={"tenant": "acme"})
    assert trace.answer == "At seven."
    assert [(p.id, p.text, p.score) for p in trace.retrieved] == [
        ("times", "The ferry leaves at seven.", 0.5)
    ]
    ((_, _, token, body),) = requests
    assert token == "Bearer s3cret"
    assert json.loads(body) == {
        "messages": [{"role": "user", "content": 'Q: When "exactly"?'}],
        "tenant": "acme",
    }


def test_a_get_request_has_the_question_in_its_address(server, tmp_path):
    url, replies, requests = server
    replies["/ask"] = 200, {"answer": "At seven."}
    text = f'url = "{url}/ask"\nparams = {{q = "{{question}}"}}\n'
    assert ask(described(tmp_path, text)).answer == "At seven."
    assert requests[0][:2] == ("GET", "/ask?q=When+%22exactly%22%3F")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ((500, b"database down"), "HTTP 500: database down"),
        ((200, b"<html>"), "the reply is not JSON: '<html>'"),
        (
            (200, {"text": "A"}),
            r"the reply has no 'answer' .*app.toml: answer\); its keys are text",
        ),
        ((200, {"answer": "A", "docs": 5}), "'docs' of the reply is not a list"),
    ],
)
def test_a_reply_that_cannot_be_used_is_an_error_of_the_case(server, tmp_path, reply, error):
    url, replies, _ = server
    replies["/ask"] = reply
    text = f'url = "{url}/ask"\nanswer = "answer"\npassages = "docs"\n'
    trace = ask(described(tmp_path, text))
    assert re.search(error, trace.error)
    assert trace.answer is None


def test_a_server_that_hangs_or_is_not_there_is_an_error_of_the_case(server, tmp_path):
    url, _, _ = server
    trace = ask(described(tmp_path, f'url = "{url}/hang"\ntimeout = 0.2\n'))
    assert "no reply within 0.2 seconds" in trace.error
    trace = ask(load_app("http://127.0.0.1:9/ask"))
    assert "cannot reach the app (ConnectError)" in trace.error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "field 'url': The address of the app is missing"),
        ("url = 5", "field 'url': This has the wrong type"),
        ('url = "ftp://host"', "is not an HTTP address"),
        ('url = "https://host"\nanswr = "a"', "field 'answr'.*did you mean 'answer'"),
        ('url = "https://host"\n[passage]\nname = "a"', "field 'passage.name'"),
        ('url = "https://host"\n[headers]\nA = "${NO_SUCH_NAME}"', "NO_SUCH_NAME is not set"),
        ("url = x", "line 1: this is not valid TOML; a text needs quotes"),
    ],
)
def test_a_mistake_in_the_file_names_the_field(tmp_path, text, message):
    with pytest.raises(InputError, match=rf"app.toml.*{message}"):
        described(tmp_path, text)


@pytest.mark.parametrize("url", ["https://ada:hunter2@host/ask", "https://host/ask?key=hunter2"])
def test_an_address_with_a_secret_is_refused(url):
    with pytest.raises(InputError, match=r"app\.toml") as error:
        load_app(url)
    assert "hunter2" not in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "content"),
    [
        (500, b"no: Bearer %s, 7-short"),
        (200, b"no: Bearer %s, 7-short"),
        (200, b'{"answer": "Bearer %s"}'),
        (200, b'{"%s": 1}'),
    ],
)
def test_a_server_that_repeats_a_secret_puts_it_into_no_trace(
    server, tmp_path, monkeypatch, status, content
):
    url, replies, _ = server
    monkeypatch.setenv("APP_TOKEN", "a-secret-of+24-characters")
    monkeypatch.setenv("APP_PIN", "7-short")
    replies["/ask"] = status, content.replace(b"%s", b"a-secret-of+24-characters")
    headers = '{A = "Bearer ${APP_TOKEN}", B = "${APP_PIN}"}'
    trace = ask(described(tmp_path, f'url = "{url}/ask"\nanswer = "answer"\nheaders = {headers}'))
    assert "[key]" in (trace.error or trace.answer)
    assert "a-secret" not in trace.model_dump_json()
    assert "7-short" not in trace.model_dump_json()


@pytest.mark.slow
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "form", [str, lambda s: s.replace("/", "\\/"), lambda s: s.replace("/", "\\u002F")]
)
def test_a_secret_that_the_reply_escapes_is_in_no_trace(
    server, tmp_path, monkeypatch, status, form
):
    url, replies, _ = server
    monkeypatch.setenv("APP_TOKEN", "ab/cd/ef12")  # short, with what JSON may escape
    replies["/ask"] = status, f'{{"answer": "you sent {form("ab/cd/ef12")}"}}'.encode()
    headers = '{A = "${APP_TOKEN}"}'
    trace = ask(described(tmp_path, f'url = "{url}/ask"\nanswer = "answer"\nheaders = {headers}'))
    assert "you sent [key]" in (trace.error or trace.answer)
    assert "ef12" not in trace.model_dump_json()


def test_what_a_file_holds_itself_is_a_secret_too(server, tmp_path):
    url, replies, _ = server
    replies["/ask"] = 200, b'{"answer": "Bearer 0a1b2c3d, pass-word-1 and tok-3n9x"}'
    address = url.replace("http://", "http://ada:pass-word-1@")
    headers = '{Authorization = "Bearer 0a1b2c3d"}'
    text = f'url = "{address}/ask?token=tok-3n9x"\nanswer = "answer"\nheaders = {headers}'
    replies["/ask?token=tok-3n9x"] = replies["/ask"]
    assert ask(described(tmp_path, text)).answer == "[key], [key] and [key]"


def test_an_address_in_a_variable_is_in_no_message(tmp_path, monkeypatch):
    monkeypatch.setenv("APP_URL", "ftp://ada:hunter2@host")
    with pytest.raises(InputError, match="is not an HTTP address") as error:
        described(tmp_path, 'url = "${APP_URL}/ask"')
    assert "hunter2" not in str(error.value)


def test_a_score_of_zero_and_an_empty_text_are_values(server, tmp_path):
    url, replies, _ = server
    replies["/ask"] = 200, {"docs": [{"id": "a", "s": 0.0, "t": ""}, {"id": 0, "s": 0, "t": "T"}]}
    text = f'url = "{url}/ask"\npassages = "docs"\npassage = {{id = "id", score = "s", text = "t"}}'
    found = asyncio.run(described(tmp_path, text)("When?"))["retrieved"]
    assert found == [
        {"id": "a", "score": 0.0, "text": ""},
        {"id": 0, "score": 0, "text": "T"},
    ]


def test_the_messages_before_the_question_fill_their_place(server, tmp_path):
    url, replies, requests = server
    replies["/ask"] = (200, {"answer": "Nine."})
    history = [
        {"role": "user", "content": "{question}"},
        {"role": "assistant", "content": "Seven."},
    ]
    case = Case(question="And back?", history=history)
    body = '[body]\nmessages = "{history}"\ntext = "{history}; user: {question}"\n'
    app = described(tmp_path, f'url = "{url}/ask"\n{body}')
    assert asyncio.run(Watcher(app).watch(case)).answer == "Nine."
    assert json.loads(requests[-1][-1]) == {
        "messages": history,
        "text": "user: {question}\nassistant: Seven.; user: And back?",
    }
    asyncio.run(Watcher(load_app(f"{url}/ask")).watch(case))
    assert json.loads(requests[-1][-1]) == {"question": "And back?", "history": history}
    lines = described(tmp_path, f'url = "{url}/ask"\nparams = {{h = "{{history}}"}}\n')
    asyncio.run(Watcher(lines).watch(case))
    assert "h=user%3A+%7Bquestion%7D%0Aassistant%3A+Seven." in str(requests[-1])
    without = described(tmp_path, f'url = "{url}/ask"\nparams = {{q = "{{question}}"}}\n')
    assert not Watcher(without).takes_history

"""Whatever address people paste: the question arrives there, with the key in its place."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from ask_server import outage, replies
from judge_server import Handler, JudgeServer
from misslink.judge.backends.langchain import open_langchain
from misslink.judge.backends.openai import open_azure, open_openai, open_responses
from misslink.judge.config import JudgeConfig
from misslink.judge.session import create_judge


class Azure(JudgeServer):
    """Answers at the classic address of a deployment; `seen` has paths and key headers."""

    def _handler(self):
        seen = self.seen = []

        class AtDeployment(Handler):
            def do_POST(self):  # noqa: N802
                headers = {name: self.headers.get(name) for name in ("api-key", "authorization")}
                seen.append((self.path, headers))
                if self.path.startswith("/openai/deployments/test-judge/chat/completions?"):
                    self.path = "/v1/chat/completions"
                super().do_POST()

        return AtDeployment


PATH = "/openai/deployments/test-judge/chat/completions?api-version=2024-10-21"


@pytest.fixture
def azure(monkeypatch):
    with Azure() as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"http://127.0.0.1:{server.port}/")
        monkeypatch.setenv("AZURE_OPENAI_API_KEY", "an-azure-key")
        monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
        yield server


def test_an_azure_deployment_is_asked_at_its_address_with_its_key(azure):
    (reply,) = replies(azure, 1, open_azure, base_url=None)
    assert reply.parsed is not None
    assert azure.seen == [(PATH, {"api-key": "an-azure-key", "authorization": None})]


def test_its_classic_address_works_as_a_base_url_too(azure):
    url = f"http://127.0.0.1:{azure.port}{PATH}"
    (reply,) = replies(azure, 1, base_url=url, api_key="an-azure-key")
    assert reply.parsed is not None
    assert azure.seen == [(PATH, {"api-key": "an-azure-key", "authorization": None})]


def test_a_request_names_the_account_of_its_key(judge_server, monkeypatch):
    seen = []

    class Account(Handler):
        def do_POST(self):  # noqa: N802
            names = ("openai-organization", "openai-project", "content-type")
            seen.append([self.headers.get(name) for name in names])
            super().do_POST()

    judge_server._http.RequestHandlerClass = Account
    replies(judge_server, 1)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    replies(judge_server, 1)
    assert seen == [[None, None, "application/json"], ["org-1", "proj-1", "application/json"]]


def test_a_judge_of_azure_is_not_the_same_as_one_of_openai(azure):
    judge = create_judge("azure:test-judge", JudgeConfig())
    assert judge.name == "azure:test-judge"
    assert judge.identity["base_url"].endswith("/openai/deployments/test-judge")


def open_langchain_openai(model, **options):
    return open_langchain(f"openai:{model}", api_key="made-up", **options)


@pytest.mark.parametrize("opening", [open_openai, open_responses, open_langchain_openai])
@pytest.mark.parametrize("pasted", ["", "/", "/chat/completions", "/responses", "?team=a"])
def test_a_pasted_endpoint_is_not_doubled(judge_server, opening, pasted):
    class Queried(Handler):
        def do_POST(self):  # noqa: N802
            self.path = self.path.partition("?")[0]
            super().do_POST()

    judge_server._http.RequestHandlerClass = Queried
    (reply,) = replies(judge_server, 1, opening, base_url=judge_server.url + pasted)
    assert reply.parsed is not None


@contextmanager
def redirecting(target):
    """A server that sends every request on."""

    class Redirect(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(307)
            self.send_header("location", target)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirect)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("opening", [open_openai, open_langchain])
def test_no_question_is_sent_on_to_another_host(judge_server, opening):
    elsewhere = judge_server.url.replace("127.0.0.1", "localhost") + "/chat/completions"
    spec = (
        {}
        if opening is open_openai
        else {"opening": lambda _, **o: open_langchain("openai:test-judge", **o)}
    )
    with redirecting(elsewhere) as url:
        assert "another host (localhost)" in outage(
            judge_server, base_url=url, api_key="made-up", **spec
        )
    assert judge_server.calls == []


def test_a_proxy_that_is_not_there_is_named(judge_server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert "HTTP_PROXY" in outage(judge_server)

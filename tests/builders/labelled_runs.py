"""Runs to be labelled, made of so many cases, and a server that serves one."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.error
import urllib.request

from misslink.annotation import AnnotationSession
from misslink.annotation.server import bind_localhost, build_server
from misslink.io import RunStaging
from misslink.types import Case, Claim, Link, Passage, Run, Trace, Verdict

TOKEN = "of-this-user"
HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[31m\u2028{{7*7}}"


def verdict(case_id, score, metric="faithfulness", claims=2, **more):
    if score is None:
        more = {"status": "failed", "reason": "no usable reply", **more}
    made = {"status": "scored", "value": score, "probability": score, "label": None, **more}
    if score is not None:
        made["label"] = score >= 0.5
    said = [
        Claim(text=f"Claim {n} of {case_id}.", support="supported") for n in range(claims)
    ] if metric == "faithfulness" else []  # fmt: skip
    return Verdict(case_id=case_id, metric=metric, claims=tuple(said), judge="openai:m", **made)


def run_of(scores, *, categories=(), metrics=("faithfulness",), references=(), answers=None):
    """A run with a case a score: None is a verdict that failed, 'none' no verdict at all."""
    cases, traces, verdicts = [], [], []
    for n, score in enumerate(scores):
        name = f"c{n}"
        cases.append(
            Case(
                id=name,
                question=f"What of {n}? {HOSTILE if n == 0 else ''}",
                category=categories[n % len(categories)] if categories else None,
                references=references,
            )
        )
        passage = Passage(id=f"p{n}", text=f"All of {n}.", rank=1)
        answer = f"Answer {n}." if answers is None else answers[n]
        traces.append(Trace(case_id=name, retrieved=(passage,), answer=answer))
        if score != "none":
            verdicts += [verdict(name, score, metric) for metric in metrics]
    links = [
        Link(case_id=case.id, retrieval="hit", answer="unknown", failure="inconclusive", reason="-")
        for case in cases
    ]
    return Run(
        manifest={"misslink": "0", "inputs": {"k": "1"}, "k": 5, "judge": "openai:m"},
        cases=tuple(cases), traces=tuple(traces), verdicts=tuple(verdicts), links=tuple(links),
        summary={},
    )  # fmt: skip


def put(folder, run):
    """Write a run folder as evaluate does."""
    with RunStaging(folder, run.manifest["inputs"], "w", overwrite=True) as staging:
        staging.publish(run, lambda path: path.write_text("page", encoding="utf-8"))
    return folder


def label_all(desk, annotator, of, *, upto=None, metric="faithfulness"):
    """Label the first cases as `of(case_id)` says: 1, 0 or None."""
    for at in range(len(desk.tasks) if upto is None else upto):
        desk.label(annotator, at, metric, None, of(desk.tasks[at].case.id), "")


@contextlib.contextmanager
def served(desk: AnnotationSession):
    """A running server; gives its port."""
    listening = bind_localhost(0)
    port = listening.getsockname()[1]
    server = build_server(desk, port, TOKEN)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield port
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


def ask(port, path, content=None, *, headers=(), method=None, raw=None, token=TOKEN):
    """Status, headers and body of a request; `content` is posted as JSON."""
    data = raw if content is None else json.dumps(content).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, method=method)
    if data is not None:
        request.add_header("Content-Type", "application/json")
    for name, value in {"X-Misslink-Token": token, **dict(headers)}.items():
        request.add_header(name, value)
    try:
        with urllib.request.urlopen(request) as reply:  # noqa: S310  # loopback
            return reply.status, dict(reply.headers), reply.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, dict(refused.headers), refused.read().decode()

"""A small run to label, and the real server of its page, to be stopped and started again."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from misslink.annotation.server import bind_localhost, build_app
from misslink.annotation.session import AnnotationSession
from misslink.io.jsonl import write_jsonl
from misslink.io.run_folder import write_json
from misslink.types import Case, Claim, Evidence, Link, Passage, Run, Trace, Verdict

TOKEN = "of-this-user"
FIRST = "Sockets \N{SNAKE} are closed by the with statement."
SECOND = "It came with Python 2.4."
LONG = "A context manager runs its own code on entry and on exit. " * 30


def small_run() -> Run:
    """Three cases: one with claims and a reference, one with a long passage, one not judged."""
    cases = (
        Case(id="with-exit", question="What closes a socket?", references=("with does.",)),
        Case(id="context", question="What does a context manager do?"),
        Case(id="unjudged", question="Who wrote PEP 343?"),
    )
    traces = tuple(
        Trace(case_id=case.id, retrieved=passages, answer=answer)
        for case, passages, answer in (
            (cases[0], _passages(), f"{FIRST} {SECOND}"),
            (cases[1], (Passage(id="long#1", text=LONG, rank=1),), "It runs code on exit."),
            (cases[2], (), "Guido van Rossum."),
        )
    )
    links = tuple(
        Link(case_id=case.id, retrieval="hit", answer="unknown", failure="inconclusive", reason="r")
        for case in cases
    )
    manifest = {"misslink": "0", "inputs": {}, "judge": "staged", "k": 5}
    summary = {"cases": len(cases)}
    return Run(
        manifest=manifest,
        cases=cases,
        traces=traces,
        verdicts=_verdicts(),
        links=links,
        summary=summary,
    )


def _passages() -> tuple[Passage, ...]:
    return (
        Passage(id="docs/with#2", text="The with statement closes sockets on exit.", rank=1),
        Passage(id="docs/history#9", text="Without it, a withdrawn socket stays open.", rank=2),
    )


def _verdicts() -> tuple[Verdict, ...]:
    quote = Evidence(passage_id="docs/with#2", quote="closes sockets", start=19, end=33)
    start = len(FIRST) + 1
    claims = (
        Claim(text=FIRST, start=0, end=len(FIRST), support="supported", evidence=(quote,)),
        Claim(text=SECOND, start=start, end=start + len(SECOND), support="unsupported"),
    )
    judged = {"judge": "staged", "status": "scored"}
    return (
        Verdict(
            case_id="with-exit",
            metric="faithfulness",
            value=0.5,
            label=False,
            probability=0.31,
            claims=claims,
            reason="A claim rests on nothing.",
            **judged,
        ),
        Verdict(case_id="with-exit", metric="correctness", value=1, label=True, **judged),
        Verdict(case_id="context", metric="faithfulness", value=1, label=True, **judged),
        Verdict(
            case_id="unjudged",
            metric="faithfulness",
            status="failed",
            reason="no reply",
            judge="staged",
        ),
    )


def write_run(folder: Path, run: Run) -> Path:
    """Write a run's folder."""
    folder.mkdir(parents=True)
    for part in ("cases", "traces", "verdicts", "links"):
        write_jsonl(folder / f"{part}.jsonl", getattr(run, part))
    write_json(folder / "summary.json", run.summary)
    write_json(folder / "manifest.json", run.manifest)
    return folder


def lines_of(run: Path, annotator: str) -> list[dict]:
    """What one person's file holds, line by line."""
    text = (run / "labels" / f"{annotator}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def said_of(run: Path, annotator: str) -> dict[tuple, object]:
    """The labels that one person's file holds, by item; nothing of it was taken back."""
    return {
        (line["case_id"], line["metric"], line.get("claim")): line["label"]
        for line in lines_of(run, annotator)
        if "label" in line
    }


class Served:
    """The page of a run, served in a thread.

    Parameters
    ----------
    run : Path
    options
        Of the desk.
    """

    def __init__(self, run: Path, **options):
        self.run, self.options, self.port = run, options, 0
        self.start()

    def start(self):
        """Serve at the port that was served before, if there was one."""
        import uvicorn

        listening = bind_localhost(self.port)
        self.port = listening.getsockname()[1]
        self._desk = AnnotationSession(self.run, **self.options)
        self.cases = [task.case.id for task in self._desk.tasks]
        config = uvicorn.Config(
            build_app(self._desk, self.port, TOKEN),
            log_level="critical",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listening],))
        self._thread.start()

    def stop(self):
        """End it; what it had open is free for another process."""
        self._server.should_exit = True
        self._thread.join()
        self._desk.__exit__(None, None, None)

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"{self.origin}/?token={TOKEN}"

    @property
    def origin(self) -> str:
        """Where all that it asks for is."""
        return f"http://127.0.0.1:{self.port}"


def open_case(page, served, case_id, annotator="anna"):
    """Open a case, and return its place in the order of labelling, from 0."""
    at = served.cases.index(case_id)
    page.goto(f"{served.address}#annotator={annotator}&case={at + 1}")
    page.locator(".meta code", has_text=case_id).wait_for()
    return at


def saved(page, text):
    """Wait until the page says that this is on disk."""
    page.locator("#saved", has_text=text).wait_for()


def states(page):
    """What is said to each question of the open case."""
    return [text.split(" ", 1)[-1] for text in page.locator(".question .state").all_inner_texts()]

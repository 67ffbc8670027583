"""Command `misslink annotate`."""

from __future__ import annotations

import shlex
import sys
import threading
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import typer

from misslink.cli.options import JSON_OPTION, option
from misslink.cli.output import (
    check_output_paths,
    print_json,
    print_line,
    progress_bars,
    strip_control,
)
from misslink.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from misslink.annotation.session import LabelSession

_STATE = Path(".misslink")


def annotate(
    run: Path = typer.Argument(..., help="Run or pool. Labels go to its subfolder labels."),
    annotator: str | None = option(
        None, "--annotator", "Name of the annotator.", show_default="the page asks"
    ),
    case: str | None = option(None, "--case", "Case to open first.", show_default="first open one"),
    port: int | None = option(
        None,
        "--port",
        "Port on 127.0.0.1; 0 for any free one.",
        min=0,
        max=65535,
        show_default="8765, or any free one",
    ),
    metric: list[str] = option(
        [],
        "--metric",
        "Metric to label; repeatable.",
        show_default="faithfulness, answer_relevance and correctness, if the run has them",
    ),
    seed: int | None = option(
        None,
        "--seed",
        "Random seed for samples and intervals.",
        min=0,
        show_default="of the last order, else 0",
    ),
    random_share: float | None = option(
        None,
        "--random-share",
        "Share of labels for random cases; the rest go to uncertain verdicts.",
        min=0,
        max=1,
        show_default="of the last order, else 0.2",
    ),
    adjudicate: bool = option(False, "--adjudicate", "Settle disagreements of annotators."),
    export: Path | None = option(
        None, "--export", "Write all labels to a .csv or .jsonl file, without a page."
    ),
    no_browser: bool = option(False, "--no-browser", "Open no browser."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Label the answers of a run, or the passages of a pool, in the browser.

    Each label is on disk before the next case appears. Ctrl-C ends the server; the same command
    resumes. Then compare the judge with the labels: misslink calibrate RUN. For a pool
    (misslink goldset pool) the page asks for grades of passages.
    """
    from misslink.annotation.server import bind_localhost, build_server, user_token, write_private
    from misslink.registry import annotation_sessions

    kinds = map(annotation_sessions.get, annotation_sessions.names())
    kind = next((kind for kind in kinds if kind.matches(run)), annotation_sessions.get("run"))
    plan = {"metrics": metric, "seed": seed, "random_share": random_share}
    if not kind.has_plan and any(value not in (None, []) for value in plan.values()):
        raise InputError(
            "--metric, --seed and --random-share are for runs; a pool has one question and a "
            "fixed order",
            path=run,
        )
    if export is not None:
        _export(kind, run, export, as_json=as_json)
        return
    token = user_token(_STATE / "annotate-token")
    with progress_bars() as progress:
        of_run = {**plan, "progress": progress} if kind.has_plan else {}
        opened: LabelSession = kind(run, adjudicate=adjudicate, **of_run)
    with opened as session:
        if adjudicate and not session.tasks:
            if not as_json:
                print("Annotators agree on every case that several of them labelled.")
            _print_end(session, run, as_json=as_json)
            return
        if adjudicate or annotator is not None:
            session.open("" if adjudicate or annotator is None else annotator)
        place = {} if case is None else {"case": _place(session, case)}
        with bind_localhost(port) as listener:
            port = listener.getsockname()[1]
            server = build_server(session, port, token)
            name = {} if annotator is None else {"annotator": annotator}
            address = f"http://127.0.0.1:{port}/?{urlencode({'token': token, **name, **place})}"
            for note in session.notes:
                print_line(f"misslink: {note}", stderr=True)
            print(
                f"{len(session.tasks)} {session.unit} to {'settle' if adjudicate else 'label'} at "
                f"{address}\n"
                "Ctrl-C ends it. Every label is saved at once.",
                file=sys.stderr,
                flush=True,
            )
            # A file opens the page, because other users can read a browser's command line.
            page = _STATE / "annotate.html"
            redirect = f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
            if not no_browser and write_private(page, redirect):
                file = page.resolve().as_uri()
                threading.Thread(target=webbrowser.open, args=(file,), daemon=True).start()
            try:
                server.run(sockets=[listener])
            except KeyboardInterrupt:
                print(file=sys.stderr)  # after the line with ^C
        _print_end(session, run, as_json=as_json)


def _place(session: LabelSession, case: str) -> int:
    """The number of a case in the order of labelling, from 1."""
    names = [task.case.id for task in session.tasks]
    if case not in names:
        hint = did_you_mean(case, names) or f"there are {len(names)} {session.unit} to label"
        raise InputError(f"no case {case!r} is to be labelled here; {hint}", field="--case")
    return names.index(case) + 1


def _export(kind: Any, run: Path, path: Path, *, as_json: bool) -> None:
    check_output_paths({"--export": path})
    labels = kind.write_labels(run, path)
    if as_json:
        print_json({"run": str(run), "labels": labels, "export": str(path)})
    else:
        print(strip_control(f"Labels of {run} written to {path}: {labels}."))


def _print_end(session: LabelSession, run: Path, *, as_json: bool) -> None:
    """Print the number of labels of each annotator, and the next command."""
    counts = dict(sorted(session.counts().items()))
    total = sum(counts.values())
    if as_json:
        print_json(
            {
                "run": str(run),
                "folder": str(session.folder),
                "mode": "adjudicate" if session.adjudicate else "label",
                "metrics": list(session.metrics),
                "cases": len(session.tasks),
                "labels": total,
                "annotators": counts,
            }
        )
        return
    if not total:
        print(strip_control(f"{run} has no labels yet."))
        return
    names = ", ".join(f"{count} by {name}" for name, count in counts.items())
    print(strip_control(f"Labels in {session.folder}: {total}; {names}."))
    following = session.next_command.format(folder=shlex.quote(str(run)))
    print(strip_control(f"Next:  {following}"))

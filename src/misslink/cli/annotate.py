"""misslink annotate: a page on this machine on which people label a run's answers, or a pool."""

from __future__ import annotations

import shlex
import sys
import threading
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import typer

from misslink.cli.options import AS_JSON
from misslink.cli.output import plain, print_json
from misslink.errors import InputError

if TYPE_CHECKING:
    from misslink.annotating import Desk, PoolDesk

__all__ = ["annotate"]


def annotate(
    run: Path = typer.Argument(..., help="A run or a pool; labels are kept in its folder labels."),
    annotator: str | None = typer.Option(
        None, "--annotator", help="Who labels; the page asks where it is not said."
    ),
    port: int | None = typer.Option(
        None,
        "--port",
        min=0,
        max=65535,
        help="Of 127.0.0.1; 0 for any that is free.",
        show_default="8765, or any where that is taken",
    ),
    metric: list[str] = typer.Option(
        [],
        "--metric",
        help="What is labelled; may be given several times.",
        show_default="faithfulness, answer_relevance and correctness, where the run has them",
    ),
    seed: int | None = typer.Option(
        None, "--seed", min=0, help="Of the order.", show_default="as drawn before, else 0"
    ),
    random_share: float | None = typer.Option(
        None,
        "--random-share",
        min=0,
        max=1,
        help="Share of labels that go to cases whatever their score; the rest go to where the "
        "judge is unsure.",
        show_default="as drawn before, else 0.2",
    ),
    adjudicate: bool = typer.Option(False, "--adjudicate", help="Settle what people disagree on."),
    export: Path | None = typer.Option(
        None, "--export", help="Write all labels to a .csv or .jsonl file, and serve no page."
    ),
    no_browser: bool = typer.Option(False, "--no-browser", help="Open no browser."),
    as_json: bool = AS_JSON,
) -> None:
    """Label the answers of a run on a page of this machine: one case at a time, keys or clicks.

    Every label is on disk before the next case is shown; Ctrl-C ends it, and the same command goes
    on where it stopped. misslink calibrate RUN  then holds the judge against the labels. Of a pool
    (misslink goldset pool) passages are graded, and  misslink goldset pooled POOL  comes next.
    """
    from misslink.goldset.pooling.folder import is_pool

    pool = is_pool(run)
    if pool and (metric or seed is not None or random_share is not None):
        raise InputError(
            "--metric, --seed and --random-share are of a run; a pool has its one question and "
            "its order",
            path=run,
        )
    if export is not None:
        _export(run, export, pool=pool, as_json=as_json)
        return
    from misslink.annotating import Desk, PoolDesk
    from misslink.annotating.server import bound, serve, web_server

    made = (
        PoolDesk(run, adjudicate=adjudicate)
        if pool
        else Desk(run, metrics=metric, seed=seed, random_share=random_share, adjudicate=adjudicate)
    )
    with made as desk:
        if adjudicate and not desk.tasks:
            _end(desk, run, as_json=as_json, before="People agree wherever they labelled the same.")
            return
        if annotator is not None and not adjudicate:
            desk.open(annotator)
        elif adjudicate:
            desk.open("")
        listening = bound(port)
        with listening:
            at = listening.getsockname()[1]
            web_server(desk, at)  # what is not installed is told before an address is
            address = f"http://127.0.0.1:{at}/"
            if annotator is not None:
                address += f"?annotator={quote(annotator)}"
            for note in desk.notes:
                print(f"misslink: {plain(note)}", file=sys.stderr)
            print(
                f"{len(desk.tasks)} {'passages' if pool else 'cases'} to label at {address}\n"
                "Ctrl-C ends it; every label is on disk as soon as it is given.",
                file=sys.stderr,
                flush=True,
            )
            if not no_browser:
                threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
            try:
                serve(desk, listening)
            except KeyboardInterrupt:
                print(file=sys.stderr)  # the line on which ^C stands
        _end(desk, run, as_json=as_json)


def _export(run: Path, path: Path, *, pool: bool, as_json: bool) -> None:
    from misslink.annotating import export
    from misslink.annotating.grades import export_grades
    from misslink.cli.writing import is_part_of_run
    from misslink.files import read_run

    if is_part_of_run(path):
        raise InputError("this is a part of a run; name another file with --export", path=path)
    if not pool:
        read_run(run)  # what is no run folder is told as such
    labels = export_grades(run, path) if pool else export(run, path)
    if as_json:
        print_json({"run": str(run), "labels": labels, "export": str(path)})
    else:
        print(plain(f"Labels of {run} written to {path}: {labels}."))


def _end(desk: Desk | PoolDesk, run: Path, *, as_json: bool, before: str = "") -> None:
    from misslink.goldset.pooling.folder import is_pool

    counts = desk.counts()
    if as_json:
        print_json(_document(desk, run, counts))
        return
    total = sum(counts.values())
    if before:
        print(before)
    if not total:
        print(plain(f"Nobody has labelled {run} yet."))
        return
    names = ", ".join(f"{n} by {name}" for name, n in sorted(counts.items()))
    print(plain(f"Labels in {desk.folder}: {total}; {names}."))
    folder = shlex.quote(str(run))
    pooled = f"misslink goldset pooled {folder} --out graded.jsonl"
    print(plain(f"Next:  {pooled if is_pool(run) else f'misslink calibrate {folder}'}"))


def _document(desk: Desk | PoolDesk, run: Path, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "run": str(run),
        "folder": str(desk.folder),
        "mode": "adjudicate" if desk.adjudicate else "label",
        "metrics": list(desk.metrics),
        "cases": len(desk.tasks),
        "labels": sum(counts.values()),
        "annotators": dict(sorted(counts.items())),
    }

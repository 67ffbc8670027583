"""How large the report's page is, how fast it is written, opened, searched and scrolled.

    python benchmarks/report/report.py [--cases 1000 10000 100000] [--times 5] [--folder DIR] [--write]

Made-up runs (`made_up_run.py`: passages of about 1,000 characters of a corpus of 4,000, five a
case; answers of five sentences, each a claim with its quote where a passage holds it; verdicts of
eight metrics with the judge's raw reply; links with what was missed; recorded prompts; a map of 4,000 points), read
from a run folder. A page of more than 10,000 cases tells the worst 5,000, and a table of all lies
beside it. Python's part in a process of its own for its peak memory; the page in headless
Chromium from file://, anew for each of the repetitions, medians over them. A filter's time runs
from the key to the frame after the count of cases has changed. Scrolled is from the first row to
the last in 240 steps, one each frame; a frame takes 16.7 ms at best.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "builders"))

TARGET = Path(__file__).with_suffix(".md")
CHROMIUM = Path("/usr/bin/chromium")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]
# MB; a larger run's page may weigh as much as one that still has all its cases.
LIMITS = {1_000: 12, 10_000: 25, 100_000: 25}
OPENED = (0, 499, 6, 998, 299)  # places in the list, whose cases a reader opens one after another
FIRST_PAINT_MS = 1_500
SMOOTH_MS = 50  # of the slowest frame in twenty: three frames of a screen
MB = 1e6

_PAINT = """() => new Promise((done) => {
  const read = () => {
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    if (!paint || !document.getElementById("shown").textContent) return setTimeout(read, 5);
    const [page] = performance.getEntriesByType("navigation");
    done({ paint: paint.startTime, ready: page.domContentLoadedEventEnd });
  };
  read();
})"""
_CHANGED = """([id, value]) => new Promise((done) => {
  const field = document.getElementById(id), shown = document.getElementById("shown");
  const [before, start] = [shown.textContent, performance.now()];
  const look = new MutationObserver(() => {
    if (shown.textContent === before || !shown.textContent.includes(" of ")) return;
    look.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  });
  look.observe(shown, { childList: true, characterData: true, subtree: true });
  field.value = value;
  for (const name of ["input", "change"]) field.dispatchEvent(new Event(name, { bubbles: true }));
})"""
_OPENED = """(number) => new Promise((done) => {
  const start = performance.now(), pane = document.getElementById("pane");
  const look = () => pane.textContent.includes(`Case ${number.toLocaleString("en")} `)
    ? setTimeout(() => done(performance.now() - start)) : requestAnimationFrame(look);
  location.hash = `#case=${number}`;
  requestAnimationFrame(look);
})"""
_NUMBERS = """() =>
  JSON.parse(document.getElementById("case-list").textContent).rows.map((row) => row.number)"""
_SCROLLED = """(looking) => new Promise((done) => {
  const rows = document.getElementById("rows"), gaps = [];
  const step = (rows.scrollHeight - rows.clientHeight) / 240;
  let most = 0, blank = 0, last = performance.now(), at = 0;
  const look = () => { // after the frame; in a pass of its own, for it costs a layout
    const held = [...rows.querySelectorAll(".row")];
    most = Math.max(most, held.length);
    const box = rows.getBoundingClientRect(), middle = box.top + box.height / 2;
    blank += held.some((row) => {
      const { top, bottom } = row.getBoundingClientRect();
      return top <= middle && middle <= bottom;
    }) ? 0 : 1;
  };
  const frame = (now) => {
    if (at) gaps.push(now - last);
    last = now;
    at += 1;
    const end = rows.scrollTop + rows.clientHeight + 1 >= rows.scrollHeight;
    if (at > 240) return done({ gaps, most, blank, end });
    rows.scrollTop = at * step;
    if (looking) setTimeout(look);
    requestAnimationFrame(frame);
  };
  rows.scrollTop = 0;
  requestAnimationFrame(frame);
})"""


def written(folder: Path) -> dict[str, float | None]:
    """Write the page of a run folder, and its table: CPU seconds, peak memory and sizes."""
    from misslink.garbage_collection import reduced_gc
    from misslink.io import read_run
    from misslink.report import case_table as parquet
    from misslink.report.cases import page_size
    from misslink.report.page import build_page, case_table_path, render_page

    start = time.process_time()
    run = read_run(folder)
    read = time.process_time() - start
    before, table = _peak_mb(), case_table_path(folder / "report.html")
    large = page_size(len(run.cases)) < len(run.cases)
    with reduced_gc():  # as html.write does
        start = time.process_time()
        if large:
            parquet.write_parquet(run, table)
        tabled = time.process_time() - start
        start = time.process_time()
        page = build_page(run, table=table.name if large else "")
        built = time.process_time()
        html = render_page(page).encode()
        rendered = time.process_time()
    (folder / "report.html").write_bytes(html)
    return {
        "read": read,
        "table": tabled if large else None,
        "table_size": table.stat().st_size / MB if large else None,
        "build": built - start,
        "render": rendered - built,
        "before": before,
        "peak": _peak_mb(),
        "size": len(html) / MB,
    }


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def looked_at(page_file: Path, times: int) -> dict[str, Any]:
    """Open a page so many times and use it: medians in ms, of memory in MB."""
    from playwright.sync_api import sync_playwright

    found: list[dict[str, float]] = []
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        for _ in range(times):
            page = chromium.new_page(viewport={"width": 1200, "height": 900})
            page.goto(f"{page_file.as_uri()}#cases", wait_until="load")
            found.append(_used(page))
            page.close()
        version = chromium.version
        chromium.close()
    medians = {name: statistics.median(one[name] for one in found) for name in found[0]}
    return medians | {"version": version, "longest": max(one["longest"] for one in found)}


def _used(page: Any) -> dict[str, float]:
    """One reader's few minutes with a page."""
    times = page.evaluate(_PAINT)
    rare = "bafigo"  # letters of a few of the made-up words
    first = page.evaluate(_CHANGED, ["by-q", rare])
    page.evaluate(_CHANGED, ["by-q", ""])
    again = page.evaluate(_CHANGED, ["by-q", rare])
    page.evaluate(_CHANGED, ["by-q", ""])
    failure = page.evaluate(_CHANGED, ["by-failure", "distracted"])
    page.evaluate(_CHANGED, ["by-failure", ""])
    numbers = page.evaluate(_NUMBERS)
    opened = [page.evaluate(_OPENED, numbers[at]) for at in OPENED if at < len(numbers)]
    rolled, held = page.evaluate(_SCROLLED, arg=False), page.evaluate(_SCROLLED, arg=True)
    assert rolled["end"], "the list was not scrolled to its end"
    gaps = sorted(rolled["gaps"])
    protocol = page.context.new_cdp_session(page)
    protocol.send("HeapProfiler.collectGarbage")
    protocol.send("Performance.enable")
    counted = {
        one["name"]: one["value"] for one in protocol.send("Performance.getMetrics")["metrics"]
    }
    return {
        **times,
        "text": first,
        "text_again": again,
        "failure": failure,
        "open": statistics.median(opened),
        "frame": statistics.median(gaps),
        "frame_95": gaps[int(0.95 * len(gaps))],
        "longest": gaps[-1],
        "rows": held["most"],
        "blank": held["blank"],
        "heap": counted["JSHeapUsedSize"] / MB,
        "nodes": counted["Nodes"],
    }


def made(cases: int, folder: Path) -> Path:
    """The run folder of a made-up run, made where it is not there yet."""
    from made_up_run import made_up_run
    from misslink.io import RunStaging, is_run_folder

    out = folder / f"run-{cases}"
    if not is_run_folder(out):
        run = made_up_run(cases)
        with RunStaging(out, {}, "made up") as staging:
            staging.publish(run, lambda path: path)
    return out


def measured(cases: int, folder: Path, times: int) -> dict[str, Any]:
    """All numbers of one run, Python's parts each in a process of its own."""
    run = Path(_told("--make", str(cases), "--folder", str(folder)))
    numbers: dict[str, Any] = _told("--only", str(run))
    return numbers | looked_at(run / "report.html", times)


def _told(*options: str) -> Any:
    """What this script prints as JSON with these options."""
    command = [sys.executable, __file__, *options]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return json.loads(said.stdout)


def main() -> None:
    """Measure each size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, nargs="+", default=list(LIMITS))
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="keep the runs and their pages here")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--make", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        print(json.dumps(str(made(options.make, options.folder))))
        return
    if options.only:
        print(json.dumps(written(options.only)))
        return
    with tempfile.TemporaryDirectory() as spare:
        folder = (options.folder or Path(spare)).resolve()
        rows = {cases: measured(cases, folder, options.times) for cases in options.cases}
    table = report(rows, options.times)
    print(table)
    if options.write:
        TARGET.write_text(table, encoding="utf-8")


_ROWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "run folder read, CPU s": lambda row: f"{row['read']:.1f}",
    "table of all cases written, CPU s": lambda row: _or_none(row["table"], ".1f"),
    "table of all cases, MB": lambda row: _or_none(row["table_size"], ".1f"),
    "built, CPU s": lambda row: f"{row['build']:.2f}",
    "rendered, CPU s": lambda row: f"{row['render']:.2f}",
    "peak memory, MB (before, with the run read)": (
        lambda row: f"{row['peak']:.0f} ({row['before']:.0f})"
    ),
    "page, MB": lambda row: f"{row['size']:.1f}",
    "first contentful paint, ms": lambda row: f"{row['paint']:.0f}",
    "whole page read, ms": lambda row: f"{row['ready']:.0f}",
    "filter by text, the first time, ms": lambda row: f"{row['text']:.0f}",
    "filter by text, again, ms": lambda row: f"{row['text_again']:.0f}",
    "filter by failure mode, ms": lambda row: f"{row['failure']:.0f}",
    "open a case, ms": lambda row: f"{row['open']:.0f}",
    "scrolled: median frame, ms": lambda row: f"{row['frame']:.1f}",
    "scrolled: 95th percentile, ms": lambda row: f"{row['frame_95']:.1f}",
    "scrolled: longest of all, ms": lambda row: f"{row['longest']:.1f}",
    "scrolled: frames without rows, of 240": lambda row: f"{row['blank']:.0f}",
    "rows in the page at once, at most": lambda row: f"{row['rows']:.0f}",
    "JavaScript heap, MB": lambda row: f"{row['heap']:.0f}",
    "nodes of the page": lambda row: f"{row['nodes']:,.0f}",
}


def report(rows: dict[int, dict[str, Any]], times: int) -> str:
    """Write the measurements as markdown."""
    where = f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}"
    version = next(iter(rows.values()))["version"]
    browser = f"Chromium {version}, {times} repetitions"
    today = dt.datetime.now(dt.UTC).date()
    what = __doc__.partition("\n\n    python")[2].partition("\n\n")[2]
    lines = [
        "# The report's page\n",
        f"Made by `python benchmarks/report/report.py --write` on {today}: {where}, {browser}.\n",
        what,
        f"| | {' | '.join(f'{cases:,} cases' for cases in rows)} |",
        f"| --- |{' --: |' * len(rows)}",
        *(f"| {name} | {' | '.join(map(told, rows.values()))} |" for name, told in _ROWS.items()),
        "",
    ]
    for cases, row in rows.items():
        if cases in LIMITS:
            small = _verdict(row["size"] < LIMITS[cases])
            soon = _verdict(row["paint"] < FIRST_PAINT_MS)
            smooth = _verdict(row["frame_95"] < SMOOTH_MS and not row["blank"])
            lines.append(
                f"{cases:,} cases: under {LIMITS[cases]} MB {small}, painted within "
                f"{FIRST_PAINT_MS / 1000} s {soon}, scrolled smoothly (19 of 20 frames within "
                f"{SMOOTH_MS} ms, none without rows) {smooth}."
            )
    return "\n".join(lines) + "\n"


def _or_none(value: float | None, form: str) -> str:
    return "none" if value is None else format(value, form)


def _verdict(reached: bool) -> str:
    return "reached" if reached else "MISSED"


if __name__ == "__main__":
    main()

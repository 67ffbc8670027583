"""The pictures of the site: ``python docs/make_pictures.py [FOLDER]``, by default docs/pictures.

All are made of the bundled example, by the commands that the pages show.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import which
from typing import Any

from playwright.sync_api import Page, sync_playwright

from misslink.annotation.server import bind_localhost, build_server
from misslink.annotation.session import AnnotationSession

CHROMIUM = os.environ.get("CHROMIUM") or which("chromium-headless-shell") or which("chromium")
FLAGS = "no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
FLAGS += " disable-component-update disable-sync"
SCREEN = {"width": 1440, "height": 900}
QUALITY = 60
LEARNING, BROKEN = 12, 3  # runs of the canaries
TOKEN = "picture"  # noqa: S105 - of a server that lives as long as its picture takes


def run(*arguments: str, fails: bool = False) -> None:
    """Run a command of misslink in the current folder."""
    command = [sys.executable, "-m", "misslink", *arguments]
    subprocess.run(command, check=not fails, capture_output=True)  # noqa: S603


def make_runs() -> None:
    """Evaluate the example, compare two versions of its app, and watch one that gets worse."""
    subprocess.run([sys.executable, "-m", "misslink.examples", "ferry"], check=True)
    gold = ("--goldset", "ferry/goldset.jsonl", "--k", "2")
    traces = ("--traces", "ferry/traces.jsonl", "--corpus", "ferry/corpus.jsonl")
    run("evaluate", *traces, *gold, "--out", "reports/first")
    app = Path("ferry/app.py").read_text(encoding="utf-8")
    broken = app.replace("-shared[index]", "shared[index]")  # the least similar passage comes first
    Path("ferry/broken.py").write_text(broken, encoding="utf-8")
    run("evaluate", "ferry/broken.py:chain", *gold, "--out", "reports/before")
    run("evaluate", "ferry/app.py:chain", *gold, "--out", "reports/after")
    run("compare", "reports/before", "reports/after", "--html", "compare.html")
    watched, canaries = Path("ferry/watched.py"), Path("canaries.jsonl")
    lines = Path("ferry/goldset.jsonl").read_text(encoding="utf-8").splitlines()
    labelled = [line for line in lines if json.loads(line).get("relevant")]
    canaries.write_text("\n".join(labelled), encoding="utf-8")
    for place in range(LEARNING + BROKEN):
        good = place < LEARNING
        watched.write_text(app if good else broken, encoding="utf-8")
        options = ("--canaries", str(canaries), "--learn", "10")
        run("canary", "run", "ferry/watched.py:chain", *options, fails=not good)
    run("canary", "history", "--html", "canary.html")


@contextmanager
def annotation_page() -> Iterator[str]:
    """The address of a case of the first run, to be labelled."""
    listener = bind_localhost(0)
    port = listener.getsockname()[1]
    with AnnotationSession(Path("reports/first")) as session:
        server = build_server(session, port, TOKEN)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/?token={TOKEN}#annotator=ada&case=1"
        finally:
            server.should_exit = True
            thread.join()


def photograph(page: Page, picture: Path) -> None:
    """Save what the screen shows as WebP, which Playwright itself does not write."""
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": QUALITY}
    shot: dict[str, Any] = session.send("Page.captureScreenshot", options)
    picture.write_bytes(b64decode(shot["data"]))
    print(f"{picture.name}: {picture.stat().st_size:,} bytes")  # noqa: T201


def main(folder: Path) -> None:
    """Make all pictures."""
    if CHROMIUM is None:
        sys.exit("No Chromium is installed. Install it, or set CHROMIUM to its path.")
    folder = folder.resolve()
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        os.chdir(place)
        make_runs()
        report = Path("reports/first/report.html").resolve().as_uri()
        pages = {
            "report": report,
            "case": f"{report}#state=failed&case=suitcases",
            "compare": Path("compare.html").resolve().as_uri(),
            "canary": Path("canary.html").resolve().as_uri(),
        }
        flags = [f"--{flag}" for flag in FLAGS.split()]
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = chromium.new_page(viewport=SCREEN, reduced_motion="reduce")
        for name, address in pages.items():
            page.goto(address)
            photograph(page, folder / f"{name}.webp")
        with annotation_page() as address:
            page.goto(address)
            for key in "11":
                page.locator(".question[aria-current]").wait_for()
                page.keyboard.press(key)
            page.locator("#saved", has_text="Saved").wait_for()
            photograph(page, folder / "annotate.webp")
            page.goto("about:blank")
        chromium.close()
        os.chdir(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "pictures")

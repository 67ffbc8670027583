"""The first screen of a page as a PNG file: ``python picture.py PAGE.html PICTURE.png``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shutil import which

from playwright.sync_api import sync_playwright

CHROMIUM = os.environ.get("CHROMIUM") or which("chromium-headless-shell") or which("chromium")
if CHROMIUM is None:
    sys.exit("No Chromium is installed. Install it, or set CHROMIUM to its path.")
SCREEN = {"width": 1440, "height": 900}

page, picture = (Path(argument).resolve() for argument in sys.argv[1:])
with sync_playwright() as driver:
    browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
    tab = browser.new_page(viewport=SCREEN, reduced_motion="reduce")
    tab.goto(page.as_uri())
    tab.screenshot(path=picture)
    browser.close()

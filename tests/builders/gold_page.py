"""Pages as a person looked at them and accepted them, in ``tests/gold``.

After a change that is meant, look at the page in a browser, then ``make gold`` accepts the new one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

_GOLD = Path(__file__).parents[1] / "gold"


def assert_accepted(html: str, name: str) -> None:
    """Hold a page against the accepted one, but for its styles, scripts and their hashes."""
    scrubbed = re.sub(r"sha256-[\w+/=]+", "sha256-…", html)
    scrubbed = re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1>…</\1>", scrubbed)
    # A line for each case, so that a change can be read.
    scrubbed = re.sub(r"(?m)(?<=[\]}],)(?={)|(?<=\[)(?={\"number)", "\n", scrubbed)
    path = _GOLD / name
    if os.environ.get("MISSLINK_ACCEPT"):
        path.write_text(scrubbed, encoding="utf-8", newline="")
    assert scrubbed.encode() == path.read_bytes(), "look at the page, then  make gold"

"""Read TOML, with errors that name file and line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from misslink.errors import InputError
from misslink.io.jsonl import read_text


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    InputError
        It cannot be read, or is not TOML; with the line.
    """
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        spot = re.search(r"line (\d+)", str(error))
        problem = "this is not valid TOML; a text needs quotes, a list needs brackets"
        raise InputError(problem, path=path, line=int(spot[1]) if spot else None) from None

"""The house: a file imports only from floors below its own, and rooms of a floor stay apart."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.source

PACKAGE = Path(__file__).parents[1] / "src" / "misslink"

# Rooms by floor, lowest first. The ground floor has steps: see docs/decisions/001.
FLOORS = [
    {"errors"},
    {"registry", "lenient", "importing"},
    {"types"},
    {"text", "retry_after"},
    {"files", "prompting", "stats", "manifest", "embedding"},
    {"retrieval", "judging", "capture", "whitebox"},
    {"generation", "answer", "goldset"},
    {"linking", "calibration", "engines", "summary", "repetition"},
    {"pipeline"},
    {"deciding"},
    {"watching"},
    {"report", "annotating"},
    {"cli", "pytest_plugin"},
]
FLOOR = {room: height for height, rooms in enumerate(FLOORS) for room in rooms}
LIMIT = 320
LONGER = {"types.py": 520}  # the nouns stand on one page, each with its parameters


def modules():
    return sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def rooms_imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
            if node.module == "misslink":
                names = [f"misslink.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == "misslink" and len(parts) > 1 and not parts[1].startswith("__"):
                yield parts[1], node.lineno


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_below(path):
    mine = room_of(path)
    assert mine in FLOOR, f"{mine} has no floor yet: enter it in FLOORS"
    wrong = [
        f"line {line}: {room}"
        for room, line in rooms_imported(path)
        if room != mine and FLOOR[room] >= FLOOR[mine]
    ]
    assert not wrong, f"{path.name} on floor {FLOOR[mine]} imports upwards or sideways: {wrong}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_is_at_home_under_about_300_lines(path):
    limit = LONGER.get(str(path.relative_to(PACKAGE)), LIMIT)
    assert len(path.read_text(encoding="utf-8").splitlines()) <= limit

"""The pictures that the site shows are made by one command, and small."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MOST = 100_000  # bytes of a picture
IMAGE = re.compile(r"!\[([^]]+)\]\(([^)]+\.webp)\)")


@pytest.mark.source
def test_each_picture_is_small_and_shown_with_its_words():
    shown = {
        (page.parent / target).resolve(): words
        for page in DOCS.rglob("*.md")
        for words, target in IMAGE.findall(page.read_text(encoding="utf-8"))
    }
    made = set((DOCS / "pictures").resolve().glob("*.webp"))

    assert shown.keys() == made
    assert {path.stem for path in made} == {"report", "case", "compare", "annotate", "canary"}
    assert {path.name: path.stat().st_size for path in made if path.stat().st_size > MOST} == {}

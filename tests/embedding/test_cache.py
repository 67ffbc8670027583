"""Vectors kept between runs, and work that goes on without them."""

import asyncio
import dataclasses
import logging
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from embedded_models import Counting, Giving
from misslink.embedding import Embedder, cache
from misslink.embedding.cache import VectorCache


def embed(path, *texts, model=None):
    """Embed in a new Embedder; return the rows and what the model was asked."""
    model = model or Counting()
    embedder = Embedder(model, cache=path)
    rows = asyncio.run(embedder.documents(texts))
    embedder.close()
    return rows, model.asked()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "folder" / "embeddings.sqlite"


def test_the_next_run_asks_nothing_and_has_the_same_vectors(path):
    first, asked = embed(path, "a", "b")
    assert asked == ["a", "b"]
    second, asked = embed(path, "b", "a")
    assert asked == []
    np.testing.assert_array_equal(second, first[::-1])


def test_another_model_has_vectors_of_its_own(path):
    embed(path, "a")
    assert embed(path, "a", model=Counting(model="counting-2"))[1] == ["a"]
    assert embed(path, "a")[1] == []


def test_vectors_of_another_length_under_the_same_identity_are_not_used(path, monkeypatch):
    monkeypatch.setattr("misslink.embedding.embedder.embedding_identity", lambda _: "the same")
    embed(path, "a", "b", model=Counting(size=8))
    rows, asked = embed(path, "a", "b", "c", model=Counting(size=4))
    assert rows.shape == (3, 4)
    assert sorted(asked) == ["a", "b", "c"]
    assert embed(path, "a", "b", "c", model=Counting(size=4))[1] == []


def test_a_text_with_quotes_and_nulls_is_found_again(path):
    hostile = ["'; DROP TABLE vectors; --", "a\0b", '"]', "\u2028", "\U0001f600"]
    embed(path, *hostile)
    assert embed(path, *hostile)[1] == []


def test_a_vector_that_was_damaged_is_computed_again(path):
    good, _ = embed(path, "a", "b")
    with sqlite3.connect(path) as file:
        file.execute("UPDATE vectors SET vector = x'0011' WHERE rowid = 1")
        file.execute("UPDATE vectors SET vector = ? WHERE rowid = 2", (b"\xff" * 32,))  # NaN
    file.close()
    rows, asked = embed(path, "a", "b")
    assert sorted(asked) == ["a", "b"]
    np.testing.assert_array_equal(rows, good)


def told(caplog):
    return [entry.getMessage() for entry in caplog.records if entry.levelno >= logging.WARNING]


def expect_one_warning(caplog, path, why):
    (said,) = told(caplog)
    assert said.startswith(f"{path}: Embeddings are not cached")
    assert why in said


@pytest.mark.parametrize("content", [b"this is no database at all, but a text" * 40, b"\0" * 5000])
def test_a_file_that_is_no_database_is_left_alone_and_work_goes_on(tmp_path, caplog, content):
    path = tmp_path / "notes.sqlite"
    path.write_bytes(content)
    rows, asked = embed(path, "a", "b", "a")
    assert rows.shape == (3, 8)
    assert asked == ["a", "b"]
    expect_one_warning(caplog, path, "not a embedding cache")
    assert path.read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path, caplog):
    path = tmp_path / "other.sqlite"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE accounts (name)")
    file.close()
    before = path.read_bytes()
    embed(path, "a")
    expect_one_warning(caplog, path, "another")
    assert path.read_bytes() == before


def test_a_folder_in_its_place_and_a_file_in_its_folders_place(tmp_path, caplog):
    embed(tmp_path, "a")
    expect_one_warning(caplog, tmp_path, "folder")
    caplog.clear()
    (tmp_path / "file").write_text("")
    embed(tmp_path / "file" / "embeddings.sqlite", "a")
    expect_one_warning(
        caplog, tmp_path / "file" / "embeddings.sqlite", "Check the file and its folder"
    )


def test_a_full_disk_in_the_middle_costs_one_warning_and_no_vector(path, caplog):
    model = Counting()
    embedder = Embedder(model, cache=path)
    asyncio.run(embedder.documents(["a"]))
    (pages,) = embedder._cache._file.execute("PRAGMA page_count").fetchone()
    # SQLite says of a file that reached this limit what it says of a full disk.
    embedder._cache._file.execute(f"PRAGMA max_page_count = {pages}")
    texts = [f"text {at}" for at in range(600)]
    rows = asyncio.run(embedder.documents(texts))
    assert rows.shape == (600, 8)
    assert not np.isnan(rows).any()
    expect_one_warning(caplog, path, "full")
    asyncio.run(embedder.documents(texts))
    assert len(told(caplog)) == 1
    assert len(model.calls.lists) <= 5  # "a", three batches, and at most one batch forgotten


def test_a_place_that_is_held_by_another_is_done_without(path, caplog, monkeypatch):
    monkeypatch.setattr(cache, "_FORMAT", dataclasses.replace(cache._FORMAT, wait_s=0.0))
    embed(path, "a")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    rows, asked = embed(path, "b")
    holder.close()
    assert rows.shape == (1, 8)
    assert asked == ["b"]
    expect_one_warning(caplog, path, "Another program is using")


@pytest.mark.slow
def test_several_processes_write_one_file_at_once(path):
    code = f"""
import asyncio, sys
from pathlib import Path
from embedded_models import Counting
from misslink.embedding import Embedder, cache
print("ready", flush=True)
for each in range(20):
    embedder = Embedder(Counting(), cache=Path({str(path)!r}))
    asyncio.run(embedder.documents([f"text {{each}}", f"other {{each}}"]))
    embedder.close()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    ) as other:
        assert other.stdout.readline() == "ready\n"
        for each in range(20):
            embed(path, f"text {each}", f"own {each}")
        assert other.communicate() == ("", "")
    assert other.returncode == 0
    texts = [f"{name} {at}" for name in ("text", "own", "other") for at in range(20)]
    rows, asked = embed(path, *texts)
    assert asked == []
    np.testing.assert_array_equal(rows, embed(None, *texts)[0])


def test_more_texts_than_one_question_holds(monkeypatch):
    monkeypatch.setattr("misslink.embedding.cache._TEXTS_PER_QUERY", 3)
    cache = VectorCache(None, identity="i", name="n")
    vectors = {f"text {at}": np.array([at, 1], dtype=np.float32) for at in range(10)}
    cache.add("query", vectors)
    found = cache.get("query", [*vectors, "unknown"])
    assert {text: vector.tolist() for text, vector in found.items()} == {
        text: vector.tolist() for text, vector in vectors.items()
    }
    assert cache.get("document", list(vectors)) == {}


def test_nothing_is_kept_of_a_model_that_gave_no_vectors(path):
    model = Giving([[1.0, float("inf")]])
    embedder = Embedder(model, cache=path)
    with pytest.raises(Exception, match="not finite"):
        asyncio.run(embedder.documents(["a"]))
    assert embedder._cache.get("document", ["a"]) == {}

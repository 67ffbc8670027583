"""Bytes and text of files, plain or packed."""

import gzip
import json

import pyarrow as pa
import pytest

from misslink.errors import InputError
from misslink.io.goldset import read_goldset
from misslink.io.jsonl import read_objects, read_text
from misslink.io.rows import read_rows
from misslink.io.storage import decode_utf8, read_bytes


def test_a_packed_file_is_read_as_the_plain_one_whatever_its_name(tmp_path):
    plain, packed = tmp_path / "a.txt", tmp_path / "b.txt"
    plain.write_bytes("\ufefföne\ntwo".encode())
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_bytes(packed) == read_bytes(plain)
    assert read_text(packed) == read_text(plain) == "öne\ntwo"


def test_gold_sets_and_labels_are_read_packed_with_the_lines_of_what_is_within(tmp_path):
    gold = tmp_path / "gold.jsonl.gz"
    gold.write_bytes(gzip.compress(b'{"id":"c1","question":"Who?"}\n\n{"id":"c2"}\n'))
    assert [item.number for item in read_objects(gold)] == [1, 3]
    with pytest.raises(InputError) as caught:
        read_goldset(gold)
    assert caught.value.line == 3
    rows = tmp_path / "labels.csv.gz"
    rows.write_bytes(gzip.compress(b"case_id,label\n\nc1,good\n"))
    (row,) = read_rows(rows, "the labels")
    assert (row.number, row.data) == (3, {"case_id": "c1", "label": "good"})


def test_a_damaged_archive_a_folder_and_no_file_are_told(tmp_path):
    whole = gzip.compress(b"text " * 1000)
    damaged = tmp_path / "d.gz"
    for raw in (whole[:-9], whole[:20] + b"\xff" * 8 + whole[28:], b"\x1f\x8b", whole + b"rest"):
        damaged.write_bytes(raw)
        with pytest.raises(InputError, match="this gzip file is damaged"):
            read_bytes(damaged)
    with pytest.raises(InputError, match="this is a folder; name a file in it"):
        read_bytes(tmp_path)
    with pytest.raises(InputError, match="there is no such file"):
        read_bytes(tmp_path / "none")


@pytest.mark.parametrize(
    ("raw", "line", "said"),
    [
        (b"a\nb\n\xe9t\xe9\n", 3, "byte 0xe9 is not UTF-8; .* iconv -f WINDOWS-1252"),
        ("a\n".encode("utf-16"), 1, "iconv -f UTF-16"),
        (b"\xef\xbb\xbfa\n\x80", 2, "byte 0x80"),
    ],
)
def test_another_encoding_is_told_with_its_line(tmp_path, raw, line, said):
    with pytest.raises(InputError, match=said) as caught:
        decode_utf8(raw, tmp_path / "f")
    assert caught.value.line == line


@pytest.mark.parametrize(
    "pack", [gzip.compress, lambda raw: pa.compress(raw, "zstd", asbytes=True)]
)
def test_a_file_that_unpacks_to_far_more_than_its_size_is_refused(tmp_path, monkeypatch, pack):
    monkeypatch.setattr("misslink.io.storage._MAX_BOMB_BYTES", 1 << 20)
    path = tmp_path / "bomb"
    path.write_bytes(pack(b" " * (1 << 23)))
    with pytest.raises(InputError, match="unpacks to more than 300 times its size"):
        read_bytes(path)
    path.write_bytes(pack(b" " * (1 << 19)))
    assert len(read_bytes(path)) == 1 << 19


def test_a_text_longer_than_any_model_reads_is_refused_with_its_line(tmp_path):
    path = tmp_path / "gold.jsonl"
    rows = [{"id": "a", "question": "Who?"}, {"id": "b", "question": "w" * 1_000_001}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 2: a text has 1,000,001 characters, .* split it"):
        read_goldset(path)

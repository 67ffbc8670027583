"""Files on this disk, in a storage or behind an address, plain or packed."""

import gzip
import http.server
import json
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from file_server import serving
from misslink.errors import InputError, MissingExtraError
from misslink.io import read_goldset
from misslink.io.atomic import atomic_write
from misslink.io.jsonl import read_objects, read_text
from misslink.io.rows import read_rows
from misslink.io.secrets import redact_addresses
from misslink.io.storage import (
    as_url,
    decode_utf8,
    list_remote_files,
    read_bytes,
    redact_url,
    remote_file,
    require_local_path,
)
from misslink.io.trace_formats import read_recording
from misslink.judge.middleware.sqlite_store import CACHE_FORMAT

fsspec = pytest.importorskip("fsspec")

CASES = [{"id": name, "question": f"{name}?"} for name in ("a", "b", "c")]
SECRET = "s3cr3t-0123"


def lines(*cases):
    return "".join(f"{json.dumps(case)}\n" for case in cases).encode()


def ids(source):
    return [case.id for case in read_goldset(source).cases]


@pytest.fixture
def memory():
    storage = fsspec.filesystem("memory")
    yield storage
    storage.store.clear()


@pytest.fixture
def server(tmp_path):
    """A server of files; what stands under /private it refuses, and under /broken it breaks."""
    pytest.importorskip("aiohttp")
    with serving(tmp_path) as address:
        yield f"http://{address}"


def test_a_file_a_folder_and_a_pattern_of_a_storage_are_read(memory):
    memory.pipe("/gold/part-10.jsonl", lines(CASES[2]))
    memory.pipe("/gold/part-2.jsonl", lines(CASES[1]))
    memory.pipe("/gold/part-1.jsonl", lines(CASES[0]))
    memory.pipe("/gold/_SUCCESS", b"")
    memory.pipe("/gold/below/part-1.jsonl", b"is not looked into")
    assert ids("memory://gold") == ids("memory://gold/") == ["a", "b", "c"]
    assert ids("memory://gold/part-?.jsonl") == ["a", "b"]
    assert ids("memory://gold/part-2.jsonl") == ["b"]
    gold = read_goldset("memory://gold")
    assert gold.name == "memory://gold"
    assert gold.item("c").place == "memory:///gold/part-10.jsonl, line 1"


def test_a_url_that_became_a_path_is_still_one(memory, tmp_path):
    memory.pipe("/gold/part-1.jsonl", lines(CASES[0]))
    (tmp_path / "gold.jsonl").write_bytes(lines(CASES[1]))
    assert ids(Path("memory://gold/part-1.jsonl")) == ["a"]
    assert ids(Path(f"file://{tmp_path}/gold.jsonl")) == ["b"]


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ("s3://bucket/a//b", "s3://bucket/a//b"),
        (Path("s3://bucket/a"), "s3://bucket/a"),
        (Path("zip://a.jsonl::s3://bucket/a.zip"), "zip://a.jsonl::s3://bucket/a.zip"),
        (Path("simplecache::gs://bucket/a"), "simplecache::gs://bucket/a"),
        (Path("file:///gold/a"), "file:///gold/a"),
        ("C:/gold/a.jsonl", None),
        ("C:\\gold\\a.jsonl", None),
        ("gold/part-1.jsonl", None),
        ("/gold/a:b", None),
        ("chroma:store", None),
    ],
)
def test_urls_are_told_from_paths(source, url):
    assert as_url(source) == url


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (f"https://ada:{SECRET}@host/a.jsonl?sig={SECRET}", "https://host/a.jsonl"),
        (f"https://{SECRET}@host/a.jsonl#{SECRET}", "https://host/a.jsonl"),
        (f"s3://{SECRET}:{SECRET}@bucket/a?versionId={SECRET}", "s3://bucket/a"),
        (f"az://c/a.parquet?sv=1&sig={SECRET}", "az://c/a.parquet"),
        (f"zip://a.jsonl::https://u:{SECRET}@host/z.zip", "zip://a.jsonl::https://host/z.zip"),
        (Path(f"https://host/a?token={SECRET}"), "https://host/a"),
        (f"https://ada:p@{SECRET}'\"@host/a", "https://host/a"),
        (f'https://host/it\'s a "gold" set?sig={SECRET}', 'https://host/it\'s a "gold" set'),
        (f"--goldset=https://ada:{SECRET}@host/a?sig={SECRET}", "--goldset=https://host/a"),
        ("abfs://container@account.example/a", "abfs://container@account.example/a"),
        ("s3://bucket/part-?.parquet", "s3://bucket/part-?.parquet"),
        ("s3://bucket/day=?/part@2.jsonl", "s3://bucket/day=?/part@2.jsonl"),
        ("gold/what?.jsonl", "gold/what?.jsonl"),
    ],
)
def test_no_secret_of_a_url_is_shown(source, told):
    assert redact_url(source) == told


def test_no_secret_is_in_a_sentence_that_holds_the_rest_of_a_url():
    broken = Path(f"http://ada:{SECRET}@host/a.jsonl?sig={SECRET}")
    assert redact_addresses(f"misslink: {broken}: no") == "misslink: http:/host/a.jsonl no"


def test_where_a_path_belongs_a_url_is_refused_and_no_folder_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    url = f"http://ada:{SECRET}@host/gold.jsonl"
    refused = r"^http://host/gold.jsonl: this is an address, and here a file or folder"
    for act in (lambda: atomic_write("text", Path(url)), lambda: CACHE_FORMAT.open(Path(url)),
                lambda: read_text(Path(url)), lambda: require_local_path(url)):  # fmt: skip
        with pytest.raises(InputError, match=refused):
            act()
    assert not list(tmp_path.iterdir())
    require_local_path(tmp_path / "gold.jsonl")


def test_parquet_is_read_from_a_storage_part_by_part(memory):
    table = pa.Table.from_pylist([{"case_id": f"c{n}", "answer": "x" * n} for n in range(50)])
    with memory.open("/traces/part-1.parquet", "wb") as file:
        pq.write_table(table, file, row_group_size=10)
    traces = read_recording("memory://traces/").traces
    assert [trace.answer for trace in traces.values()] == ["x" * n for n in range(50)]
    memory.pipe("/traces/part-1.parquet", b"PAR1 and nothing more")
    with pytest.raises(InputError, match=r"memory:///traces/part-1.parquet: this parquet file"):
        read_recording("memory://traces/")


def test_a_server_that_cannot_give_parts_is_read_whole(server, tmp_path):
    pq.write_table(pa.Table.from_pylist(CASES), tmp_path / "gold.parquet")
    (tmp_path / "gold").mkdir()
    for at_, case in enumerate(CASES):
        (tmp_path / "gold" / f"part-{at_}.jsonl").write_bytes(lines(case))
    assert ids(f"{server}/gold.parquet?sig={SECRET}") == ["a", "b", "c"]
    assert ids(f"{server}/gold/") == ids(f"{server}/gold/part-*.jsonl") == ["a", "b", "c"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.jsonl", "there is no file or folder with this name"),
        ("private.jsonl", r"the storage does not allow this to be read; check the"),
        ("broken.jsonl", r"this storage cannot be read \(ClientResponseError: 500, message="),
    ],
)
def test_what_a_server_refuses_is_one_sentence_without_the_secret(server, name, said):
    with pytest.raises(InputError, match=said) as caught:
        read_goldset(f"{server.replace('//', f'//ada:{SECRET}@')}/{name}?sig={SECRET}")
    assert str(caught.value).startswith(f"{server}/{name}: ")
    assert SECRET not in str(caught.value)


def test_a_refusal_in_the_middle_of_a_file_is_one_sentence(memory, monkeypatch):
    class RefusalError(Exception):
        status = 403

    content = lines(*CASES) * 200_000
    memory.pipe("/gold.jsonl", content)
    file = remote_file("memory://gold.jsonl").open()
    assert file.readline() == lines(CASES[0])

    def refuse(*_):
        raise RefusalError(f"https://u:{SECRET}@host/?sig={SECRET}")

    monkeypatch.setattr(file.raw, "_raw", type("Raw", (), {"read": refuse, "close": print}))
    with pytest.raises(InputError, match=r"the storage does not allow this to be read") as caught:
        file.read()
    assert SECRET not in str(caught.value)


def test_nobody_at_an_address_is_one_sentence_without_the_secret(unused_address):
    pytest.importorskip("aiohttp")
    with pytest.raises(InputError, match="this storage cannot be read") as caught:
        read_goldset(f"http://ada:{SECRET}@{unused_address}/a.jsonl?sig={SECRET}")
    assert SECRET not in str(caught.value)


@pytest.fixture
def unused_address():
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as taken:
        return f"127.0.0.1:{taken.server_port}"  # closed again when somebody asks


def test_a_right_that_lacks_and_a_folder_that_is_no_file_are_told(tmp_path, memory):
    with pytest.raises(
        InputError, match="memory://none: there is no file or folder with this name"
    ):
        read_goldset("memory://none")
    memory.pipe("/gold/a.txt", b"")
    with pytest.raises(InputError, match="this folder holds no file that ends in"):
        read_goldset("memory://gold")
    with pytest.raises(InputError, match="no file matches this pattern"):
        read_goldset("memory://gold/*.jsonl")
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match="this storage cannot be written"):
        remote_file(f"file://{file}/below").put(file)


def test_a_storage_that_nobody_knows_or_whose_package_is_not_there_is_told(monkeypatch):
    with pytest.raises(InputError, match=r"no storage is called 'gss'; did you mean 'gs'\?"):
        read_goldset("gss://bucket/gold.jsonl")
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(
        InputError, match=r"s3://bucket/a: this storage needs another package .*s3fs"
    ):
        read_goldset("s3://bucket/a")


def test_without_fsspec_a_url_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'misslink\[cloud\]'"):
        list_remote_files("s3://bucket/a")


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

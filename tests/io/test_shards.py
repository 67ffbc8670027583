"""Gold sets and traces in shards: in which order, what is passed over, and who stands where."""

import gzip
import json
import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from misslink.errors import InputError
from misslink.io import read_goldset
from misslink.io.trace_formats import read_recording


def write(path, *cases):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
    return path


def table(path, *cases):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(cases)), path)
    return path


def case(name):
    return {"id": name, "question": f"{name}?"}


def ids(source):
    return [one.id for one in read_goldset(source).cases]


def test_shards_are_read_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 2, 1):
        write(tmp_path / f"part-{number}.jsonl", case(f"c{number}"))
    assert ids(tmp_path) == ids(str(tmp_path)) == ["c1", "c2", "c10"]


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet"])
def test_markers_hidden_files_and_files_of_other_kinds_are_passed_over(tmp_path, ending):
    if ending == ".parquet":
        table(tmp_path / f"a{ending}", case("a"))
    else:
        text = f"{json.dumps(case('a'))}\n".encode()
        packed = {
            ".jsonl": lambda: text,
            ".jsonl.gz": lambda: gzip.compress(text),
            ".jsonl.zst": lambda: zstd(text),
        }
        (tmp_path / f"a{ending}").write_bytes(packed[ending]())
    for other in ("_SUCCESS", "_part.jsonl", ".a.jsonl.crc", ".b.jsonl", "README.md"):
        (tmp_path / other).write_bytes(b"no case")
    (tmp_path / "folder.jsonl").mkdir()
    assert ids(tmp_path) == ["a"]


def test_a_shard_that_a_link_leads_to_and_that_is_gone_is_told_of(tmp_path):
    write(tmp_path / "part-1.jsonl", case("a"))
    (tmp_path / "part-2.jsonl").symlink_to(tmp_path / "gone")
    for source in (tmp_path, tmp_path / "*.jsonl"):
        with pytest.raises(InputError, match=r"part-2.jsonl: there is no such file"):
            ids(source)


def test_what_looks_like_a_shard_and_is_passed_over_is_warned_of(tmp_path, caplog):
    write(tmp_path / "part-1.jsonl", case("a"))
    (tmp_path / "README.md").write_text("about", encoding="utf-8")
    assert ids(tmp_path) == ["a"]
    assert not caplog.messages
    write(tmp_path / "part-2.jsonl.bz2", case("b"))
    assert ids(tmp_path) == ["a"]
    (said,) = caplog.messages
    assert said.endswith("are passed over (1, such as part-2.jsonl.bz2)")


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as packing:
        packing.write(content)
    return sink.getvalue().to_pybytes()


def test_a_cut_zstd_file_is_told(tmp_path):
    path = tmp_path / "gold.jsonl.zst"
    path.write_bytes(zstd(b'{"question": "A?"}\n' * 1000)[:-6])
    with pytest.raises(InputError, match=r"gold.jsonl.zst: this zstd file is damaged \("):
        read_goldset(path)


def test_a_pattern_names_the_shards_and_a_file_of_that_very_name_comes_first(tmp_path):
    for number in (1, 2):
        table(tmp_path / f"day={number}" / "part.parquet", case(f"c{number}"))
    write(tmp_path / "day=1" / "other.jsonl", case("x"))
    assert ids(tmp_path / "*" / "*.parquet") == ["c1", "c2"]
    assert ids(f"{tmp_path}/**/part.parquet") == ["c1", "c2"]
    assert ids(write(tmp_path / "gold[1].jsonl", case("y"))) == ["y"]


def test_empty_shards_among_others_are_none_and_empty_ones_alone_are_told(tmp_path):
    (tmp_path / "part-1.jsonl").write_bytes(b"")
    write(tmp_path / "part-2.jsonl", case("a"))
    (tmp_path / "part-3.jsonl").write_bytes(b"\n")
    assert ids(tmp_path) == ["a"]
    (tmp_path / "part-2.jsonl").unlink()
    with pytest.raises(InputError, match="the file is empty; write one JSON object per line"):
        read_goldset(tmp_path)
    empty = table(tmp_path / "tables" / "a.parquet", case("a")).parent
    pq.write_table(pq.read_table(empty / "a.parquet").slice(0, 0), empty / "a.parquet")
    with pytest.raises(InputError, match="tables: it has no rows"):
        read_goldset(empty)


@pytest.mark.parametrize(
    ("make", "source", "message"),
    [
        ([], "", r"this folder holds no file that ends in .jsonl, .*\.parquet; name a file or"),
        (["a.csv", "_SUCCESS"], "", r"this folder holds no file that ends in"),
        (["a.csv"], "*.parquet", r"\*.parquet: no file matches this pattern"),
        (["a.jsonl"], "b.jsonl", r"b.jsonl: there is no such file"),
        (["b.jsonl", "a.parquet"], "", r"a.parquet is parquet and b.jsonl is not; keep one of"),
        (
            ["cases.jsonl", "traces.jsonl", "links.jsonl", "verdicts.jsonl"],
            "",
            r"this is a run folder; name one file in it, such as .*/cases.jsonl",
        ),
    ],
)
def test_what_names_no_shards_of_one_kind_is_told(tmp_path, make, source, message):
    for name in make:
        write(tmp_path / name, case(name))
    with pytest.raises(InputError, match=message):
        read_goldset(tmp_path / source)


def test_an_id_used_twice_in_two_shards_names_both_places(tmp_path):
    first = write(tmp_path / "part-1.jsonl", case("a"), case("b"))
    second = write(tmp_path / "part-2.jsonl", case("c"), case("b"))
    with pytest.raises(InputError) as caught:
        read_goldset(tmp_path)
    assert str(caught.value) == (
        f"{second}, line 2, field 'id': the id 'b' is used twice (first on line 2 of {first}); "
        "each case needs its own id"
    )


def test_two_traces_of_one_case_in_two_tables_name_both_rows(tmp_path):
    first = table(tmp_path / "1.parquet", {"case_id": "a"}, {"case_id": "b"})
    second = table(tmp_path / "2.parquet", {"case_id": "b"})
    with pytest.raises(InputError) as caught:
        read_recording(tmp_path)
    assert str(caught.value) == (
        f"{second}, row 1, field 'case_id': the case 'b' has two traces (the first in row 2 of "
        f"{first}); keep one"
    )


def test_a_gold_set_in_shards_knows_where_each_of_its_cases_stands(tmp_path):
    parts = [write(tmp_path / f"{one}.jsonl", case(one), case(f"{one}2")) for one in "ab"]
    gold = read_goldset(tmp_path)
    assert gold.name == str(tmp_path)
    assert gold.item("b2").place == f"{parts[1]}, line 2"
    wrong = gold.error("a2", "relevant", "this is wrong")
    assert str(wrong) == f"{parts[0]}, line 2, field 'relevant': this is wrong"
    rows = read_goldset(table(tmp_path / "t.parquet", case("x"), case("y")))
    assert rows.item("y").place == f"{rows.name}, row 2"
    assert str(rows.error("y", "id", "no")) == f"{rows.name}, row 2, field 'id': no"
    assert read_goldset([case("a")]).item("a").place == "the gold set"


def test_lines_and_tables_are_told_apart_by_what_is_in_them_and_not_by_name(tmp_path):
    misnamed = table(tmp_path / "gold.jsonl", case("a"))
    packed = tmp_path / "gold.gz"
    packed.write_bytes(gzip.compress(misnamed.read_bytes()))
    lines = write(tmp_path / "gold.parquet", case("a"))
    assert ids(misnamed) == ids(packed) == ids(lines) == ["a"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("make", [write, table])
def test_a_pipe_is_read_though_it_can_be_read_but_once(tmp_path, make):
    content = make(tmp_path / "plain", case("a"), case("b")).read_bytes()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(content,))
    writer.start()
    assert ids(pipe) == ["a", "b"]
    writer.join()


@pytest.mark.parametrize(
    ("cell", "ids"),
    [
        ("p1, p2", ["p1", "p2"]),
        ("p1;", ["p1"]),
        ("a.pdf,b.pdf", ["a.pdf", "b.pdf"]),
        ("Smith, J.pdf", ["Smith, J.pdf"]),
        ("Smith, J.pdf; Doe, A.pdf", ["Smith, J.pdf", "Doe, A.pdf"]),
        ("Terms, part one", ["Terms, part one"]),
        ("a,b|c", ["a,b", "c"]),
    ],
)
def test_commas_of_a_cell_separate_ids_unless_they_are_part_of_a_name(tmp_path, cell, ids):
    (tmp_path / "gold.csv").write_text(f'question,relevant\nWhen?,"{cell}"\n')
    assert list(read_goldset(tmp_path / "gold.csv").cases[0].relevant) == ids

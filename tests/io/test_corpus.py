"""Corpora read from files, folders and Chroma."""

import csv
import hashlib
import json
import shutil

import pytest

from misslink.errors import InputError
from misslink.io.corpus import read_corpus
from misslink.text.normalization import content_id


@pytest.fixture
def written(tmp_path):
    def write(name, *lines):
        path = tmp_path / name
        path.write_text("\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines))
        return path

    return write


def read(source):
    return [(one.id, one.text, one.rank, one.metadata) for one in read_corpus(source)]


def test_beir_lines_with_a_title_in_front_and_the_rest_as_metadata(written):
    path = written(
        "corpus.jsonl",
        {"_id": "1", "title": "Oaks", "text": "They grow acorns.", "metadata": {"url": "u"}},
        {"_id": 2, "title": "wings .", "text": "wings . in a slipstream", "author": "b"},
        {"_id": "3", "title": "", "text": ""},
        {"_id": "4", "title": "Alone", "text": ""},
    )
    assert read(path) == [
        ("1", "Oaks\nThey grow acorns.", 1, {"title": "Oaks", "url": "u"}),
        ("2", "wings . in a slipstream", 2, {"title": "wings .", "author": "b"}),
        ("3", "", 3, {"title": ""}),
        ("4", "Alone", 4, {"title": "Alone"}),
    ]


def test_a_json_array_and_a_passage_without_an_id(written):
    path = written("corpus.json", [{"page_content": "one"}, {"id": "b", "text": "two"}])
    assert read(path) == [(content_id("one"), "one", 1, {}), ("b", "two", 2, {})]


def test_csv_cells_may_hold_anything(tmp_path):
    path = tmp_path / "corpus.csv"
    long = 'He said "no",\nthen\r\nleft. ' * 10_000
    limit = csv.field_size_limit()
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file).writerows([["id", "text", "source"], ["a", long, "s"], ["b", "two", ""]])
    assert read(path) == [("a", long, 1, {"source": "s"}), ("b", "two", 2, {})]
    assert csv.field_size_limit() == limit


def test_a_folder_of_texts_is_one_passage_a_file(tmp_path):
    for name, text in {
        "b.txt": "two",
        "a/x.md": "# one",
        "c.pdf": "no",
        ".git/d.txt": "no",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert read(tmp_path) == [("a/x.md", "# one", 1, {}), ("b.txt", "two", 2, {})]


@pytest.mark.parametrize(
    ("name", "lines", "place", "said"),
    [
        ("c.jsonl", [{"id": "a", "text": "x"}, {"id": "a", "text": "y"}], "line 2, field 'id'",
         "the id 'a' is used twice (first on line 1)"),
        ("c.jsonl", [{"text": "x"}, {"text": "x"}], "line 2, field 'text'",
         "this text occurs twice (first on line 1)"),
        ("c.jsonl", [{"id": "a"}], "line 1, field 'text'", "this field is required"),
        ("c.jsonl", [{"id": "a", "text": 5}], "line 1, field 'text'", "not a text"),
        ("c.jsonl", [{"id": True, "text": "x"}], "line 1, field 'id'", "a text or a whole number"),
        ("c.jsonl", [{"id": "a", "_id": "b", "text": "x"}], "line 1, field '_id'", "keep one"),
        ("c.jsonl", [{"id": "a", "text": "x", "metadata": 3}], "line 1, field 'metadata'",
         "not an object in braces"),
        ("c.jsonl", ["{"], "line 1", "this is not JSON"),
        ("c.jsonl", [""], "", "the file is empty"),
        ("c.csv", ["id,body", "a,x"], "line 2, field 'text'", "this field is required"),
        ("c.csv", ["id,text", "a,x", '"b', 'c",x,y'], "line 3", "3 fields, but 2 names"),
        ("c.csv", ["id,text", 'a,"x" y'], "line 2", "this is not valid CSV"),
        ("c.csv", ["id,text,text"], "field 'text'", "two columns have this name"),
        ("c.csv", ["id,text"], "", "the file has column names and no rows"),
        ("c.csv", ["id,text", "a,x", "a,y"], "line 3, field 'id'", "used twice (first on line 2)"),
    ],
)  # fmt: skip
def test_a_mistake_names_the_file_the_line_and_the_field(written, name, lines, place, said):
    path = written(name, *lines)
    with pytest.raises(InputError) as failed:
        read_corpus(path)
    start = f"{path}, {place}: " if place else f"{path}: "
    assert str(failed.value).startswith(start)
    assert said in str(failed.value)


def test_a_folder_without_texts_names_the_file_that_was_meant(tmp_path, written):
    with pytest.raises(InputError, match=r"no \.txt or \.md file in this folder$"):
        read_corpus(tmp_path)
    path = written("corpus.jsonl", {"id": "a", "text": "x"})
    with pytest.raises(InputError, match=f"did you mean {path}"):
        read_corpus(tmp_path)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_corpus(tmp_path / "none.jsonl")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two collections, one of more than a page, still open in this process."""
    chromadb = pytest.importorskip("chromadb")
    folder = tmp_path_factory.mktemp("chroma") / "store"
    client = chromadb.PersistentClient(str(folder))
    docs = client.create_collection("docs")
    names = [f"p{at}" for at in range(1_500)]
    docs.add(
        ids=names,
        documents=[f"text of {name}" for name in names],
        metadatas=[{"place": at} for at in range(1_500)],
        embeddings=[[float(at), 1.0] for at in range(1_500)],
    )
    docs.add(ids=["bare"], embeddings=[[0.0, 1.0]])
    client.create_collection("empty")
    yield folder
    client.close()


class TestChroma:
    def test_all_pages_in_order_and_the_store_unchanged(self, folder):
        def digests():
            return {
                str(path): hashlib.sha256(path.read_bytes()).hexdigest()
                for path in folder.rglob("*")
                if path.is_file()
            }

        before = digests()
        found = read(f"chroma:{folder}:docs")
        assert digests() == before
        assert found[0] == ("p0", "text of p0", 1, {"place": 0})
        assert [name for name, *_ in found[:-1]] == [f"p{at}" for at in range(1_500)]
        assert found[-1] == ("bare", "", 1_501, {})

    def test_a_store_that_may_not_be_written_can_be_read(self, folder, tmp_path):
        copy = shutil.copytree(folder, tmp_path / "copy")
        for path in [*copy.rglob("*"), copy]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        assert len(read(f"chroma:{copy}:docs")) == 1_501

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("end", "said"),
        [
            ("", "several collections, name one:  chroma:.*store:NAME  \\(docs, empty\\)"),
            (":dosc", "no collection 'dosc' in this store; did you mean 'docs'"),
            (":zzz", "no collection 'zzz' in this store; it has docs, empty"),
            (":empty", "it has no passages"),
        ],
    )
    def test_collections_that_cannot_be_told(self, folder, end, said):
        with pytest.raises(InputError, match=said):
            read_corpus(f"chroma:{folder}{end}")

    def test_a_folder_that_is_no_store_stays_as_it_is(self, tmp_path):
        with pytest.raises(InputError, match="this is not a Chroma store"):
            read_corpus(f"chroma:{tmp_path}")
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(InputError, match="there is no such folder"):
            read_corpus(f"chroma:{tmp_path / 'none'}:docs")
        assert not (tmp_path / "none").exists()

    def test_a_damaged_store_is_one_sentence(self, tmp_path):
        pytest.importorskip("chromadb")
        (tmp_path / "chroma.sqlite3").write_bytes(b"no database" * 100)
        with pytest.raises(InputError, match=r"this store cannot be read; check"):
            read_corpus(f"chroma:{tmp_path}")

    def test_a_store_given_as_a_folder_says_how_to_name_it(self, folder):
        with pytest.raises(InputError, match="a Chroma store; write  chroma:"):
            read_corpus(folder)

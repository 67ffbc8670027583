"""misslink goldset import of a label set: what it prints, what comes next, and one sentence for a mistake."""

import json

import pytest

BEGIN = (
    "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"
    "t5\twow\tA hive has one queen and many workers.\tHow many queens has a hive?\t"
    "A hive has one queen.\tFully attributable\n"
    "gpt2\twow\tA hive has one queen and many workers.\tHow many queens has a hive?\t"
    "Nine hundred emperors rule every hive in Norway.\tNot fully attributable\n"
)


@pytest.fixture
def begin(tmp_path):
    path = tmp_path / "begin_dev_wow.tsv"
    path.write_text(BEGIN, encoding="utf-8")
    return path


def test_it_prints_one_document(misslink, begin):
    code, out, err = misslink(
        "goldset", "import", begin, "--format", "begin", "--out", "set", "--json"
    )
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["cases"] == 2
    assert document["labels"] == {"faithfulness": {"n": 2, "good": 1, "annotators": 1}}
    assert document["files"] == ["README.md", "goldset.jsonl", "labels.jsonl", "traces.jsonl"]


def test_for_people_it_says_what_is_there_and_what_comes_next(misslink, begin):
    code, out, _ = misslink("goldset", "import", begin, "--format", "begin", "--out", "set")
    assert code == 0
    assert "2 cases in set" in out
    assert "faithfulness: 2 labels, 1 of them good" in out
    assert "misslink calibrate set-run --labels set/labels.jsonl" in out


def test_the_next_commands_work_as_they_stand(misslink, begin):
    _, out, _ = misslink("goldset", "import", begin, "--format", "begin", "--out", "set", "--json")
    for command in json.loads(out)["next"]:
        code, out, err = misslink(*command.split()[1:], "--json")
        assert code == 0, err
    document = json.loads(out)
    assert (document["n"], document["positives"]) == (2, 1)
    assert document["agreement"]["auroc"]["value"] == 1


def test_an_unknown_set_gives_the_nearest_known_one(misslink, begin):
    code, out, err = misslink("goldset", "import", begin, "--format", "ragtruht", "--out", "set")
    assert (code, out) == (2, "")
    assert "unknown format 'ragtruht'; did you mean 'ragtruth'?" in err
    assert "begin, clapnq, ragchecker, ragtruth, trec-rag" in err


@pytest.mark.parametrize("name", ["begin", "clapnq", "ragchecker", "ragtruth", "trec-rag"])
@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[1]", b'[{"a": [[[', b"\x00\t\n"])
def test_no_file_whatever_it_holds_gives_more_than_a_sentence(misslink, tmp_path, name, content):
    path = tmp_path / "broken.file"
    path.write_bytes(content)
    code, out, err = misslink("goldset", "import", path, "--format", name, "--out", "set")
    assert (code, out) == (2, "")
    assert err.startswith(f"misslink: {path}")
    assert err.count("\n") == 1
    assert not (tmp_path / "set").exists()


def test_a_file_that_is_not_there_is_named(misslink):
    code, _, err = misslink("goldset", "import", "nowhere.tsv", "--format", "begin", "--out", "set")
    assert code == 2
    assert "nowhere.tsv: there is no such file" in err


def test_what_another_package_registers_is_found(misslink, begin, monkeypatch):
    from misslink.io.label_sets import ImportedLabelSet
    from misslink.registry import importers

    importers.names()  # so that what is undone after the test is the whole of it
    monkeypatch.setattr(importers, "_entries", dict(importers._entries))
    label = {"case_id": "a", "metric": "tone", "label": 1, "annotator": "me"}
    importers.register("mine")(
        lambda paths, _: ImportedLabelSet(str(paths[0]), "me", "MIT", [label])
    )
    code, out, _ = misslink(
        "goldset", "import", begin, "--format", "mine", "--out", "set", "--json"
    )
    assert code == 0
    assert json.loads(out)["labels"]["tone"]["n"] == 1

"""misslink goldset from-logs, import, export: one document, one sentence for a mistake."""

import json

import pytest

LOG = """id,query,reply,session_id,rating,when,context_1
1,How do I reset my password?,Click on reset.,s1,up,2026-05-01T10:00:00,Reset it by the link.
2,how can i reset the password,Click on it.,s2,down,2026-05-01T10:01:00,Reset it by the link.
3,Where is my parcel? I am ann@example.org,I don't know.,s3,,2026-05-01T10:02:00,
4,Does the museum open on Sundays?,Yes,s4,up,2026-05-01T10:04:00,Open on Sundays.
"""
RAGAS = (
    '{"user_input": "Why?", "retrieved_contexts": ["x"], "response": "So.", "reference": "So.", '
    '"rubrics": {"a": "b"}}\n'
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(LOG, encoding="utf-8")
    return path


def test_it_prints_one_document_and_writes_both_files(misslink, log, tmp_path):
    command = (
        "goldset from-logs log.csv --out gold.jsonl --traces-out traces.jsonl -n 3 --json "
        "--column question=query --column time=when"
    )
    code, out, err = misslink(*command.split())
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert (document["requests"], document["different"], document["written"]) == (4, 3, 3)
    assert document["chosen"] == {"head": 1, "failure": 1, "tail": 1}
    assert document["failing"] == {"thumbs_down": 1, "error": 0, "abstained": 1, "asked_again": 0}
    assert document["masked"] == {"EMAIL": 1}
    assert document["columns"]["question"] == "query"
    written = (tmp_path / "gold.jsonl").read_text() + (tmp_path / "traces.jsonl").read_text()
    assert "ann@example.org" not in written + out
    assert "<EMAIL_1>" in written


def test_evaluate_runs_on_what_it_wrote(misslink, log):
    misslink("goldset", "from-logs", log, "--out", "gold.jsonl", "--traces-out", "traces.jsonl")
    command = (
        "evaluate --traces traces.jsonl --goldset gold.jsonl --judge heuristic --out run --json"
    )
    code, out, err = misslink(*command.split())
    assert code == 0, err
    assert json.loads(out)["cases"] == 3


def test_for_people_it_says_what_was_picked_masked_and_comes_next(misslink, log):
    code, out, _ = misslink(
        "goldset", "from-logs", log, "--out", "gold.jsonl", "--traces-out", "t.jsonl"
    )
    assert code == 0
    assert "3 questions in gold.jsonl, of 3 different ones in 4 requests" in out
    assert "Masked: EMAIL 1." in out
    assert "Names are masked only by --mask-names" in out
    assert "misslink evaluate --traces t.jsonl --goldset gold.jsonl" in out


def test_an_embedding_is_given_masked_questions(misslink, log, tmp_path):
    (tmp_path / "model.py").write_text(
        "heard = open('heard.txt', 'a')\n"
        "class Model:\n"
        "    def embed_documents(self, texts):\n"
        "        heard.writelines(texts); heard.flush()\n"
        "        return [[1.0, float(len(text))] for text in texts]\n"
        "    def embed_query(self, text):\n"
        "        return self.embed_documents([text])[0]\n"
        "model = Model()\n"
    )
    command = (
        "goldset from-logs log.csv --out g.jsonl --embedding model.py:model --head 0 "
        "--failures 0 --tail 1 -n 2"
    )
    code, _, err = misslink(*command.split())
    assert code == 0, err
    heard = (tmp_path / "heard.txt").read_text()
    assert "<EMAIL_1>" in heard
    assert "example.org" not in heard


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--head", 0.9], "add up to 1.5"),
        (["--column", "questoin=query"], "did you mean 'question'"),
        (["--column", "question=qurey"], "did you mean 'query'"),
        (["--mask-pattern", "A=["], "not a valid regular expression"),
        (["--mask-names", "nowhere.txt"], "there is no such file"),
        (
            ["--mask-names", "names.txt", "--traces-out", "names.txt", "--overwrite"],
            "This is an input",
        ),
        (["--traces-out", "gold.jsonl"], "the same file"),
        (["--traces-out", "log.csv"], "This is an input. Name another file with --traces-out"),
        (["--traces-out", "no/such/t.jsonl"], "its folder does not exist"),
        (["--embedding", "nonsense"], "nonsense"),
    ],
)
def test_a_mistake_is_one_sentence_and_writes_nothing(misslink, log, tmp_path, options, told):
    (tmp_path / "names.txt").write_text("Ann")
    code, out, err = misslink("goldset", "from-logs", log, "--out", "gold.jsonl", *options)
    assert (code, out) == (2, "")
    assert (tmp_path / "names.txt").read_text() == "Ann"
    assert told in err
    assert err.count("\n") == 1
    assert not (tmp_path / "gold.jsonl").exists()


def test_a_gold_set_that_is_there_is_not_lost(misslink, log, tmp_path):
    (tmp_path / "gold.jsonl").write_text("a person's work")
    code, _, err = misslink("goldset", "from-logs", log, "--out", "gold.jsonl")
    assert (code, "--overwrite" in err) == (2, True)
    code, _, err = misslink("goldset", "import", log, "--out", "gold.jsonl")
    assert (code, "--overwrite" in err) == (2, True)
    assert (tmp_path / "gold.jsonl").read_text() == "a person's work"


def test_escape_sequences_of_a_log_do_not_reach_the_terminal(misslink, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"question": "x?", "rating": "\x1b[31mred"}))
    code, out, err = misslink("goldset", "from-logs", "a.jsonl", "--out", "g.jsonl")
    assert code == 0
    assert "\x1b" not in out + err


def test_import_prints_one_document_and_tells_on_stderr_what_is_lost(misslink, tmp_path):
    (tmp_path / "r.jsonl").write_text(RAGAS)
    code, out, err = misslink(
        "goldset", "import", "r.jsonl", "--out", "g.jsonl", "--traces-out", "t.jsonl", "--json"
    )
    document = json.loads(out)
    assert code == 0
    assert (document["format"], document["cases"], document["traces_found"]) == ("ragas", 1, 1)
    assert document["left_out"] == {"rubrics": 1}
    assert err == "misslink: Not imported: rubrics (1).\n"
    command = "evaluate --traces t.jsonl --goldset g.jsonl --judge none --out run --json"
    code, out, err = misslink(*command.split())
    assert code == 0, err


def test_export_tells_what_the_format_does_not_hold(misslink, tmp_path):
    (tmp_path / "g.jsonl").write_text(
        '{"id": "a", "question": "Why?", "relevant": ["p"], "tier": "1"}\n'
    )
    code, out, err = misslink(
        "goldset", "export", "g.jsonl", "--format", "trec", "--out", "t", "--json"
    )
    assert code == 0
    assert json.loads(out)["lost"] == {"tier": 1}
    assert err == "misslink: Not supported by this format: tier (1).\n"
    assert (tmp_path / "t" / "qrels.txt").read_text() == "a 0 p 1\n"
    code, out, _ = misslink("goldset", "import", "t", "--out", "back.jsonl")
    assert code == 0
    assert "1 case in back.jsonl (trec)" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["import", "nowhere", "--out", "g.jsonl"], "File or folder not found"),
        (["import", "r.jsonl", "--out", "g.jsonl", "--format", "regas"], "did you mean 'ragas'"),
        (
            ["import", "r.jsonl", "--out", "r.jsonl", "--overwrite"],
            "This is an input. Name another file with --out",
        ),
        (["import", "r.jsonl", "--out", "g.jsonl", "--column", "x"], "names no column"),
        (["import", "r.jsonl", "--out", "g.jsonl", "--traces-out", "g.jsonl"], "Name two files"),
        (
            ["export", "r.jsonl", "--format", "ragas", "--out", "x.jsonl"],
            "is a data set of ragas",
        ),
    ],
)
def test_wrong_use_of_import_and_export_is_one_sentence(misslink, tmp_path, arguments, told):
    (tmp_path / "r.jsonl").write_text(RAGAS)
    code, out, err = misslink("goldset", *arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["ragas", "langsmith", "langfuse", "huggingface"])
def test_an_export_never_replaces_the_gold_set_it_is_made_of(misslink, tmp_path, name):
    gold = tmp_path / "g.jsonl"
    gold.write_text('{"id": "a", "question": "Why?", "tier": "1"}\n')
    before = gold.read_text()
    code, _, err = misslink(
        "goldset", "export", gold, "--out", gold, "--format", name, "--overwrite"
    )
    assert (code, "This is an input" in err) == (2, True)
    assert gold.read_text() == before


def test_nothing_replaces_a_file_of_a_beir_folder_that_is_read(misslink, tmp_path):
    (tmp_path / "g.jsonl").write_text('{"id": "a", "question": "Why?", "relevant": ["p"]}\n')
    corpus = tmp_path / "b" / "corpus.jsonl"
    corpus.parent.mkdir()
    corpus.write_text('{"_id": "p", "title": "A title", "text": "x"}\n')
    given = ("--format", "beir", "--overwrite")
    export = ("export", "g.jsonl", "--out", "b", "--corpus", corpus, *given)
    assert misslink("goldset", *export)[0] == 2
    assert "A title" in corpus.read_text()
    assert not (tmp_path / "b" / "queries.jsonl").exists()
    assert misslink("goldset", "export", "g.jsonl", "--out", "b", *given)[0] == 0
    queries = (tmp_path / "b" / "queries.jsonl").read_text()
    back = misslink("goldset", "import", "b", "--out", "b/queries.jsonl", "--overwrite")
    assert (back[0], "This is an input" in back[2]) == (2, True)
    assert (tmp_path / "b" / "queries.jsonl").read_text() == queries
    assert misslink("goldset", "import", "b", "--out", "b/gold.jsonl")[0] == 0

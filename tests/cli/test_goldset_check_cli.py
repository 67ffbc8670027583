"""misslink goldset check, as from a shell."""

import json
from pathlib import Path

import pytest

FERRY = "The ferry leaves the old pier at seven in the morning, except on Sundays."
CORPUS = [
    {"id": "d#1", "text": f"{FERRY} Tickets are sold on board."},
    {"id": "d#2", "text": "Bicycles are carried free of charge on every crossing. Dogs pay half."},
    {"id": "d#3", "text": "The harbour office keeps lost property and then gives it to a charity."},
]
GOLD = [
    {"id": "a", "question": "When does the boat set off?", "evidence": FERRY, "category": "times"},
    {"id": "b", "question": "Do I pay for my bike?", "relevant": ["d#2"], "category": "money"},
    {"id": "c", "question": "Where is my umbrella?", "relevant": {"d#3": 2}, "category": "lost"},
]
NEW = [
    {**CORPUS[0], "text": CORPUS[0]["text"].replace("leaves the old", "now leaves the old")},
    {**CORPUS[1], "id": "d#20"},
    CORPUS[2],
]
OFFLINE = ("--embedding", "none")


def lines(path, rows):
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(autouse=True)
def files():
    lines("corpus.jsonl", CORPUS)
    lines("new.jsonl", NEW)
    lines("gold.jsonl", GOLD)


@pytest.fixture
def check(misslink):
    def run(*options, expect=0, gold="gold.jsonl"):
        code, out, err = misslink("goldset", "check", gold, *OFFLINE, "--json", *options)
        assert code == expect, err
        return json.loads(out) if code != 2 else err

    return run


def kinds(document):
    return [(one["check"], one["severity"], one["cases"]) for one in document["findings"]]


def test_a_clean_gold_set_ends_well_and_says_what_was_not_checked(check):
    document = check("--corpus", "corpus.jsonl")
    assert document["findings"] == []
    assert document["counts"] == {"error": 0, "warning": 0, "note": 0}
    assert document["checked"] == [
        *("duplicates", "leakage", "counts", "metrics", "unreachable", "evidence")
    ]
    assert document["not_checked"]["stale"] == "no --before or --baseline was given"
    assert document["not_checked"]["balance"] == "no --logs was given"


def test_stale_labels_are_fixed_in_a_copy_and_marked(check):
    before = Path("gold.jsonl").read_bytes()
    options = ("--corpus", "new.jsonl", "--before", "corpus.jsonl", "--fix", "fixed.jsonl")
    document = check(*options, expect=1)
    assert kinds(document) == [("stale", "error", ["a"]), ("stale", "error", ["b"])]
    assert document["findings"][0]["lines"] == [1]
    fix = document["fix"]
    assert (fix["proposed"], fix["accepted"]) == (2, 2)
    assert Path("gold.jsonl").read_bytes() == before
    after = [json.loads(line) for line in Path("fixed.jsonl").read_text().splitlines()]
    assert [case.get("tags") for case in after] == [
        {"rematched": "evidence"}, {"rematched": "relevant"}, None,
    ]  # fmt: skip
    kept = [json.loads(line) for line in Path(fix["replaced"]).read_text().splitlines()]
    assert [one["before"] for one in kept] == [FERRY, "d#2"]
    assert all(one["score"] >= fix["above"] for one in kept)
    assert check("--corpus", "new.jsonl", gold="fixed.jsonl")["findings"] == []


def test_a_fix_replaces_nothing_that_is_there(check):
    options = ("--corpus", "new.jsonl", "--before", "corpus.jsonl", "--fix", "fixed.jsonl")
    Path("fixed.rematched.jsonl").write_text("of a person\n")
    assert "add --overwrite" in check(*options, expect=2)
    assert not Path("fixed.jsonl").exists()
    assert check(*options, "--overwrite", expect=1)["fix"]["accepted"] == 2


def test_gates_are_given_as_numbers_of_the_cases_they_are_about(check):
    Path("gates.yaml").write_text(
        "gates:\n"
        "  - {name: retrieval_recall_at_5, threshold: 0.85, regression_max: 0.03}\n"
        "  - {name: few, metric: faithfulness, threshold: 0.5, category: lost, min_cases: 2}\n"
        "  - {metric: latency, at_most: 3}\n"
        "  - {new_failures: {at_most: 0}}\n"
    )
    lines("gold.jsonl", [*GOLD, {"id": "d", "question": "Who is mayor?", "answerable": False}])
    document = check("--criteria", "gates.yaml", expect=1)
    cases = {(one["gate"], one["limit"]): one["cases"] for one in document["power"]}
    assert cases["retrieval_recall_at_5", "threshold"] == 3  # of ranks, those that need a passage
    assert cases["few", "min_cases"] == 1
    assert cases["latency", "at_most"] == 4
    reasons = {one["gate"] for one in document["power"] if one["reason"]}
    assert reasons == {"latency"}
    assert list(document["gates_left_out"]) == ["new_failures"]
    assert document["counts"]["error"] == 1


def test_a_run_folder_is_read_too(check, misslink):
    traces = [
        {"case_id": case["id"], "retrieved": [{"id": "x", "text": "Nothing."}], "answer": "?"}
        for case in GOLD
    ]
    lines("traces.jsonl", traces)
    made = misslink(
        "evaluate", "--traces", "traces.jsonl", "--goldset", "gold.jsonl", "--judge", "none",
        "--out", "run",
    )  # fmt: skip
    assert made[0] == 0, made[2]
    (found,) = check("--run", "run")["findings"]
    assert (found["check"], found["cases"]) == ("unjudged", ["b", "c"])


def test_logs_are_counted_and_never_told(check):
    Path("log.csv").write_text("query,topic\n" + "where is kim@example.com,lost\n" * 400)
    more = [
        {"id": f"m{at}", "question": f"{word} costs how much?", "category": "money"}
        for at, word in enumerate(("Coffee", "Parking", "Luggage", "Insurance", "Lunch"))
    ]
    lines("gold.jsonl", [*GOLD, *more])
    document = check("--logs", "log.csv", "--column", "category=topic")
    (found,) = document["findings"]
    assert found["check"] == "balance"
    assert found["numbers"]["by"] == "its column 'topic'"
    assert "kim@" not in json.dumps(document)


def test_what_is_embedded_of_a_log_is_masked(misslink):
    Path("log.csv").write_text("query\nwhere is kim@example.com\nwhere is the boat\n")
    Path("own.py").write_text(
        "from pathlib import Path\n"
        "class model:\n"
        "    def embed_documents(self, texts):\n"
        "        return [self.embed_query(text) for text in texts]\n"
        "    def embed_query(self, text):\n"
        "        with Path('asked.txt').open('a') as file:\n"
        "            file.write(text + '\\n')\n"
        "        return [float(len(text)), 1.0, float(len(text) % 7)]\n"
    )
    code, _, err = misslink(
        "goldset", "check", "gold.jsonl", "--logs", "log.csv", "--embedding", "own.py:model"
    )
    assert code == 0, err
    asked = Path("asked.txt").read_text()
    assert "where is the boat" in asked
    assert "kim@example.com" not in asked


def test_people_get_a_table_in_80_columns_without_escape_sequences(misslink, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    hostile = "\x1b[31m|<img src=x>" + "w" * 90
    lines("gold.jsonl", [*GOLD, {"id": hostile, "question": "Why?", "relevant": ["[bold]q[/x]"]}])
    code, out, _ = misslink(
        "goldset", "check", "gold.jsonl", *OFFLINE, "--corpus", "corpus.jsonl",
        "--markdown", "review.md",
    )  # fmt: skip
    assert code == 1
    assert "\x1b" not in out
    assert "[bold]q[/x]" in out
    assert max(len(line) for line in out.splitlines()) <= 80
    review = Path("review.md").read_text()
    assert "<img" not in review
    assert review.startswith("Gold set `gold.jsonl`: 1 error in 4 cases.")


def test_many_findings_are_counted_in_the_table_and_listed_in_the_document(misslink, check):
    wrong = [{"id": f"w{at}", "question": f"Q {at}?", "relevant": [f"z{at}"]} for at in range(9)]
    lines("gold.jsonl", [*GOLD, *wrong])
    _, out, _ = misslink("goldset", "check", "gold.jsonl", *OFFLINE, "--corpus", "corpus.jsonl")
    assert "And 4 more of unreachable (error)" in out
    assert check("--corpus", "corpus.jsonl", expect=1)["counts"]["error"] == 9


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--before", "corpus.jsonl"), "Add --corpus"),
        (("--fix", "x.jsonl"), "Add --corpus"),
        (
            ("--corpus", "corpus.jsonl", "--before", "new.jsonl", "--previous", "gold.jsonl"),
            "Use one of them",
        ),
        (("--corpus", "corpus.jsonl", "--fix", "gold.jsonl", "--overwrite"), "This is an input"),
        (("--markdown", "gold.jsonl"), "This is an input"),
        (("--markdown", "nowhere/x.md"), "its folder does not exist"),
        (("--corpus", "none.jsonl"), "none.jsonl"),
        (("--run", "none.trec"), "none.trec"),
        (("--run", "."), "not a run folder"),
        (("--column", "question=q"), "Add --logs"),
        (("--effect", "5"), "write 0.05"),
        (("--criteria", "gold.jsonl"), "gold.jsonl"),
    ],
)
def test_mistakes_are_one_sentence(check, options, told):
    err = check(*options, expect=2)
    assert told in err
    assert err.count("\n") == 1
    assert not Path("x.jsonl").exists()


def test_expected_numbers_of_passages_are_an_option(check):
    rows = [
        {
            "id": "a",
            "question": "Where?",
            "category": "simple_factual",
            "relevant": ["x", "y", "z"],
        },
        {"id": "b", "question": "Who?", "category": "chat", "relevant": ["x"]},
    ]
    lines("counts.jsonl", rows)
    assert kinds(check(gold="counts.jsonl")) == [("counts", "warning", ["a"])]
    assert kinds(check("--expect", "simple_factual=1-3", gold="counts.jsonl")) == []
    Path("misslink.toml").write_text('expect = ["simple_factual=1-3", "chat=2"]', encoding="utf-8")
    assert kinds(check(gold="counts.jsonl")) == [("counts", "warning", ["b"])]
    Path("misslink.toml").unlink()
    other = check("--expect", "simple_factual=3", "--expect", "chat=2", gold="counts.jsonl")
    assert kinds(other) == [("counts", "warning", ["b"])]
    for wrong, message in (
        ("simple=1", "did you mean 'simple_factual'?"),
        ("chat", "is not a category and a range"),
        ("chat=3-1", "3 is more than 1"),
    ):
        assert message in check("--expect", wrong, expect=2, gold="counts.jsonl")

"""Gold sets of other tools: what goes out and comes back is the same, or is counted as lost."""

import csv
import gzip
import json

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from misslink.case_fields import is_blank
from misslink.errors import InputError
from misslink.goldset.formats.base import (
    FormatOptions,
    detect_format,
    export_goldset,
    formats,
    import_goldset,
)
from misslink.io.goldset import GoldSet, read_goldset
from misslink.io.jsonl import SourceItem
from misslink.types import Case

WHOLE = Case(
    id="ferry",
    question="When does the ferry leave?",
    relevant={"times": 2, "pets": 0},
    relevant_any=(("a", "b"), ("c",)),
    evidence={"leaves at seven": 1, "daily": 2},
    references=("At seven.", "7 am"),
    answerable=True,
    category="times",
    tags={"owner": "Ann"},
    tier="1",
    asked_at="2026-05-01",
)
PLAIN = Case(id="dogs", question='May "dogs",\ttravel; \u00fcberall?', relevant={"p\u00e4ts": 1})
ALONE = Case(id="alone", question="Nobody judged this?")
GOLD = GoldSet((WHOLE, PLAIN, ALONE), "gold.jsonl")


def target(tmp_path, name):
    return tmp_path / {"beir": "beir", "trec": "trec", "huggingface": "g.parquet"}.get(
        name, "g.jsonl"
    )


def there_and_back(tmp_path, name, gold=GOLD, **options):
    out = target(tmp_path, name)
    lost = export_goldset(gold, name, out, FormatOptions(overwrite=True, **options))
    told, brought = import_goldset(out)
    assert told == name  # its format is told by what it holds
    return lost, brought


@pytest.mark.parametrize("name", ["beir", "langsmith", "langfuse"])
def test_formats_with_metadata_lose_nothing(tmp_path, name):
    gold = GoldSet((WHOLE, PLAIN), "gold.jsonl")
    lost, brought = there_and_back(tmp_path, name, gold)
    assert (lost, brought.left_out) == ({}, {})
    assert brought.cases == gold.cases


texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)
some_text = texts.filter(lambda text: not is_blank(text))
plain_ids = st.text(st.sampled_from("abc-_.:/123"), min_size=1, max_size=6)
cases = st.builds(
    Case,
    id=plain_ids,
    question=some_text.map(str.strip),
    relevant=st.dictionaries(plain_ids, st.integers(0, 3), max_size=3),
    evidence=st.dictionaries(some_text, st.integers(0, 2), max_size=2),
    references=st.lists(some_text.map(str.strip), max_size=2).map(tuple),
    answerable=st.sampled_from([None, True, False]),
    category=st.none() | some_text,
    tags=st.dictionaries(some_text.filter(lambda t: t != "misslink"), some_text, max_size=2),
)
gold_sets = st.lists(cases, min_size=1, max_size=4, unique_by=lambda case: case.id).map(
    lambda several: GoldSet(tuple(several), "gold")
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gold_sets, st.sampled_from(["langsmith", "langfuse"]))
def test_whatever_a_case_holds_comes_back(tmp_path, gold, name):
    lost, brought = there_and_back(tmp_path, name, gold)
    assert lost == {}
    assert brought.cases == gold.cases


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(gold_sets)
def test_trec_and_beir_keep_ids_questions_and_grades(tmp_path, gold):
    for name in ("trec", "beir"):
        if not any(case.relevant for case in gold.cases):
            continue
        _, brought = there_and_back(tmp_path, name, gold)
        back = {case.id: case for case in brought.cases}
        for case in gold.cases:
            if case.relevant:
                assert back[case.id].relevant == case.relevant
                assert back[case.id].question.split() == case.question.split()


@pytest.mark.parametrize("name", ["langsmith", "langfuse", "ragas"])
def test_a_question_that_looks_like_json_stays_a_question(tmp_path, name):
    gold = GoldSet(
        (Case(id="j", question='{"role": "user", "content": "x"}', references=("[1]",)),), "g"
    )
    _, brought = there_and_back(tmp_path, name, gold)
    held = name != "ragas"
    assert (brought.cases[0].question == gold.cases[0].question) is held
    assert brought.cases[0].references == ("[1]",) or not held


def test_trec_counts_what_it_does_not_hold(tmp_path):
    lost, brought = there_and_back(tmp_path, "trec")
    assert [case.id for case in brought.cases] == ["ferry", "dogs", "alone"]
    assert brought.cases[0] == Case(id="ferry", question=WHOLE.question, relevant=WHOLE.relevant)
    assert brought.cases[1].question == 'May "dogs", travel; \u00fcberall?'
    assert lost == {
        "relevant_any": 1,
        "evidence": 1,
        "references": 1,
        "answerable": 1,
        "category": 1,
        "tags": 1,
        "tier": 1,
        "asked_at": 1,
        "line breaks and runs of blanks in questions": 1,
    }


def test_ragas_counts_what_it_does_not_hold(tmp_path):
    lost, brought = there_and_back(tmp_path, "ragas")
    assert brought.cases[0].references == ("At seven.",)
    assert brought.cases[0].evidence == {"leaves at seven": 1, "daily": 1}
    assert brought.cases[0].relevant == {"times": 1}
    assert lost["id"] == 3
    assert lost["references beyond the first"] == 1
    assert lost["grades other than 1"] == 1
    assert lost["category"] == 1


def test_huggingface_counts_what_it_does_not_hold(tmp_path):
    lost, brought = there_and_back(tmp_path, "huggingface")
    assert [(c.id, c.question, c.references, c.category) for c in brought.cases] == [
        (c.id, c.question.strip(), c.references, c.category) for c in GOLD.cases
    ]
    assert lost == {
        "relevant_any": 1,
        "answerable": 1,
        "tags": 1,
        "tier": 1,
        "asked_at": 1,
        "grades other than 1": 1,
    }


def test_a_question_without_judgements_is_counted_where_a_split_is_brought(tmp_path):
    _, brought = there_and_back(tmp_path, "beir")
    assert [case.id for case in brought.cases] == ["ferry", "dogs"]
    assert brought.left_out == {"queries that this split does not judge": 1}


def test_beir_as_others_publish_it(tmp_path):
    folder = tmp_path / "scifact"
    (folder / "qrels").mkdir(parents=True)
    (folder / "queries.jsonl.gz").write_bytes(
        gzip.compress(
            b'{"_id": "1", "text": "Why?", "metadata": {"source": "web", "n": [1]}}\n'
            b'{"_id": 2, "text": "How?"}\n'
        )
    )
    (folder / "qrels" / "dev.tsv").write_text(
        "query-id\tcorpus-id\tscore\n2\td9\t1\n", encoding="utf-8"
    )
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n1\td1\t2\n1\td2\t-1\n1\td3\t0\n7\td1\t1\n", encoding="utf-8"
    )
    (folder / "corpus.jsonl").write_text(
        '{"_id": "d1", "title": "", "text": "x"}\n', encoding="utf-8"
    )
    name, brought = import_goldset(folder)
    assert name == "beir"
    assert brought.cases == (
        Case(id="1", question="Why?", relevant={"d1": 2, "d3": 0}, tags={"source": "web"}),
    )
    assert brought.left_out == {
        "queries that this split does not judge": 1,
        "negative grades (never judged)": 1,
        "judged queries without a text": 1,
    }
    assert "1 judged passages are not in it, such as 'd3'" in brought.notes[0]
    assert [
        case.id for case in import_goldset(folder, options=FormatOptions(split="dev"))[1].cases
    ] == ["2"]
    with pytest.raises(InputError, match=r"no split 'train' \(it has dev.tsv, test.tsv\)"):
        import_goldset(folder, options=FormatOptions(split="train"))


TOPICS = """<top>
<num> Number: 301
<title> International &amp; Organized Crime

<desc> Description:
Which groups?
</top>
<top>
<num> Number: 302 </num>
<desc> Description: Only told here. </desc>
</top>
"""


@pytest.mark.parametrize(
    ("topics", "questions"),
    [
        (TOPICS, ["International & Organized Crime", "Only told here."]),
        (
            (
                "<topics><topic number='301'><query>One?</query></topic>\n"
                '<topic number="302"><query>Two?</query></topic></topics>'
            ),
            ["One?", "Two?"],
        ),
        ("qid\tquery\n301\tOne?\n\n302\tTwo, with 3 words?\r\n", ["One?", "Two, with 3 words?"]),
    ],
)
def test_topics_of_three_kinds(tmp_path, topics, questions):
    path, qrels = tmp_path / "topics.txt", tmp_path / "some.qrels"
    path.write_text(topics, encoding="utf-8")
    qrels.write_text("301 0 d1 1\n302 0 d2 0\n", encoding="utf-8")
    name, brought = import_goldset(path, options=FormatOptions(qrels=qrels))
    assert name == "trec"
    assert [(case.id, case.question) for case in brought.cases] == list(
        zip(["301", "302"], questions, strict=True)
    )
    assert import_goldset(tmp_path)[1].cases == brought.cases  # both in one folder


def test_ragas_of_both_generations_and_their_traces(tmp_path):
    new = {
        "user_input": "Why?",
        "retrieved_contexts": ["one", "two"],
        "reference_contexts": ["one"],
        "response": "So.",
        "reference": "Because.",
        "persona_name": "novice",
    }
    path = tmp_path / "new.jsonl"
    path.write_text(json.dumps(new) + "\n", encoding="utf-8")
    _, brought = import_goldset(path)
    assert brought.cases[0].evidence == {"one": 1}
    assert brought.cases[0].references == ("Because.",)
    assert brought.cases[0].tags == {"persona_name": "novice"}
    assert (brought.traces[0].case_id, brought.traces[0].answer) == (brought.cases[0].id, "So.")
    assert [passage.text for passage in brought.traces[0].retrieved] == ["one", "two"]

    old = tmp_path / "old.csv"
    with old.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "contexts", "answer", "ground_truth"])
        writer.writerow(["Why?", "['one', \"two's\"]", "So.", "Because."])
    name, brought = import_goldset(old)
    assert name == "ragas"
    assert [passage.text for passage in brought.traces[0].retrieved] == ["one", "two's"]


def test_a_numpy_list_without_commas_is_as_many_texts_as_it_was(tmp_path):
    texts = ["one, ['two']", 'say "no"', "it's", "a\nb"]
    path = tmp_path / "old.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "contexts", "answer", "ground_truth"])
        writer.writerow(["Why?", str(np.array(texts, dtype=object)), "So.", "Because."])
    _, brought = import_goldset(path)
    assert [passage.text for passage in brought.traces[0].retrieved] == texts


def test_a_ragas_conversation_is_its_last_question(tmp_path):
    path = tmp_path / "multi.jsonl"
    turns = [
        {"content": "Hello", "type": "human"},
        {"content": "Hi", "type": "ai"},
        {"content": "Why?", "type": "human"},
    ]
    path.write_text(json.dumps({"user_input": turns, "reference": "x"}), encoding="utf-8")
    _, brought = import_goldset(path)
    assert brought.cases[0].question == "Why?"
    assert brought.left_out == {"turns before a conversation's last question": 1}


def test_langsmith_as_it_is_downloaded(tmp_path):
    examples = [
        {
            "id": "u1",
            "inputs": {"messages": [{"role": "user", "content": "Why?"}]},
            "outputs": {"answer": "So."},
            "metadata": {"team": "a", "dataset_split": ["base"]},
            "split": "test",
        },
        {"id": "u2", "inputs": {"x": {"y": {}}}, "outputs": None},
    ]
    (tmp_path / "a.json").write_text(json.dumps(examples, indent=1), encoding="utf-8")
    (tmp_path / "b.csv").write_text("inputs.question,outputs.answer\nWhy?,So.\n", encoding="utf-8")
    name, brought = import_goldset(tmp_path / "a.json")
    assert name == "langsmith"
    assert brought.cases == (
        Case(id="u1", question="Why?", references=("So.",), tags={"team": "a"}),
    )
    assert brought.left_out == {"examples without a question": 1}
    name, brought = import_goldset(tmp_path / "b.csv")
    assert (name, brought.cases[0].question, brought.cases[0].references) == (
        "langsmith",
        "Why?",
        ("So.",),
    )


def test_langfuse_as_its_api_and_its_page_give_it(tmp_path):
    page = {
        "data": [
            {
                "id": "i1",
                "input": {"query": "Why?"},
                "expectedOutput": {"text": "So."},
                "metadata": None,
                "status": "ACTIVE",
            },
            {"id": "i2", "input": "Old?", "expectedOutput": None, "status": "ARCHIVED"},
        ],
        "meta": {"page": 1},
    }
    (tmp_path / "a.json").write_text(json.dumps(page, indent=2), encoding="utf-8")
    with (tmp_path / "b.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [
                ["id", "input", "expected_output", "metadata"],
                ["i1", '{"query": "Why?"}', '"So."', '{"team": "a"}'],
            ]
        )
    name, brought = import_goldset(tmp_path / "a.json")
    assert name == "langfuse"
    assert brought.cases == (Case(id="i1", question="Why?", references=("So.",)),)
    assert brought.left_out == {"archived items": 1}
    name, brought = import_goldset(tmp_path / "b.csv")
    assert name == "langfuse"
    assert brought.cases[0].tags == {"team": "a"}


def saved(folder, rows):
    """A dataset as `save_to_disk` lays it out: an Arrow stream and its state."""
    import pyarrow as pa

    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, table.schema) as out,
    ):
        out.write_table(table)
    (folder / "state.json").write_text(
        json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]})
    )
    (folder / "dataset_info.json").write_text("{}")


SQUAD = [
    {
        "id": "s1",
        "question": "Why?",
        "context": "Because of that.",
        "answers": {"text": ["that", "that"], "answer_start": [11, 11]},
    }
]


def test_a_saved_dataset_and_one_with_splits(tmp_path):
    saved(tmp_path / "one", SQUAD)
    name, brought = import_goldset(tmp_path / "one")
    assert name == "huggingface"
    assert brought.cases == (
        Case(id="s1", question="Why?", evidence={"Because of that.": 1}, references=("that",)),
    )
    saved(tmp_path / "dict" / "train", SQUAD)
    saved(tmp_path / "dict" / "test", [{"frage": "Wann?"}])
    (tmp_path / "dict" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(InputError, match="Name one with --split; it has train, test"):
        import_goldset(tmp_path / "dict")
    with pytest.raises(InputError, match=r"--column question=NAME  \(it has frage\)"):
        import_goldset(tmp_path / "dict", options=FormatOptions(split="test"))
    options = FormatOptions(split="test", columns={"question": "frage"})
    assert import_goldset(tmp_path / "dict", options=options)[1].cases[0].question == "Wann?"


def test_what_the_package_datasets_saved_is_read(tmp_path):
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(SQUAD).save_to_disk(tmp_path / "one")
    assert import_goldset(tmp_path / "one")[1].cases[0].id == "s1"


def test_a_state_that_leads_out_of_its_folder_is_not_followed(tmp_path):
    saved(tmp_path / "one", SQUAD)
    (tmp_path / "one" / "state.json").write_text(
        '{"_data_files": [{"filename": "../secret.arrow"}]}'
    )
    saved(tmp_path / "other", SQUAD)
    (tmp_path / "other" / "data-00000-of-00001.arrow").rename(tmp_path / "secret.arrow")
    with pytest.raises(InputError, match="cannot be read"):
        import_goldset(tmp_path / "one")


@pytest.mark.parametrize(
    ("name", "file", "content", "told"),
    [
        ("ragas", "a.jsonl", b'{"user_inptu": "x"}', "did you mean 'user_input'"),
        ("ragas", "a.jsonl", b'{"user_input": "x", "reference": 3.5}', "line 1, field 'reference'"),
        (
            "ragas",
            "a.jsonl",
            b'{"user_input": "x", "contexts": ["a"], "retrieved_context_ids": ["1", "2"]}',
            "line 1",
        ),
        ("langsmith", "a.jsonl", b'{"inputs": {"q": "x"}}\n{"inputs": ', "line 2"),
        (
            "langsmith",
            "a.jsonl",
            b'{"id": "1", "inputs": {"q": "x"}}\n{"id": "1", "inputs": {"q": "y"}}',
            "line 2, field 'id'",
        ),
        ("langfuse", "a.jsonl", b'{"inptu": "x"}', "did you mean 'input'"),
        (
            "langfuse",
            "a.jsonl",
            b'{"input": "x", "metadata": {"misslink": {"relevant": {"a": -1}}}}',
            "line 1, field 'relevant",
        ),
        ("trec", "a.tsv", b"1\tx\n2\n", "line 2"),
        ("trec", "a.tsv", b"<top>\n<title> x\n</top>\n", "line 1: This topic has no number"),
        ("huggingface", "a.parquet", b"PAR1", "cannot be read"),
        ("huggingface", "a.arrow", b"ARROW1", "cannot be read"),
        ("beir", "a.jsonl", b"{}", "Name the BEIR folder"),
        ("auto", "a.jsonl", b'{"question": "x", "relevant": ["a"]}', "a gold set already"),
        ("auto", "a.jsonl", b'{"colour": "x"}', "(fields: colour). Name it with --format"),
        ("rages", "a.jsonl", b"{}", "did you mean 'ragas'"),
    ],
)
def test_a_broken_source_is_one_sentence_with_its_place(tmp_path, name, file, content, told):
    path, qrels = tmp_path / file, tmp_path / "q.txt"
    path.write_bytes(content)
    qrels.write_text("1 0 d 1\n")
    with pytest.raises(InputError) as wrong:
        import_goldset(path, name, FormatOptions(qrels=qrels))
    assert told in str(wrong.value)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("name", ["ragas", "langsmith", "langfuse", "trec", "huggingface", "beir"])
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[", b"\xff\xfe", b"[1]", b'{"a":' * 9000, b"\x00\t\n", b"PAR1", b"\x1f\x8b"],
)
def test_no_file_whatever_it_holds_gives_more_than_a_sentence(tmp_path, name, content):
    path = tmp_path / "broken.file"
    path.write_bytes(content)
    for each in (name, "auto"):
        with pytest.raises(InputError):
            import_goldset(path, each, FormatOptions(qrels=path))


@pytest.mark.parametrize("name", ["beir", "trec"])
def test_an_id_with_a_blank_is_refused_before_anything_is_written(tmp_path, name):
    gold = GoldSet(
        (Case(id="a", question="x?", relevant={"a b": 1}),),
        "gold.jsonl",
        {"a": SourceItem(None, "gold.jsonl", 3)},
    )
    with pytest.raises(InputError, match=r"gold.jsonl, line 3, field 'relevant'.*contains a blank"):
        export_goldset(gold, name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name", sorted(["beir", "trec", "ragas", "langsmith", "langfuse", "huggingface"])
)
def test_nothing_is_written_over_unless_asked(tmp_path, name):
    out = target(tmp_path, name)
    export_goldset(GOLD, name, out)
    with pytest.raises(InputError, match="--overwrite"):
        export_goldset(GOLD, name, out)
    export_goldset(GOLD, name, out, FormatOptions(overwrite=True))


def test_all_formats_are_registered_and_level_1_reads_what_trec_wrote(tmp_path):
    from misslink.retrieval.readers import open_qrels

    assert formats.names() == [
        "beir",
        "deepeval",
        "huggingface",
        "langfuse",
        "langsmith",
        "ragas",
        "trec",
    ]
    export_goldset(GOLD, "trec", tmp_path / "t")
    assert open_qrels(tmp_path / "t" / "qrels.txt").by_query == {
        "ferry": {"times": 2, "pets": 0},
        "dogs": {"p\u00e4ts": 1},
    }
    assert detect_format(tmp_path / "t") == "trec"


def test_beir_with_a_corpus_is_whole(tmp_path):
    corpus = tmp_path / "c.jsonl"
    corpus.write_text('{"id": "times", "text": "At seven."}\n', encoding="utf-8")
    export_goldset(GOLD, "beir", tmp_path / "b", FormatOptions(corpus=corpus))
    assert json.loads((tmp_path / "b" / "corpus.jsonl").read_text()) == {
        "_id": "times",
        "title": "",
        "text": "At seven.",
    }
    assert len(read_goldset(import_goldset(tmp_path / "b")[1].cases).cases) == 2


def test_questions_that_nobody_judged_yet_go_to_beir_and_back(tmp_path):
    _, brought = there_and_back(tmp_path, "beir", GoldSet((ALONE,), "gold.jsonl"))
    assert brought.cases == (ALONE,)


def test_goldens_and_test_cases_of_deepeval_are_no_items_of_langfuse(tmp_path):
    goldens, items = tmp_path / "goldens.json", tmp_path / "items.json"
    rows = [
        {
            "input": "Price?",
            "actual_output": None,
            "expected_output": "12.",
            "context": ["It is 12."],
        },
        {"input": "When?", "actual_output": "At 7.", "retrieval_context": ["It sails at 7."]},
    ]
    goldens.write_text(json.dumps(rows), encoding="utf-8")
    assert detect_format(goldens) == "deepeval"
    read = formats.get("deepeval")().read(goldens, FormatOptions())
    assert [case.evidence for case in read.cases] == [{"It is 12.": 1}, {}]
    assert [trace.answer for trace in read.traces] == ["At 7."]
    item = {"input": {"question": "Price?"}, "expectedOutput": "12.", "metadata": {}}
    items.write_text(json.dumps([item]), encoding="utf-8")
    assert detect_format(items) == "langfuse"

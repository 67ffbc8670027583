"""The blocks of data: whole, each text once, counted by filter, and nothing that ends a script."""

import json
from collections import Counter

import pytest

from example_run import HOSTILE, example_run
from misslink.failure_modes import FAILURE_MODES, FAILURES
from misslink.report import explorer
from misslink.report.cases import build_case_entries
from misslink.report.explorer import build_blocks, build_case_list, count_facets
from misslink.types import Case, Claim, Passage, Run, Trace, Verdict
from proven_run import proven_run


def _read(run):
    return {block.id: json.loads(block.text) for block in build_blocks(build_case_list(run))}


def _run(*traces, verdicts=()):
    return Run(
        manifest={},
        cases=tuple(Case(id=trace.case_id, question="?") for trace in traces),
        traces=traces, verdicts=verdicts, links=(), summary={},
    )  # fmt: skip


def test_the_list_holds_every_case_worst_first_without_empty_fields():
    found = _read(example_run())["case-list"]
    rows = found["rows"]

    assert [row["number"] for row in rows][:3] == [14, 4, 5]
    assert rows[0] == {
        "number": 14, "id": "with-exit", "failure": "retrieval_miss", "retrieval": "miss",
        "question": "What does a with statement do when its suite raises?",
        "answered": "unfaithful", "correct": "no", "miss_types": ["ranked_low"], "best_rank": 17,
        "lost_at": ["rank", "unknown"],
        "claim": "The with statement swallows every exception", "claimed": 4, "unsupported": 3, "wrong": 1,
        "category": "procedural", "tags": ["topic:context managers"],
        "values": [0.25 if name == "faithfulness" else {"answer_relevance": 0.8,
                   "correctness": 0.33}.get(name) for name in found["metrics"]],
        "bad": [found["metrics"].index("faithfulness")], "latency_s": 2.34,
    }  # fmt: skip
    assert "latency_s" not in next(row for row in rows if row["id"] == "long")


def test_bodies_stand_in_the_gold_set_s_order_in_chunks(monkeypatch):
    monkeypatch.setattr(explorer, "_BODIES_PER_BLOCK", 5)
    found = _read(example_run())

    assert found["case-list"]["chunk"] == 5
    assert [len(found[f"case-bodies-{place}"]) for place in range(3)] == [5, 5, 4]
    assert found["case-bodies-2"][3]["answer"].startswith("The with statement swallows")
    assert "case-bodies-3" not in found


def test_a_passage_s_text_is_held_once_however_many_cases_show_it():
    shared = Passage(id="p", text="one text for all", rank=1)
    prompt = "Use one text for all."
    run = _run(*(Trace(case_id=f"c{n}", retrieved=(shared,), prompt=prompt) for n in range(50)))
    texts = [block.text for block in build_blocks(build_case_list(run))]

    assert "".join(texts).count("one text for all") == 1
    bodies = _read(run)["case-bodies-0"]
    assert {body["retrieved"][0]["text"] for body in bodies} == {0}
    assert all(body["prompt"] == ["Use ", 0, "."] for body in bodies)


def test_marks_count_in_the_units_of_javascript():
    answer = "🐍🐍 snake. 🐍 end"
    claim = Claim(text="snake.", start=3, end=9, support="supported")
    run = _run(
        Trace(case_id="c", answer=answer),
        verdicts=(
            Verdict(case_id="c", metric="faithfulness", status="scored", value=1, judge="j",
                    claims=(claim,)),
        ),
    )  # fmt: skip

    marks = _read(run)["case-bodies-0"][0]["marks"]
    units = answer.encode("utf-16-le")
    claimed = {"end": 11, "kind": "supported", "claims": [1], "ends": [1]}
    assert marks == [{"end": 5}, claimed, {"end": 18}]
    assert units[2 * 5 : 2 * 11].decode("utf-16-le") == "snake."


@pytest.mark.parametrize("run", [example_run(), proven_run()])
def test_no_block_ends_its_element_or_holds_what_no_file_can(run):
    for block in build_blocks(build_case_list(run)):
        assert not {"<", "\u2028", "\u2029", "\0"} & set(block.text)


def test_hostile_texts_come_back_as_they_were_written():
    found = _read(example_run())
    questions = [row["question"] for row in found["case-list"]["rows"]]
    whole = json.dumps(found, ensure_ascii=False)

    assert " ".join(HOSTILE).replace("\0", "\ufffd") in questions
    for text in HOSTILE:
        assert json.dumps(text.replace("\0", "\ufffd"), ensure_ascii=False)[1:-1] in whole


def test_a_written_escape_is_no_nul():
    run = _run(Trace(case_id="c", answer="\\u0000 and \0 and \\\0"))

    body = _read(run)["case-bodies-0"][0]
    assert body["answer"] == "\\u0000 and \ufffd and \\\ufffd"


def test_raw_replies_beyond_what_a_page_carries_are_left_out_and_told(monkeypatch):
    monkeypatch.setattr(explorer, "_MAX_RAW_CHARACTERS", 20)
    traces = [Trace(case_id=one) for one in "ab"]
    verdicts = tuple(
        Verdict(case_id=one, metric="faithfulness", status="scored", value=value, judge="j",
                raw=one * 15)
        for one, value in (("a", 1), ("b", 0))
    )  # fmt: skip

    good, bad = _read(_run(*traces, verdicts=verdicts))["case-bodies-0"]
    assert bad["raws"] == [
        {"name": "faithfulness", "text": "b" * 15}
    ]  # the worse case keeps its own
    assert "raws" not in good
    assert good["raws_left_out"]


def test_a_run_without_cases_has_an_empty_list():
    assert _read(_run())["case-list"]["rows"] == []


def test_what_several_cases_say_alike_is_held_once_and_told_by_its_place():
    def said(case_id, reason):
        return Verdict(
            case_id=case_id, metric="relevance", status="scored", value=1, judge="j", reason=reason
        )

    found = _read(
        _run(
            *(Trace(case_id=one, retrieved=(Passage(id="p", text="t", rank=1),)) for one in "abc"),
            verdicts=(said("a", "the same"), said("b", "the same"), said("c", "its own")),
        )
    )
    parts, bodies = found["case-parts"], found["case-bodies-0"]

    assert parts[0] == ["j"] == parts[bodies[2]["judges"]]  # three times, as are the flags
    assert parts[bodies[0]["retrieved"][0]["flags"]] == ["prompt not seen"]
    assert bodies[0]["verdicts"] == bodies[1]["verdicts"]
    assert parts[bodies[0]["verdicts"][0]]["reason"] == "the same"
    assert bodies[2]["verdicts"][0]["reason"] == "its own"


def test_a_claim_has_a_text_of_its_own_only_where_its_answer_says_it_otherwise():
    answer = "🐍 One. Two. Three."
    claims = (
        Claim(text="One. Two.", start=2, end=11, support="supported"),
        Claim(text="Two.", start=7, end=11, support="contradicted"),
        Claim(text="two", start=7, end=11, support="supported"),
        Claim(text="Four.", support="unsupported"),
    )
    verdict = Verdict(
        case_id="c", metric="faithfulness", status="scored", value=1, judge="j", claims=claims
    )
    (body,) = _read(_run(Trace(case_id="c", answer=answer), verdicts=(verdict,)))["case-bodies-0"]

    assert [claim.get("text") for claim in body["claims"]] == [None, None, "two", "Four."]
    assert [claim.get("unlocated", False) for claim in body["claims"]] == [False] * 3 + [True]


def test_a_body_stands_after_all_that_it_refers_to():
    ids = [block.id for block in build_blocks(build_case_list(example_run()))]

    assert ids == ["case-list", "case-parts", "case-texts-0", "case-bodies-0"]


def test_of_a_large_run_the_worst_are_here_with_the_counts_of_all():
    found = {
        block.id: json.loads(block.text)
        for block in build_blocks(build_case_list(example_run(), most=4, table="a b&c.parquet"))
    }
    listed = found["case-list"]

    assert [row["number"] for row in listed["rows"]] == [14, 4, 5, 3]
    assert (listed["total"], listed["table"]) == (14, "a%20b%26c.parquet")
    assert ["passed", 3] in listed["all"]["failure"]
    assert sum(count for _, count in listed["all"]["failure"]) == 14
    # Bodies in the order of their numbers: 3, 4, 5, 14.
    assert found["case-bodies-0"][3]["answer"].startswith("The with statement swallows")
    assert len(found["case-bodies-0"]) == 4
    assert "total" not in _read(example_run())["case-list"]


def test_of_a_tag_of_many_values_those_that_are_here_are_counted_in_any_case(monkeypatch):
    monkeypatch.setattr(explorer, "_VALUES_PER_BLOCK", 1)
    cases = [Case(id=f"c{n}", question="?", tags={"of": str(n // 3)}) for n in range(9)]
    cases += [Case(id="last", question="?", tags={"of": "rare"})]
    run = Run(manifest={}, cases=cases, traces=(), verdicts=(), links=(), summary={})
    verdict = Verdict(case_id="last", metric="faithfulness", status="scored", value=0, judge="j")
    run = run.model_copy(update={"verdicts": (verdict,)})
    found = {
        block.id: json.loads(block.text) for block in build_blocks(build_case_list(run, most=1))
    }

    assert [row["id"] for row in found["case-list"]["rows"]] == ["last"]
    assert found["case-list"]["all"]["tag"] == [["of:0", 3], ["of:rare", 1]]


@pytest.mark.parametrize("run", [example_run(), proven_run()])
def test_they_are_what_the_entries_of_all_cases_say(run):
    """The entries are made for the list, by code of their own."""
    entries = build_case_entries(run, 5)
    each = {
        "state": lambda one: [
            "failed"
            if one.failure in FAILURES
            else "inconclusive"
            if one.failure == "inconclusive"
            else one.failure and "passed"
        ],
        "owner": lambda one: [one.failure in FAILURES and FAILURE_MODES[one.failure].owner],
        "failure": lambda one: [one.failure],
        "retrieval": lambda one: [one.retrieval],
        "answer": lambda one: [one.answered],
        "correct": lambda one: [one.correct],
        "lost_at": lambda one: {need.stage for need in one.needs},
        "miss_type": lambda one: one.miss_types,
        "category": lambda one: [one.category],
        "tier": lambda one: [one.tier],
        "tag": lambda one: one.tags,
        "metric": lambda one: one.bad,
        "people": lambda one: one.people,
    }
    found = count_facets(run)
    assert list(found) == list(each)
    for name, of in each.items():
        assert found[name] == Counter(value for one in entries for value in of(one) if value), name


def test_the_most_frequent_stands_first():
    for counts in count_facets(proven_run()).values():
        assert list(counts.values()) == sorted(counts.values(), reverse=True)


def test_what_belongs_to_no_case_of_the_run_is_not_counted():
    run = proven_run().model_copy(update={"cases": ()})
    assert not any(count_facets(run).values())
    empty = Run(manifest={}, cases=(), traces=(), verdicts=(), links=(), summary={})
    assert not any(count_facets(empty).values())

"""benchmarks/judge/judge_agreement.py: what it compares with people, and what it writes where."""

import argparse
import asyncio

import pytest

from fake_judge import FakeJudge
from misslink.errors import InputError
from misslink.io.label_sets import ImportedLabelSet, write_label_set
from misslink.judge.examination import examine
from misslink.judge.prompts import Prompts
from misslink.judge.protocol import Reply
from misslink.types import Case, Estimate, Passage, Trace

judge_agreement = pytest.importorskip("judge_agreement")

HIVE = "A hive has one queen, who lays all of the eggs in summer."
SAID = {  # what was answered, and whether people found it in the passage
    "a": ("A hive has one queen.", 1),
    "b": ("The queen lays all of the eggs.", 1),
    "c": ("Nine emperors rule Norway by telegraph.", 0),
    "d": ("Bees were invented by a Roman plumber named Marcus Quintus in the year 312.", 0),
    "e": ("The queen lays the eggs in summer.", 0),  # people are of another mind here
}


def asked(tmp_path, *judges, **options):
    unset = ("base_url", "max_tokens", "deadline", "price_in", "price_out", "cases")
    given = {**dict.fromkeys(unset), "prompts": "v3", "sets": "", "concurrency": 2, **options}
    return argparse.Namespace(judge=list(judges), cache=tmp_path / "cache.sqlite", **given)


@pytest.fixture
def folder(tmp_path):
    """A set as  misslink goldset import  writes it, labelled by two people who differ on one answer."""
    passage = Passage(id="p", text=HIVE, rank=1)
    people = {"ann": SAID, "bob": SAID | {"a": (SAID["a"][0], 0)}}
    found = ImportedLabelSet(
        "Hives",
        "nobody",
        "MIT",
        [
            {"case_id": name, "metric": "faithfulness", "label": label, "annotator": who}
            for who, said in people.items()
            for name, (_, label) in said.items()
        ],
        {"goldset.jsonl": [Case(id=name, question="What of hives?") for name in SAID]},
        {
            "traces.jsonl": [
                Trace(case_id=name, retrieved=(passage,), prompted=("p",), answer=answer)
                for name, (answer, _) in SAID.items()
            ]
        },
    )
    write_label_set(found, "mine", tmp_path / "hives")
    return tmp_path / "hives"


@pytest.fixture
def rows(folder, tmp_path):
    sets = judge_agreement.read([folder])
    return {
        each.judge: each for each in judge_agreement.measure(sets, asked(tmp_path, "heuristic"))
    }


def test_a_judge_stands_beside_baselines_and_people(rows):
    baselines = ["always the majority", "length alone", "people"]
    assert list(rows) == ["heuristic", "a model, v2 or v3", *baselines]


def test_a_tie_of_people_is_left_out_of_what_judges_are_held_against(rows):
    assert (rows["heuristic"].n, rows["heuristic"].bad) == (4, 3)
    assert (rows["people"].n, rows["people"].bad) == (5, None)


def test_the_numbers_are_those_of_the_table_of_people_and_judge(rows):
    found = rows["heuristic"].numbers
    # b called good, c and d found, e missed: precision 1, recall 2/3.
    assert found["f1"].value == pytest.approx(0.8)
    assert found["balanced_accuracy"].value == pytest.approx((1 + 2 / 3) / 2)
    assert found["kappa"].value == pytest.approx((3 / 4 - 1 / 2) / (1 - 1 / 2))
    assert rows["always the majority"].numbers["balanced_accuracy"].value == 0.5
    assert rows["always the majority"].numbers["f1"].value == pytest.approx(6 / 7)
    # How often the bad one of a good and a bad answer is the longer one; none are of one length.
    longer = sum(len(SAID[name][0]) > len(SAID["b"][0]) for name in "cde") / 3
    assert rows["length alone"].numbers["auroc"].value == pytest.approx(longer)


def test_the_table_has_a_row_for_each_judge(rows):
    table = judge_agreement.table(rows.values(), {"f1": "F1", "kappa": "kappa"})
    assert "| hives | unfaithful | heuristic | 4 | 3 | 0.80 [" in table
    assert "| length alone | 4 | 3 | no cut | no cut |" in table
    assert "| hives | unfaithful | a model, v2 or v3 |  |  | not measured here |  |" in table


def test_every_version_of_the_prompts_is_asked_and_without_references_where_there_are_any(
    folder, tmp_path, judge_server
):
    (data,) = judge_agreement.read([folder])
    given = asked(
        tmp_path, "openai:test-judge", base_url=judge_server.url, prompts="v2,v3", cases=3
    )
    names = [variant.name for variant, _ in judge_agreement.variants(data, given)]
    assert names == ["openai:test-judge, v2", "openai:test-judge, v3"]
    with_reference = judge_agreement.replace(
        data, cases=[case.model_copy(update={"references": ("One.",)}) for case in data.cases]
    )
    *_, (without, chosen) = judge_agreement.variants(with_reference, given)
    assert without.name == "openai:test-judge, v3, no references"
    assert [case.references for case in chosen.cases] == [()] * 3
    for variant, chosen in judge_agreement.variants(data, given):
        line = asyncio.run(judge_agreement.forecast(chosen, variant, given))
        assert "3 calls, 0 from the cache" in line
        assert "cost unknown without prices" in line
    assert not judge_server.calls
    rows = judge_agreement.measure([data], given)
    assert [row.judge for row in rows[:2]] == names
    assert rows[1].n == 3  # no tie of people among them
    given.judge, given.sets = ["heuristic", "openai:test-judge"], "Another set"
    assert [variant.name for variant, _ in judge_agreement.variants(data, given)] == ["heuristic"]


def test_faithfulness_is_asked_with_a_reference_in_the_prompt_and_without(
    folder, tmp_path, judge_server
):
    (data,) = judge_agreement.read([folder])
    prompts = judge_agreement.WITH_REFERENCE
    given = asked(tmp_path, "openai:test-judge", base_url=judge_server.url, prompts=prompts)
    (without, bare), (with_one, shown) = judge_agreement.variants(data, given)
    assert without.name == "openai:test-judge, v3, no references"
    assert with_one.name == "openai:test-judge, v3, a reference"
    # Of another answer that people found faithful; people are tied about a, so b has none.
    assert [case.id for case in bare.cases] == [case.id for case in shown.cases] == [*"acde"]
    assert {case.references for case in bare.cases} == {()}
    assert {case.references for case in shown.cases} == {(SAID["b"][0],)}
    judge_agreement.measure([data], given)
    sent = ["<reference_1 " in call.body["messages"][1]["content"] for call in judge_server.calls]
    assert sorted(set(sent)) == [False, True]


def test_the_earlier_prompt_is_asked_by_its_own_schema_and_read_as_todays():
    """Its verdict came before the quote, and its claim was the answer's words."""
    seen = []

    def answer(ask):
        seen.append(ask.json_schema["properties"]["claims"]["items"]["properties"])
        claim = {"text": "It is.", "support": "supported", "quote": "It is."}
        fields = {"claims": [claim], "passages": [], "response": "answers"}
        return Reply(ask.schema.model_validate(fields), "{}")

    prompts = Prompts.from_spec(judge_agreement.EARLIER)
    ask = examine("Is it?", ("It is.",), "It is.", prompts=prompts)
    judge = judge_agreement.EarlierExamination(FakeJudge(answer))
    (claim,) = asyncio.run(judge.ask(ask)).parsed.claims
    assert list(seen[0]) == ["text", "support", "quote"]
    assert (claim.span, claim.claim, *claim.quotes) == ("It is.",) * 3


def test_a_number_that_is_not_there_is_left_blank():
    missing = Estimate.missing("one label only")
    assert judge_agreement.written(missing) == ""
    known = Estimate(value=0.5, low=0.25, high=0.75, n=4, method="wilson")
    assert judge_agreement.written(known) == "0.50 [0.25, 0.75]"


def test_a_folder_without_any_set_is_refused(tmp_path):
    with pytest.raises(InputError, match="neither a set of labels in it nor the reduced ones"):
        list(judge_agreement.read([tmp_path]))

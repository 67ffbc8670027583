"""A run's folder of labels: journals, the plan, weights, and what is left out and told."""

import hashlib
import json

import pytest

from misslink.errors import InputError
from misslink.io import RunStaging, read_run
from misslink.io.label_folder import (
    JournalEntry,
    LabelPlan,
    PlanCase,
    PlanStratum,
    ShownContent,
    current_labels,
    label_history,
    read_journal,
    read_label_folder,
    read_label_plan,
    write_label_plan,
)
from misslink.io.labels import read_labels
from misslink.types import Case, Claim, Passage, Run, Trace, Verdict

HISTORY = [{"role": "user", "content": "When?"}, {"role": "assistant", "content": "At nine."}]
PLAN = LabelPlan(
    cases=tuple(PlanCase(f"c{n}", n % 2, ("m",)) for n in range(10)),
    strata=(PlanStratum("low", 0, 5, 1.5), PlanStratum("high", 3, 5, 0.5)),
    seed=0,
    random_share=0.2,
    by="m",
    threshold=0.5,
)


def line(case_id="c0", label=1, metric="m", **more):
    return {"case_id": case_id, "metric": metric, "label": label, **more}


def write(folder, name, *lines):
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    return path


def said(labels):
    return {(one.annotator, one.case_id): (one.value, one.weight) for one in labels.items}


def test_everybodys_labels_have_the_weights_of_the_plan_and_skipped_ones_are_left_out(tmp_path):
    write(tmp_path, "ada", line("c0"), line("c1", 0), line("c2", None), line("c3"))
    write(tmp_path, "bob", line("c0", 0), line("c4"))
    write_label_plan(tmp_path, PLAN)
    assert said(read_labels(tmp_path)) == {
        ("ada", "c0"): (1, 2.5), ("ada", "c1"): (0, 2.5), ("ada", "c3"): (1, 2.5),
        ("bob", "c0"): (0, 2.5), ("bob", "c4"): (1, 2.5),
    }  # fmt: skip
    assert said(read_labels(tmp_path / "bob.jsonl")) == {
        ("bob", "c0"): (0, 2.5), ("bob", "c4"): (1, 2.5),
    }  # fmt: skip


def test_a_plan_round_trips(tmp_path):
    write_label_plan(tmp_path, PLAN)
    assert read_label_plan(tmp_path) == PLAN
    assert read_label_plan(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"seed": "x"}, "field 'seed'"),
        ({"cases": [{"case_id": "a", "stratum": 9, "metrics": []}]}, "a stratum that there is not"),
        ({"strata": 5}, "field 'strata'"),
    ],
)
def test_a_damaged_plan_is_told(tmp_path, change, told):
    path = write_label_plan(tmp_path, PLAN)
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **change}), "utf-8")
    with pytest.raises(InputError, match=f"plan.json.*{told}.*the labels stay|{told}"):
        read_label_plan(tmp_path)


@pytest.mark.parametrize("plan", [None, PLAN])
def test_labels_that_no_plan_drew_have_no_weight_and_that_is_told(tmp_path, caplog, plan):
    write(tmp_path, "ada", line("c0"), line("elsewhere"))
    if plan:
        write_label_plan(tmp_path, plan)
    assert {one.weight for one in read_labels(tmp_path).items} == {None}
    assert "so all labels count the same" in caplog.text


def test_what_was_taken_back_does_not_hold():
    entries = [
        JournalEntry("label", "a", "m", "x", label=1.0),
        JournalEntry("label", "b", "m", "x", label=1.0),
        JournalEntry("label", "a", "m", "x", label=0.0),
        JournalEntry("undone", "a", "m", "x"),
        JournalEntry("shown", "a", "m", "x"),
        JournalEntry("undone", "never", "m", "x"),
    ]
    assert [one.case_id for one in label_history(entries)] == ["a", "b"]
    assert current_labels(entries)["a", "m", None].label == 1.0


def test_entries_round_trip_as_lines(tmp_path):
    entries = (
        JournalEntry("label", "a\u2028", "m", "ada", 3, 0.5, "caf\u00e9", judge_shown=True, of="h"),
        JournalEntry("label", "a", "m", "ada", at="t"),
        JournalEntry("undone", "a", "m", "ada", at="t"),
        JournalEntry("revealed", "a", "m", "ada", of="h", at="t"),
    )
    path = tmp_path / "ada.jsonl"
    path.write_text("".join(f"{entry.line()}\n" for entry in entries), encoding="utf-8")
    assert read_journal(path).entries == entries


def test_a_cut_last_line_is_left_out_and_told_as_often_as_it_is_read(tmp_path, caplog):
    path = write(tmp_path, "ada", line())
    with path.open("ab") as file:
        file.write('{"case_id": "c1", "comment": "caf\u00e9'.encode()[:-1])
    write_label_plan(tmp_path, PLAN)
    assert len(read_labels(tmp_path).items) == 1
    assert "its last line is cut off" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ([1], "not a JSON object"),
        ({"case_id": "a", "metric": "m"}, "has no label"),
        (line(label=2), "its label"),
        (line(label="yes"), "its label"),
        (line(label=True), "its label"),
        (line(case_id=7), "its case_id"),
        (line(claim=-1), "its claim"),
        (line(annotator="bob"), "the file belongs to ada"),
        (line(event="deleted"), "its event"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path, wrong, told):
    path = write(tmp_path, "ada", line(), wrong, line())
    write_label_plan(tmp_path, PLAN)
    with pytest.raises(InputError) as refused:
        read_labels(tmp_path)
    assert (refused.value.path, refused.value.line) == (str(path), 2)
    assert told in refused.value.problem


def test_a_foreign_file_is_told_and_no_label_is_read_from_it(tmp_path, caplog):
    write(tmp_path, "ada", line())
    write(tmp_path, "no name!", line("c1"))
    (tmp_path / "labels.csv").write_text("case_id,metric,label\nc2,m,1\n", encoding="utf-8")
    (tmp_path / ".hidden").write_text("x", encoding="utf-8")
    write_label_plan(tmp_path, PLAN)
    assert set(said(read_labels(tmp_path))) == {("ada", "c0")}
    for name in ("labels.csv", "no name!.jsonl"):
        assert f"{tmp_path / name}: misslink annotate did not write this file" in caplog.text
    assert ".hidden" not in caplog.text


def test_a_folder_that_is_no_runs_is_told_what_a_folder_must_be(tmp_path):
    (tmp_path / "mine.csv").write_text("case_id,metric,label\nc2,m,1\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"a folder must be RUN/labels.* else name a file"):
        read_labels(tmp_path)


def test_what_was_seen_is_hashed_as_one_sorted_json_object():
    """Labels on disk hold these hashes; another hash would ask for all of them again."""
    claims = tuple(Claim(text=text, support="supported") for text in ("One.", "Tw\u00f6."))
    passage = Passage(id="p", text='A "passage".', rank=1)
    case = Case(id="a", question="Why?", references=("So.",))
    verdict = Verdict(case_id="a", metric="faithfulness", value=1, label=True, judge="j",
                      status="scored", claims=claims)  # fmt: skip
    seen = ShownContent(
        Run(
            manifest={"k": 5}, cases=(case,), summary={}, links=(), verdicts=(verdict,),
            traces=(Trace(case_id="a", retrieved=(passage,), answer="Answer."),),
        )
    )  # fmt: skip
    base = {"question": "Why?", "answer": "Answer."}
    for metric, claim, more in (
        ("faithfulness", None, {"passages": [passage.text]}),
        ("faithfulness", 1, {"passages": [passage.text], "claim": claims[1].text}),
        ("faithfulness", 0, {"passages": [passage.text], "claim": claims[0].text}),
        ("correctness", None, {"references": ["So."]}),
        ("answer_relevance", None, {}),
    ):
        text = json.dumps(base | more, sort_keys=True)
        assert (
            seen.content_hash("a", metric, claim) == hashlib.sha256(text.encode()).hexdigest()[:16]
        )


def test_an_empty_folder_and_none_are_told(tmp_path):
    write_label_plan(tmp_path, PLAN)
    with pytest.raises(InputError, match="no label in it; label with  misslink annotate"):
        read_labels(tmp_path)
    with pytest.raises(InputError, match="there is no such folder"):
        read_label_folder(tmp_path / "nowhere")


def test_the_same_file_outside_of_such_a_folder_is_read_as_any_other(tmp_path):
    path = write(tmp_path, "ada", line(annotator="bob", weight=2))
    assert said(read_labels(path)) == {("bob", "c0"): (1, 2)}


def test_judge_shown_is_read_from_a_file(tmp_path):
    path = tmp_path / "all.csv"
    path.write_text("case_id,metric,label,judge_shown\na,m,1,1\nb,m,1,0\nc,m,1,\n", "utf-8")
    assert [one.judge_shown for one in read_labels(path).items] == [True, False, False]


def run(
    answer="An answer.", passage="A passage.", claim="A claim.", reference="So.", **conversation
):
    return Run(
        manifest={"misslink": "0", "inputs": {"k": "1"}, "k": 5},
        cases=(Case(id="c0", question="Q?", references=(reference,), **conversation),),
        traces=(
            Trace(
                case_id="c0", answer=answer, retrieved=(Passage(id="p", text=passage, rank=1),)
            ),
        ),
        verdicts=(
            Verdict(
                case_id="c0", metric="faithfulness", status="scored", value=1.0, judge="j",
                claims=(Claim(text=claim, support="supported"),),
            ),
        ),
        links=(), summary={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        ({"answer": "Another."}, {"faithfulness", "claim", "answer_relevance", "correctness"}),
        ({"passage": "Another."}, {"faithfulness", "claim"}),
        ({"claim": "Another."}, {"claim"}),
        ({"reference": "Another."}, {"correctness"}),
        ({"history": HISTORY}, {"faithfulness", "claim", "answer_relevance", "correctness"}),
        ({}, set()),
    ],
)
def test_a_label_is_of_what_was_seen_for_its_metric(change, changed):
    before, now = ShownContent(run()), ShownContent(run(**change))
    items = {
        "faithfulness": ("faithfulness", None), "claim": ("faithfulness", 0),
        "answer_relevance": ("answer_relevance", None), "correctness": ("correctness", None),
    }  # fmt: skip
    differ = {
        name
        for name, one in items.items()
        if before.content_hash("c0", *one) != now.content_hash("c0", *one)
    }
    assert differ == changed
    assert before.content_hash("c0", "faithfulness", 1) is None
    asked = [{"history": HISTORY, "standalone_question": text} for text in (None, "One?", "Two?")]
    hashes = {ShownContent(run(**each)).content_hash("c0", "correctness", None) for each in asked}
    assert len(hashes) == 3
    assert before.content_hash("unknown", "faithfulness", None) is None


def publish(folder, one):
    with RunStaging(folder, one.manifest["inputs"], "w") as staging:
        staging.publish(one, lambda path: path.write_text("page", encoding="utf-8"))


def test_labels_outlive_the_run_and_those_of_changed_answers_are_left_out(tmp_path, caplog):
    folder = tmp_path / "run"
    publish(folder, run())
    of = {
        m: ShownContent(run()).content_hash("c0", m, None) for m in ("faithfulness", "correctness")
    }
    write(folder / "labels", "ada", *(line(metric=m, of=one) for m, one in of.items()))
    assert len(read_labels(folder / "labels").items) == 2
    publish(folder, run(passage="Another."))
    assert read_run(folder).traces[0].retrieved[0].text == "Another."
    assert [one.metric for one in read_labels(folder / "labels").items] == ["correctness"]
    assert "labels left out since the run no longer has their answers: 1" in caplog.text


def test_a_swap_that_was_cut_off_gives_the_labels_back(tmp_path):
    folder = tmp_path / "run"
    publish(folder, run())
    write(folder / "labels", "ada", line(metric="faithfulness"))
    folder.rename(tmp_path / ".run.misslink-old")
    publish(tmp_path / "other", run())
    (tmp_path / "other").rename(folder)
    with RunStaging(folder, {"k": "1"}, "w"):
        assert (folder / "labels" / "ada.jsonl").exists()

"""Cases on which annotators and the judge disagree are grouped by what they share."""

import pytest

from misslink.documents import calibration_of
from misslink.report.disagreements import group_disagreements
from misslink.report.page import build_page, render_page
from misslink.types import Case, Claim, Passage, Run, Trace, Verdict

PASSAGE = "The ferry leaves the north harbour at 8 and costs 40 euros each way."


def run_of(claims, label):
    """Cases of one claim each, that the judge calls bad if the label is good and the reverse."""
    names = [f"c{at}" for at in range(len(claims))]
    support = "unsupported" if label else "supported"
    verdicts = tuple(
        Verdict(
            case_id=name,
            metric="faithfulness",
            status="scored",
            value=1.0 - label,
            label=not label,
            judge="j",
            claims=(Claim(text=text, support=support),),
        )
        for name, text in zip(names, claims, strict=True)
    )
    retrieved = (Passage(id="p", rank=1, text=PASSAGE),)
    return Run(
        manifest={"judge": "j", "k": 1},
        cases=tuple(Case(id=name, question=f"{name}?") for name in names),
        traces=tuple(Trace(case_id=n, retrieved=retrieved, answer="-") for n in names),
        verdicts=verdicts,
        links=(),
        summary={},
        calibration={
            "metric": "faithfulness",
            "threshold": 0.5,
            "confusion": {"true_good": 0, "false_good": 0, "true_bad": 0, "false_bad": len(names)},
            "labelled": dict.fromkeys(names, float(label)),
        },
    )


@pytest.mark.parametrize(
    ("claim", "shared"),
    [
        ("The ferry costs 80 euros both ways.", "A value that no passage states"),
        ("The ferry probably leaves the north harbour.", "A hedged statement"),
        ("Harbour towns have strong winds in winter months.", "General knowledge"),
        ("The ferry leaves the north harbour.", "Nothing that misslink knows of"),
    ],
)
@pytest.mark.parametrize("label", [1, 0])
def test_a_case_is_in_the_group_of_what_its_claim_has(claim, shared, label):
    run = run_of([claim], label)
    (group,) = group_disagreements(run, calibration_of(run))
    assert (group.shared, group.n, group.cases) == (shared, 1, ((1, "case=1"),))
    assert ("judge says bad" in group.direction) is bool(label)


def test_the_largest_group_comes_first_and_the_page_shows_its_cases():
    claims = ["The ferry probably leaves."] + ["The ferry costs 80 euros both ways."] * 3
    run = run_of(claims, 1)
    groups = group_disagreements(run, calibration_of(run))
    assert [group.n for group in groups] == [3, 1]
    page = render_page(build_page(run))
    assert "Where the judge differs from annotators" in page
    assert '<a href="#case=2">Case 2</a>, <a href="#case=3">Case 3</a>' in page


def test_where_both_agree_there_is_no_group():
    run = run_of(["The ferry leaves."], 1)
    same = {**run.calibration, "labelled": {"c0": 0.0}}
    run = run.model_copy(update={"calibration": same})
    assert group_disagreements(run, calibration_of(run)) == ()

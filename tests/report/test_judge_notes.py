"""How a run was judged, in sentences."""

from __future__ import annotations

import pytest

from example_run import example_run
from misslink.report.judge_notes import describe_judging, repeat_rows
from misslink.types import Claim, Run, Usage, Verdict

HALF = {"value": 0.5, "low": 0.2, "high": 0.8, "n": 8, "method": "wilson", "reason": None}


def run(*, judge="openai:m", claims=(), **summary):
    verdict = Verdict(
        case_id="1", metric="faithfulness", status="scored", value=1.0, claims=claims, judge=judge
    )
    return Run(
        manifest={"judge": judge, **summary.pop("manifest", {})},
        cases=(),
        traces=(),
        verdicts=(verdict,) if claims else (),
        links=(),
        summary=summary,
    )


def test_a_run_without_a_judge_has_nothing_to_tell():
    assert describe_judging(run(judge="none", usage={"calls": 0})) == ()


def test_calls_tokens_and_cost_stand_in_one_sentence():
    usage = {"calls": 2, "from_cache": 1, "prompt_tokens": 3000, "completion_tokens": 70}
    (note,) = describe_judging(run(usage={**usage, "cost": 0.125}))
    assert note == (
        "The judge was sent 2 questions, 3,000 prompt and 70 completion tokens, cost 0.125; "
        "1 more came from the cache, free."
    )
    (note,) = describe_judging(run(usage={**usage, "prompt_tokens": None, "cost": None}))
    assert note.startswith("The judge was sent 2 questions; ")


def test_what_was_not_asked_is_said_with_the_way_on():
    notes = describe_judging(run(usage={"calls": 1, "from_cache": 0, "not_asked": 3}))
    assert notes[1].startswith("Questions not put: 3, because")
    assert "The same command continues" in notes[1]


def test_claims_that_were_not_believed_are_counted():
    believed = Claim(text="a", support="supported")
    doubted = Claim(text="b", support="unsupported", overruled=True)
    honest = Claim(
        text="c", support="unsupported", note="the judge wrote it with 1 character changed"
    )
    (note,) = describe_judging(run(claims=(believed, doubted, honest)))
    assert note.endswith("1 of 3.")


def test_failed_verdicts_are_counted_with_their_reason():
    failed = [
        Verdict(case_id=i, metric="faithfulness", status="failed", reason=why, judge="openai:m")
        for i, why in (("1", "prose"), ("2", "prose"), ("3", "cut off"))
    ]
    found = run(usage={}).model_copy(update={"verdicts": tuple(failed)})
    (note,) = describe_judging(found)
    assert note.startswith("Verdicts failed in 3 of 0 cases, most often (2) because: prose")


def test_what_the_replies_took_is_told_whenever_they_were_paid_for():
    claim = Claim(text="a", support="supported")
    found = run(claims=(claim,), usage={"calls": 0, "from_cache": 2})
    spent = Usage(prompt_tokens=3000, completion_tokens=70)
    verdict = found.verdicts[0].model_copy(update={"usage": spent})
    notes = describe_judging(found.model_copy(update={"verdicts": (verdict,)}))
    assert notes[1].endswith("3,000 prompt and 70 completion tokens.")


def test_a_cascade_tells_the_share_it_saw_and_the_agreement():
    share, agreement = describe_judging(run(cascade={"share_dear": HALF, "agreement": HALF}))
    assert "saw 50% [20, 80], n = 8 of the questions" in share
    assert "same label in 50% [20, 80], n = 8" in agreement
    _, empty = describe_judging(run(cascade={"share_dear": HALF}))
    assert "nothing was audited" in empty


def test_repeats_tell_how_often_a_verdict_flips():
    repeats = {
        "samples": 3,
        "metrics": {"faithfulness": {"flip_rate": HALF}, "correctness": {}},
        "run": {"faithfulness": {"sd": 0.0125}},
    }
    (note,) = describe_judging(run(repeats=repeats))
    assert note == (
        "Each question was put 3 times; verdicts that were not unanimous: "
        "faithfulness 50% [20, 80], n = 8."
    )
    (row,) = repeat_rows(run(repeats=repeats))
    assert (row.metric, row.flips.brief, row.moved) == ("faithfulness", "50% [20, 80]", "0.013")
    assert repeat_rows(run()) == ()


@pytest.mark.parametrize(
    ("abilities", "said"),
    [({"structure": "plain"}, "schema"), ({"gives_logprobs": False}, "no prob")],
)
def test_what_the_server_cannot_do_is_told(abilities, said):
    (note,) = describe_judging(run(manifest={"judging": {"abilities": abilities}}))
    assert said in note
    assert (
        describe_judging(run(manifest={"judging": {"abilities": {"structure": "json_schema"}}}))
        == ()
    )


def test_the_example_is_told_too():
    assert describe_judging(example_run())

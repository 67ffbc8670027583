"""How a run was judged, in sentences, and what audits of the judge found."""

import re

import pytest

from example_run import HOSTILE, example_run
from misslink.report.judge_trust import describe_judging, read_audit, repeat_rows
from misslink.report.page import build_page, render_page
from misslink.types import Case, Claim, Passage, Run, Trace, Usage, Verdict
from people_documents import audit
from proven_run import proven_run

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


def _ferry(judge):
    passage = Passage(id="p", text="The ferry leaves at seven. It takes an hour.", rank=1)
    cases = (Case(id="1", question="When does the ferry leave?"),)
    traces = (Trace(case_id="1", retrieved=(passage,), answer="It leaves at seven."),)
    return run(judge=judge).model_copy(update={"cases": cases, "traces": traces})


def test_a_run_without_a_judge_has_nothing_to_tell():
    assert describe_judging(run(judge="none", usage={"calls": 0})) == ()


def test_calls_tokens_and_cost_stand_in_one_sentence():
    usage = {"calls": 2, "from_cache": 1, "prompt_tokens": 3000, "completion_tokens": 70}
    (note,) = describe_judging(run(usage={**usage, "cost": 0.125}))
    assert note == (
        "The judge was sent 2 questions, 3,000 prompt and 70 completion tokens, cost 0.12 USD; "
        "1 more came from the cache, free."
    )
    (note,) = describe_judging(run(usage={**usage, "prompt_tokens": None, "cost": None}))
    assert note.startswith("The judge was sent 2 questions; ")
    (note,) = describe_judging(run(usage={**usage, "completion_tokens": None}))
    assert note.startswith("The judge was sent 2 questions, 3,000 prompt tokens; ")


def test_what_was_not_asked_is_said_with_the_way_on():
    notes = describe_judging(run(usage={"calls": 1, "from_cache": 0, "not_asked": 3}))
    assert notes[1].startswith("Questions not asked: 3, because")
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
    assert "saw 4 of 8 questions" in share
    assert "same label in 4 of 8" in agreement
    _, empty = describe_judging(run(cascade={"share_dear": HALF}))
    assert "were not compared" in empty
    stages = {
        "heuristic": {"sure": 4},
        "systemone:x#m": {"sure": 1, "agreement": HALF, "calls": 6, "cost": 0.02},
    }
    *_, first, second = describe_judging(run(cascade={"share_dear": HALF, "stages": stages}))
    assert first == "heuristic decided 4 questions (0 calls)."
    assert second == (
        "systemone:x#m decided 1 question (6 calls, cost 0.02 USD); the judges after it gave the same"
        " label in 4 of 8."
    )


def test_the_heuristic_judge_names_what_it_misses_and_the_cost_of_a_model():
    missed, cost = describe_judging(_ferry("heuristic"))
    assert "never contradicted" in missed
    assert "use a language model or a decision model" in missed
    assert re.search(
        r"takes 1 call: about \d{3,4} prompt tokens .* or \d{3,4} of a decision model"
        r" \(\d\.\d+(?:e-\d+)? USD at 0\.10 USD per million\)",
        cost.replace(",", ""),
    )
    assert not any("contradicted" in note for note in describe_judging(_ferry("openai:m")))


def test_repeats_tell_how_often_a_verdict_flips():
    repeats = {
        "samples": 3,
        "metrics": {"faithfulness": {"flip_rate": HALF}, "correctness": {}},
        "run": {"faithfulness": {"sd": 0.0125}},
    }
    (note,) = describe_judging(run(repeats=repeats))
    assert note == (
        "The judge answered each question 3 times; verdicts that were not unanimous: "
        "faithfulness 4 of 8."
    )
    (row,) = repeat_rows(run(repeats=repeats))
    assert (row.metric, row.flips.brief, row.moved) == ("faithfulness", "4 of 8", "0.013")
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


def _of(document):
    return read_audit(example_run().model_copy(update={"audit": document}))


def test_what_was_found_comes_first_in_the_unit_that_people_read():
    rows = _of(audit()).rows

    assert [(row.metric, row.change) for row in rows] == [
        ("faithfulness", "answer padded with its passages"),
        ("preference", "two answers swapped"),
        (HOSTILE[3], HOSTILE[0]),
        ("correctness", "answer padded with its passages"),
        ("faithfulness", "passages in reverse order"),
        ("faithfulness", "passages shuffled"),
        ("faithfulness", "nothing: asked again"),
    ]
    padded, swapped, _, lowered, *_ = rows
    assert padded.turned == (
        "20% [10, 32] to good; 2% [0, 14] to bad; "
        "of the answer's own claims 8% [4, 14] get another verdict"
    )
    assert swapped.turned == "10 for the one shown first, 2 for the second"
    assert lowered.turned.endswith("here a good verdict may turn bad and still be right")

    html = render_page(build_page(example_run().model_copy(update={"audit": audit()})))
    shown = html.partition("Score moved by</th>")[2].partition("</table>")[0].split("<tr>")[1:]
    assert '<b>22%</b> <span class="interval">[12, 34]' in shown[0]
    assert '<b>+6 points</b> <span class="interval">[3, 9]' in shown[0]
    assert "nothing beyond chance" in shown[4]
    assert '48<p class="small">2 left out' in shown[4]
    assert "nothing beyond chance" not in shown[5]
    assert "no case has two passages" in shown[5]


def test_an_audit_of_another_judge_is_told_to_be_one():
    assert "not the judge of this run" not in _of(audit()).facts
    assert "It is not the judge of this run." in _of({**audit(), "judge": "openai:other"}).facts


def test_where_nobody_tried_the_page_names_the_command():
    html = render_page(build_page(example_run()))
    assert "<code>misslink judge audit RUN</code>" in html
    assert "padding</dt>" not in html
    html = render_page(build_page(proven_run()))
    assert "misslink judge audit RUN" not in html
    assert "padding</dt>" in html


@pytest.mark.parametrize("document", [None, {}])
def test_an_audit_of_nothing_is_none(document):
    assert _of(document) is None

"""How many answers fail, whose failures they are, and whether missing passages are associated."""

from __future__ import annotations

import pytest

import misslink
from misslink.link_types import Need
from misslink.render.format import CLUSTERED_SHARE
from misslink.render.headline import (
    describe_association,
    describe_errors,
    describe_findings,
    describe_verdict,
    name_loss,
)
from misslink.report import findings
from misslink.report.findings import find
from misslink.report.page import build_page
from misslink.report.summary import first_step, next_steps
from misslink.types import Case, Estimate, FailureEvidence, Link, Run, Trace

LEVELS = ("miss", "partial", "hit")


def run_of(*groups, judge="heuristic", inconclusive=0, **parts):
    """A run with (failed, cases) after misses, partial hits and hits."""
    links = [
        Link(
            case_id=f"{level}{number}",
            retrieval=level,
            answer="unfaithful" if number < failed else "faithful",
            failure=None if judge == "none" else "fabricated" if number < failed else "passed",
            reason="-",
        )
        for level, (failed, cases) in zip(LEVELS, groups, strict=False)
        for number in range(cases)
    ]
    links += [
        Link(
            case_id=f"i{number}",
            retrieval="hit",
            answer="unknown",
            failure="inconclusive",
            reason="-",
        )
        for number in range(inconclusive)
    ]
    cases = tuple(Case(id=link.case_id, question="?") for link in links)
    given = {"manifest": {"judge": judge}, "traces": (), "verdicts": (), "summary": {}, **parts}
    return Run(cases=cases, links=tuple(links), **given)


@pytest.mark.parametrize(
    ("groups", "code"),
    [
        (((95, 100), (40, 60), (15, 40)), "missing_passages"),
        (((19, 20), (19, 20), (58, 60)), "generator"),
        (((6, 10), (6, 10), (9, 20)), None),
        (((0, 5), (0, 0), (9, 40)), "complete"),
        (((0, 0), (0, 0), (9, 40)), "complete"),
        (((0, 20), (0, 20), (0, 20)), None),
        (((9, 10), (0, 5), (1, 4)), None),
        (((5, 20), (10, 20), (18, 20)), "generator"),
        (((3, 3), (0, 0), (60, 120)), "few_associated"),
    ],
)
def test_the_exposure_trend_decides_why_answers_fail(groups, code):
    why = find(run_of(*groups)).why
    assert (why and why.code) == code


def test_every_level_of_exposure_has_its_share_of_failures():
    findings = find(run_of((95, 100), (40, 60), (15, 40), inconclusive=7))
    assert {level: (share.value, share.n) for level, share in findings.exposure.items()} == {
        "none": (0.95, 100),
        "some": (pytest.approx(2 / 3), 60),
        "all": (0.375, 40),
    }
    assert (findings.failed.value, findings.failed.n) == (0.75, 200)
    assert (findings.labelled, findings.incomplete, findings.undecided) == (207, 160, 7)


def test_without_labels_inferred_owners_are_counted():
    run = run_of((15, 30))
    unlabelled = tuple(link.model_copy(update={"retrieval": "unlabelled"}) for link in run.links)
    assert find(run.model_copy(update={"links": unlabelled})).why is None
    found = [link.model_copy(update={"basis": "inferred"}) for link in unlabelled if link.failed]
    found += [link for link in unlabelled if not link.failed]
    why = find(run.model_copy(update={"links": tuple(found)})).why
    assert (why.code, why.parameters["inferred"]) == ("unlabelled", 15)


@pytest.mark.parametrize(
    ("value", "low", "high", "sentence"),
    [
        (0.34, 0.2, 0.5, "Replay: missing passages cause 34% of the failures."),
        (0.1, -0.2, 0.4, "Replay: not enough data to tell"),
        (0.0, -0.05, 0.05, "Replay: missing passages cause at most 5% of the failures."),
        (-0.3, -0.5, -0.1, "In a replay, injecting the missed passages fixed fewer answers"),
    ],
)
def test_after_a_replay_the_causal_fraction_leads(value, low, high, sentence):
    fraction = Estimate(value=value, low=low, high=high, n=40, method="m").model_dump()
    run = run_of((30, 40), (0, 0), (5, 20), replay={"causal_fraction": fraction})
    assert sentence in describe_association(find(run))
    assert find(run).by_exposure.code == "missing_passages"  # which the chart still says


def test_errors_come_first_above_two_percent():
    def run(failing):
        traces = [
            Trace(case_id=f"hit{n}", **({"error": "boom"} if n < failing else {"answer": "x"}))
            for n in range(100)
        ]
        return run_of((0, 0), (0, 0), (50, 100), traces=tuple(traces))

    assert describe_errors(find(run(2))) == ""
    assert describe_findings(find(run(3)))[0] == (
        "Errors: the app failed on 3 of 100 cases. Most frequent reason: boom."
    )
    nameless = [Trace(case_id=f"hit{n}", error="") for n in range(3)]
    unsaid = run(3).model_copy(update={"traces": (*nameless, *run(3).traces[3:])})
    assert describe_errors(find(unsaid)) == "Errors: the app failed on 3 of 100 cases."
    silent = run(3).model_copy(update={"traces": (*run(3).traces, *[Trace(case_id="s")] * 2)})
    assert describe_errors(find(silent)) == ("Errors on 5 of 100, mostly: boom.")
    mixed = list(run(3).traces)
    mixed[0] = Trace(case_id="hit0", error="pause\n" + "s" * 500)
    said = describe_errors(find(run(3).model_copy(update={"traces": tuple(mixed)})))
    assert said.endswith("Most frequent reason (2): boom.")


def test_without_a_judge_nothing_is_stated_about_answers():
    text = run_of((0, 20), (0, 5), (0, 25), judge="none").headline
    assert text == (
        "In 25 of 50 questions, a relevant passage never reached the prompt. No judge was used."
    )


def test_the_sentences_are_those_of_every_output():
    run = run_of((95, 100), (40, 60), (15, 40), inconclusive=1)
    assert run.headline == (
        "150 of 201 answers are flagged; 1 could not be judged. In all of them, the generator stated what "
        "nothing supports. Answers without a relevant passage fail more often (association)."
    )
    assert run.headline in run._repr_html_()


def failing(**failures):
    """A run in which every answer fails, by these modes, except ten that pass."""
    names = [name for name, count in failures.items() for _ in range(count)]
    run = run_of((0, 0), (0, 0), (0, len(names) + 10))
    links = [
        link.model_copy(update={"failure": name})
        for name, link in zip(names, run.links, strict=False)
    ]
    return run.model_copy(update={"links": (*links, *run.links[len(names) :])})


@pytest.mark.parametrize(
    ("failures", "sentence"),
    [
        ({"retrieval_miss": 25, "fabricated": 5}, "In 25, the retriever missed a needed fact."),
        ({"over_refused": 9, "dropped_from_prompt": 3}, "In 9, the generator declined although"),
        ({"incomplete": 5, "fabricated": 5, "not_indexed": 9}, "In 10, the generator is at fault."),
        ({"not_searched": 4}, "In all of them, the app did not search for a needed fact."),
        (
            {"retrieval_miss": 4, "over_refused": 4},
            "In 4, the retriever missed a needed fact; in 4, the generator declined",
        ),
        (
            {"fabricated": 1},
            "10 of 11 answers pass. 1 is flagged: the generator stated what nothing",
        ),
    ],
)
def test_the_owner_with_most_failures_leads(failures, sentence):
    assert sentence in describe_verdict(find(failing(**failures)))


@pytest.mark.parametrize(
    ("rank", "said"), [(7, "ranked a needed fact too low"), (None, "missed a needed fact")]
)
def test_a_stage_is_named_where_the_needs_tell_it(rank, said):
    run = failing(retrieval_miss=5)
    need = Need(text="It is 3.", source="reference", lost_at="rank", by="label", true_rank=rank)
    links = tuple(
        link.model_copy(update={"needs": (need,)}) if link.failed else link for link in run.links
    )
    text = describe_verdict(find(run.model_copy(update={"links": links})))
    assert f"In all of them, the retriever {said}." in text


def test_failures_of_unknown_cause_never_hide_a_known_owner():
    run = failing(over_refused=3)
    unknown = {"failure": "inconclusive", "unexplained": True}
    links = list(run.links)
    links[3:8] = [link.model_copy(update=unknown) for link in links[3:8]]
    text = describe_verdict(find(run.model_copy(update={"links": tuple(links)})))
    assert text == (
        "8 of 13 answers are flagged. In 3, the generator declined although the prompt held the answer. "
        "The cause of 5 is not known."
    )


def test_an_app_that_does_well_is_told_so():
    assert run_of((0, 0), (0, 0), (0, 20)).headline == "20 of 20 answers pass."
    run = failing(retrieval_miss=2, fabricated=1)
    many = run_of((0, 0), (0, 0), (0, 60))
    run = run.model_copy(update={"links": (*run.links[:3], *many.links[3:]), "cases": many.cases})
    assert describe_verdict(find(run)) == (
        "57 of 60 answers pass. 3 are flagged: in 2, the retriever missed a needed fact."
    )
    assert build_page(run).good
    assert not build_page(failing(retrieval_miss=9)).good


def test_what_could_not_be_judged_is_neither_passed_nor_failed():
    run = run_of((0, 0), (0, 0), (2, 2), inconclusive=4)
    assert run.headline.startswith("2 of 6 answers are flagged; 4 could not be judged.")


def test_intervals_respect_clusters():
    alone = run_of((5, 10), (0, 0), (5, 10))
    cases = tuple(
        case.model_copy(update={"group": f"g{n % 4}"}) for n, case in enumerate(alone.cases)
    )
    apart, together = find(alone), find(alone.model_copy(update={"cases": cases}))
    assert apart.failed.method == apart.exposure["none"].method == "wilson"
    assert together.failed.method == together.exposure["none"].method == CLUSTERED_SHARE
    assert together.failed.value == together.exposure["all"].value == 0.5


def test_failed_answers_of_unknown_cause_count_as_failures():
    run = run_of((15, 30))
    unknown = {"retrieval": "unlabelled", "failure": "inconclusive", "unexplained": True}
    passed = {"retrieval": "unlabelled"}
    links = tuple(
        link.model_copy(update=passed if link.failure == "passed" else unknown)
        for link in run.links
    )
    findings = find(run.model_copy(update={"links": links}))
    assert (findings.failed.n, findings.failed.value) == (30, 0.5)
    assert findings.owners == {"unknown": 15}


def failed_by(*modes, judge="heuristic", **evidence):
    """A run whose cases failed in these modes, each for the reason in `evidence`."""
    links = tuple(
        Link(
            case_id=f"c{n}", retrieval="hit", answer="unfaithful", failure=mode, reason="-",
            evidence=[FailureEvidence(failure=mode, reason_code=evidence.get(mode, "answered"))],
        )
        for n, mode in enumerate(modes)
    )  # fmt: skip
    cases = tuple(Case(id=link.case_id, question="?") for link in links)
    given = {"manifest": {"judge": judge}, "traces": (), "verdicts": (), "summary": {}}
    return Run(cases=cases, links=links, **given)


@pytest.mark.parametrize(
    ("modes", "judge", "owner"),
    [
        (["distracted"] * 3 + ["retrieval_miss"] * 2, "heuristic", "retriever"),
        (["distracted"] * 5 + ["retrieval_miss"] * 2, "heuristic", "generator"),
        (["distracted"] * 3 + ["retrieval_miss"] * 2, "openai:m", "generator"),
        (["conflicting_sources"] * 5 + ["fabricated"] * 3, "heuristic", "index"),
        (["off_the_point"] * 3 + ["gold_suspect"] * 4, "heuristic", "gold_set"),
    ],
)
def test_headline_and_first_step_are_about_one_owner(modes, judge, owner):
    run = failed_by(*modes, judge=judge)
    assert find(run).blamed == (owner,)
    assert first_step(run).owner == owner


def test_a_step_for_a_mode_that_the_judge_confuses_says_so():
    step = next_steps(failed_by(*["off_the_point"] * 3))[0]
    assert "Check these first" in step.why
    assert "Check these first" not in next_steps(failed_by(*["fabricated"] * 3))[0].why


@pytest.mark.parametrize(
    ("modes", "reasons", "name", "count"),
    [
        (["dropped_from_prompt"] * 5, {"dropped_from_prompt": "passage_cut"}, "passage_cut", 5),
        (
            ["dropped_from_prompt"] * 5,
            {"dropped_from_prompt": "passage_missing"},
            "dropped_from_prompt",
            5,
        ),
        (
            ["conflicting_sources"] * 5,
            {"conflicting_sources": "stale_passage"},
            "stale_passage",
            5,
        ),
        (["fabricated"] * 3 + ["ignored_context"] * 2, {}, "unfaithful", 5),
        (["fabricated"] * 3 + ["incomplete"] * 2, {}, "fabricated", 3),
        (["fabricated"] * 2 + ["incomplete", "over_refused"], {}, "", 0),
    ],
)
def test_the_headline_names_what_most_failures_have_in_common(modes, reasons, name, count):
    findings = find(failed_by(*modes, **reasons))
    assert name_loss(findings, findings.blamed[0]) == (name, count)


def test_a_loss_of_over_half_is_counted_apart():
    modes = ["fabricated"] * 3 + ["incomplete"] * 2
    assert describe_verdict(find(failed_by(*modes))).endswith(
        "the generator is at fault; in 3 of these, it stated what nothing supports."
    )


def test_a_loss_of_most_is_counted_without_the_rest():
    modes = ["over_refused"] * 4 + ["ignored_context"]
    said = describe_verdict(find(failed_by(*modes)))
    assert "In 4, the generator declined although the prompt held the answer." in said


def test_a_step_names_the_reason_of_the_loss():
    stale = failed_by(*["conflicting_sources"] * 3, conflicting_sources="stale_passage")
    other = failed_by(*["conflicting_sources"] * 3, conflicting_sources="copy_says_otherwise")
    steps = [next_steps(run)[0].action for run in (stale, other)]
    assert steps[0].startswith("Index the changed documents again")
    assert steps[1].startswith("Remove or date")


def test_an_evaluation_looks_for_its_findings_once(tmp_path, monkeypatch):
    looked = []
    look = findings._find
    monkeypatch.setattr(findings, "_find", lambda run: looked.append(run) or look(run))
    case = {"id": "a", "question": "When does the ferry leave?", "relevant": ["p"]}
    found = [{"id": "p", "text": "The ferry leaves at seven."}]
    app = {"answer": "The ferry leaves at seven.", "retrieved": found}
    run = misslink.evaluate(lambda _: app, [case], out=tmp_path / "run", cache=None)
    assert run.summary["usage"]
    assert len(looked) == 1

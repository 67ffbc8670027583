"""Whole replays of apps with one fault each, over a real store and a judge's server."""

import pytest

from misslink.types import Case
from replayed_app import (
    NIGHT,
    case,
    chain,
    corpus,
    failures,
    line,
    question,
    replayed,
    retriever,
    run_of,
    towns,
    truth,
)

FOUR = tuple("1234")


def told(found):
    """Owner and cause of each replayed failure."""
    return {(row["owner"], row["cause"]) for row in found.replay.document()["cases"]}


def flagged(run):
    """The run as a judge that errs sees it: every good answer is unfaithful."""
    update = {"failure": "fabricated", "answer": "unfaithful"}
    return run.model_copy(update={"links": tuple(x.model_copy(update=update) for x in run.links)})


class TestVerdict:
    def test_the_same_judge_that_takes_a_verdict_back_twice_was_wrong(self, server):
        app, run = towns(server, found=FOUR)
        assert failures(run) == ["passed"] * 4
        found = replayed(flagged(run), app)
        assert told(found) == {("judge", "judge")}
        assert found.replay.document()["usage"]["generations"] == 0
        assert found.replay.document()["owners"] == {"judge": 4}
        arm = found.replay.document()["arms"][0]
        assert (arm["arm"], arm["owner"], arm["held"]["value"]) == ("other_judge", "judge", 1.0)

    def test_another_judge_shows_it_too(self, server):
        app, run = towns(server, found=FOUR)
        server.models = ("test-judge", "other-judge")
        found = replayed(flagged(run), app, judge="openai:other-judge")
        assert told(found) == {("judge", "judge")}

    @pytest.mark.slow
    def test_a_label_outranks_the_judge(self, server):
        app, run = towns(server, "stubborn", found=FOUR)
        labels = {"labelled_good": frozenset({"case-1"})}
        found = replayed(run, app, settings=labels)
        assert line(found, "1")["owner"] == "judge"
        assert line(found, "2")["owner"] != "judge"


@pytest.mark.slow
def test_a_generator_that_even_the_perfect_context_does_not_help(server):
    app, run = towns(server, "stubborn", found=FOUR)
    found = replayed(run, app)
    assert told(found) == {("generator", "generator")}
    assert line(found, "1")["held"] == {"perfect_context": 0}
    assert {link.basis for link in found.links} == {"replayed"}


def test_a_distractor_is_named_where_the_answer_is_good_without_it(server):
    app, run = towns(server, "gullible", rumoured=FOUR)
    found = replayed(run, app)
    assert {row["cause"] for row in found.replay.document()["cases"]} == {"distractor"}


@pytest.mark.slow
def test_a_passage_that_the_prompt_cuts(server):
    texts = {f"gold-{town}": f"{NIGHT.format(town)} {truth(town)}" for town in FOUR}
    finder = retriever(texts | {f"guide-{town}": f"{question(town)} Ask." for town in FOUR})

    def cut(found):
        for one in found:
            one.page_content = one.page_content[:35]
        return found

    app = chain(finder | cut)
    run = run_of(app, [case(town) for town in FOUR], server)
    assert set(failures(run)) == {"dropped_from_prompt"}
    found = replayed(run, app)
    assert told(found) == {("prompt", "cut_passage")}
    assert line(found, "1")["outcomes"]["whole_passage"] == "good"


@pytest.mark.slow
def test_a_query_that_lost_what_the_conversation_names(server):
    finder = retriever(corpus(found=FOUR))
    history = (
        {"role": "user", "content": "Tell me of the town."},
        {"role": "assistant", "content": "Which one?"},
    )

    def app(asked):
        said = "\n".join(one.page_content for one in finder.invoke(asked))
        true = sorted((said.find(truth(town)), truth(town)) for town in FOUR if truth(town) in said)
        return true[0][1] if true else "The sky is green."

    cases = [
        Case(
            id=f"case-{town}", question="And its sky?", standalone_question=question(town),
            history=history, relevant=[f"gold-{town}"], reference=truth(town),
        )
        for town in FOUR
    ]  # fmt: skip
    run = run_of(app, cases, server)
    found = replayed(run, app)
    named = [row for row in found.replay.document()["cases"] if row["confirmed"]]
    assert named
    assert {row["cause"] for row in named} == {"query"}
    assert {row["owner"] for row in named} == {"prompt"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attentive", "stubborn"])
def test_a_cause_needs_fewer_answers_than_twelve(server, kind):
    app, run = towns(server, kind, missed=FOUR)
    found = replayed(run, app).replay.document()
    assert found["calls_per_failure"] < 8
    assert found["owners"] == {"retriever" if kind == "attentive" else "generator": 4}

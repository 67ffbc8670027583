from __future__ import annotations

import asyncio
import json

import pytest
from town import Hashed, case, corpus, link, passage, ranked, run_of

from misslink.embedding import Embedder
from misslink.errors import InputError
from misslink.linking.whatif import whatif
from misslink.retrieval import score
from misslink.stats import holm, paired_difference
from misslink.types import Estimate, Passage, Trace

PLACES = [1, 2, 3, 1, 2, 3, 1, 1, *[None] * 10, 5, 6]
BAD = {0, *range(8, 16), 18}  # 1 of 8 hits, 9 of 12 misses


def weighed(run=None, **given):
    told = {"corpus": corpus(), "embedder": Embedder(Hashed()), **given}
    found = asyncio.run(whatif(run or run_of(PLACES, bad=BAD), **told))
    json.dumps(found, allow_nan=False)
    return found


def option(document, name):
    return next(one for one in document["options"] if one["name"] == name)


def test_an_option_that_mends_the_misses_wins_and_stands_first():
    found = weighed(widths=[6])
    assert found["options"][0]["name"] in {"bm25", "dense", "hybrid"}
    bm25 = option(found, "bm25")
    assert (bm25["misses_mended"], bm25["new_misses"]) == (12, 0)
    assert bm25["unfaithful_avoided"]["value"] == pytest.approx(9 - 12 / 8)
    assert bm25["metrics"]["recall@3"]["winner"] == "option"
    assert bm25["finding"].startswith("recall@3 rises from 40 to 100 %, +60 points [")
    assert "about 7.5 [" in bm25["finding"]
    assert bm25["finding"].endswith("fewer unfaithful answers, of 10 now.")
    larger = option(found, "k=6")
    assert larger["misses_mended"] == 2
    assert larger["unfaithful_avoided"]["value"] == pytest.approx(1 - 2 / 8)
    order = [one["unfaithful_avoided"]["value"] for one in found["options"]]
    assert order == sorted(order, reverse=True)


def test_the_metrics_are_those_of_level_1_paired_and_corrected_over_the_options():
    run = run_of(PLACES, bad=BAD)
    found = weighed(run, widths=[6], options=["k", "bm25"], seed=4)
    names = ["hit@3", "recall@3", "precision@3", "ndcg@3", "mrr"]
    today = score(run.cases, run.traces, names)
    assert list(found["today"]) == ["hit@3", "recall@3", "precision@3", "ndcg@3", "mrr"]
    for name in names:
        values = list(today[name].values())
        assert found["today"][name]["value"] == pytest.approx(sum(values) / len(values))
    precision = option(found, "k=6")["metrics"]["precision@3"]
    assert precision["b"]["value"] == pytest.approx(10 / 20 / 6)  # precision at 6 now
    for name in names:
        rows = [one["metrics"][name] for one in found["options"]]
        assert [one["p_holm"] for one in rows] == holm([one["p"] for one in rows])
    after = [1.0 if place is not None and place <= 6 else 0.0 for place in PLACES]
    expected = paired_difference(list(today["recall@3"].values()), after, seed=4)
    assert option(found, "k=6")["metrics"]["recall@3"]["difference"] == (
        expected.difference.model_dump()
    )


def test_an_option_that_changes_too_little_says_what_could_have_been_seen():
    found = option(weighed(widths=[6]), "k=6")
    assert found["metrics"]["recall@3"]["winner"] is None
    assert found["finding"].startswith("No detectable difference in recall@3: +10 points [")
    assert "20 cases could show one of" in found["finding"]


def test_more_passages_cost_tokens_in_proportion():
    found = weighed(widths=[6])
    now = option(found, "k=6")["context_tokens"]
    assert now["b"]["value"] == pytest.approx(2 * now["today"]["value"], rel=0.1)
    same = option(found, "bm25")["context_tokens"]
    assert same["b"]["value"] == pytest.approx(same["today"]["value"], rel=0.1)


def test_a_replay_is_used_for_the_forecast_and_said():
    share = Estimate(value=0.5, low=0.3, high=0.7, n=20, method="wilson").model_dump()
    replay = {"causes": {"retrieval_miss": {"replayed": 20, "confirmed": share}}}
    found = weighed(run_of(PLACES, bad=BAD, replay=replay))
    assert found["basis"] == "replayed"
    assert option(found, "bm25")["unfaithful_avoided"]["value"] == pytest.approx(9 * 0.5)
    assert any("50 % [30, 70]" in note for note in found["notes"])
    assert weighed()["basis"] == "association"


def test_without_a_judge_there_is_no_forecast_but_the_metrics_stand():
    run = run_of(PLACES)
    links = [one.model_copy(update={"answer": "unknown"}) for one in run.links]
    found = option(weighed(run.model_copy(update={"links": tuple(links)})), "bm25")
    assert found["unfaithful_avoided"]["value"] is None
    assert found["unfaithful_avoided"]["reason"]
    assert "what that saves is not known: no case both needs" in found["finding"]


def test_without_a_corpus_the_document_says_that_only_the_traces_were_asked():
    found = weighed(corpus=None, embedder=None)
    assert found["corpus"] is None
    assert {one["name"] for one in found["options"]} == {"k=6", "k=9", "k=15"}
    assert {one["reason"] for one in found["skipped"]} == {"no corpus is given"}


def test_a_corpus_with_none_of_the_ids_is_refused():
    other = [Passage(id=f"x{n}", text="text", rank=n) for n in range(1, 5)]
    with pytest.raises(InputError, match="none of the 20 passages that the gold set names"):
        weighed(corpus=other)
    with pytest.raises(InputError, match="holds no text"):
        weighed(corpus=[Passage(id="p1", rank=1)])


def test_a_corpus_that_lacks_some_says_how_many():
    found = weighed(corpus=corpus()[2:])
    assert any("lacks 2 of the 20 passages" in note for note in found["notes"])


def test_a_run_of_no_cases_has_nothing_to_compare():
    found = weighed(run_of([]))
    assert found["today"]["recall@3"]["value"] is None
    assert "was not measured" in found["options"][0]["finding"]


def test_a_case_whose_retrieval_was_not_seen_is_left_out():
    run = run_of(PLACES, bad=BAD)
    unseen = Trace(case_id="c8", unmeasured="no retrieval was seen")
    run = run.model_copy(update={"traces": (*run.traces[:8], unseen, *run.traces[9:])})
    links = [one for one in run.links if one.case_id != "c8"]
    run = run.model_copy(update={"links": (*links, link(8, "unknown", "unfaithful"))})
    found = option(weighed(run), "bm25")
    assert found["metrics"]["recall@3"]["difference"]["n"] == 19
    assert found["misses_mended"] == 11
    assert found["unmeasured"] == {}


@pytest.mark.parametrize("widths", [[0], [-2, 3]])
def test_no_passages_at_all_is_no_k(widths):
    with pytest.raises(InputError, match="counts passages from 1"):
        weighed(widths=widths)


def test_the_forecast_is_checked_on_cases_that_are_really_generated_again():
    asked = []

    async def rerun(one, passages):
        """An app that is faithful where it is handed what it needs, but for case 9."""
        asked.append(one.id)
        held = any(passage.id in one.relevant for passage in passages)
        good = held and one.id != "c9"
        verdict = {"faithfulness": verdict_of(one.id, label=good)}
        return Trace(case_id=one.id, retrieved=passages, answer="It opens."), verdict

    found = weighed(options=["bm25"], rerun=rerun, sample=100)["forecast_error"]
    assert sorted(asked) == sorted(f"c{n}" for n in range(8, 20))
    assert (found["option"], found["affected"], found["checked"]) == ("bm25", 12, 12)
    # Unfaithful before 9 of 12, after it one; the hits' risk of 1/8 promised 12/8 after it.
    assert found["measured"] == 8
    assert found["forecast"] == pytest.approx(9 - 12 / 8)
    assert found["error"]["value"] == pytest.approx((9 - 12 / 8 - 8) / 12)
    assert found["error"]["low"] < found["error"]["value"] < found["error"]["high"]


def test_a_sample_is_no_larger_than_asked_and_what_fails_is_told():
    async def rerun(one, passages):
        return Trace(case_id=one.id, error="the app is gone"), {}

    found = weighed(options=["bm25"], rerun=rerun, sample=3)["forecast_error"]
    assert (found["checked"], found["forecast"], found["error"]["value"]) == (0, None, None)
    assert [one["reason"] for one in found["skipped"]] == ["the app is gone"] * 3


def test_where_no_passages_are_known_nothing_is_checked():
    async def rerun(one, passages):
        raise AssertionError

    found = weighed(options=["k"], rerun=rerun, sample=3)["forecast_error"]
    assert found["option"] is None
    assert found["error"]["reason"]


def verdict_of(case_id, *, label):
    from misslink.types import Verdict

    return Verdict(
        case_id=case_id, metric="faithfulness", status="scored", value=float(label), label=label,
        judge="exact",
    )  # fmt: skip


def test_evidence_counts_wherever_it_stands():
    run = run_of([1, None])
    cases = [case(n, relevant={}, evidence=[passage(n).text]) for n in range(2)]
    found = weighed(run.model_copy(update={"cases": tuple(cases)}), corpus=ranked(range(30)))
    assert option(found, "bm25")["metrics"]["recall@3"]["b"]["value"] == 1

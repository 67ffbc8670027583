"""What trec_eval printed of two runs of the TREC 2019 Deep Learning track, digit by digit."""

import json
import re
import sys
from pathlib import Path

import pytest
from scipy import stats as scipy_stats

from misslink.cli.main import main
from misslink.retrieval.evaluate import evaluate_run

DL19 = Path(__file__).parents[3] / "shared" / "data" / "retrieval" / "dl19"
pytestmark = pytest.mark.skipif(
    not DL19.is_dir(), reason="the reference results are not beside the checkout"
)

QRELS = DL19 / "qrels.dl19-passage.txt"
SYSTEMS = ["bm25base_p", "ICT-CKNRM_B50"]
QUERIES = 43
WHOLE = "recall@999999999"
NAMED = {"map": "map", "Rprec": "r-precision", "bpref": "bpref", "recip_rank": "mrr"}
# By what each file has: how many measures are ours. The interpolated and R-based ones are not.
OURS = {"treceval": 13, "ndcgeval": 9}


def ours_of(measure):
    if found := re.fullmatch(r"(P|ndcg_cut)_([0-9]+)", measure):
        return {"P": "precision", "ndcg_cut": "ndcg"}[found[1]] + f"@{found[2]}"
    return NAMED.get(measure)


def printed(system, kind):
    """Measure to query to the text that was printed."""
    found = {}
    for line in (DL19 / f"{system}.{kind}.txt").read_text(encoding="utf-8").splitlines():
        measure, query, text = line.split()
        found.setdefault(measure, {})[query] = text
    return found


@pytest.mark.parametrize("kind", OURS)
@pytest.mark.parametrize("system", SYSTEMS)
def test_every_shared_measure_of_every_query_and_of_all_is_what_was_printed(system, kind):
    theirs = {ours_of(each): found for each, found in printed(system, kind).items()}
    theirs.pop(None)
    assert len(theirs) == OURS[kind]
    scores = evaluate_run(QRELS, DL19 / f"{system}.run.gz", list(theirs))
    own = {**scores.per_query(), "all": scores.means()}
    wrong = [
        (name, query, text, own[query][name])
        for name, found in theirs.items()
        for query, text in found.items()
        if f"{own[query][name]:.4f}" != text
    ]
    assert wrong == []
    assert all(len(found) == QUERIES + 1 for found in theirs.values())


@pytest.mark.parametrize("system", SYSTEMS)
def test_as_many_relevant_passages_are_found_as_trec_eval_counted(system):
    theirs = printed(system, "treceval")
    scores = evaluate_run(QRELS, DL19 / f"{system}.run.gz", [WHOLE])
    assert scores.counts["evaluated"] == int(theirs["num_q"]["all"]) == QUERIES
    counted = {query: int(text) for query, text in theirs["num_rel_ret"].items()}
    relevant = {query: int(text) for query, text in theirs["num_rel"].items()}
    found = {q: of[WHOLE] * relevant[q] for q, of in scores.per_query().items()}
    assert {**found, "all": sum(found.values())} == pytest.approx(counted, abs=1e-9)


@pytest.mark.slow
def test_the_program_tells_both_runs_as_trec_eval_did_and_their_difference_as_scipy_does(
    monkeypatch, capsys
):
    runs = [argument for each in SYSTEMS for argument in ("--run", f"{DL19 / each}.run.gz")]
    theirs = {
        system: {
            ours_of(measure): found["all"]
            for kind in OURS
            for measure, found in printed(system, kind).items()
        }
        for system in SYSTEMS
    }
    names = [name for name in theirs[SYSTEMS[0]] if name is not None]
    asked = ["--metrics", ",".join(names), "--per-query", "--json"]
    monkeypatch.setattr(
        sys, "argv", ["misslink", "retrieval", "--qrels", str(QRELS), *runs, *asked]
    )
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in {None, 0}
    document = json.loads(capsys.readouterr().out)
    for system in SYSTEMS:
        own = document["runs"][f"{system}.run.gz"]
        assert len(own["per_query"]) == QUERIES
        for name in names:
            assert f"{own['metrics'][name]['value']:.4f}" == theirs[system][name], (system, name)
    a, b = (document["runs"][f"{system}.run.gz"]["per_query"] for system in SYSTEMS)
    for name in ("ndcg@10", "map"):
        compared = document["compare"]["metrics"][name]
        tested = scipy_stats.ttest_rel([b[query][name] for query in a], [a[q][name] for q in a])
        assert compared["t_test"]["p"] == pytest.approx(tested.pvalue)
        low, high = tested.confidence_interval()
        difference = compared["difference"]
        assert difference["n"] == QUERIES
        assert difference["value"] == pytest.approx((low + high) / 2)
        # Resampled here, of the t distribution there: alike to a tenth of the width.
        near = (high - low) / 10
        assert [difference["low"], difference["high"]] == pytest.approx([low, high], abs=near)

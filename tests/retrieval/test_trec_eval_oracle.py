"""What trec_eval printed in its own test, digit by digit, through `rank` and through the program.

Of its measures we have those of `ours_of`. Left out, since trec_eval means something else:
`rbp` of graded judgements (there the gains are scaled by numbers that are never set), `unj_k` of
queries that are missing from the run (0 there; here no share of nothing), `rbp_resid`, and all
interpolated, geometric and set measures.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from misslink.cli.main import main
from misslink.retrieval.evaluate import evaluate_run

TEST = Path(__file__).parents[3] / "shared" / "data" / "retrieval" / "trec_eval_test"
pytestmark = pytest.mark.skipif(
    not TEST.is_dir(), reason="the reference results are not beside the checkout"
)

ALL = 999_999_999  # the deepest cutoff there is: the whole ranking
NAMED = {
    "map": "map",
    "Rprec": "r-precision",
    "Rprec_mult_1.00": "r-precision",
    "bpref": "bpref",
    "recip_rank": "mrr",
    "ndcg": f"ndcg@{ALL}",
    "set_recall": f"recall@{ALL}",
}
CUT = {
    "P": "precision",
    "recall": "recall",
    "ndcg_cut": "ndcg",
    "map_cut": "map",
    "success": "hit",
}
OF_BINARY = {
    "rbp": "rbp@0.9",
    "ndcg_1=3,2=9,4=4.5": f"ndcg@{ALL}",  # one grade, whose gain cancels
}
# Output, qrels, run, relevance level, and how many values of a query (and of all) are ours.
CASES = [
    ("out.test", "qrels.test", "results.test", 1, 13),
    ("out.test.a", "qrels.test", "results.test", 1, 50),
    ("out.test.aq", "qrels.test", "results.test", 1, 50),
    ("out.test.aqc", "qrels.test", "results.trunc", 1, 50),
    ("out.test.aql", "qrels.rel_level", "results.test", 2, 49),
    ("out.test.meas_params", "qrels.test", "results.test", 1, 12),
]


def ours_of(measure, *, binary):
    """Our name of a measure, and whether we tell its complement."""
    if (name := (NAMED | (OF_BINARY if binary else {})).get(measure)) is not None:
        return name, False
    if found := re.fullmatch(r"(\w+)_([1-9][0-9]*)", measure):
        base, k = found.groups()
        if base in CUT:
            return f"{CUT[base]}@{k}", False
        if base == "unj":
            return f"judged@{k}", True
    return None


def printed(output, level):
    """Measure, query, our name, whether its complement, and the text that was printed."""
    for line in (TEST / output).read_text(encoding="utf-8").splitlines():
        measure, query, text = line.split("\t")
        ours = ours_of(measure.strip(), binary=level == 1)
        if ours is not None:
            yield measure.strip(), query, *ours, text


def differences(lines, own):
    """Lines that differ; and how many lines were compared, by query."""
    wrong, compared = [], {}
    for measure, query, name, complement, text in lines:
        value = own[query][name]
        missing = own[query]["map"] == 0 and value in {None, 1.0}
        if (measure == "rbp_resid" or complement) and missing:
            assert text == "0.0000"  # left out, as said above
        else:
            shown = f"{1 - value if complement else value:.4f}"
            if shown != text:
                wrong.append((measure, query, text, shown))
        compared[query] = compared.get(query, 0) + 1
    return wrong, compared


@pytest.mark.parametrize(("output", "qrels", "run", "level", "each"), CASES)
def test_every_shared_measure_is_what_trec_eval_printed(output, qrels, run, level, each):
    lines = list(printed(output, level))
    names = list(dict.fromkeys(["map", *(name for _, _, name, _, _ in lines)]))
    scores = evaluate_run(TEST / qrels, TEST / run, names, relevance_level=level)
    assert scores.counts["evaluated"] == 3
    # Over all, trec_eval takes a missing query for 0, which is not what these two say there.
    lines = [
        line
        for line in lines
        if not (line[1] == "all" and run == "results.trunc" and line[0].startswith("unj"))
    ]
    wrong, compared = differences(lines, {**scores.per_query(), "all": scores.means()})
    assert wrong == []
    left_out = 3 * (run == "results.trunc")
    assert compared.pop("all") == each - left_out
    assert set(compared.values()) <= {each}
    assert len(compared) == (0 if output in {"out.test", "out.test.a"} else 3)


@pytest.mark.slow
@pytest.mark.parametrize(("output", "qrels", "run", "level", "each"), CASES)
def test_the_program_tells_the_means_that_trec_eval_printed(
    output, qrels, run, level, each, monkeypatch, capsys
):
    lines = [line for line in printed(output, level) if line[1] == "all"]
    if run == "results.trunc":
        lines = [line for line in lines if not line[0].startswith("unj")]
    names = ",".join(dict.fromkeys(["map", *(name for _, _, name, _, _ in lines)]))
    asked = ["--qrels", TEST / qrels, "--run", TEST / run, "--metrics", names]
    arguments = ["retrieval", *map(str, asked), "--relevance-level", str(level), "--json"]
    monkeypatch.setattr(sys, "argv", ["misslink", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in {None, 0}
    document = json.loads(capsys.readouterr().out)
    means = {name: found["value"] for name, found in document["metrics"].items()}
    wrong, compared = differences(lines, {"all": means})
    assert wrong == []
    assert compared["all"] >= each - 4
    assert document["counts"]["missing_from_run"] == (run == "results.trunc")

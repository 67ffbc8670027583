"""Runs that nobody has seen, drawn at random and by hypothesis, held against three libraries.

Scores are drawn from single precision, in which trec_eval and pytrec_eval hold them.
"""

import gzip
import random

import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from misslink.retrieval.evaluate import evaluate_run

CUTS = (1, 2, 5, 10, 30)
PAIRED = {"hit": "success", "recall": "recall", "precision": "P", "ndcg": "ndcg_cut"}
PAIRED["map"] = "map_cut"
NAMED = {"mrr": "recip_rank", "map": "map", "r-precision": "Rprec", "bpref": "bpref"}
NAMED["ndcg@999999999"] = "ndcg"
THEIRS = NAMED | {f"{o}@{k}": f"{their}_{k}" for o, their in PAIRED.items() for k in CUTS}
ASKED = {*NAMED.values(), *(f"{each}.{','.join(map(str, CUTS))}" for each in PAIRED.values())}
DRAWS = 200
FORMS = ("dict", "frame", "lines", "gzip")

# No blank of ASCII, which separates columns, and no # at the beginning, which makes a comment.
ODD = ["0", "00", "1", "01", "1.0", "-1", "1e5", "nan", "None", "a", "A", "a#", "Ω", "zz"]
ODD += ["é", "e\u0301"]
ODD += ['"', '"a"', "'", "\\", "a,b", "a;b", "a/b?c=d&e", "日本", "😀", "\ufb01", "a\u00a0b", "Q0"]
ODD += ["x" * 200, "x" * 199 + "y", "-", "%20", "$(x)", "{}", "<b>", "\u202eabc", "true", "a\x01"]


def scores_of(draw, count):
    """Scores of one of the kinds that search engines write, exact in single precision."""
    kind = draw.randrange(7)
    if kind == 0:
        drawn = [draw.randrange(4) for _ in range(count)]  # ties everywhere
    elif kind == 1:
        drawn = [draw.gauss(0, 1) * 1e37 for _ in range(count)]
    elif kind == 2:
        drawn = [draw.random() * 1e-40 for _ in range(count)]  # below the normal numbers
    elif kind == 3:
        drawn = [-draw.random() for _ in range(count)]
    elif kind == 4:
        drawn = [0.7] * count  # nothing but ties
    elif kind == 5:
        drawn = [round(draw.uniform(5, 30), 2) for _ in range(count)]
    else:
        drawn = [draw.choice([-0.0, 0.0, 1e-38, -1e38, 3e38]) for _ in range(count)]
    return np.array(drawn, dtype=np.float32).astype(float).tolist()


def drawn_case(seed):
    """Qrels and a run: queries that only one of them has, unjudged documents, grades from -2."""
    draw = random.Random(seed)
    names = [*ODD, *(f"doc-{n}" for n in range(40))]
    asked = draw.sample(["7", "07", "q one".replace(" ", "\u00a0"), "é", "q-1", "🔎", "a,b"], 5)
    qrels, run = {}, {}
    for at, query in enumerate(asked):
        if at != 1:
            judged = draw.sample(names, draw.randint(1, 40))
            qrels[query] = {name: draw.choice([-2, -1, 0, 0, 0, 1, 1, 2, 3, 9]) for name in judged}
        if at != 2:
            found = draw.sample(names, draw.randint(1, 60))
            run[query] = dict(zip(found, scores_of(draw, len(found)), strict=True))
    return qrels, run, draw


def lines_of(given, middle, end, draw):
    """A TREC file in any order, with blanks as they come."""
    lines = [
        f"{query}{draw.choice([' ', chr(9), '   '])}{middle}{draw.choice([' ', chr(9)])}{name}"
        + end(value)
        for query, values in given.items()
        for name, value in values.items()
    ]
    draw.shuffle(lines)
    return (draw.choice(["\n", "\r\n", " \n", "\n\n"]).join([*lines, ""])).encode()


def in_form(form, qrels, run, draw, folder):
    """The same qrels and run as something else."""
    if form == "dict":
        return qrels, run
    if form == "frame":
        frames = (
            pd.DataFrame(
                [(q, d, n) for q, values in given.items() for d, n in values.items()],
                columns=["query_id", "doc_id", name],
            ).sample(frac=1, random_state=draw.randrange(99))
            for given, name in ((qrels, "relevance"), (run, "score"))
        )
        return tuple(frames)
    judged, found = folder / "it.qrels", folder / "it.run"
    judged.write_bytes(lines_of(qrels, "0", lambda grade: f" {grade}", draw))
    written = lines_of(run, "Q0", lambda score: f" {draw.randrange(9)} {score!r} tag", draw)
    found.write_bytes(gzip.compress(written) if form == "gzip" else written)
    return judged, found


def assert_as_theirs(ours, qrels, run, level=1):
    """Per query and in the mean: no value without a relevant document, 0 where it is missing."""
    # Grades below -1 alone can crash pytrec_eval, so it gets the measured queries.
    measured = {q: grades for q, grades in qrels.items() if max(grades.values()) >= level}
    theirs = pytrec_eval.RelevanceEvaluator(measured, ASKED, relevance_level=level).evaluate(run)
    own = ours.per_query()
    assert own.keys() == qrels.keys()
    means = dict.fromkeys(THEIRS, 0.0)
    for query in qrels:
        for name, their_name in THEIRS.items():
            if query not in measured:
                assert own[query][name] is None
                continue
            expected = theirs[query][their_name] if query in run else 0.0
            assert own[query][name] == pytest.approx(expected, abs=1e-9), (query, name)
            means[name] += expected / len(measured)
    assert ours.means() == pytest.approx(means if measured else dict.fromkeys(THEIRS), abs=1e-9)
    return len(measured) * len(THEIRS)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_runs_that_nobody_has_seen_score_as_pytrec_eval_has_them(form, tmp_path):
    compared = 0
    for seed in range(FORMS.index(form), DRAWS, len(FORMS)):
        qrels, run, draw = drawn_case(seed)
        level = draw.randint(1, 3)
        judged, found = in_form(form, qrels, run, draw, tmp_path)
        ours = evaluate_run(judged, found, list(THEIRS), relevance_level=level)
        compared += assert_as_theirs(ours, qrels, run, level)
    assert compared > 100 * len(THEIRS)


ids = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=4
)
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
rankings = st.dictionaries(ids, st.one_of(numbers, st.sampled_from([0.0, 1.0])), min_size=1)


@given(st.lists(rankings, min_size=1, max_size=3), st.data())
def test_any_ids_and_any_scores_are_ordered_as_pytrec_eval_does(found, data):
    run = {f"q{at}": ranking for at, ranking in enumerate(found)}
    qrels = {
        query: data.draw(
            st.dictionaries(
                st.one_of(st.sampled_from(sorted(ranking)), ids), st.integers(-1, 3), min_size=1
            )
        )
        for query, ranking in run.items()
    }
    assert_as_theirs(evaluate_run(qrels, run, list(THEIRS)), qrels, run)


def test_scores_are_in_single_precision_as_trec_eval_holds_them():
    """Scores that differ after the eighth digit are one to trec_eval, and so tied."""
    import pandas as pd

    draw = random.Random(0)
    collapsed = 0
    for _ in range(20):
        names = [f"d{n}" for n in draw.sample(range(100), 40)]
        run = {"q": {name: 20 + draw.random() * 1e-5 for name in names}}
        qrels = {"q": {f"d{n}": draw.choice([0, 1, 2]) for n in range(0, 100, 2)} | {"d0": 1}}
        collapsed += len(names) - len({float(np.float32(score)) for score in run["q"].values()})
        theirs = pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(run)["q"]
        frame = pd.DataFrame(
            [("q", name, score) for name, score in run["q"].items()],
            columns=["query_id", "doc_id", "score"],
        )
        for form in (run, frame):
            ours = evaluate_run(qrels, form, list(THEIRS)).means()
            assert ours == pytest.approx({n: theirs[t] for n, t in THEIRS.items()}, abs=1e-9)
    assert collapsed > 100


def untied(seed):
    """Graded qrels with a relevant document each, and a run without ties; one query is missing."""
    draw = random.Random(seed)
    names = [f"d{n}" for n in range(60)]
    qrels, run = {}, {}
    for number in range(6):
        judged = draw.sample(names, 20)
        qrels[f"q{number}"] = {d: draw.choice([0, 0, 1, 2, 3]) for d in judged} | {judged[0]: 3}
        if number != 3:
            found = draw.sample(names, draw.randint(5, 40))
            run[f"q{number}"] = {d: float(-at) for at, d in enumerate(draw.sample(found, 5))}
            run[f"q{number}"] |= {d: float(-9 - at) for at, d in enumerate(found)}
    return qrels, run


@pytest.mark.parametrize("level", [1, 2])
def test_ir_measures_has_the_same_values_and_the_same_means(level):
    theirs = pytest.importorskip("ir_measures")
    measures = {
        "ndcg@10": theirs.nDCG @ 10,
        "map": theirs.AP(rel=level),
        "map@5": theirs.AP(rel=level) @ 5,
        "mrr": theirs.RR(rel=level),
        "recall@5": theirs.R(rel=level) @ 5,
        "precision@5": theirs.P(rel=level) @ 5,
        "hit@1": theirs.Success(rel=level) @ 1,
        "r-precision": theirs.Rprec(rel=level),
        "bpref": theirs.Bpref(rel=level),
        "judged@10": theirs.Judged @ 10,
    }
    names = {str(measure): name for name, measure in measures.items()}
    for seed in range(10):
        qrels, run = untied(seed)
        scores = evaluate_run(qrels, run, list(measures), relevance_level=level)
        own = scores.per_query()
        found = {}
        for one in theirs.iter_calc(list(measures.values()), qrels, run):
            found.setdefault(one.query_id, {})[names[str(one.measure)]] = one.value
        # Of nothing retrieved no share was judged; ir_measures says 0.
        assert own["q3"].pop("judged@10") is None
        assert found["q3"].pop("judged@10") == 0
        for query, expected in found.items():
            assert own[query] == pytest.approx(expected, abs=1e-9), query
        assert own.keys() == found.keys()
        means = theirs.calc_aggregate(list(measures.values()), qrels, run)
        expected = {name: means[measure] for name, measure in measures.items()}
        expected["judged@10"] *= 6 / 5  # a mean over the queries that have one
        assert scores.means() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("level", [1, 2])
def test_ir_measures_has_the_same_rank_biased_precision(level):
    theirs = pytest.importorskip("ir_measures")
    pytest.importorskip("cwl", reason="ir_measures takes it from cwl-eval")
    for seed in range(5):
        qrels, run = untied(seed)
        own = evaluate_run(qrels, run, ["rbp@0.8"], relevance_level=level).per_query()
        found = list(theirs.iter_calc([theirs.RBP(p=0.8, rel=level)], qrels, run))
        assert len(found) >= len(run)
        for one in found:
            assert own[one.query_id]["rbp@0.8"] == pytest.approx(one.value, abs=1e-9)


@pytest.mark.parametrize(
    ("name", "gain"), [("ndcg", lambda g: g), ("ndcg_exp", lambda g: 2**g - 1)]
)
def test_scikit_learn_has_the_same_ndcg_of_scored_documents(name, gain):
    from sklearn.metrics import ndcg_score

    for seed in range(10):
        qrels, run = untied(seed)
        names = [f"{name}@{k}" for k in (1, 5, 20)]
        own = evaluate_run(qrels, run, names).per_query()
        for query, ranking in run.items():
            # To scikit-learn all documents are ranked: what was not retrieved stands behind.
            documents = sorted(qrels[query].keys() | ranking.keys())
            behind = {d: -1000.0 - at for at, d in enumerate(documents)}
            grades = [[gain(qrels[query].get(d, 0)) for d in documents]]
            scored = [[ranking.get(d, behind[d]) for d in documents]]
            for k in (1, 5, 20):
                if k <= len(ranking):
                    expected = ndcg_score(grades, scored, k=k)
                    assert own[query][f"{name}@{k}"] == pytest.approx(expected, abs=1e-9)

"""The example run with everything that measuring, replay and what-if add, hostile texts in each."""

from __future__ import annotations

from example_run import HOSTILE, estimate, example_run, missing
from misslink.calibration.verdicts import hash_verdicts
from misslink.types import ClaimLink, CompetingPassage, RetrievalMiss, Run
from people_documents import audit, correctness_calibration, said_of_faithfulness

LONG_WORD = "Donaudampfschifffahrtsgesellschaft" * 12
MARKUP = HOSTILE[3]


def proven_run() -> Run:
    """Every document filled in, hostile texts in each."""
    run = example_run()
    own = {"verdicts_sha256": hash_verdicts(run, "faithfulness")}
    linked_by = {
        "metric": "faithfulness",
        "threshold": 0.5,
        "sensitivity": estimate(0.91, 0.85, 0.95, 140),
        "specificity": estimate(0.72, 0.61, 0.81, 80),
        "uncertain_band": None,
    }
    return run.model_copy(
        update={
            "links": tuple(_link(link) for link in run.links),
            "summary": run.summary
            | {"link": _link_numbers(run.summary["link"]), "diagnosis": diagnosis()},
            "replay": replay(),
            "whatif": whatif(),
            "map": map_document(),
            "calibration": calibration()
            | own
            | {"others": {"correctness": correctness_calibration()}},
            "audit": audit(),
            "manifest": run.manifest
            | {
                "calibration": linked_by,
                "calibrated_by": {
                    "labels_from": f"labels/{MARKUP}",
                    "created": "2026-11-01T09:00:00+00:00",
                },
            },
        }
    )


def _link(link):
    if link.case_id == "with-exit":
        return link.model_copy(
            update={
                "reasons": {
                    "retrieval_miss": "None of the 2 needed passages reached the prompt, and 3 of "
                    "4 claims are not supported.",
                    "fabricated": "2 claims rest on nothing, with#1 says nothing of them.",
                },
                "basis": "replayed",
                "missed": _measured(link.missed),
                "claims": _judged(link.claims),
            }
        )
    if link.case_id == HOSTILE[0]:
        (lost,) = link.missed
        rival = CompetingPassage(passage_id=MARKUP, rank=1, duplicate_of=HOSTILE[0])
        return link.model_copy(
            update={
                "reasons": {"retrieval_miss": " ".join(HOSTILE)},
                "missed": (
                    lost.model_copy(
                        update={"reason": HOSTILE[0] + LONG_WORD, "distance": 4, "above": (rival,)}
                    ),
                ),
            }
        )
    if link.case_id == "memory":
        return link.model_copy(
            update={
                "missed": (
                    RetrievalMiss(
                        passage_id="lambda#0",
                        depth=100,
                        status="not_indexed",
                        reason="the corpus of 594 passages does not hold it",
                    ),
                )
            }
        )
    return link


def _measured(missed):
    first, second, third = missed
    numbers = {
        "cosine": 0.41,
        "cosine_kth": 0.63,
        "cosine_percentile": 0.08,
        "shared_stems": 0.25,
        "shared_stems_percentile": 0.12,
        "dense_rank": 17.0,
        "bm25_rank": 212.0,
        "pool": 594.0,
        "duplicates_in_context": 1.0,
    }
    above = (
        CompetingPassage(passage_id="pass#0", rank=1, score=0.8, cosine=0.71),
        CompetingPassage(passage_id="try#4", rank=2, score=0.7, cosine=0.66, duplicate_of="pass#0"),
    )
    found = {
        "miss_type": "vocabulary_mismatch",
        "also": ("ranked_low",),
        "reason": "it shares 25% of the question's words, and BM25 puts it at rank 212 of 594",
        "distance": 12,
        "measured": numbers,
        "above": above,
    }
    return (first.model_copy(update=found), second.model_copy(update=found), third)


def _judged(claims):
    first, second, third = claims
    return (
        first.model_copy(update={"distance": 12, "probability": 0.08, "by": "openai:some-model"}),
        second,
        ClaimLink(**third.model_dump() | {"by": HOSTILE[0]}),
    )


def _link_numbers(link):
    strata = [
        _stratum("procedural", (6, 2), (2, 9), 0.75, 0.18),
        _stratum(MARKUP, (1, 3), (3, 5), 0.25, 0.375),
        _stratum(LONG_WORD, (0, 0), (1, 4), None, 0.2),
    ]
    pooled = {
        "risk_difference": estimate(0.22, 0.02, 0.42, 36, "mantel-haenszel"),
        "risk_ratio": estimate(1.9, 1.1, 3.4, 36, "mantel-haenszel"),
        "attributable_fraction": estimate(0.21, 0.01, 0.4, 36, "mantel-haenszel"),
    }
    return link | {
        "adjusted": {
            "by": "category",
            **pooled,
            "strata": strata,
            "left_out": {"strata": 1, "cases": 5},
            "heterogeneity": {"p": 0.03, "method": "cochran's q, parametric bootstrap"},
            "warning": {
                "code": "strata_disagree",
                "message": "the groups disagree: in 'procedural' misses go with unfaithful "
                "answers, in " + HOSTILE[0] + " they do not",
            },
            "change": {"code": "adjusted_change", "message": "it changes to " + HOSTILE[0]},
        },
        "trend": {"p": 0.0004, "method": "cochran-armitage", "reason": None, "slope": -0.16},
        "corrected": {
            "risk_given_none": estimate(0.61, 0.28, 0.93, 12, "ppi++"),
            "risk_given_some": estimate(0.4, 0.1, 0.8, 10, "ppi++"),
            "risk_given_all": estimate(0.19, 0.02, 0.4, 24, "ppi++"),
            "risk_difference": estimate(0.42, 0.05, 0.77, 36, "ppi++"),
            "risk_ratio": estimate(3.2, 1.1, 14.0, 36, "ppi++"),
            "attributable_fraction": estimate(0.43, 0.03, 0.7, 36, "ppi++"),
        },
        "judge_error_by_exposure": {"tested": True, "differs": False, "p": 0.4},
    }  # fmt: skip


def _stratum(name, miss, hit, miss_risk, hit_risk):
    def risk(value, counts):
        if value is None:
            return missing("no case of this group is a miss")
        return estimate(value, max(0, value - 0.3), min(1, value + 0.3), sum(counts))

    apart = None if miss_risk is None else miss_risk - hit_risk
    return {
        "name": name,
        "table": {
            "none": {"bad": miss[0], "good": miss[1]}, "all": {"bad": hit[0], "good": hit[1]},
        },
        "risk_given_none": risk(miss_risk, miss),
        "risk_given_all": risk(hit_risk, hit),
        "risk_difference": missing("no misses") if apart is None
        else estimate(apart, apart - 0.35, apart + 0.3, sum(miss + hit), "newcombe"),
        "risk_ratio": missing("no misses") if apart is None
        else estimate(miss_risk / hit_risk, 0.2, 9.0, sum(miss + hit), "wilson ratio"),
    }  # fmt: skip


def diagnosis():
    """The summary's diagnosis: three checks, one of each outcome, and two gaps."""
    return {
        "embedding": "sentence-transformers all-MiniLM-L6-v2",
        "corpus": 594,
        "checklist": [
            {
                "name": "chunk_quality",
                "question": "Are the chunks whole and of one size?",
                "numbers": {
                    "median_characters": estimate(812.0, 790.0, 836.5, 594, "bootstrap"),
                    "cut_sentences_share": estimate(0.41, 0.37, 0.45, 594),
                    "passages": 594,
                },
                "finding": "41% of chunks end in the middle of a sentence.",
                "ok": False,
            },
            {
                "name": "embedding_quality",
                "question": "Does the embedding tell known pairs from random ones?",
                "numbers": {"auroc": estimate(0.93, 0.9, 0.96, 120, "delong")},
                "finding": "Known pairs stand clearly above random ones.",
                "ok": True,
            },
            {
                "name": HOSTILE[0],
                "question": " ".join(HOSTILE),
                "numbers": {MARKUP: HOSTILE[1], "recall_at_depth": None, LONG_WORD: 0.25},
                "finding": LONG_WORD,
                "ok": None,
            },
        ],
        "missing_labels": {
            "holes": [
                {"case_id": "hole", "passage_id": "try#4", "rank": 2,
                 "question": "What creates a function without a name?",
                 "text": "If a finally clause executes a return. " + HOSTILE[9],
                 "reason": "the judge calls it relevant, and the answer rests on it"},
                {"case_id": HOSTILE[0], "passage_id": HOSTILE[5], "rank": 2,
                 "question": HOSTILE[1], "reason": MARKUP + LONG_WORD},
            ],
            "metrics": {"recall@5": {"without": estimate(0.54, 0.29, 0.78, 12),
                                     "with": estimate(0.6, 0.35, 0.83, 13)},
                        "mrr": {"without": estimate(0.51, 0.27, 0.75, 12),
                                "with": estimate(0.55, 0.31, 0.78, 13)}},
        },
    }  # fmt: skip


def replay():
    """A replay of three failure modes, one case flaky, two left out."""
    return {
        "run": "reports/today",
        "app": "examples/python_reference/app.py:chain",
        "judge": "openai:some-model",
        "sample": 40,
        "seed": 0,
        "causal_fraction": estimate(0.29, 0.15, 0.43, 41, "dirichlet"),
        "failed": 90,
        "failures": {
            "retrieval_miss": {
                "cases": 60,
                "replayed": 40,
                "fixed": estimate(0.775, 0.62, 0.88, 40),
                "placebo_fixed": estimate(0.1, 0.04, 0.23, 40),
                "net_fixed": estimate(0.675, 0.5, 0.8, 40),
                "confirmed": estimate(0.65, 0.49, 0.78, 40),
            },
            "fabricated": {
                "cases": 1,
                "replayed": 1,
                "fixed": estimate(0.0, 0.0, 0.79, 1),
                "placebo_fixed": estimate(0.0, 0.0, 0.79, 1),
                "net_fixed": estimate(0.0, -0.8, 0.8, 1),
                "confirmed": estimate(0.0, 0.0, 0.79, 1),
            },
            "not_indexed": {"replayed": 0, "confirmed": missing("no case was replayed")},
            MARKUP: {"replayed": 1, "fixed": missing(HOSTILE[2])},
        },
        "fixed": estimate(0.76, 0.6, 0.87, 41),
        "broken": estimate(0.1, 0.03, 0.3, 20),
        "placebo_broken": estimate(0.05, 0.01, 0.24, 20),
        "flaky": estimate(0.05, 0.01, 0.16, 61),
        "owners": {"retriever": 26, "generator": 1},
        "arms": [
            {
                "arm": "other_judge",
                "owner": "judge",
                "tried": 41,
                "held": estimate(0.0, 0.0, 0.09, 41),
                "placebo_held": missing("a judge has no placebo"),
            },
            {
                "arm": "missed_passage",
                "owner": "retriever",
                "tried": 41,
                "held": estimate(0.76, 0.6, 0.87, 41),
                "placebo_held": estimate(0.1, 0.04, 0.23, 41),
            },
            {"arm": MARKUP, "owner": HOSTILE[1], "tried": 1, "held": missing(HOSTILE[2])},
        ],
        "calls_per_failure": 2.6,
        "cases": [
            {
                "case_id": "with-exit",
                "failure": "retrieval_miss",
                "turned": True,
                "flaky": False,
                "confirmed": True,
                "cause": "missed_passage",
                "owner": "retriever",
                "outcomes": {
                    "observed": "unfaithful",
                    "missed_passage": "good",
                    "placebo": "unfaithful",
                },
                "e": 57.1,
                "tried": {"missed_passage": 1, "placebo": 1},
                "held": {"missed_passage": 1, "placebo": 0},
                "note": None,
            },
            {
                "case_id": HOSTILE[0],
                "failure": "retrieval_miss",
                "turned": False,
                "flaky": True,
                "confirmed": False,
                "outcomes": {HOSTILE[3]: HOSTILE[0]},
                "note": HOSTILE[2],
            },
        ],
        "usage": {"calls": 171, "from_cache": 12},
        "skipped": [
            {"case_id": "crashed", "reason": "the missed passage has no text"},
            {"case_id": "memory", "reason": "the missed passage has no text"},
            {"case_id": "rtl", "reason": HOSTILE[0]},
        ],
    }


def whatif():
    """Three options: one better, one no different, one worse and hostile."""
    return {
        "run": "reports/today",
        "corpus": {"passages": 594},
        "baseline": {
            "hit@5": estimate(0.58, 0.32, 0.81, 12),
            "recall@5": estimate(0.54, 0.29, 0.78, 12),
            "mrr": estimate(0.51, 0.27, 0.75, 12),
        },
        "options": [
            _option("hybrid", "BM25 and dense, fused by reciprocal rank.", 0.81, 0.27, 0.004,
                    "option", (4.2, 1.0, 8.0), "Recall rises by 27 points."),
            _option("k=10", "Twice as many passages.", 0.6, 0.06, 0.4, None, (0.5, -1.0, 2.0),
                    "Not enough data to tell: 12 cases show a difference from 25 points on."),
            _option(HOSTILE[0], " ".join(HOSTILE), 0.3, -0.24, 0.01, "today", (-3.0, -6.0, -0.5),
                    MARKUP + LONG_WORD),
        ],
        "skipped": [{"name": "rerank", "reason": HOSTILE[2]}],
        "check": {
            "option": HOSTILE[0],
            "changed": {"cases": 20, "checked": 12, "failed_before": 9, "failed_after": 3},
            "unchanged": {"cases": 60, "checked": 12, "failed_before": 1, "failed_after": 2},
            "reason": "the new answer was not judged",
            "skipped": [{"case_id": "memory", "reason": "the new answer was not judged"}],
        },
        "notes": ["The forecast rests on association. " + HOSTILE[3]],
        "seed": 0,
    }  # fmt: skip


def _option(name, what, recall, apart, p, winner, avoided, finding):
    return {
        "name": name,
        "what": what,
        "metrics": {
            "recall@5": {
                "b": estimate(recall, max(0, recall - 0.2), min(1, recall + 0.2), 12),
                "difference": estimate(apart, apart - 0.15, apart + 0.15, 12, "bootstrap"),
                "p": p, "p_holm": p, "winner": winner,
            },
            "mrr": {
                "b": estimate(0.5, 0.3, 0.7, 12),
                "difference": estimate(-0.01, -0.2, 0.2, 12, "bootstrap"),
                "p": 0.9, "p_holm": 1.0, "winner": None,
            },
        },
        "context_tokens": {"today": estimate(1020.0, 980.0, 1061.0, 12),
                           "b": estimate(1043.5, 1000.0, 1090.0, 12)},
        "failures_avoided": estimate(*avoided, 98, "forecast"),
        "newly_retrieved": 5,
        "reached": [*map(str, range(1, 6)), "with-exit"],
        "finding": finding,
    }  # fmt: skip


def calibration():
    """A judge held against people: 220 cases, every part of the document, hostile words in some."""
    return {
        "metric": "faithfulness",
        "n": 220,
        "positives": 140,
        "threshold": 0.43,
        "agreement": {
            "kappa": estimate(0.65, 0.54, 0.75, 220, "bootstrap"),
            "gwet_ac1": estimate(0.7, 0.6, 0.79, 220, "bootstrap"),
            "sensitivity": estimate(0.91, 0.85, 0.95, 140),
            "specificity": estimate(0.72, 0.61, 0.81, 80),
            "balanced_accuracy": estimate(0.82, 0.76, 0.87, 220, "bootstrap"),
        },
        "detection": {
            "precision": estimate(0.82, 0.72, 0.9, 71),
            "recall": estimate(0.72, 0.61, 0.81, 80),
            "f1": estimate(0.77, 0.68, 0.84, 220, "bootstrap"),
            "auroc": estimate(0.88, 0.83, 0.92, 220, "delong"),
        },
        **said_of_faithfulness(),
        "baselines": {
            "always_good": {"kappa": 0.0},
            "length": {"kappa": 0.12, "auroc": 0.58},
            MARKUP: {HOSTILE[0]: 0.5},
        },
        "probability": {"brier": 0.131, "ece": 0.062},
        "corrected": {
            "judge_only": estimate(0.68, 0.61, 0.74, 220),
            "labelled_only": estimate(0.64, 0.57, 0.7, 220),
            "rogan_gladen": estimate(0.63, 0.5, 0.76, 220, "rogan-gladen"),
            "prediction_powered": estimate(0.65, 0.59, 0.71, 220, "ppi"),
        },
        "bias": {
            "length": {
                "coefficient": estimate(-0.3, -0.5, -0.1, 220, "logistic"),
                "pull": estimate(0.6, 0.3, 0.9, 220, "logistic"),
                "finding": "it is too kind to longer answers",
                "unit": "319.3 (one SD)",
                "matched": {
                    "pairs": 210,
                    "questions": 48,
                    "longer_preferred": estimate(0.63, 0.56, 0.7, 210, "bootstrap by question"),
                    "p": 0.0003,
                    "finding": "of two answers alike the longer one is scored better",
                },
            },
            "position": {
                "coefficient": estimate(0.1, -0.2, 0.4, 220, "logistic"),
                "pull": missing("no case"),
                "finding": None,
            },
            f"category: {MARKUP}": {
                "coefficient": estimate(0.9, 0.4, 1.4, 220, "logistic"),
                "pull": estimate(0.0, -0.4, 0.4, 220, "logistic"),
                "finding": f"the judge errs more on answers with the category {MARKUP}",
                "unit": HOSTILE[0],
            },
            HOSTILE[0]: {"coefficient": missing(LONG_WORD)},
        },
        "confusion": {"true_good": 127, "false_good": 22, "true_bad": 58, "false_bad": 13},
        "reliability": [
            {"low": 0.0, "high": 0.25, "n": 40, "predicted": 0.12,
             "good": estimate(0.15, 0.07, 0.29, 40)},
            {"low": 0.25, "high": 0.5, "n": 40, "predicted": 0.38,
             "good": estimate(0.45, 0.31, 0.6, 40)},
            {"low": 0.5, "high": 0.75, "n": 0, "predicted": None, "good": missing("no case")},
            {"low": 0.75, "high": 1.0, "n": 140, "predicted": 0.9,
             "good": estimate(0.83, 0.76, 0.88, 140)},
        ],
        "uncertain_band": [0.3, 0.55],
        "labels_needed": {
            "verdicts": 900,
            "curve": [
                {"labels": 100, "width": 0.17, "labelled_only": 0.19},
                {"labels": 220, "width": 0.12, "labelled_only": 0.13},
            ],
            "for_width": {"0.2": 71, "0.1": 318, "0.05": None, HOSTILE[0]: 3},
        },
        "notes": [f"ada and {MARKUP} gave the same label to all items.", " ".join(HOSTILE)],
        "verdict": "caution",
        "reasons": ["Of the bad answers it calls 28% good.", " ".join(HOSTILE)],
    }  # fmt: skip


def map_document():
    """Every failure mode on the map, and a query and a passage whose texts are hostile."""
    run = example_run()
    failures = {link.case_id: link.failure for link in run.links}
    queries = [
        {
            "id": case.id,
            "x": (place % 5) / 4,
            "y": (place * 7 % 14) / 13,
            "failure": failures[case.id],
            "text": case.question[:300],
        }
        for place, case in enumerate(run.cases)
    ]
    passages = [
        {
            "id": f"p{place}",
            "x": (place * 37 % 101) / 100,
            "y": (place * 53 % 97) / 96,
            "text": f"Passage {place} about something.",
        }
        for place in range(150)
    ]
    return {
        "method": "umap",
        "embedding": HOSTILE[0],
        "queries": [*queries,
                    {"id": "gone", "x": 0.5, "y": 0.5, "failure": MARKUP, "text": HOSTILE[1]},
                    {"id": "nowhere", "x": None, "y": 0.5, "failure": "passed", "text": "no place"}],
        "passages": [*passages,
                     {"id": "with#1", "x": 0.9, "y": 0.1, "text": "The with statement."},
                     {"id": MARKUP, "x": 0.2, "y": 0.95, "text": " ".join(HOSTILE)}],
        "lines": [
            {"case_id": "with-exit", "passage_id": "with#1", "failure": "retrieval_miss"},
            {"case_id": HOSTILE[0], "passage_id": MARKUP, "failure": "retrieval_miss"},
            {"case_id": "crashed", "passage_id": "not on the map", "failure": "inconclusive"},
            {"case_id": "gone", "passage_id": "p3", "failure": HOSTILE[0]},
        ],
        "left_out": 12,
        "queries_left_out": 3,
    }  # fmt: skip

"""What people said of the example run's judge, and what moved it: for `proven_run.proven_run`."""

from example_run import HOSTILE, estimate, missing

MARKUP = HOSTILE[3]
TIED = "with-exit"  # a case of the example run on which people are tied


def said_of_faithfulness():
    """Keys of a calibration that name people and cases: who said what, and what is settled."""
    return {
        "human": {
            "annotators": 3,
            "alpha": estimate(0.61, 0.42, 0.78, 60, "bootstrap"),
            "percent": estimate(0.84, 0.75, 0.91, 60, "bootstrap"),
            "unsettled": 1,
            "queue": [
                {"case_id": "memory", "claim": None, "settled": True,
                 "labels": {"ada": 0.0, "ben": 0.0, MARKUP: 1.0}},
                {"case_id": TIED, "claim": 1, "settled": True,
                 "labels": {"ada": 1.0, "ben": 0.0, "cy": 1.0}},
                {"case_id": TIED, "claim": None, "settled": False,
                 "labels": {"ada": 1.0, "ben": 0.3}},
                {"case_id": HOSTILE[0], "claim": None, "settled": True,
                 "labels": {HOSTILE[0]: 1.0, "ben": 1.0, "ada": 0.0}},
                {"case_id": HOSTILE[5], "claim": 0, "settled": False,
                 "labels": {"ada": 1.0, HOSTILE[1]: 0.0}},
            ],
        },
        # The judge calls lambda good and the hostile one bad; memory good at 1.0.
        "labelled": {"lambda": 1.0, "memory": 1 / 3, HOSTILE[0]: 2 / 3, "negative-1": 0.0,
                     "refused": 0.0, "gone": 1.0},
    }  # fmt: skip


def correctness_calibration():
    """Of another run's verdicts, with few labels, and a judge hardly better than chance."""
    return {
        "metric": "correctness",
        "n": 40,
        "positives": 26,
        "threshold": 0.5,
        "verdicts_sha256": "cd" * 32,
        "agreement": {
            "kappa": estimate(0.42, 0.12, 0.7, 40, "bootstrap"),
            "sensitivity": estimate(0.85, 0.66, 0.94, 26),
            "specificity": estimate(0.57, 0.33, 0.79, 14),
        },
        "human": {"annotators": 1, "alpha": missing("one person labelled"), "queue": []},
        "confusion": {"true_good": 22, "false_good": 6, "true_bad": 8, "false_bad": 4},
        "verdict": "caution",
        "reasons": ["40 labelled cases; at least 100 is needed to trust it."],
        "checks": [
            {"name": "labels", "value": 40, "trust": 100, "caution": 30, "at_most": False,
             "met": "caution", "says": "40 labelled cases; at least 100 is needed to trust it."},
            {"name": "rarer_label", "value": 14, "trust": 20, "caution": 10, "at_most": False,
             "met": "caution",
             "says": "14 cases have the rarer label; at least 20 is needed to trust it."},
            {"name": "kappa", "value": 0.42, "trust": 0.6, "caution": 0.2, "at_most": False,
             "met": "caution", "says": "Kappa of judge and people is 0.42."},
        ],
        "labelled": {"rtl": 1.0, TIED: 1.0},
    }  # fmt: skip


def audit():
    """Every change that is tried, one with a finding, one that nothing came of, one unknown."""
    return {
        "judge": "heuristic",
        "created": "2026-11-22T10:00:00+00:00",
        "seed": 0,
        "cases": 50,
        "metrics": {
            "faithfulness": {
                "padding": _tried(50, 0.22, 0.2, 0.02, 0.06,
                                  "Padding the answer with what adds nothing turns 22% of 50 "
                                  "verdicts on faithfulness, more often to good.",
                                  claims=estimate(0.08, 0.04, 0.14, 50, "bootstrap")),
                "passage_order": _tried(48, 0.0, 0.0, 0.0, 0.0, None, left_out={"one passage": 2}),
                "passage_shuffle": {"n": 0, "flipped": missing("no case has two passages"),
                                    "finding": None},
                "again": _tried(50, 0.02, 0.0, 0.02, -0.01, None),
            },
            "correctness": {
                "padding": _tried(12, 0.25, 0.0, 0.25, -0.1, None, may_lower=True),
            },
            MARKUP: {HOSTILE[0]: _tried(3, 1.0, 1.0, 0.0, 0.9, HOSTILE[1])},
        },
        "preferences": {
            "answer_order": {
                "n": 40,
                "flipped": estimate(0.3, 0.18, 0.45, 40),
                "places": {"first": 10, "second": 2},
                "left_out": {},
                "finding": "Which of two answers is better changes with their order in 30% of 40 "
                "pairs, in favour of the one shown first.",
            },
        },
        "notes": ["3 questions were not put. " + HOSTILE[2]],
        "usage": {"calls": 150, "from_cache": 0},
    }  # fmt: skip


def _tried(n, flipped, to_good, to_bad, shift, finding, **more):
    def share(value):
        return estimate(value, max(0, value - 0.1), min(1, value + 0.12), n)

    return {
        "n": n,
        "flipped": share(flipped),
        "to_good": share(to_good),
        "to_bad": share(to_bad),
        "shift": estimate(shift, shift - 0.03, shift + 0.03, n, "bootstrap"),
        "finding": finding,
        **more,
    }

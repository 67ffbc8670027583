"""What a field is marked with where it is defined, and what follows from it."""

import itertools

import misslink
from misslink.comparison.run_metrics import metric_value
from misslink.document_model import Document
from misslink.examples import load_example
from misslink.field_markers import LowerIsBetter, marked_names, varying_fields
from misslink.io.trace_formats.recording import read_recording
from misslink.testing import small_run
from misslink.types import Trace, Verdict


def test_the_fields_that_vary_are_these():
    ranked = {"__all__": {"score": True}}
    assert varying_fields(Trace) == {
        **dict.fromkeys(
            ("latency_s", "usage", "notes", "trace_id", "span_id", "response_id"), True
        ),
        "retrieved": ranked,
        "deeper": ranked,
    }
    assert varying_fields(Verdict) == {"usage": True, "raw": True}


def test_two_equal_runs_differ_in_varying_fields_alone():
    """A new field that varies and has no mark makes saved replays and what-ifs look stale."""
    recorded = read_recording(load_example()["traces"]).traces
    clock = itertools.count(1)

    def app(question, *, config=None):
        trace = next(t for t in recorded.values() if t.case_id in question)
        found = [{"id": p.id, "text": p.text, "score": 1 / next(clock)} for p in trace.retrieved]
        return {"answer": trace.answer, "retrieved": found}

    gold = [{"id": name, "question": f"What of {name}?"} for name in list(recorded)[:3]]
    options = {"cache": None, "embedding": "none"}
    first, second = (misslink.evaluate(app, gold, **options) for _ in range(2))
    for part in ("traces", "verdicts"):
        one, other = getattr(first, part), getattr(second, part)
        fields = varying_fields(type(one[0]))
        assert [x.model_dump(exclude=fields) for x in one] == [
            x.model_dump(exclude=fields) for x in other
        ]
    assert first.traces != second.traces
    assert first.cases == second.cases
    assert first.links == second.links


def test_what_is_good_when_low_is_marked_where_it_is_defined():
    low = marked_names(Document, LowerIsBetter)
    assert {"risk_ratio", "causal_fraction", "flip_rate", "context_tokens", "skipped"} <= low
    run = small_run()
    directions = {
        name: metric_value(run, name).lower_is_better
        for name in (
            "link.risk_difference",
            "usage.calls",
            "latency",
            "coverage.faithfulness",
            "mrr",
        )
    }
    assert directions == {
        "link.risk_difference": True,
        "usage.calls": True,
        "latency": True,
        "coverage.faithfulness": False,
        "mrr": False,
    }

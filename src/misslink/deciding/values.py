"""Any number of a run by its name: what a gate asks for and what two runs are compared by.

Names, as people write them in criteria and after ``--metrics``:

``recall@5``, ``mrr``, ...
    A registered rank metric, at any k, whether or not the run's summary has it.
``faithfulness``, ``faithful``, ``correctness_precision``, ...
    A judged metric, or one of the numbers that its verdicts hold beside their value.
``link.attributable_fraction``, ``link.risk_ratio``, ``link.wrong.risk_difference``, ...
    What the 2 x 2 table says.
``link.causes.CAUSE``, ``link.retrieval.OUTCOME``, ``link.answers.OUTCOME``
    Share of the cases whose link tells that have it; a cause is the primary one. Undecided and
    unknown ones are left out, except of their own share.
``coverage.METRIC``
    Share of the verdicts that could be given: scored, of those scored, failed, and skipped
    because the app failed.
``errors``
    Share of the cases in which the app failed.
``latency``
    Median seconds the app took.
``trust.sensitivity``, ``trust.specificity``, ...
    How far the judge agreed with people, where the run was evaluated with a calibration, or
    ``misslink calibrate`` was run on it.
any other path
    Into ``summary.json`` (``usage.calls``, ``slices.category.easy.metrics.recall@5``), or into
    what ``misslink replay`` and ``misslink whatif`` wrote (``replay.flaky``,
    ``whatif.options.hybrid.metrics.recall@5.b``). These are of the whole run.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from misslink.calibration.kept import corrected
from misslink.deciding import numbers
from misslink.deciding.documents import NotThere, number_at, paths_in
from misslink.deciding.numbers import SHARES, Value
from misslink.errors import InputError, did_you_mean
from misslink.linking import Calibration
from misslink.registry import rank_metrics
from misslink.retrieval import spelled
from misslink.types import Estimate, Run

__all__ = [
    "Value",
    "has_direction",
    "is_metric",
    "is_rank",
    "known_values",
    "select",
    "value_of",
]

_PERSISTENCE = 0.8  # of rank-biased precision, as papers have it most often
_LEVELS = ("retrieval", "generation", "answer")
_TRUST = (
    "sensitivity",
    "specificity",
    "kappa",
    "gwet_ac1",
    "auroc",
    "precision",
    "recall",
    "f1",
    "balanced_accuracy",
)
# Of documents: a path with one of these keys in it is better when low.
_LOW = frozenset(
    (
        *("attributable_fraction", "causal_attributable_fraction", "risk_given_miss"),
        *("risk_given_hit", "risk_difference", "risk_ratio", "miss_unfaithful", "hit_unfaithful"),
        *("miss_wrong", "hit_wrong", "left_out", "failed", "flaky", "flip_rate", "disagreement"),
        *("skipped", "spread", "usage", "context_tokens", "latency"),
    )
)
_DIRECTED = frozenset({"coverage", "latency", "link", "trust", "usage"})  # rooms
_LATER = {"replay": "misslink replay", "whatif": "misslink whatif"}
_SELECTED = "this number is of the whole run and cannot be computed for a selection of its cases"


def value_of(run: Run, name: str) -> Value:
    """Return the number of `run` that is called `name`.

    Parameters
    ----------
    run : Run
        A whole one, or a selection of one that `select` made.
    name : str
        See the head of this module.

    Returns
    -------
    Value
        Computed anew from the cases, traces, verdicts and links where it can be, and then the same
        as ``summary.json`` has it; read from the run's documents otherwise. A metric that is known
        but that the run was not judged by is missing with a reason.

    Raises
    ------
    InputError
        Nothing is called so; the message gives the nearest known name.
    """
    asked = name.strip()
    level, _, rest = asked.partition(".")
    bare = rest if level in _LEVELS and rest else asked
    judged = numbers.judged_numbers(run)
    if bare in judged:
        return numbers.judged(run, bare, *judged[bare])
    if is_rank(bare):
        return numbers.rank(run, bare)
    if level == "coverage" and rest in judged and rest == judged[rest][0]:
        return numbers.coverage(run, asked, rest)
    axis, _, outcome = rest.partition(".")
    if level == "link" and axis in SHARES and outcome in SHARES[axis][0]:
        return numbers.share(run, axis, outcome)
    if asked == "errors":
        return numbers.errors(run)
    return Value(asked, _estimate(run, asked), None, _low(run, asked))


def has_direction(run: Run, name: str) -> bool:
    """Whether it is known which change of a number is for the worse.

    Parameters
    ----------
    run : Run
    name : str
        As `value_of` calls it.
    """
    if name == "errors" or name.partition(".")[0] in _DIRECTED or set(name.split(".")) & _LOW:
        return True
    return is_metric(run, name)


def is_metric(run: Run, name: str) -> bool:
    """Whether a number is that of a registered metric, of all cases or of a slice of them."""
    inner = name.rpartition(".metrics.")[2]
    return inner in numbers.judged_numbers(run) or is_rank(inner)


def is_rank(name: str) -> bool:
    """Whether it is meant to be a rank metric; `parse` then says what is wrong with it."""
    bases = {entry.partition("@")[0] for entry in rank_metrics.names()}
    base, at, _ = name.partition("@")
    return base in bases or (bool(at) and "." not in name)


def select(run: Run, ids: AbstractSet[str]) -> Run:
    """Return the run as if it held only these cases.

    Parameters
    ----------
    run : Run
    ids : set of str
        Case ids; those the run does not have are passed over.

    Returns
    -------
    Run
        `run` itself where all of its cases are selected. Else its manifest says so under
        ``selected``, and its documents (``summary`` and the rest) stay those of the whole run:
        `value_of` takes no number of cases from them.
    """
    cases = tuple(case for case in run.cases if case.id in ids)
    if len(cases) == len(run.cases):
        return run
    kept = {case.id for case in cases}
    before = run.manifest.get("selected")
    of = before["of"] if isinstance(before, dict) and "of" in before else len(run.cases)
    return run.model_copy(
        update={
            "manifest": {**run.manifest, "selected": {"cases": len(cases), "of": of}},
            "cases": cases,
            "traces": tuple(trace for trace in run.traces if trace.case_id in kept),
            "verdicts": tuple(verdict for verdict in run.verdicts if verdict.case_id in kept),
            "links": tuple(link for link in run.links if link.case_id in kept),
        }
    )


def known_values(run: Run) -> list[str]:
    """Return the names that `value_of` takes for `run`, each once.

    Rank metrics are named at the cut-offs of the run's summary and at its k; every other whole
    number is as good.
    """
    retrieval = run.summary.get("retrieval")
    judged = numbers.judged_numbers(run)
    names = [
        *(retrieval if isinstance(retrieval, Mapping) else ()),
        *(
            spelled(name, numbers.number_in(run, "k", 5), _PERSISTENCE)
            for name in rank_metrics.names()
        ),
        *judged,
        *(f"link.{axis}.{name}" for axis, (group, _) in SHARES.items() for name in group),
        *paths_in({"link": numbers.associations(run)}),
        *(f"coverage.{name}" for name, (metric, _) in judged.items() if name == metric),
        "latency",
        "errors",
        *(f"trust.{name}" for name in _TRUST),
    ]
    documents = {
        name: document
        for name, document in _documents(run).items()
        if name not in _LEVELS and name != "link"
    }
    return list(dict.fromkeys([*names, *paths_in(documents)]))


def _estimate(run: Run, name: str) -> Estimate:
    """Return a number that is no mean over cases."""
    room, _, rest = name.partition(".")
    if name == "latency":
        return numbers.latency(run)
    if room == "trust" and rest in _TRUST:
        return _trust(run, rest)
    if room != "link":
        return _documented(run, name)
    try:
        found = number_at({"link": numbers.associations(run)}, name, n=len(run.links))
    except NotThere:
        if "selected" in run.manifest and name in paths_in({"link": run.summary.get("link", {})}):
            return Estimate.missing("the selected cases have nothing of that kind")
        raise _unknown(run, name) from None
    return found if run.cases else Estimate.missing("there are no cases")


def _trust(run: Run, name: str) -> Estimate:
    used = run.manifest["calibration"] if Calibration.of_run(run) else None
    written = run.calibration or {}
    # The rates that were linked with first, then what else the calibration says.
    held = (used, written.get("weighted"), written.get("agreement"))
    for document in held:
        try:
            return number_at(document if isinstance(document, Mapping) else {}, name, n=0)
        except NotThere:
            continue
    if not any(held):
        return Estimate.missing(
            "the judge was not held against human labels: run  misslink calibrate  on the run, or "
            "evaluate with --calibration"
        )
    return Estimate.missing(f"the run's calibration holds no {name}")


def _documented(run: Run, name: str) -> Estimate:
    document, _, rest = name.partition(".")
    if document in _LATER and rest and getattr(run, document) is None:
        return Estimate.missing(f"this needs  {_LATER[document]}  on the run first")
    try:
        found = number_at(_documents(run), name, n=len(run.cases))
    except NotThere:
        raise _unknown(run, name) from None
    return Estimate.missing(_SELECTED) if "selected" in run.manifest else found


def _documents(run: Run) -> dict[str, Any]:
    later = {name: getattr(run, name) for name in _LATER}
    found = {**run.summary, **{name: one for name, one in later.items() if one is not None}}
    if run.calibration is not None:  # it may be of later than the summary
        found["corrected"] = {name: one.document() for name, one in corrected(run).items()}
    return found


def _low(run: Run, path: str) -> bool:
    keys = set(path.split("."))
    return bool(keys & _LOW) or path.rpartition(".")[2] in numbers.low_numbers(run)


def _unknown(run: Run, name: str) -> InputError:
    hint = did_you_mean(name, known_values(run))
    ranks = [spelled(entry) for entry in rank_metrics.names()]
    listed = ", ".join([*ranks, *numbers.judged_numbers(run), "latency", "errors"])
    return InputError(
        f"nothing in a run is called '{name}'; {f'{hint} Known' if hint else 'known'}: {listed}, "
        "and paths such as link.attributable_fraction, link.causes.retrieval_miss, "
        "coverage.faithfulness, usage.calls"
    )

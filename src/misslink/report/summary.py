"""The summary: the parts of the first screen, and what to do next."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from misslink.comparison.run_metrics import LINK_STATES
from misslink.documents import FirstStep, calibrations_of, manifest_of, summary_of
from misslink.failure_modes import FAILURE_MODES, FAILURES, OWNERS, FailureModeInfo
from misslink.linking.findings import leading_owners, weak_modes
from misslink.parts import case_ids
from misslink.render.format import FormattedEstimate, format_estimate, pluralize
from misslink.render.headline import Findings
from misslink.render.miss_sentences import miss_type_advice
from misslink.report.fixes import CountedFix, confirmed_owners, count_fixes
from misslink.report.links import LinkedCases, number_cases, view_fragment
from misslink.report.need_path import NeedExample, find_example
from misslink.retrieval.outcomes import EXPOSURE_BY_LABELS
from misslink.types import Estimate, Run

_MAX_FIXES = 3  # the view of retrieval has all
_EXPOSURE_TITLES = {
    "missing_passages": "More relevant passages, fewer failures",
    "generator": "As many failures with every relevant passage",
    "few_associated": "Few failures are associated with missing passages",
}
_NO_CAUSE = "inconclusive (failed)"
_FRAGMENTS = {
    _NO_CAUSE: view_fragment(state="failed", failure="inconclusive"),
    "inconclusive": view_fragment(state="inconclusive"),
    "judge": view_fragment(failure="false_alarm"),
}
_FAILED_INCONCLUSIVE = FailureModeInfo(
    "unknown",
    "Inconclusive (failed)",
    "The answer failed, and no label or passage tells why.",
    action="",
    shape="",
)


@dataclass(frozen=True)
class OwnerGroup(LinkedCases):
    """Cases of one owner or outcome; ``tint`` names its color."""

    tint: str


@dataclass(frozen=True)
class FirstScreen:
    """The drawings of the first screen; ``exposure`` has levels, their filters and shares that fail."""

    owners: tuple[OwnerGroup, ...]
    exposure_title: str
    exposure: tuple[tuple[str, str, Estimate], ...]
    fixes: tuple[CountedFix, ...]
    example: NeedExample | None


@dataclass(frozen=True)
class FailureRow:
    """A failure mode or another outcome, with its share of all cases."""

    key: str
    mode: FailureModeInfo
    owner: str
    count: int
    inferred: int
    share: FormattedEstimate
    fragment: str
    advice: str


def read_first_screen(run: Run, findings: Findings) -> FirstScreen:
    """Collect the first screen of a run."""
    why = findings.by_exposure.code if findings.by_exposure else ""
    exposure = (
        (level, outcome, findings.exposure[level]) for outcome, level in EXPOSURE_BY_LABELS.items()
    )
    return FirstScreen(
        owners=tuple(_owner_groups(run) if findings.judged else _retrieval_groups(run)),
        exposure_title=_EXPOSURE_TITLES.get(why, "Too few answers to tell whether passages help"),
        exposure=tuple(row for row in exposure if findings.judged and row[2].value is not None),
        fixes=count_fixes(run)[:_MAX_FIXES],
        example=find_example(run, findings.blamed),
    )


def _owner_groups(run: Run) -> Iterator[OwnerGroup]:
    """The failures by owner, then what is no failure."""
    known = set(case_ids(run.cases))
    links = [link for link in run.outcomes if link.case_id in known and link.failure]
    owners = Counter(link.owner for link in links if link.failed or link.owner == "judge")
    for owner in OWNERS:
        if owners[owner]:
            label = _NO_CAUSE if owner == "unknown" else owner.replace("_", " ")
            fragment = _FRAGMENTS.get(label) or view_fragment(owner=owner)
            yield OwnerGroup(label, owners[owner], fragment, owner)
    states = Counter(LINK_STATES[link.failed] for link in links if link.owner != "judge")
    for state in ("passed", "inconclusive"):
        if states[state]:
            yield OwnerGroup(state, states[state], view_fragment(state=state), state)


def _retrieval_groups(run: Run) -> Iterator[OwnerGroup]:
    """Without a judge: how many of their relevant passages the questions got."""
    counts = Counter[str](link.retrieval for link in run.outcomes)
    for outcome, level in EXPOSURE_BY_LABELS.items():
        if counts[outcome]:
            label = f"with {level} of their relevant passages"
            yield OwnerGroup(label, counts[outcome], view_fragment(retrieval=outcome), outcome)


_MAX_STEPS = 3
_MEASURED = ("measured_rank", "whatif", "replay")
# By owner that a replay confirms where the run names another: what to do, without a failure mode.
_CONFIRMED = {
    "generator": "Change the generator's prompt or model: it fails with the relevant passages alone, too.",
    "retriever": FAILURE_MODES["retrieval_miss"].action,
    "index": FAILURE_MODES["not_indexed"].action,
    "prompt": FAILURE_MODES["dropped_from_prompt"].action,
}


@dataclass(frozen=True)
class NextStep:
    """One thing to do: plain text, so escape it; commands are in backticks.

    ``cases`` are those that it would help, by their place in the gold set from 1, empty where it is
    about the measurement; ``fragment`` is where the page shows them; ``brief`` is a shorter action.
    ``fix`` is the name of the fix or failure mode, ``basis`` how its cases are counted: as of `Fix`.
    """

    action: str
    why: str
    cases: tuple[int, ...]
    fragment: str
    brief: str = ""
    fix: str = ""
    owner: str = ""
    basis: str = ""

    @property
    def reach(self) -> str:
        """How many failed cases it helps, where the run shows it; empty for other advice."""
        return f"{self.why.partition('. ')[0].rstrip('.')}." if self.basis else ""


def mode_advice(run: Run, mode: str) -> str:
    """Return what to do about a failure mode of `run`.

    A smaller k is advised only where no relevant passage is missing, so that no advice contradicts
    another.
    """
    if mode == "missing_label":
        return "Add the missing labels to the gold set (`misslink diagnose RUN --missing-labels FILE`)."
    if mode == "distracted" and any(link.missed for link in run.outcomes):
        return "Ask for quotes, try a stronger model; rerank, drop near-duplicates."
    action = FAILURE_MODES[mode].action
    failed = [link for link in run.outcomes if link.failure == mode]
    if 2 * sum(link.loss == "stale_passage" for link in failed) > len(failed):
        return "Index the changed documents again: the index holds an older text."
    if mode == "retrieval_miss":
        known = [miss.known for link in failed for miss in link.missed]
        if known and not any(known):
            return f"{action} No rank is known: give the corpus (--corpus FILE)."
    return action


def failure_mode_rows(run: Run) -> tuple[FailureRow, ...]:
    """Return every outcome that occurs, failures first, the most frequent first, with its share."""
    from misslink.stats import proportion  # may import scipy

    counts = Counter(
        _NO_CAUSE if link.unexplained else link.failure for link in run.outcomes if link.failure
    )
    inferred = Counter[str | None](
        link.failure for link in run.outcomes if link.basis == "inferred" and not link.unexplained
    )
    modes = {**FAILURE_MODES, _NO_CAUSE: _FAILED_INCONCLUSIVE}
    return tuple(
        FailureRow(
            key=key,
            mode=mode,
            owner=mode.owner.replace("_", " ") if mode.failed or key == "false_alarm" else "",
            count=counts[key],
            inferred=inferred[key],
            share=format_estimate("share", proportion(counts[key], counts.total())),
            fragment=_FRAGMENTS.get(key) or view_fragment(failure=key),
            advice=mode_advice(run, key) if key in FAILURES else "",
        )
        for key, mode in sorted(
            modes.items(), key=lambda item: (not item[1].failed, -counts[item[0]])
        )
        if counts[key]
    )


def inferred_note(run: Run) -> str:
    """How often what a search found without labels is right; empty without such failures."""
    notes = (note.message for note in summary_of(run).warnings if note.code == "inferred")
    return next(notes, "")


def next_steps(run: Run) -> tuple[NextStep, ...]:
    """Return up to three steps: each the one that helps most cases that no earlier step helps.

    The first is for the owner with most failures, measured before a bound. A case counts half
    where a fix of retrieval is an upper bound, and where the judge often confuses the failure mode. The
    cases that the judge failed on and labels for the judge come last.
    """
    blamed = _leading_owners(run)
    waiting = [*_fix_steps(run), *_mode_steps(run), *_confirmed_steps(run)]
    waiting += [("unknown", 1.0, step) for step in _corpus_steps(run)]
    chosen, done = list[NextStep](), set[int]()
    while waiting and len(chosen) < _MAX_STEPS:
        new = [len(set(step.cases) - done) for *_, step in waiting]
        ranked = [(new[n] * weight, new[n], n) for n, (_, weight, _) in enumerate(waiting)]
        if not chosen:
            ranked = [row for row in ranked if waiting[row[2]][0] in blamed and row[0]] or ranked
            measured = [row for row in ranked if waiting[row[2]][2].basis in _MEASURED and row[0]]
            ranked = measured or ranked
        *_, most, best = max(ranked, key=lambda row: row[:2])
        if not most:
            break
        chosen.append(waiting.pop(best)[2])
        done.update(chosen[-1].cases)
    return (*chosen, *_repeat_steps(run), *_label_steps(run))[:_MAX_STEPS]


def _leading_owners(run: Run) -> tuple[str, ...]:
    """The owners with most failed cases, where a replay has confirmed some by these."""
    confirmed = confirmed_owners(run)
    if not confirmed:
        return leading_owners(run)
    failed = (link for link in run.outcomes if link.failed)
    counts = Counter(confirmed.get(link.case_id, link.owner or "unknown") for link in failed)
    return tuple(owner for owner, n in counts.items() if n == max(counts.values()))


def _confirmed_steps(run: Run) -> Iterator[tuple[str, float, NextStep]]:
    """What a replay confirms against the owner that the run names: owner, weight, advice."""
    numbers, confirmed = number_cases(run.cases), confirmed_owners(run)
    ids_of = dict[str, list[int]]()
    for link in run.outcomes:
        owner = confirmed.get(link.case_id)
        if link.failed and owner in _CONFIRMED and owner != link.owner and link.case_id in numbers:
            ids_of.setdefault(owner, []).append(numbers[link.case_id])
    for owner, cases in ids_of.items():
        named = owner.replace("_", " ")
        why = f"Confirmed by replay as the {named}'s: {pluralize(len(cases), 'failed case')}."
        yield (
            owner,
            1.0,
            NextStep(
                _CONFIRMED[owner],
                why,
                tuple(sorted(cases)),
                view_fragment(ids=sorted(cases)),
                fix="confirmed_owner",
                owner=owner,
                basis="replay",
            ),
        )


def first_step(run: Run) -> FirstStep | None:
    """Return the first step as ``summary.json`` has it; None where no failed case has a fix."""
    step = next(iter(next_steps(run)), None)
    if step is None or not step.fix:
        return None
    return FirstStep(
        fix=step.fix,
        action=step.brief or step.action,
        owner=step.owner,
        cases=len(step.cases),
        basis=step.basis or "at_most",
    )


def no_steps_reason(run: Run) -> str:
    """Return why there is nothing to do, for a run without `next_steps`."""
    if not run.cases:
        return "Nothing can be advised: this run has no cases."
    if all(link.failure is None for link in run.outcomes):
        return "Nothing can be advised about answers: no judge was used."
    if all(link.failed is None for link in run.outcomes):
        return "Nothing can be advised: all cases are inconclusive."
    return f"Nothing: none of {pluralize(len(run.cases), 'case')} failed."


def _fix_steps(run: Run) -> Iterator[tuple[str, float, NextStep]]:
    """Fixes of failed cases: owner, the weight of a case."""
    for counted in count_fixes(run):
        fix = counted.fix
        action, _, reason = miss_type_advice(fix.kind).partition(": ")
        forecast, sure = "", fix.evidence.code != "not_enough_data"
        if fix.avoided.value is not None:
            avoided = format_estimate("failures_avoided", fix.avoided).brief
            forecast = f" Forecast: {avoided} failures avoided{'' if sure else ': not enough data to tell'}."
        why = f"{counted.reach}{forecast} {reason[:1].upper()}{reason[1:]}"
        if fix.name == "larger_k":
            action = counted.label
        step = NextStep(
            f"{action.rstrip('.')}.",
            why.strip(),
            counted.cases,
            counted.fragment,
            f"{counted.label}.",
            fix.name,
            counted.fix.owner,
            fix.basis,
        )
        yield counted.fix.owner, fix.weight, step


def _mode_steps(run: Run) -> Iterator[tuple[str, float, NextStep]]:
    """Owner, weight and advice by failure mode; that of a miss only where no miss type says more."""
    numbers, weak, confirmed = number_cases(run.cases), weak_modes(run), confirmed_owners(run)
    ids_of: dict[str, set[str]] = {}
    for link in run.outcomes:
        if link.failure is not None:
            ids_of.setdefault(link.failure, set()).add(link.case_id)
    explained = any(
        miss.kind for link in run.outcomes if link.failure in FAILURES for miss in link.missed
    )
    missing = {row.case_id for row in summary_of(run).diagnosis.missing_labels.holes}
    for name, mode in FAILURE_MODES.items():
        ids = ids_of.get(name, set())
        fragment = view_fragment(failure=name)
        if name == "missing_label":
            ids = ids | missing
        elif name not in FAILURES or (explained and name == "retrieval_miss"):
            continue
        own = {case_id for case_id in ids if confirmed.get(case_id, mode.owner) == mode.owner}
        cases = tuple(sorted(numbers[case_id] for case_id in own if case_id in numbers))
        if cases:
            if name == "missing_label":
                fragment = view_fragment(ids=cases)
            why = f"{mode.label}: {len(cases):,} of {pluralize(len(run.cases), 'case')}."
            if name in weak:
                why += " Check these first: this judge is often wrong about them."
            action = mode_advice(run, name)
            brief = f"{re.split(r';| [(]', action, maxsplit=1)[0].rstrip('.')}."
            step = NextStep(action, why, cases, fragment, brief, name, mode.owner)
            yield mode.owner, 0.5 if name in weak else 1.0, step


def _corpus_steps(run: Run) -> Iterator[NextStep]:
    """The corpus, where no label and no search says what was missed."""
    numbers = number_cases(run.cases)
    cases = tuple(
        sorted(
            numbers[link.case_id]
            for link in run.outcomes
            if link.retrieval == "unlabelled"
            and (link.unexplained or (link.failure == "retrieval_miss" and not link.missed))
        )
    )
    if cases and not summary_of(run).diagnosis.corpus:
        yield NextStep(
            "Give the corpus (`--corpus FILE`), in which a search finds what retrieval missed.",
            f"Without labels it is not known what {pluralize(len(cases), 'failure')} missed, if anything.",
            cases,
            view_fragment(ids=cases),
        )


def _repeat_steps(run: Run) -> Iterator[NextStep]:
    """The command again, for the cases that the judge failed on."""
    numbers = number_cases(run.cases)
    failed = {score.case_id for score in run.scores if score.status == "failed"}
    cases = tuple(sorted(numbers[case_id] for case_id in failed if case_id in numbers))
    if cases:
        yield NextStep(
            "Run the same command again: it asks the judge where no reply came or could be read.",
            f"The judge failed on {len(cases):,} of {pluralize(len(run.cases), 'case')}.",
            cases,
            view_fragment(ids=cases),
        )


def _label_steps(run: Run) -> Iterator[NextStep]:
    """Labels for a judge that was not compared with any."""
    judged = len({score.case_id for score in run.scores if score.status == "scored"})
    manifest = manifest_of(run)
    known = calibrations_of(run) or run.calibration or manifest.calibration
    if judged and not known and manifest.judge not in ("", "none"):
        yield NextStep(
            f"Label {'about 100' if judged > 100 else 'these'} answers (`misslink annotate RUN`) and "
            "compare the judge with them (`misslink calibrate RUN`).",
            f"The judge of {pluralize(judged, 'case')} was not compared with labels of this app's "
            "answers.",
            (),
            "trust",
        )

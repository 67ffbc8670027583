"""The content of the report page as plain data, built from a run."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, fields
from pathlib import PurePath

from misslink.documents import Manifest, manifest_of, summary_of, whatif_of
from misslink.linking.findings import find
from misslink.render.headline import describe_errors, describe_evidence, describe_verdict
from misslink.report.association import (
    AdjustedAssociation,
    ContingencyTable,
    CorrectedAssociation,
    FailureModeRow,
    adjust_associations,
    contingency_tables,
    correct_association,
    failure_mode_rows,
)
from misslink.report.cases import run_cutoff
from misslink.report.charts import (
    CutoffCurve,
    SankeyDiagram,
    ScatterMap,
    draw_cutoff_curve,
    draw_sankey,
    draw_scatter,
)
from misslink.report.diagnosis import (
    Checklist,
    MissingLabels,
    MissTypeRow,
    miss_type_rows,
    read_checklist,
    read_missing_labels,
)
from misslink.report.explorer import CaseList, build_case_list
from misslink.report.first_screen import FirstScreen, read_first_screen
from misslink.report.glossary import metric_words, term_words
from misslink.report.judge_notes import (
    JudgeAudit,
    RepeatRow,
    describe_judging,
    read_audit,
    repeat_rows,
)
from misslink.report.judge_trust import JudgeTrust, describe_judge, read_judge_trust
from misslink.report.next_steps import NextStep, next_steps, no_steps_reason
from misslink.report.overview import (
    GroupTable,
    HeadlineNumber,
    MetricLevel,
    RunUsage,
    group_tables,
    headline_numbers,
    metric_levels,
    read_usage,
)
from misslink.report.replay import CausalFigures, ReplayTable, causal_figures, read_replay
from misslink.report.whatif import WhatIfTable, read_whatif
from misslink.types import Run

_NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class AssociationDetails:
    """What goes beyond the crude link; empty or None where the run does not hold it."""

    adjusted: tuple[AdjustedAssociation, ...]
    corrected: CorrectedAssociation | None
    misses: tuple[MissTypeRow, ...]
    checks: Checklist | None
    holes: MissingLabels | None
    replay: ReplayTable | None
    whatif: WhatIfTable | None
    map: ScatterMap | None

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """The words that a reader of these sections needs, with their meaning."""
        present = [field.name for field in fields(self) if getattr(self, field.name)]
        return tuple(term for section in present for term in term_words(section))


@dataclass(frozen=True)
class ReportPage:
    """All of the report; texts are as their writers left them, so escape them."""

    title: str
    facts: tuple[tuple[str, str], ...]
    judge: tuple[str, str]
    errors: str
    warnings: tuple[str, ...]
    verdict: str
    evidence: str
    first: FirstScreen
    proof: CausalFigures | None
    numbers: tuple[HeadlineNumber, ...]
    flow: SankeyDiagram | None
    steps: tuple[NextStep, ...]
    nothing: str
    crosses: tuple[ContingencyTable, ...]
    failures: tuple[FailureModeRow, ...]
    proven: AssociationDetails
    curve: CutoffCurve | None
    levels: tuple[MetricLevel, ...]
    slices: tuple[GroupTable, ...]
    cases: CaseList
    trusts: tuple[JudgeTrust, ...]
    audits: JudgeAudit | None
    used: RunUsage | None
    judging: tuple[str, ...]
    repeats: tuple[RepeatRow, ...]
    metrics: tuple[tuple[str, str], ...]
    manifest: tuple[tuple[str, str], ...]
    command: str

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Anchor and name of every section that the page has, in its order."""
        proven = self.proven
        all_sections: tuple[tuple[str, str, object], ...] = (
            ("flow", "Flow", True),
            ("next", "Next", True),
            ("failures", "Failure modes", True),
            ("misses", "Misses", proven.misses),
            ("curve", "Cut-off", self.curve),
            ("whatif", "What if", proven.whatif),
            ("replay", "Replay", proven.replay),
            ("cases", "Cases", True),
            ("slices", "Slices", self.slices),
            ("within", "Within groups", proven.adjusted or proven.corrected),
            ("levels", "Levels", True),
            ("checklist", "Checklist", proven.checks),
            ("holes", "Gold set", proven.holes),
            ("map", "Map", proven.map),
            ("trust", "Judge", self.trusts),
            ("used", "Cost", self.used),
            ("reading", "How to read", True),
        )
        return tuple((anchor, name) for anchor, name, present in all_sections if present)

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """The words that a reader of the page needs, each once, with their meaning."""
        curve_words = term_words("curve") if self.curve else ()
        calibrated = any(trust.measured for trust in self.trusts)
        matched = any(bias.matched for trust in self.trusts for bias in trust.bias)
        judged = (("trust", calibrated), ("matched", matched), ("audits", self.audits))
        trust_words = [word for name, present in judged if present for word in term_words(name)]
        return tuple(dict((*curve_words, *self.proven.terms, *trust_words)).items())


def build_page(run: Run, *, cases: int | None = None, table: str = "") -> ReportPage:
    """Collect everything the report shows about `run`, without model calls.

    Parameters
    ----------
    run : Run
        Any run, also one without cases, verdicts or links.
    cases : int or None
        Number of worst cases to show in full, 0 or more. None: the default of
        `misslink.report.cases`. All other parts of the report cover every case.
    table : str
        Name of the file with all cases beside the page; "" without one.

    Returns
    -------
    ReportPage
        A value that was not measured has a reason.
    """
    levels, groups, findings = metric_levels(run), group_tables(run), find(run)
    metric_names = {metric.shown.name: None for level in levels for metric in level.metrics}
    metric_names |= dict.fromkeys(name for axis in groups for name in axis.metrics)
    if whatif := whatif_of(run):
        metric_names |= dict.fromkeys(whatif.baseline)
    return ReportPage(
        title=_page_title(manifest_of(run)),
        facts=_run_facts(run),
        judge=describe_judge(run),
        errors=describe_errors(findings),
        warnings=tuple(
            warning["message"]
            for warning in summary_of(run).warnings
            if warning["code"] not in {"judge", "labels"}  # these are beside the judge
        ),
        verdict=describe_verdict(findings),
        evidence=describe_evidence(findings),
        first=read_first_screen(run, findings),
        proof=causal_figures(run),
        numbers=headline_numbers(run, run_cutoff(run)),
        flow=draw_sankey(run.links),
        steps=next_steps(run),
        nothing=no_steps_reason(run),
        crosses=contingency_tables(run),
        failures=failure_mode_rows(run),
        proven=_association_details(run),
        curve=draw_cutoff_curve(run, run_cutoff(run)),
        levels=levels,
        slices=groups,
        cases=build_case_list(run, most=cases, table=table),
        trusts=read_judge_trust(run),
        audits=read_audit(run),
        used=read_usage(run),
        judging=describe_judging(run),
        repeats=repeat_rows(run),
        metrics=tuple((name, metric_words(name)) for name in metric_names),
        manifest=_manifest_rows(run),
        command=manifest_of(run).command,
    )


def _association_details(run: Run) -> AssociationDetails:
    return AssociationDetails(
        adjusted=adjust_associations(run),
        corrected=correct_association(run),
        misses=miss_type_rows(run),
        checks=read_checklist(run),
        holes=read_missing_labels(run),
        replay=read_replay(run),
        whatif=read_whatif(run),
        map=draw_scatter(run),
    )


def _page_title(manifest: Manifest) -> str:
    return manifest.app or PurePath(manifest.traces).name or "A RAG app"


def _run_facts(run: Run) -> tuple[tuple[str, str], ...]:
    manifest = manifest_of(run)
    facts = {
        "Gold set": PurePath(manifest.goldset).name,
        "Cutoff": f"k = {manifest.k}" if manifest.k else "",
        "Date": _format_date(manifest.created),
    }
    return tuple(map(_recorded, facts.items()))


def _manifest_rows(run: Run) -> tuple[tuple[str, str], ...]:
    """What is needed to repeat the run, as rows of a label and a text."""
    manifest = manifest_of(run)
    known = {
        "Gold set": manifest.goldset,
        "Judge": manifest.judge,
        "Cutoff k": manifest.k,
        "Only these cases": manifest.inputs.get("cases"),
        "Asked deeper to": _max_depth(run),
        "Seed": manifest.seed,
        "Created": manifest.created,
        "misslink": manifest.misslink,
    }
    optional = ("Only these cases", "Asked deeper to")
    rows = {"App": manifest.app, "Traces": manifest.traces} | {
        label: str(value or "") if label in optional else _recorded((label, value))[1]
        for label, value in known.items()
    }
    for prompt in manifest.prompts:
        rows[f"Prompt {prompt.name}, version {prompt.version}"] = f"sha256 {prompt.sha256}"
    rows["Versions"] = ", ".join(
        " ".join(_recorded(version)) for version in manifest.versions.items()
    )
    return tuple((label, text) for label, text in rows.items() if text)


def _max_depth(run: Run) -> str:
    """How deep retrievers were really asked; "" where none was, as for traces from a file."""
    depths = [trace.depth for trace in run.traces if trace.depth is not None]
    return str(max(depths)) if depths else ""


def _recorded(fact: tuple[str, object]) -> tuple[str, str]:
    """A label with its value as text."""
    label, value = fact
    return label, _NOT_RECORDED if value is None or value == "" else str(value)


def _format_date(created: str) -> str:
    try:
        moment = dt.datetime.fromisoformat(created)
    except ValueError:
        return created
    return f"{moment.day} {moment:%B %Y}"

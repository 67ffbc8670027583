"""The content of the report page as plain data, built from a run."""

from __future__ import annotations

from pathlib import PurePath
from types import SimpleNamespace

from misslink.documents import manifest_of, summary_of
from misslink.linking.findings import find
from misslink.render.headline import describe_errors, describe_evidence, describe_verdict
from misslink.report import association, charts, diagnosis, judge_notes, overview
from misslink.report.advice import next_steps, no_steps_reason
from misslink.report.cases import run_cutoff
from misslink.report.explorer import build_case_list
from misslink.report.first_screen import read_first_screen
from misslink.report.judge_trust import describe_judge, read_judge_trust
from misslink.report.replay import read_replay
from misslink.report.whatif import read_whatif
from misslink.types import Run

_NOT_RECORDED = "not recorded"


class ReportPage(SimpleNamespace):
    """All of the report; a part that was not measured is empty or None. Texts are not escaped."""


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
    """
    findings, manifest = find(run), manifest_of(run)
    return ReportPage(
        title=manifest.app or PurePath(manifest.traces).name or "A RAG app",
        facts=(
            ("Gold set", PurePath(manifest.goldset).name or _NOT_RECORDED),
            ("Date", manifest.created.partition("T")[0] or _NOT_RECORDED),
        ),
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
        steps=next_steps(run),
        no_steps=no_steps_reason(run),
        failures=association.failure_mode_rows(run),
        cases=build_case_list(run, most=cases, table=table),
        misses=diagnosis.miss_type_rows(run),
        curves=charts.draw_cutoff_curves(run, run_cutoff(run)),
        whatif=read_whatif(run),
        checks=diagnosis.read_checklist(run),
        missing_labels=diagnosis.read_missing_labels(run),
        map=charts.draw_scatter(run),
        trusts=read_judge_trust(run),
        audits=judge_notes.read_audit(run),
        judging=judge_notes.describe_judging(run),
        repeats=judge_notes.repeat_rows(run),
        adjusted=association.adjust_associations(run),
        corrected=association.correct_association(run),
        replay=read_replay(run),
        levels=overview.metric_levels(run),
        slices=overview.group_tables(run),
        crosses=association.contingency_tables(run),
        flow=charts.draw_sankey(run.links),
        used=overview.read_usage(run),
        manifest=_manifest_rows(run),
        command=manifest.command,
    )


def _manifest_rows(run: Run) -> tuple[tuple[str, str], ...]:
    """What is needed to repeat the run, as rows of a label and a text."""
    manifest = manifest_of(run)
    depths = [trace.depth for trace in run.traces if trace.depth is not None]
    rows = {
        "App": manifest.app,
        "Traces": manifest.traces,
        "Gold set": manifest.goldset or _NOT_RECORDED,
        "Judge": manifest.judge or _NOT_RECORDED,
        "Cutoff k": manifest.k or _NOT_RECORDED,
        "Only these cases": manifest.inputs.get("cases"),
        "Depth of the deeper search": max(depths, default=None),
        "Seed": _NOT_RECORDED if manifest.seed is None else manifest.seed,
        "Created": manifest.created or _NOT_RECORDED,
        "misslink": manifest.misslink or _NOT_RECORDED,
    }
    for prompt in manifest.prompts:
        rows[f"Prompt {prompt.name}, version {prompt.version}"] = f"sha256 {prompt.sha256}"
    rows["Versions"] = ", ".join(
        f"{name} {version or _NOT_RECORDED}" for name, version in manifest.versions.items()
    )
    return tuple((label, str(text)) for label, text in rows.items() if text not in (None, ""))

"""The report as plain data: everything the page says, built from a run alone.

Rendering (``html.py`` and its templates) decides how it looks and computes nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath

from pydantic import JsonValue

from misslink.report.adjusted import Adjusted, Corrected, Dose, adjusted, corrected, doses
from misslink.report.association import (
    CauseRow,
    Headline,
    causes,
    headline,
)
from misslink.report.audited import Audits, audits
from misslink.report.badge import Badge, badge
from misslink.report.case_list import CaseList, case_list
from misslink.report.crosses import Cross, crosses
from misslink.report.diagnosis import Checklist, Holes, checklist, holes
from misslink.report.documents import mapping_in
from misslink.report.glossary import metric_words, term_words
from misslink.report.judging import RepeatRow, judging_notes, repeat_rows
from misslink.report.kcurve import Curve, curve
from misslink.report.missed import SubtypeRow, subtype_rows
from misslink.report.next import Step, next_steps, nothing_next
from misslink.report.overview import Level, Number, Slices, levels, numbers, slices
from misslink.report.replayed import Proof, Replayed, proof, replayed
from misslink.report.sankey import Flow, flow
from misslink.report.scatter import Scatter, scatter
from misslink.report.trust import Trust, trusts
from misslink.report.usage import Used, used
from misslink.report.whatif import WhatIf, whatif
from misslink.report.wording import plural
from misslink.report.worst import cutoff
from misslink.types import Run

__all__ = ["Page", "build"]

_UNKNOWN = "not recorded"


@dataclass(frozen=True)
class Proven:
    """What goes beyond the crude link; empty or None where the run does not hold it."""

    adjusted: tuple[Adjusted, ...]
    doses: tuple[Dose, ...]
    corrected: Corrected | None
    misses: tuple[SubtypeRow, ...]
    checks: Checklist | None
    holes: Holes | None
    replay: Replayed | None
    whatif: WhatIf | None
    map: Scatter | None

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """The words that a reader of these sections needs, with their meaning."""
        present = [field.name for field in fields(self) if getattr(self, field.name)]
        return tuple(term for section in present for term in term_words(section))


@dataclass(frozen=True)
class Page:
    """All of the report; texts are as their writers left them, so escape them."""

    title: str
    facts: tuple[tuple[str, str], ...]
    badge: Badge
    headline: Headline
    proof: Proof | None
    numbers: tuple[Number, ...]
    flow: Flow | None
    steps: tuple[Step, ...]
    nothing: str
    crosses: tuple[Cross, ...]
    causes: tuple[CauseRow, ...]
    proven: Proven
    curve: Curve | None
    levels: tuple[Level, ...]
    slices: tuple[Slices, ...]
    cases: CaseList
    trusts: tuple[Trust, ...]
    audits: Audits | None
    used: Used | None
    judging: tuple[str, ...]
    repeats: tuple[RepeatRow, ...]
    metrics: tuple[tuple[str, str], ...]
    manifest: tuple[tuple[str, str], ...]
    command: str

    @property
    def sections(self) -> tuple[tuple[str, str], ...]:
        """Anchor and name of every section that the page has, in its order."""
        found = self.proven
        told: tuple[tuple[str, str, object], ...] = (
            ("flow", "Flow", True),
            ("next", "Next", True),
            ("causes", "Causes", True),
            ("misses", "Misses", found.misses),
            ("curve", "Cut-off", self.curve),
            ("whatif", "What if", found.whatif),
            ("replay", "Replay", found.replay),
            ("cases", "Cases", True),
            ("slices", "Slices", self.slices),
            ("within", "Within groups", found.adjusted or found.doses or found.corrected),
            ("levels", "Levels", True),
            ("checklist", "Checklist", found.checks),
            ("holes", "Gold set", found.holes),
            ("map", "Map", found.map),
            ("trust", "Judge", self.trusts),
            ("used", "Cost", self.used),
            ("reading", "How to read", True),
        )
        return tuple((anchor, name) for anchor, name, there in told if there)

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        """The words that a reader of the page needs, each once, with their meaning."""
        curve_words = term_words("curve") if self.curve else ()
        known = any(one.measured for one in self.trusts)
        matched = any(bias.matched for one in self.trusts for bias in one.bias)
        judged = (("trust", known), ("matched", matched), ("audits", self.audits))
        trust_words = [word for name, there in judged if there for word in term_words(name)]
        return tuple(dict((*curve_words, *self.proven.terms, *trust_words)).items())


def build(run: Run, *, cases: int | None = None, table: str = "") -> Page:
    """Collect what the report says of `run`.

    Parameters
    ----------
    run : Run
        Any run: without cases, verdicts or links too. Nothing is asked of a model, and nothing
        is read but the run.
    cases : int or None
        How many cases are told in full, the worst, 0 or more; all else is said of all of them.
        None: as `misslink.report.worst` has it.
    table : str
        The name of the file with all cases beside the page, "" where there is none.

    Returns
    -------
    Page
        What was not measured says why.
    """
    found, groups = levels(run), slices(run)
    told = {metric.shown.name: None for level in found for metric in level.metrics}
    told |= dict.fromkeys(name for axis in groups for name in axis.metrics)
    told |= dict.fromkeys(mapping_in((run.whatif or {}).get("today")))
    return Page(
        title=_title(run.manifest),
        facts=_facts(run),
        badge=badge(run),
        headline=headline(run),
        proof=proof(run),
        numbers=numbers(run, cutoff(run)),
        flow=flow(run.links),
        steps=next_steps(run),
        nothing=nothing_next(run),
        crosses=crosses(run),
        causes=causes(run),
        proven=_proven(run),
        curve=curve(run, cutoff(run)),
        levels=found,
        slices=groups,
        cases=case_list(run, most=cases, table=table),
        trusts=trusts(run),
        audits=audits(run),
        used=used(run),
        judging=judging_notes(run),
        repeats=repeat_rows(run),
        metrics=tuple((name, metric_words(name)) for name in told),
        manifest=_manifest(run),
        command=_text(run.manifest, "command", ""),
    )


def _proven(run: Run) -> Proven:
    return Proven(
        adjusted=adjusted(run),
        doses=doses(run),
        corrected=corrected(run),
        misses=subtype_rows(run),
        checks=checklist(run),
        holes=holes(run),
        replay=replayed(run),
        whatif=whatif(run),
        map=scatter(run),
    )


def _title(manifest: Mapping[str, JsonValue]) -> str:
    app = _text(manifest, "app", "")
    if app:
        return app
    traces = _text(manifest, "traces", "")
    return PurePath(traces).name if traces else "A RAG app"


def _facts(run: Run) -> tuple[tuple[str, str], ...]:
    manifest = run.manifest
    return (
        ("Questions", plural(len(run.cases), "case")),
        ("Gold set", PurePath(_text(manifest, "goldset")).name),
        ("Judge", _text(manifest, "judge")),
        ("Cutoff k", _text(manifest, "k")),
        ("Date", _date(_text(manifest, "created"))),
        ("misslink", _text(manifest, "misslink")),
    )


def _manifest(run: Run) -> tuple[tuple[str, str], ...]:
    """What is needed to repeat the run, as rows of a label and a text."""
    manifest = run.manifest
    told = {
        "App": _text(manifest, "app", ""),
        "Traces": _text(manifest, "traces", ""),
        "Gold set": _text(manifest, "goldset"),
        "Judge": _text(manifest, "judge"),
        "Cutoff k": _text(manifest, "k"),
        "Only these cases": _text(mapping_in(manifest.get("inputs")), "cases", ""),
        "Asked deeper to": _deepest(run),
        "Seed": _text(manifest, "seed"),
        "Created": _text(manifest, "created"),
        "misslink": _text(manifest, "misslink"),
    }
    prompts = manifest.get("prompts")
    for prompt in prompts if isinstance(prompts, list) else []:
        fields = mapping_in(prompt)
        name = f"Prompt {_text(fields, 'name')}, version {_text(fields, 'version')}"
        told[name] = f"sha256 {_text(fields, 'sha256')}"
    versions = mapping_in(manifest.get("versions"))
    if versions:
        told["Versions"] = ", ".join(f"{name} {_text(versions, name)}" for name in versions)
    return tuple((label, text) for label, text in told.items() if text)


def _deepest(run: Run) -> str:
    """How deep retrievers were really asked; "" where none was, as for traces from a file."""
    depths = [trace.depth for trace in run.traces if trace.depth is not None]
    return str(max(depths)) if depths else ""


def _text(mapping: Mapping[str, JsonValue], key: str, missing: str = _UNKNOWN) -> str:
    value = mapping.get(key)
    return missing if value is None or value == "" else str(value)


def _date(created: str) -> str:
    try:
        moment = dt.datetime.fromisoformat(created)
    except ValueError:
        return created
    zone = f" {moment.tzname()}" if moment.tzinfo else ""
    return f"{moment.day} {moment:%B %Y, %H:%M}{zone}"

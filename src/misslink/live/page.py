"""The tables, chart, page and markdown of a live report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from misslink.live.verdict import UNIT_SIGNS, describe_difference, format_amount
from misslink.render.format import NOT_MEASURED, format_estimate, format_p_value, format_percent
from misslink.render.table import Part, TextTable
from misslink.types import Estimate

_VERDICTS = {"variant": "better", "control": "worse", None: "open"}
_INTERVALS = (
    "Any time: valid however often you look, p after Holm. Fixed: valid for one look, at a sample "
    "size planned in advance."
)


def format_value(estimate: Mapping[str, Any], unit: str) -> str:
    """An estimate with its interval in its unit; the reason where there is none."""
    if estimate["value"] is None:
        return f"{NOT_MEASURED}: {estimate['reason']}"
    if unit == "share":
        return format_estimate("share", Estimate.model_validate(dict(estimate))).brief
    text = format_amount(estimate["value"], unit) + (" s" if unit == "seconds" else "")
    if estimate["low"] is None or estimate["high"] is None:
        return text
    return (
        f"{text} [{format_amount(estimate['low'], unit)}, {format_amount(estimate['high'], unit)}]"
    )


def disagreement_sentences(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each offline metric that disagrees with live beyond chance."""
    sentences = []
    for comparison in document["comparisons"]:
        order = list(comparison["metrics"])
        chosen: dict[str, Mapping[str, Any]] = {}
        for disagreement in sorted(
            comparison["disagreements"], key=lambda disagreement: order.index(disagreement["live"])
        ):
            if disagreement["is_clear"]:
                chosen.setdefault(disagreement["offline"], disagreement)
        for disagreement in chosen.values():
            offline = describe_difference(disagreement["offline_difference"], "share")
            live = describe_difference(disagreement["live_difference"], disagreement["unit"])
            sentences.append(
                f"Offline and live disagree: offline {disagreement['offline_winner']} has the better "
                f"{disagreement['offline']}, live {disagreement['live_winner']} the better {disagreement['live']} "
                f"({disagreement['variant']} minus {document['control']}: {offline} and {live})."
            )
    return sentences


def _variants(document: Mapping[str, Any]) -> TextTable:
    return TextTable(
        ("variant", "planned", "users", "requests", "fell back", "failed", "with feedback"),
        tuple(
            (
                variant["name"],
                format_percent(variant["planned"])
                if variant["planned"]
                else f"shadow {format_percent(variant['shadow'])}",
                *(f"{variant[key]:,}" for key in ("units", "requests", "fell_back", "failed")),
                format_value(variant["with_feedback"], "share")
                if variant["requests"]
                else "no request",
            )
            for variant in document["variants"]
        ),
        numbers=("planned", "users", "requests", "fell back", "failed"),
        title="Variants",
    )


def _metrics(comparison: Mapping[str, Any], control: str) -> TextTable | None:
    rows = []
    for name, result in comparison["metrics"].items():
        unit = result["unit"]
        fixed = result["cuped"]["fixed"] if result["cuped"] else result["fixed"]
        p = format_p_value(result["p_holm"]).removeprefix("p = ").removeprefix("p ")
        rows.append(
            (
                name,
                format_value(result["control"], unit),
                format_value(result["variant"], unit),
                describe_difference(result["always_valid"]["difference"], unit),
                f"{p} {_VERDICTS[result['winner']]}".lstrip(),
                describe_difference(fixed["difference"], unit),
            )
        )
    variant = comparison["variant"]
    heads = ("metric", control, variant, "any time", "p (Holm)", "fixed")
    return TextTable(heads, rows, title=f"User metrics of {variant}") if rows else None


def _cuped_sentences(comparison: Mapping[str, Any]) -> Iterator[str]:
    """What the past explained, a sentence a metric."""
    for name, result in comparison["metrics"].items():
        cuped = result["cuped"]
        if cuped is None:
            continue
        saved = cuped["variance_reduction"]
        gone = ""
        if saved is not None:
            gone = f" takes {format_percent(saved) if saved > 0 else 'none'} of the variance"
        without = f", {cuped['units_missing']:,} without" if cuped["units_missing"] else ""
        yield f"CUPED on {name}{gone} ({cuped['units_known']:,} users with earlier requests{without})."


def _guardrails(comparison: Mapping[str, Any]) -> TextTable | None:
    rows = []
    for guard in comparison["guardrails"]:
        unit, margin = guard["unit"], "none given"
        if guard["is_relative"]:
            margin = f"+{format_percent(guard['margin'])} of control"
        elif guard["margin"] is not None:
            margin = f"+{format_amount(guard['margin'], unit)}{UNIT_SIGNS.get(unit, '')}"
        rows.append(
            (
                guard["metric"],
                format_value(guard["control"], unit),
                format_value(guard["variant"], unit),
                describe_difference(guard["difference"], unit),
                margin,
                "" if guard["status"] == "no margin" else guard["status"],
            )
        )
    heads = ("guardrail", "control", "variant", "difference, any time", "margin", "")
    return TextTable(heads, rows, title=f"Guardrails of {comparison['variant']}") if rows else None


def _interleaved(lists: Mapping[str, Any] | None) -> TextTable | None:
    """Preferences by unit and by query."""
    if lists is None:
        return None
    first, second = lists["variants"]
    share = f"share of {second}"
    return TextTable(
        ("interleaved", first, second, "ties", "no credit", share, "sign test", "any time"),
        tuple(
            (
                name,
                *(f"{lists[name]['wins'][variant]:,}" for variant in (first, second)),
                f"{lists[name]['ties']:,}",
                f"{lists[name]['without_credit']:,}",
                format_value(lists[name]["share"], "share"),
                format_p_value(lists[name]["p"]),
                format_p_value(lists[name]["p_sequential"]),
            )
            for name in ("units", "queries")
        ),
        title="Interleaved",
    )


def _shadow(shadow: Mapping[str, Any]) -> TextTable:
    """What a shadow did beside the requests."""

    def compared(name: str, result: Mapping[str, Any], unit: str) -> tuple[str, ...]:
        values = (format_value(result[side], unit) for side in ("served", "shadow"))
        return (name, *values, describe_difference(result["difference"], unit))

    return TextTable(
        ("shadow", "served", "shadow's", "difference"),
        (
            compared(f"{shadow['variant']}: errors", shadow["errors"], "share"),
            compared("latency", shadow["latency_s"], "seconds"),
            (f"overlap@{shadow['k']}", "", format_value(shadow["overlap"], "share"), ""),
            ("dropped", "", format_value(shadow["dropped"], "share"), f"of {shadow['shadows']:,}"),
        ),
        title=f"{shadow['variant']} in the shadow",
    )


def _offline(document: Mapping[str, Any]) -> TextTable | None:
    """Offline metrics and live ones side by side, a column for each variant that has a run."""
    chosen = [variant for variant in document["variants"] if variant["offline"]]
    if not chosen:
        return None
    rows = [("judge", *(variant["offline"]["judge"] for variant in chosen))]
    for name in dict.fromkeys(n for variant in chosen for n in variant["offline"]["metrics"]):
        cells = (variant["offline"]["metrics"].get(name) for variant in chosen)
        rows.append(
            (
                f"offline {name}",
                *("not in this run" if c is None else format_value(c, "share") for c in cells),
            )
        )
    live: dict[str, dict[str, str]] = {}
    for comparison in document["comparisons"]:
        for name, result in comparison["metrics"].items():
            row = live.setdefault(name, {})
            row[document["control"]] = format_value(result["control"], result["unit"])
            row[comparison["variant"]] = format_value(result["variant"], result["unit"])
    rows += [
        (f"live {name}", *(by_variant.get(variant["name"], NOT_MEASURED) for variant in chosen))
        for name, by_variant in live.items()
    ]
    heads = ("offline and live", *(variant["name"] for variant in chosen))
    return TextTable(heads, rows, title="Offline and live")


_TEMPLATES = Path(__file__).resolve().parent / "templates"
_WIDTH, _HEIGHT = 640, 250
_LEFT, _TOP, _RIGHT, _BOTTOM = 66, 14, 624, 212


def live_chart(rows: Sequence[Mapping[str, Any]], unit: str) -> dict[str, Any] | None:
    """Return paths and label positions of `difference_over_time`, in view box units.

    None with fewer than two intervals. The axis is fitted to the later half, since the first
    intervals are too wide to be useful; they are cut at its ends.
    """
    drawn = [row for row in rows if row["difference"]["low"] is not None]
    if len(drawn) < 2:
        return None
    late = drawn[len(drawn) // 2 :]
    least = min(0.0, *(row["difference"]["low"] for row in late))
    most = max(0.0, *(row["difference"]["high"] for row in late))
    margin = (most - least or 1.0) * 0.15
    least, most = least - margin, most + margin
    first, last = drawn[0]["units"], drawn[-1]["units"]

    def y(value: float) -> float:
        inside = (min(max(value, least), most) - least) / (most - least)
        return float(round(_BOTTOM - (_BOTTOM - _TOP) * inside, 1))

    def path(key: str, points: Sequence[Mapping[str, Any]]) -> str:
        along = ((row["units"] - first) / max(last - first, 1) for row in points)
        xs = (round(_LEFT + (_RIGHT - _LEFT) * share, 1) for share in along)
        ys = (y(row["difference"][key]) for row in points)
        return "L".join(f"{x} {y}" for x, y in zip(xs, ys, strict=True))

    return {
        "frame": (_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM),
        "band": f"M{path('high', drawn)}L{path('low', drawn[::-1])}Z",
        "line": f"M{path('value', drawn)}",
        "zero": y(0.0),
        "ys": [(y(tick), format_amount(tick, unit)) for tick in (most, 0.0, least)],
        "xs": [(_LEFT, f"{first:,} users", "start"), (_RIGHT, f"{last:,} users", "end")],
    }


def page_parts(page: Mapping[str, Any]) -> Iterator[Part]:
    """Yield a page of `build_live_page` in its order, for outputs that are only text and tables."""
    document, verdict = page["document"], page["document"]["verdict"]
    yield "title", f"Live: {document['experiment']}"
    for sentence in (*page["disagreements"], verdict["headline"]):
        yield "strong", sentence
    if verdict["detail"]:
        yield "text", verdict["detail"]
    yield "table", page["variants"]
    yield "text", f"Sample ratio: {document['sample_ratio']['sentence']}."
    for section in page["comparisons"]:
        variant, control = section["comparison"]["variant"], document["control"]
        yield "heading", f"{variant} against {control}"
        if section["metrics"]:
            yield "table", section["metrics"]
            yield "text", f"Differences are {variant} minus {control}. {_INTERVALS}"
        for sentence in section["cuped"]:
            yield "text", sentence
        if section["guards"]:
            yield "table", section["guards"]
    for table in (page["lists"], *page["shadows"], page["offline"]):
        if table is not None:
            yield "heading", table.title
            yield "table", table
    for note in document["notes"]:
        yield "note", note


def build_live_page(document: Mapping[str, Any]) -> dict[str, object]:
    """Turn what ``misslink live report --json`` prints into what people read, not escaped."""
    facts = {"Control": document["control"], "Decided by": document["primary"] or "no feedback yet"}
    for name, end in (("From", document["from"]), ("To", document["to"])):
        if end is not None:
            moment = dt.datetime.fromisoformat(end)
            facts[name] = f"{moment.day} {moment:%b %Y, %H:%M} UTC"
    return {
        "document": document,
        "facts": list(facts.items()),
        "disagreements": disagreement_sentences(document),
        "variants": _variants(document),
        "comparisons": [
            _variant_section(comparison, document) for comparison in document["comparisons"]
        ],
        "lists": _interleaved(document["interleaving"]),
        "shadows": list(map(_shadow, document["shadows"])),
        "offline": _offline(document),
    }


def render_live_page(page: Mapping[str, Any]) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.render.html import read_assets, render_template

    style = read_assets(_TEMPLATES, "report.css", "trend.css", "live.css")
    return render_template(_TEMPLATES / "live.jinja", page, style=style)


def _variant_section(
    comparison: Mapping[str, Any], document: Mapping[str, Any]
) -> dict[str, object]:
    """The comparison of one variant with control, as JSON values and as tables."""
    primary = document["primary"] or ""
    unit = comparison["metrics"][primary]["unit"] if primary in comparison["metrics"] else "number"
    steps = [row for row in comparison["over_time"] if row["difference"]["low"] is not None]
    over_time = TextTable(
        ("users", "difference, any time"),
        [
            (f"{row['units']:,}", describe_difference(row["difference"], unit))
            for row in reversed(steps)
        ],
        title=f"{primary} over time",
    )
    return {
        "comparison": comparison,
        "metrics": _metrics(comparison, document["control"]),
        "cuped": list(_cuped_sentences(comparison)),
        "guards": _guardrails(comparison),
        "chart": live_chart(comparison["over_time"], unit),
        "table": over_time if steps else None,
    }

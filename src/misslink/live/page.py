"""The tables, chart, page and markdown of a live report."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misslink.live.verdict import describe_difference, format_amount
from misslink.render.format import NOT_MEASURED, format_estimate, format_p_value, format_percent
from misslink.render.markdown import escape_markdown, markdown_table
from misslink.types import Estimate

Rows = list[tuple[str, ...]]

VARIANT_HEADS = ("variant", "planned", "units", "requests", "fell back", "failed", "with feedback")
GUARD_HEADS = ("guardrail", "control", "variant", "difference, any time", "margin", "")
SHADOW_HEADS = ("shadow", "served", "shadow's", "difference")
_VERDICTS = {"variant": "better", "control": "worse", None: "open"}


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
        clear = [
            disagreement for disagreement in comparison["disagreements"] if disagreement["is_clear"]
        ]
        order = list(comparison["metrics"])
        chosen: dict[str, Mapping[str, Any]] = {}
        for disagreement in sorted(
            clear, key=lambda disagreement: order.index(disagreement["live"])
        ):
            chosen.setdefault(disagreement["offline"], disagreement)
        sentences += [
            _disagreement(disagreement, document["control"]) for disagreement in chosen.values()
        ]
    return sentences


def _disagreement(disagreement: Mapping[str, Any], control: str) -> str:
    offline = describe_difference(disagreement["offline_difference"], "share")
    live = describe_difference(disagreement["live_difference"], disagreement["unit"])
    return (
        f"Offline and live disagree: offline {disagreement['offline_winner']} has the better "
        f"{disagreement['offline']}, live {disagreement['live_winner']} the better {disagreement['live']} "
        f"({disagreement['variant']} minus {control}: {offline} and {live})."
    )


def variant_rows(document: Mapping[str, Any]) -> Rows:
    """Variants with their counts."""
    return [
        (
            variant["name"],
            format_percent(variant["planned"])
            if variant["planned"]
            else f"shadow {format_percent(variant['shadow'])}",
            f"{variant['units']:,}",
            f"{variant['requests']:,}",
            f"{variant['fell_back']:,}",
            f"{variant['failed']:,}",
            format_value(variant["with_feedback"], "share")
            if variant["requests"]
            else "no request",
        )
        for variant in document["variants"]
    ]


def metric_heads(control: str, variant: str) -> tuple[str, ...]:
    """Of `metric_rows`."""
    return ("metric", control, variant, "any time", "p (Holm)", "fixed")


def metric_rows(comparison: Mapping[str, Any]) -> Rows:
    """User metrics of a comparison."""
    rows: Rows = []
    for name, result in comparison["metrics"].items():
        unit = result["unit"]
        fixed = result["cuped"]["fixed"] if result["cuped"] else result["fixed"]
        rows.append(
            (
                name,
                format_value(result["control"], unit),
                format_value(result["variant"], unit),
                describe_difference(result["always_valid"]["difference"], unit),
                f"{_plain_p(result['p_holm'])} {_VERDICTS[result['winner']]}".lstrip(),
                describe_difference(fixed["difference"], unit),
            )
        )
    return rows


def cuped_sentences(comparison: Mapping[str, Any]) -> list[str]:
    """What the past explained, a sentence a metric."""
    sentences = []
    for name, result in comparison["metrics"].items():
        cuped = result["cuped"]
        if cuped is None:
            continue
        saved = cuped["variance_reduction"]
        gone = (
            ""
            if saved is None
            else f" takes {format_percent(saved)} of the variance"
            if saved > 0
            else " takes none of the variance"
        )
        without = f", {cuped['units_missing']:,} without" if cuped["units_missing"] else ""
        sentences.append(
            f"CUPED on {name}{gone} ({cuped['units_known']:,} units with a past{without})."
        )
    return sentences


def guard_rows(comparison: Mapping[str, Any]) -> Rows:
    """Guardrails of a comparison."""
    return [
        (
            guard["metric"],
            format_value(guard["control"], guard["unit"]),
            format_value(guard["variant"], guard["unit"]),
            describe_difference(guard["difference"], guard["unit"]),
            _margin(guard),
            "" if guard["status"] == "no margin" else guard["status"],
        )
        for guard in comparison["guardrails"]
    ]


def list_heads(lists: Mapping[str, Any]) -> tuple[str, ...]:
    """Of `list_rows`."""
    first, second = lists["variants"]
    share = f"share of {second}"
    return ("interleaved", first, second, "ties", "no credit", share, "sign test", "any time")


def list_rows(lists: Mapping[str, Any]) -> Rows:
    """Preferences by unit and by query."""
    first, second = lists["variants"]
    rows: Rows = []
    for name in ("units", "queries"):
        counts = lists[name]
        rows.append(
            (
                name,
                f"{counts['wins'][first]:,}",
                f"{counts['wins'][second]:,}",
                f"{counts['ties']:,}",
                f"{counts['without_credit']:,}",
                format_value(counts["share"], "share"),
                format_p_value(counts["p"]),
                format_p_value(counts["p_sequential"]),
            )
        )
    return rows


def shadow_rows(shadow: Mapping[str, Any]) -> Rows:
    """What a shadow did beside the requests."""
    errors, latency = shadow["errors"], shadow["latency_s"]
    return [
        (
            f"{shadow['variant']}: errors",
            format_value(errors["served"], "share"),
            format_value(errors["shadow"], "share"),
            describe_difference(errors["difference"], "share"),
        ),
        (
            "latency",
            format_value(latency["served"], "seconds"),
            format_value(latency["shadow"], "seconds"),
            describe_difference(latency["difference"], "seconds"),
        ),
        (f"overlap@{shadow['k']}", "", format_value(shadow["overlap"], "share"), ""),
        ("dropped", "", format_value(shadow["dropped"], "share"), f"of {shadow['shadows']:,}"),
    ]


def offline_heads(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Of `beside_rows`."""
    return (
        "offline and live",
        *(variant["name"] for variant in document["variants"] if variant["offline"]),
    )


def offline_rows(document: Mapping[str, Any]) -> Rows:
    """Offline metrics and live ones side by side, a column for each variant that has a run."""
    chosen = [variant for variant in document["variants"] if variant["offline"]]
    if not chosen:
        return []
    rows: Rows = [("judge", *(variant["offline"]["judge"] for variant in chosen))]
    for name in dict.fromkeys(n for variant in chosen for n in variant["offline"]["metrics"]):
        cells = (variant["offline"]["metrics"].get(name) for variant in chosen)
        rows.append(
            (
                f"offline {name}",
                *("not in this run" if c is None else format_value(c, "share") for c in cells),
            )
        )
    live: dict[str, dict[str, str]] = {}
    for variant in document["comparisons"]:
        for name, result in variant["metrics"].items():
            row = live.setdefault(name, {})
            row[document["control"]] = format_value(result["control"], result["unit"])
            row[variant["variant"]] = format_value(result["variant"], result["unit"])
    for name, by_variant in live.items():
        cells_live = (by_variant.get(variant["name"], NOT_MEASURED) for variant in chosen)
        rows.append((f"live {name}", *cells_live))
    return rows


def _plain_p(p: float | None) -> str:
    """A p-value without its letter."""
    return format_p_value(p).removeprefix("p = ").removeprefix("p ")


def _margin(guard: Mapping[str, Any]) -> str:
    if guard["margin"] is None:
        return "none given"
    if guard["is_relative"]:
        return f"+{format_percent(guard['margin'])} of control"
    unit = {"share": " points", "seconds": " s"}.get(guard["unit"], "")
    return f"+{format_amount(guard['margin'], guard['unit'])}{unit}"


_TEMPLATES = Path(__file__).resolve().parent / "templates"
_WIDTH, _HEIGHT = 640, 250
_LEFT, _TOP, _RIGHT, _BOTTOM = 66, 14, 624, 212
_TWO = 2


@dataclass(frozen=True)
class LiveChart:
    """Chart paths and label positions, in view box units."""

    width: int
    height: int
    frame: tuple[float, float, float, float]
    band: str
    line: str
    zero: float
    ys: tuple[tuple[float, str], ...]
    xs: tuple[tuple[float, str, str], ...]


def live_chart(rows: Sequence[Mapping[str, Any]], unit: str) -> LiveChart | None:
    """Draw what `misslink.live.comparison.difference_over_time` gives.

    Returns
    -------
    LiveChart or None
        None: there are fewer than two intervals. The axis is fitted to the later half, since the
        first intervals are wide beyond any use; they are cut at its ends.
    """
    drawn = [row for row in rows if row["difference"]["low"] is not None]
    if len(drawn) < _TWO:
        return None
    late = drawn[len(drawn) // 2 :]
    least = min(0.0, *(row["difference"]["low"] for row in late))
    most = max(0.0, *(row["difference"]["high"] for row in late))
    margin = (most - least or 1.0) * 0.15
    least, most = least - margin, most + margin
    first, last = drawn[0]["units"], drawn[-1]["units"]

    def x(units: int) -> float:
        along: float = (units - first) / max(last - first, 1)
        return round(_LEFT + (_RIGHT - _LEFT) * along, 1)

    def y(value: float) -> float:
        inside = (min(max(value, least), most) - least) / (most - least)
        return float(round(_BOTTOM - (_BOTTOM - _TOP) * inside, 1))

    def path(key: str, points: Sequence[Mapping[str, Any]]) -> str:
        return "L".join(f"{x(row['units'])} {y(row['difference'][key])}" for row in points)

    ticks = sorted({least, 0.0, most}, reverse=True)
    return LiveChart(
        width=_WIDTH,
        height=_HEIGHT,
        frame=(_LEFT, _TOP, _RIGHT, _BOTTOM),
        band=f"M{path('high', drawn)}L{path('low', drawn[::-1])}Z",
        line=f"M{path('value', drawn)}",
        zero=y(0.0),
        ys=tuple((y(tick), format_amount(tick, unit)) for tick in ticks),
        xs=((_LEFT, f"{first:,} units", "start"), (_RIGHT, f"{last:,} units", "end")),
    )


def live_markdown(document: Mapping[str, Any]) -> str:
    """The report.

    Parameters
    ----------
    document : mapping
        As ``misslink live report --json`` prints it.

    Returns
    -------
    str
        Every text escaped, ending in a line break.
    """
    return "\n\n".join(part.strip("\n") for part in _markdown_sections(document)) + "\n"


def _markdown_sections(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Live: {escape_markdown(document['experiment'])}"
    for sentence in disagreement_sentences(document):
        yield f"**{escape_markdown(sentence)}**"
    yield f"**{escape_markdown(document['verdict']['sentence'])}**"
    yield _markdown_table(VARIANT_HEADS, variant_rows(document), (2, 3, 4, 5))
    yield f"Sample ratio: {escape_markdown(document['sample_ratio']['sentence'])}."
    for section in document["comparisons"]:
        control, variant = document["control"], section["variant"]
        yield f"### {escape_markdown(variant)} against {escape_markdown(control)}"
        if section["metrics"]:
            yield _markdown_table(metric_heads(control, variant), metric_rows(section))
            yield (
                f"Differences are {escape_markdown(variant)} minus {escape_markdown(control)}. Any time: valid "
                "however often you look, p after Holm. Fixed: valid for one look, at a sample size "
                "planned in advance."
            )
        for sentence in cuped_sentences(section):
            yield escape_markdown(sentence)
        if section["guardrails"]:
            yield _markdown_table(GUARD_HEADS, guard_rows(section))
    lists = document["interleaving"]
    if lists is not None:
        yield "### Interleaved"
        yield _markdown_table(list_heads(lists), list_rows(lists))
    for section in document["shadows"]:
        yield f"### {escape_markdown(section['variant'])} in the shadow"
        yield _markdown_table(SHADOW_HEADS, shadow_rows(section))
    offline = offline_rows(document)
    if offline:
        yield "### Offline and live"
        yield _markdown_table(offline_heads(document), offline)
    if document["notes"]:
        yield "\n".join(f"- {escape_markdown(note)}" for note in document["notes"])


def _markdown_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], right: tuple[int, ...] = ()
) -> str:
    return markdown_table(
        tuple(map(escape_markdown, heads)),
        [tuple(map(escape_markdown, row)) for row in rows],
        right=right,
    )


_WARNED = ("stop",)


@dataclass(frozen=True)
class LiveTable:
    """A table of texts: its name for those who cannot see it, heads and rows."""

    name: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class VariantSection:
    """The comparison of one variant with control."""

    variant: str
    control: str
    metrics: LiveTable | None
    words: tuple[tuple[str, str], ...]
    cuped: tuple[str, ...]
    guards: LiveTable | None
    primary: str
    chart: LiveChart | None
    table: LiveTable | None


@dataclass(frozen=True)
class LivePage:
    """All of the page; texts are as their writers left them, so escape them."""

    title: str
    facts: tuple[tuple[str, str], ...]
    disagreements: tuple[str, ...]
    finding: str
    is_warning: bool
    variants: LiveTable
    ratio: str
    is_broken: bool
    comparisons: tuple[VariantSection, ...]
    lists: LiveTable | None
    shadows: tuple[LiveTable, ...]
    beside: LiveTable | None
    notes: tuple[str, ...]
    alpha: str


def build_live_page(document: Mapping[str, Any]) -> LivePage:
    """Turn what ``misslink live report --json`` prints into what people read."""
    verdict, lists = document["verdict"], document["interleaving"]
    offline = offline_rows(document)
    return LivePage(
        title=document["experiment"],
        facts=tuple(
            (name, value)
            for name, value in (
                ("Control", document["control"]),
                ("Decided by", document["primary"] or "no feedback yet"),
                ("From", _date(document["from"])),
                ("To", _date(document["to"])),
            )
            if value
        ),
        disagreements=tuple(disagreement_sentences(document)),
        finding=verdict["sentence"],
        is_warning=verdict["decision"] in _WARNED,
        variants=_html_table("Variants", VARIANT_HEADS, variant_rows(document)),
        ratio=document["sample_ratio"]["sentence"],
        is_broken=document["sample_ratio"]["broken"],
        comparisons=tuple(
            _variant_section(section, document) for section in document["comparisons"]
        ),
        lists=None
        if lists is None
        else _html_table("Interleaved", list_heads(lists), list_rows(lists)),
        shadows=tuple(
            _html_table(
                f"{section['variant']} in the shadow",
                SHADOW_HEADS,
                shadow_rows(section),
            )
            for section in document["shadows"]
        ),
        beside=_html_table("Offline and live", offline_heads(document), offline)
        if offline
        else None,
        notes=tuple(document["notes"]),
        alpha=f"{100 * (1 - document['alpha']):g} %",
    )


def render_live_page(page: LivePage) -> str:
    """Turn the page into HTML: everything escaped, no script at all."""
    from misslink.render.html import read_assets, render_template

    style = read_assets(_TEMPLATES, "report.css", "trend.css", "live.css")
    return render_template(_TEMPLATES / "live.jinja", page, style=style)


def _variant_section(comparison: Mapping[str, Any], document: Mapping[str, Any]) -> VariantSection:
    control, variant = document["control"], comparison["variant"]
    primary = document["primary"] or ""
    unit = comparison["metrics"][primary]["unit"] if primary in comparison["metrics"] else "number"
    steps = [row for row in comparison["over_time"] if row["difference"]["low"] is not None]
    return VariantSection(
        variant=variant,
        control=control,
        metrics=_html_table(
            f"User metrics of {variant}",
            metric_heads(control, variant),
            metric_rows(comparison),
        )
        if comparison["metrics"]
        else None,
        words=tuple((name, result["words"]) for name, result in comparison["metrics"].items()),
        cuped=tuple(cuped_sentences(comparison)),
        guards=_html_table(f"Guardrails of {variant}", GUARD_HEADS, guard_rows(comparison))
        if comparison["guardrails"]
        else None,
        primary=primary,
        chart=live_chart(comparison["over_time"], unit),
        table=_html_table(
            f"{primary} over time",
            ("units", "difference, any time"),
            [
                (f"{row['units']:,}", describe_difference(row["difference"], unit))
                for row in reversed(steps)
            ],
        )
        if steps
        else None,
    )


def _html_table(name: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> LiveTable:
    return LiveTable(name, tuple(heads), tuple(map(tuple, rows)))


def _date(at: str | None) -> str:
    if at is None:
        return ""
    moment = dt.datetime.fromisoformat(at)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"

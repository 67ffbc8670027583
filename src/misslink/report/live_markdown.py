"""A live experiment as markdown, for a chat or a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from misslink.files.markdown import inline, table
from misslink.report import live_rows as rows_of

__all__ = ["markdown"]


def markdown(document: Mapping[str, Any]) -> str:
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
    return "\n\n".join(part.strip("\n") for part in _parts(document)) + "\n"


def _parts(document: Mapping[str, Any]) -> Iterator[str]:
    yield f"## Live: {inline(document['experiment'])}"
    for sentence in rows_of.disagreement_words(document):
        yield f"**{inline(sentence)}**"
    yield f"**{inline(document['verdict']['sentence'])}**"
    yield _table(rows_of.VARIANT_HEADS, rows_of.variant_rows(document), (2, 3, 4, 5))
    yield f"Sample ratio: {inline(document['sample_ratio']['sentence'])}."
    for one in document["comparisons"]:
        control, variant = document["control"], one["variant"]
        yield f"### {inline(variant)} against {inline(control)}"
        if one["metrics"]:
            yield _table(rows_of.metric_heads(control, variant), rows_of.metric_rows(one))
            yield (
                f"Differences are {inline(variant)} minus {inline(control)}. Any time: valid "
                "however often one looks, p after Holm. Fixed: for one look, at a size planned "
                "beforehand."
            )
        for sentence in rows_of.cuped_words(one):
            yield inline(sentence)
        if one["guardrails"]:
            yield _table(rows_of.GUARD_HEADS, rows_of.guard_rows(one))
    lists = document["interleaving"]
    if lists is not None:
        yield "### Interleaved"
        yield _table(rows_of.list_heads(lists), rows_of.list_rows(lists))
    for one in document["shadows"]:
        yield f"### {inline(one['variant'])} in the shadow"
        yield _table(rows_of.SHADOW_HEADS, rows_of.shadow_rows(one))
    beside = rows_of.beside_rows(document)
    if beside:
        yield "### Offline and live"
        yield _table(rows_of.beside_heads(document), beside)
    if document["notes"]:
        yield "\n".join(f"- {inline(note)}" for note in document["notes"])


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: tuple[int, ...] = ()) -> str:
    return table(tuple(map(inline, heads)), [tuple(map(inline, row)) for row in rows], right=right)

"""Compare runs of the same cases."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import PrivateAttr

from misslink.api.saved_run import SavedRun
from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.pairing import NamedRun
from misslink.comparison.preferences import StoredPreferences
from misslink.document_model import Document, Result
from misslink.errors import InputError
from misslink.io.atomic import atomic_write
from misslink.io.storage import redact_url
from misslink.render.html import html_table
from misslink.report import comparison as pages
from misslink.types import Estimate, Run


class MetricComparison(Document):
    """One metric of two runs, over the cases with a value in both; ``difference`` is B minus A.

    ``p_holm`` is corrected over the metrics of its level. ``winner`` is 'a', 'b' or None: the
    difference may be chance, or two judges judged.
    """

    level: str
    a: Estimate
    b: Estimate
    difference: Estimate
    n: int
    p: float | None
    p_holm: float | None
    detectable: float | None
    winner: str | None
    lower_is_better: bool


class FlippedCases(Document):
    """Ids of the cases whose yes or no is better, or worse, in B."""

    better: tuple[str, ...]
    worse: tuple[str, ...]


class PairComparison(Document):
    """A run compared with the first one."""

    b: str
    paired: int
    same_judge: bool
    metrics: dict[str, MetricComparison]
    flipped: dict[str, FlippedCases]
    notes: tuple[str, ...]


class Comparison(PairComparison, Result):
    """Runs compared with the first one, ``a``; of two runs, also at the top.

    Examples
    --------
    >>> import misslink
    >>> compared = misslink.compare("reports/a", "reports/b")  # doctest: +SKIP
    >>> compared.metrics["recall@5"].difference.value  # doctest: +SKIP
    0.12
    """

    a: str
    names: tuple[str, ...]
    cases: tuple[str, ...]
    comparisons: tuple[PairComparison, ...]
    _printed: Mapping[str, Any] = PrivateAttr(default_factory=dict)
    _runs: Mapping[str, SavedRun] = PrivateAttr(default_factory=dict)  # by name

    def document(self) -> dict[str, object]:
        """Return it as ``--json`` prints it."""
        return dict(self._printed)

    def html(self, path: str | Path) -> Path:
        """Write the comparison as a page, and return its path."""
        path = Path(path)
        return atomic_write(pages.render_comparison_page(self.page(path)), path)

    def markdown(self, path: str | Path, *, page: str | Path | None = None) -> Path:
        """Write it as a comment for a pull request that links to `page`; return its path."""
        path = Path(path)
        link = "" if page is None else _relative_url(Path(page), path)
        text = pages.comparison_markdown(self.page(path), page_at=link)
        return atomic_write(text, path)

    def page(self, path: Path | None = None) -> pages.ComparisonPage:
        """What a page at `path` shows, with links to the reports of the runs."""
        reports = {
            name: _relative_url(saved.folder.resolve() / "report.html", path)
            for name, saved in self._runs.items()
            if path and saved.folder and (saved.folder.resolve() / "report.html").is_file()
        }
        runs = {name: saved.run for name, saved in self._runs.items()}
        return pages.build_comparison_page(self.document(), runs, reports)

    def _repr_html_(self) -> str:
        page = self.page()
        parts = [html_table(page.headline, (), ())]
        for compared in page.comparisons:
            rows = [
                (row.name, row.a.value, row.b.value, row.difference.brief, row.verdict)
                for row in compared.rows
            ]
            columns = ("metric", page.runs[0][0], compared.name, "difference [95%]", "")
            parts.append(html_table("", columns, rows))
        return "".join(parts)


def compare(
    *runs: Run | SavedRun | str | Path | Any,
    names: Sequence[str] = (),
    metrics: Sequence[str] | None = None,
    cases: Collection[str] | None = None,
    preferences: Sequence[str | Path] = (),
) -> Comparison:
    """Compare runs of the same cases with paired tests.

    Parameters
    ----------
    runs : Run, path, data frame or list of mappings
        Two or more runs, or their folders; each further one is compared with the first. A file,
        frame or list is a score table: case, metric and value, and where there is more run and
        cluster. One with a column ``run`` may be several runs.
    names : sequence of str
        What outputs call the runs, in their order. Default: their folders.
    metrics : sequence of str or None
        Metrics with a value per case, such as ``recall@5``. None: all of the three levels.
    cases : collection of str or None
        Ids of the cases to compare. None: all that ask the same question in every run.
    preferences : sequence of path
        Outputs of ``misslink judge pairwise A B --json``.

    Returns
    -------
    Comparison
        With ``metrics`` by name; `Comparison.html` writes the page.

    Raises
    ------
    InputError
        A run cannot be read, the runs share no case, or a metric is unknown.

    Examples
    --------
    >>> import misslink
    >>> compared = misslink.compare("reports/a", "reports/b")  # doctest: +SKIP
    >>> compared.metrics["recall@5"].winner  # doctest: +SKIP
    'b'
    """
    named = _name_runs(runs, names)
    document = compare_runs(
        [NamedRun(name, saved.run, title) for name, title, saved in named],
        metrics=metrics,
        cases=cases,
        preferences=[StoredPreferences.read(Path(path)) for path in preferences],
    )
    comparison = Comparison.read(document)
    comparison._printed = document  # noqa: SLF001 (its own)
    comparison._runs = {name: saved for name, _, saved in named}  # noqa: SLF001 (its own)
    return comparison


def _name_runs(runs: Sequence[Any], titles: Sequence[str]) -> list[tuple[str, str, SavedRun]]:
    """Each run with its name and its title for people; no two are alike."""
    seen: dict[Any, Any] = {}
    for run in runs:
        key = Path(run).resolve() if isinstance(run, str | Path) else id(run)
        if key in seen:
            if not isinstance(run, str | Path):
                raise InputError("two of the runs to compare are the same one; give two runs")
            problem = f"this is the same run as {redact_url(seen[key])}; name another one"
            raise InputError(problem, path=redact_url(run))
        seen[key] = run
    saved = [each for run in runs for each in SavedRun.open_all(run)]
    if titles and (len(titles) != len(saved) or len(set(titles)) < len(titles)):
        raise InputError(
            f"{len(saved)} runs need {len(saved)} different names, in the same order",
            field="--name",
        )
    names = [each.name or f"run {place}" for place, each in enumerate(saved, 1)]
    if len(set(names)) < len(names):  # two folders whose ends are the same
        names = [
            redact_url(each.folder) if each.folder else f"run {place}"
            for place, each in enumerate(saved, 1)
        ]
    return list(zip(names, titles or _short_names(names), saved, strict=True))


def _short_names(names: Sequence[str]) -> list[str]:
    """The last parts of the paths, as many as tell all of them apart."""
    parts = [name.rstrip("/").split("/") for name in names]
    for count in range(1, max(map(len, parts), default=0) + 1):
        short = ["/".join(path[-count:]) for path in parts]
        if len(set(short)) == len(short):
            ends = [name.rpartition("#")[2] for name in short]  # runs of a score table
            return ends if len(set(ends)) == len(ends) else short
    return list(names)


def _relative_url(target: Path, page: Path) -> str:
    """The percent-encoded path of a file as seen from a page."""
    return quote(Path(os.path.relpath(target.resolve(), page.resolve().parent)).as_posix())

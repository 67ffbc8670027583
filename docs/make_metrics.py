"""Writes what docs/metrics.md and docs/reference/judged-metrics.md say of each metric, from its docstring."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from misslink.registry import judged_metrics, rank_metrics
from misslink.retrieval import format_metric_name, metric_bounds

HERE = Path(__file__).parent
PAGE = HERE / "metrics.md"
JUDGED_PAGE = HERE / "reference" / "judged-metrics.md"
OWN = HERE / "own_metric.py"

HEAD = """\
# Rank metrics

Rank metrics compare a ranking with relevance labels. A metric has one name everywhere: in JSON, in tables and on
the command line, as in `misslink retrieval --qrels Q --run R --metrics recall@5,mrr`. `k` is a whole number from 1,
`p` a fraction such as 0.8.

## Which one to use

- **recall** if a miss is costly
- **precision** if noise is costly
- **MRR** if only the first result counts
- **nDCG** if grades and order matter
- **judged@k** beside all of them: it shows how much of the ranking was judged

Use several. Each one alone can rise without a better retriever: recall by returning more, precision by
returning one sure passage, hit@k by a larger k, and MRR by one good passage at the first place. A change
that raises recall and precision at the same k is an improvement.

"""

RULES = """\
## Rules for all metrics

- A query without relevant passages has no value, except for metrics of labels, such as judged@k. It is counted
  and shown, and does not enter the mean.
- A query that is missing from a run, or has an empty result list, scores 0 and is counted. Exception: it
  has no judged@k.
- Precision divides by k, even if fewer passages were retrieved.
- A passage is relevant if its grade reaches the relevance level: 1, or `--relevance-level`. nDCG uses the
  grades themselves, even those below the level.
- A grade of 0 means judged not relevant. A passage with a negative grade counts as unjudged, as in
  trec_eval.
- Documents with the same score are in descending order of their ids, as in trec_eval. A ranked list keeps
  its order.
- If relevance is given by `evidence`, each evidence text counts as a relevant passage. The first passage
  that contains it counts, and further ones only take places.
- If a case has alternatives (`relevant_any`), each metric uses the best one.
- All values are between 0 and 1. More is better, unless a metric says "Lower is better".

"""

NO_VALUE = "No value: if the query has no relevant passages."
OPTIONS = "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}"
LABEL = re.compile(r"\A(Formula|Range|No value|trec_eval|Use it|Source):")

OWN_HEAD = """\
## Add your own

A metric is a registered function that takes the hits and returns one number for each query. This file is
complete, and a test runs it:

```python
"""

OWN_TAIL = """\
```

In a package of your own, name the file in `pyproject.toml` and install the package:

```toml
[project.entry-points."misslink.metrics"]
complete = "own_metric"
```

Then `complete@5` works wherever the name of a metric does. In misslink itself, add the function to
`src/misslink/retrieval/metrics.py` and run `make gold`, which writes this page from the
docstrings.

A row of `Hits` is a query, and a hit is a retrieved relevant passage:

| attribute | meaning |
| --- | --- |
| `row`, `rank`, `gain` | row, rank and grade of each hit |
| `satisfied` | number of relevant passages (or evidence texts) that the hit is the first to provide |
| `relevant`, `place` | whether the hit is relevant; how many relevant passages there are down to it |
| `needs`, `retrieved` | number of relevant passages, and of retrieved passages, of each row |
| `judged_row`, `judged_rank`, `judged_against` | row and rank of each retrieved passage with a label; whether it was judged not relevant |
| `nonrelevant` | number of passages judged not relevant, retrieved or not, of each row |
| `sums(amount, k)` | sum of an amount over the hits of each row among the first k |

`k` may be an array of several cutoffs; then the values have the shape (cutoffs, rows). Rows without
relevant passages are dropped afterwards. Options of `register_metric`:

| option | meaning |
| --- | --- |
| `without_relevant=True` | a query without relevant passages has a value too |
| `about_judgements=True` | the metric measures the judgements, not the ranking |
| `better="low"` | less is better |
| `rises=True` | one more relevant passage among the first k never lowers the value, so bounds are cheap |
"""


def page() -> str:
    """The whole page."""
    return "".join(
        (
            HEAD,
            "| Metric | Meaning |\n| --- | --- |\n",
            *(_in_short(kind, names) for kind, names in _built_in()),
            "\n",
            *(_section(kind, names) for kind, names in _built_in()),
            RULES,
            "## Lower and upper bounds\n\n",
            *map(_plain, _paragraphs(metric_bounds)),
            OWN_HEAD,
            OWN.read_text(encoding="utf-8"),
            OWN_TAIL,
        )
    )


def _built_in() -> list[tuple[Callable[..., object], list[str]]]:
    """The package's own metrics, with the names of each."""
    found: dict[Callable[..., object], list[str]] = {}
    for name in rank_metrics.names():
        kind = rank_metrics.get(name).__wrapped__
        if kind.__module__.startswith("misslink."):
            found.setdefault(kind, []).append(format_metric_name(name))
    return list(found.items())


def _in_short(kind: object, names: list[str]) -> str:
    """A row of the table at the start."""
    return f"| {', '.join(names)} | {_paragraphs(kind)[0]} |\n"


def _section(kind: object, names: list[str]) -> str:
    paragraphs = _paragraphs(kind)
    if not any(one.startswith("No value:") for one in paragraphs):
        at = next(at for at, one in enumerate(paragraphs) if one.startswith("Range:"))
        paragraphs.insert(at + 1, NO_VALUE)
    return f"## {' and '.join(names)}\n\n{''.join(map(_plain, paragraphs))}"


def _paragraphs(documented: object) -> list[str]:
    """The docstring up to its parameters and examples, the references as one paragraph."""
    text = inspect.getdoc(documented) or ""
    text = re.sub(r"\nReferences\n-+\n", "\nSource:\n", text)
    return re.split(r"\n\w+\n---+\n", text)[0].strip().split("\n\n")


def _plain(paragraph: str) -> str:
    """A paragraph of a docstring in Markdown; 'Label: text' has its label in bold."""
    marked = re.sub(r"`+([^`]+)`+", r"`\1`", paragraph)
    marked = LABEL.sub(r"**\1:**", marked)
    return f"{marked}\n\n"


def judged_page() -> str:
    """The page of judged metrics: its own text, with a new table and new sections between the marks."""
    table = "| metric | level | needs | better | meaning |\n|---|--:|---|---|---|\n"
    sections = ""
    for name, metric in sorted(
        ((name, judged_metrics.get(name)) for name in judged_metrics.names()),
        key=lambda named: named[1].level,
    ):
        kind = type(metric)
        if kind.__module__.startswith("misslink."):
            about = " ".join(_paragraphs(kind)).replace("\n", " ")
            needs = {
                "passages": metric.needs_passages,
                "a reference": metric.needs_reference,
                "a model as judge": "such as the heuristic judge" in about,
            }
            what = ", ".join(need for need in needs if needs[need])
            meaning = _paragraphs(kind)[0].replace("\n", " ")
            table += (
                f"| [{name}](#{name}) | {metric.level} | {what} | {metric.better} | {meaning} |\n"
            )
            sections += f"## {name}\n\n::: {kind.__module__}.{kind.__qualname__}\n{OPTIONS}\n\n"
    text = JUDGED_PAGE.read_text(encoding="utf-8")
    for mark, made in (("table", table), ("sections", sections)):
        start, end = f"<!-- {mark} -->\n", f"<!-- /{mark} -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}\n{made.strip()}\n\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    pages = {PAGE: page(), JUDGED_PAGE: judged_page()}
    if sys.argv[1:] == ["--check"]:
        sys.exit(any(path.read_text(encoding="utf-8") != text for path, text in pages.items()))
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")

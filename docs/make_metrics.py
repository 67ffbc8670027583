"""Writes docs/metrics.md from the docstrings of the rank metrics: `python docs/make_metrics.py`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from misslink.registry import rank_metrics
from misslink.retrieval import format_metric_name, metric_bounds

HERE = Path(__file__).parent
PAGE = HERE / "metrics.md"
OWN = HERE / "own_metric.py"

HEAD = """\
# Rank metrics

Measures of a ranking against relevance labels. A metric's name is its key in JSON, its column in a table and
its option on the command line: `misslink retrieval --qrels Q --run R --metrics recall@5,mrr`.
`k` is any whole number from 1, `p` a fraction such as 0.8.

This page is generated from the docstrings in `src/misslink/retrieval/`; change them, then run
`python docs/make_metrics.py`.

## Which one to read

- **recall** where missing something is costly,
- **precision** where noise costs,
- **MRR** where the first result is all,
- **nDCG** where grades and order matter,
- **judged@k** beside all of them: it shows how much of the ranking was judged.

Read several. Each can be raised alone without a better retriever: recall by returning more,
precision by returning one sure passage, hit@k by a larger k, MRR by placing one good passage first
and nothing after it. A change that raises one and leaves the others where they were is a trade; a
change that raises recall and precision at the same k is an improvement.

"""

RULES = """\
## What holds for all of them

- A query without relevant passages has no value for any metric but judged@k. It is counted and
  shown, and does not enter the mean; there is no 0 in its place.
- A query that is missing from a run, or whose result list is empty, scores 0 and is counted. The
  two that tell about the judgements differ: nothing retrieved has no judged@k, and an
  rbp_residual@p of 1.
- Precision divides by k, however few passages were retrieved.
- A passage is relevant if its grade reaches the relevance level (1, or what `--relevance-level`
  says). nDCG reads the grades themselves, also those below the level.
- A grade of 0 is a judgement. A negative grade is none: the passage counts as never judged, as in
  trec_eval.
- Two documents with the same score are in descending order of their ids, as in trec_eval; a
  ranked list keeps its own order.
- Of several passages that carry the same evidence the first counts, and the others fill a place.
  Where a case has several alternatives (`relevant_any`), the best counts, for each metric by
  itself.
- All values lie between 0 and 1. More is better, except for rbp_residual@p.

"""

NO_VALUE = "No value: where the query has no relevant passages."
LABEL = re.compile(r"\A(Formula|Range|No value|trec_eval|Use it|Source):")

OWN_HEAD = """\
## Add your own

A metric is a function from hits to one number a row, registered under a name. This file is a
whole one, tested as it stands here:

```python
"""

OWN_TAIL = """\
```

In misslink itself the function goes into `src/misslink/retrieval/metrics.py`; nothing else is to be
changed but this page, which is generated. In a package of your own, say in its `pyproject.toml`
where the file is, and install the package:

```toml
[project.entry-points."misslink.metrics"]
complete = "own_metric"
```

From then on `complete@5` works wherever a metric's name does. What it can read of `Hits`: `row`,
`rank`, `gain` and `satisfied` of every hit, `needs` and `retrieved` of every row, `relevant`, `place`
(how many relevant passages there are down to the hit), the ideal ranking, and the judged passages.
`sums(amount, k)` adds an amount up over the hits of each row within the first k. Several cutoffs
are computed in one pass: then `k` is an array, and the values have the shape (cutoffs, rows). A row
that needs nothing is dropped afterwards, whatever its value. Options of `register_metric` tell what
else is so:

| Option | Where it holds |
| --- | --- |
| `without_relevant=True` | a query without relevant passages has a value too |
| `about_judgements=True` | it tells how much was judged, not how good the ranking is |
| `better="low"` | less is better |
| `rises=True` | one more relevant passage within the first k never lowers it: cheap bounds |
"""


def page() -> str:
    """The whole page."""
    return "".join(
        (
            HEAD,
            "| Metric | What it is |\n| --- | --- |\n",
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


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")

"""Print how many code lines each package has, beside its budget.

python benchmarks/code_size.py
"""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "misslink"
SELF_CONTAINED = {"goldset", "canary", "live"}  # the rest is the core

# Code lines of each package: no docstrings, comments, blank lines or lone closing brackets.
# A change that needs over 2% or 40 lines more raises the number in the same commit and says why. A number in a
# comment is what the design wanted.
SLACK = 0.02, 40  # share or lines, whichever is more, so that a small change needs no new number
BUDGETS = {
    "": 1935,  # feedback on loops of a process came as event_loops.py
    "annotation": 1103,  # 1150; a token against other users, the time of a case
    "calibration": 1898,  # labels of other answers took 18, and labels needed by what is certain 20; 1650; how many labels an interval needs and the regression of biases came from stats, 135; the judge's error by exposure took 70
    "canary": 2161,  # 2300
    "capture": 2255,  # what a returned list of documents says of the prompt took 20, answers without a model 40, documents that the app cuts in place 10; what an app raises beside exceptions; labels that are not indexed; 1300; secrets that a server repeats took 15; limits of what an app returns
    "cli": 3865,  # rejudge; one guard at the top; selftest took 124
    "compare": 965,  # the part of two runs that is alike
    "embedding": 456,  # 420
    "engines": 884,  # 700
    "examples": 68,  # the app that the README and the tutorial run
    "gate": 1595,  # what is not comparable took 95; 1200
    "goldset": 6289,  # both outcomes of tied grades took 35; 7300 with the readers of traces, which are io/trace_formats now; deepeval
    "io": 4142,  # secrets in every form; values of tables; input that was lost without a word
    "io/trace_formats": 1559,  # what SDKs print and export
    "judge": 1320,
    "judge/backends": 3013,  # addresses, network settings and refusals one by one; questions to decision models have a file of their own
    "judge/batch": 998,  # 800
    "judge/checks": 1191,  # 1100; attacks that hold the wrong fact
    "judge/middleware": 1968,  # what is no reply is named, in 19; 1700; one ledger for the stages of a cascade; sentences without a claim are asked for again
    "linking": 2924,  # references at partial hits took 8; drops inside a search; references of yes and no; 2000; attribution took 200, exposure levels, clusters and difficulty 100
    "linking/replay": 818,  # 800; placebos without sorting all passages for each case
    "linking/whatif": 997,  # 1050
    "live": 3093,  # 3000
    "matching": 2677,  # what a text says about a claim: rules of judge, judge/backends and text, and marks, quantities with dates and money, derived numbers and references in many languages
    "metrics": 721,
    "pipeline": 1473,  # rejudge; epochs and hashes of a run
    "render": 1395,  # the words of a selftest took 150; a run in a notebook and as a table, 27, came from types; shares in clusters; two reasons; errors of several kinds took 4; the sentences of miss reasons and what-if options came from linking
    "report": 4205,  # the selftest in the Trust view took 110; the part of a passage that no model saw took 20; 3400; one glossary for page and docs
    "retrieval": 1911,  # two readers of runs, by hashes and by lookup
    "selftest": 1090,  # docs/decisions/022: 27 kinds of mutants, two thirds of it rules on texts
    "stats": 2526,  # 2400; risks by exposure, in clusters and by labels took 130
    "text": 828,  # the part of each passage that a model saw; normalization, BM25, near-duplicates
}


def code_lines(path: Path) -> int:
    """Count the lines of a file that hold code: no comment, docstring, or closing bracket alone."""
    source = path.read_text(encoding="utf-8")
    lines = source.split("\n")
    code = {n for n, line in enumerate(lines, 1) if line.strip() and line.lstrip()[0] != "#"}
    docstrings = set[int]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr):  # whatever stands in a long string
            code.update(range(node.lineno, node.end_lineno + 1))
        documented = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if documented and ast.get_docstring(node) is not None:
            docstrings.update(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    closing = {")", "]", "}", "})", "])", "))"}
    return sum(lines[line - 1].strip(" ,:") not in closing for line in code - docstrings)


@cache
def sizes() -> Counter[str]:
    """Code lines by package; a nested package with a budget of its own is counted apart."""
    totals: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).parts[:-1]
        while parts and "/".join(parts) not in BUDGETS:
            parts = parts[:-1]
        totals["/".join(parts)] += code_lines(path)
    return totals


def main() -> None:
    """Print the table."""
    for package, lines in sorted(sizes().items()):
        print(f"{package or '(top level)':28} {lines:6,} of {BUDGETS.get(package, 0):6,}")
    everything = sum(sizes().values())
    apart = sum(lines for name, lines in sizes().items() if name.split("/")[0] in SELF_CONTAINED)
    files = len(list(PACKAGE.rglob("*.py")))
    print(f"{files} files, {everything:,} code lines, {everything - apart:,} of them core")


if __name__ == "__main__":
    main()

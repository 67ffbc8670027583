"""Owners of failures on kinds that were not in view when the rules were written.

    python benchmarks/linking/attribution_kinds.py
        [--set first | second | third | fourth | fifth | sixth | seventh | eighth | ninth
            | tenth]
        [--runs] [--write | --smoke]

Twelve invented domains (`unseen/worlds.toml`), each an app with its documents; kinds of failure and of
harmless oddities (`unseen/kinds.py`), one case of each in every app. Whose failure it is follows from
how the case was made. The kinds were written by someone who had read the table of stages and owners,
and not the rules. Judges: one that knows what every sentence states, the same with errors about
claims, and the heuristic one. A case without a failure is right if no owner is named.

`--set second`: other kinds (`unseen/kinds_second.py`), written without the code of the rules. Its page
stays as it came out: it is not written again. `--set third` to `--set tenth`:
the same again (`unseen/kinds_third.py` and so on). `--smoke` leaves out a set that has no page: its
first run is the one that counts.

`--runs`: small runs of which most failures have one owner; is the first step the fix for it?
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import misslink
from misslink.failure_modes import OWNERS
from misslink.linking.reliability import linking_rules
from misslink.stats.intervals import proportion
from misslink.types import Link, Run
from unseen.cases import Make
from unseen.judge import TruthJudge
from unseen.kinds import KINDS
from unseen.kinds_eighth import EIGHTH
from unseen.kinds_fifth import FIFTH
from unseen.kinds_fourth import FOURTH
from unseen.kinds_ninth import NINTH
from unseen.kinds_second import SECOND
from unseen.kinds_seventh import SEVENTH
from unseen.kinds_sixth import SIXTH
from unseen.kinds_tenth import TENTH
from unseen.kinds_third import THIRD
from unseen.planted import WORLDS, App, Planted, planted
from unseen.runs import RUNS, PlantedRun

TARGET = Path(__file__).with_suffix(".md")
PRINTED = Path(__file__).parents[2] / "src" / "misslink" / "linking" / "reliability.json"
FIRST_RUNS = TARGET.with_name("first_runs.json")
JUDGES = ("perfect", "noisy", "heuristic")
NOISE = 20261128
Figures = dict[str, dict[str, int]]  # counts of named owners, by what a run has
STAGES = ("index", "search", "filter", "rank", "prompt", "answer", "data", "unknown")
UPSTREAM = frozenset({"retriever", "index"})

PAGE = """\
# Owners of failures of kinds that were not in view

Made by {made}. {kinds} kinds of failure and of harmless oddities, a case of each in {worlds} apps of
invented domains. Whose failure it is follows from how the case was made. The kinds were written by
someone who had read the table of stages and owners in the design, and not the rules. After the first figures
(decision 020) rules were changed by principle with the totals in view, so that these may be too high. {judges}

{situations}

{tables}
"""

JUDGES_TEXT = """\
The perfect judge knows what every sentence states. The noisy one errs about claims and
sufficiency (sensitivity 0.8, specificity 0.9). A case without a failure is right if no owner is named."""

SITUATIONS_TEXT = """\
*References, corpus*: labels hidden. *Corpus*: references hidden, too; cases whose truth only a reference
tells are left out. *Traces alone*: passages and answers; retriever and index count as one owner, and
cases that were spoiled between search and prompt are left out, because nothing shows them. Intervals are
Wilson's, 95%; the cases of a kind are alike, so they are too narrow."""

PAGE_SECOND = """\
# Owners of failures of a second set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that the
[first set](attribution_kinds.md) does not have, a case of each in {worlds} apps of the same invented domains.
They were written by someone who had read the design's section on stages and owners (its table, and its prose,
which says in short how owners are found), and had seen neither the rules' code nor any figures by kind. Owners and stages were written down before the first run.
Run with the rules of commit `{commit}`, and printed as it came out, but for one kind. In `garbled_by_ocr` the labelled
sentence stood by chance in other passages of 6 apps, too (6 of 12 right with every judge; in all, with labels, references
and corpus, 78.3%, 69.4% and 70.8%). It has the thing's name now. No owner, stage or other case was changed, and no rule.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_THIRD = """\
# Owners of failures of a third set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that neither the
[first set](attribution_kinds.md) nor the [second](attribution_kinds_second.md) has, a case of each in {worlds} apps of the
same invented domains. They were written by someone who had read the design's section on stages and owners (its table, and
its prose, which says in short how owners are found) and three rows of the second page's table by kind (all harmless ones),
and had seen neither the rules' code nor any other figures. Owners, failure modes and stages were written down before the
first run. Run with the rules of commit `{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_FOURTH = """\
# Owners of failures of a fourth set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that neither the
[first set](attribution_kinds.md) nor the [second](attribution_kinds_second.md) nor the [third](attribution_kinds_third.md)
has, a case of each in {worlds} apps of the same invented domains. They were written by someone who had read the design's
table of stages and owners (not its prose), the other sets, and the introduction of the second page (with three totals), and
had seen neither the rules' code nor any other figures of owners. Owners, failure modes and stages were written down before the
first run. Run with the rules of commit `{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_FIFTH = """\
# Owners of failures of a fifth set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that neither the
[first set](attribution_kinds.md) nor the [second](attribution_kinds_second.md), the [third](attribution_kinds_third.md) or
the [fourth](attribution_kinds_fourth.md) has, a case of each in {worlds} apps of the same invented domains, each with words of
its own (`unseen/fifth.toml`). They were written by someone who had read the design's table of stages and owners (not its
prose), the other sets, and the program that runs them (with three totals of the second page), and had seen neither the rules'
code nor any other figures of owners. Owners, failure modes and stages were written down before the first run. Run with the
rules of commit `{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_SIXTH = """\
# Owners of failures of a sixth set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that neither the
[first set](attribution_kinds.md) nor the [second](attribution_kinds_second.md), the [third](attribution_kinds_third.md), the
[fourth](attribution_kinds_fourth.md) or the [fifth](attribution_kinds_fifth.md) has, a case of each in {worlds} apps of the
same invented domains, each with words of its own (`unseen/sixth.toml`). They were written by someone who had read the
design's table of stages and owners (not its prose), the other sets, and the program that runs them (with three totals of the
second page), and had seen neither the rules' code nor any other figures of owners. Owners, failure modes and stages were
written down before the first run. Run with the rules of commit `{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_SEVENTH = """\
# Owners of failures of a seventh set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that neither the
[first set](attribution_kinds.md) nor the [second](attribution_kinds_second.md), the [third](attribution_kinds_third.md), the
[fourth](attribution_kinds_fourth.md), the [fifth](attribution_kinds_fifth.md) or the [sixth](attribution_kinds_sixth.md) has, a
case of each in {worlds} apps of the same invented domains, each with words of its own (`unseen/seventh.toml`). They were
written by someone who had read the design's table of stages and owners (not its prose), the other sets, the program that runs
them (with three totals of the second page), and the subjects of ten commits (one of which says in half a sentence when a
rewritten query is not blamed), and had seen neither the rules' code nor any other figures of owners. Owners, failure modes and
stages were written down before the first run. Run with the rules of commit `{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_EIGHTH = """\
# Owners of failures of an eighth set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that none of the seven sets before
has ([first](attribution_kinds.md) to [seventh](attribution_kinds_seventh.md)), a case of each in {worlds} apps of the same
invented domains, each with words of its own (`unseen/eighth.toml`). Most cases have six to eight pages of their own in the index,
which share words with the question, and a search that was recorded to a depth of 20. They were written by someone who had
read the design's table of stages and owners (not its prose), the names of failure modes, the glossary, the other sets, the
program that runs them (with three totals of the second page), and the subjects of a few commits, and had seen neither the rules' code nor any other figures
of owners. Owners, failure modes and stages were written down before the first run. Run with the rules of commit `{commit}`,
and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""

PAGE_NINTH = """\
# Owners of failures of a ninth set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that none of the eight sets before
has ([first](attribution_kinds.md) to [eighth](attribution_kinds_eighth.md)), a case of each in {worlds} apps of the same
invented domains, each with words of its own (`unseen/ninth.toml`). Most cases have five to eight pages of their own in the
index, which share words with the question, and a search that was recorded to a depth of 20. They were written by someone who
had read the design's table of stages and owners (not its prose), the names of failure modes with their labels and advice, the
glossary, the other sets, the program that runs them (with three totals of the second page), and the subjects of ten commits
(one of which says that "free of charge" is no charge where two clauses are compared, and no answer of no), and had seen
neither the rules' code nor any other figures of owners. Owners, failure modes and stages were written down before the first run. Run
with the rules of commit `{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""


PAGE_TENTH = """\
# Owners of failures of a tenth set of kinds

Made by {made}. {kinds} kinds of failure and of harmless oddities that none of the nine sets before
has ([first](attribution_kinds.md) to [ninth](attribution_kinds_ninth.md)), a case of each in {worlds} apps of the same
invented domains, each with words of its own (`unseen/tenth.toml`). All cases have six to eight pages of their own in the
index, which share words with the question, and a search that was recorded to a depth of 20. One more condition: who sees the
run (question, prompt, answer, reference, what was found, the whole corpus) and no labels can tell the owner from what the
texts say. So what the index lacks leaves a gap in its text that can be seen (or a note says that a page is wrong, or parts are
numbered and one is missing), and what misled the author of a wrong reference stands in the passage itself, beside the answer.
Kinds of which two owners would leave the same texts were left out, such as an index that differs from the reference while
nothing says which of them is wrong. They were written by someone who had read the design's table of stages and owners (not its
prose), the names of failure modes with their labels and advice, the glossary, the other sets, and the program that runs them
(with three totals of the second page, and what its pages say of commits), and had seen neither the rules' code nor any other
figures of owners. Owners, failure modes and stages were written down before the first run. Run with the rules of commit
`{commit}`, and printed as it came out.

{judges} The noise of the noisy judge is drawn anew for each app and case.

{situations}

{tables}
"""


@dataclass(frozen=True)
class KindSet:
    """Kinds, and the text of their page."""

    kinds: Mapping[str, Make]
    page: str
    suffix: str = ""
    kept: bool = True  # the first run is what says how the rules do on other kinds
    printed: bool = False  # whether the program prints its figures

    @property
    def target(self) -> Path:
        return TARGET.with_stem(f"{TARGET.stem}{self.suffix}")


SETS = {
    "first": KindSet(KINDS, PAGE, kept=False),
    "second": KindSet(SECOND, PAGE_SECOND, "_second"),
    "third": KindSet(THIRD, PAGE_THIRD, "_third"),
    "fourth": KindSet(FOURTH, PAGE_FOURTH, "_fourth"),
    "fifth": KindSet(FIFTH, PAGE_FIFTH, "_fifth"),
    "sixth": KindSet(SIXTH, PAGE_SIXTH, "_sixth", printed=True),
    "seventh": KindSet(SEVENTH, PAGE_SEVENTH, "_seventh", printed=True),
    "eighth": KindSet(EIGHTH, PAGE_EIGHTH, "_eighth", printed=True),
    "ninth": KindSet(NINTH, PAGE_NINTH, "_ninth", printed=True),
    "tenth": KindSet(TENTH, PAGE_TENTH, "_tenth", printed=True),
}


@dataclass(frozen=True)
class Situation:
    """What is at hand."""

    name: str
    labels: bool = False
    references: bool = False
    corpus: bool = True

    @property
    def traces_alone(self) -> bool:
        return not self.corpus


SITUATIONS = (
    Situation("labels, references, corpus", labels=True, references=True),
    Situation("references, corpus", references=True),
    Situation("corpus", references=False),
    Situation("references, traces alone", references=True, corpus=False),
    Situation("traces alone", corpus=False),
)
# As a run says what it has.
GIVEN = {
    "labels, references, corpus": "labels, references, corpus",
    "references, corpus": "references, corpus",
    "corpus": "corpus",
    "references, traces alone": "references",
    "traces alone": "",
}


@dataclass(frozen=True)
class Outcome:
    """One case: what is true, what misslink says."""

    kind: str
    owner: str
    modes: tuple[str, ...]
    said: str
    failure: str
    counted: bool  # as failed, by the run
    stage: bool | None  # whether it names the stage at which a need was lost; None: not known

    @property
    def right(self) -> bool:
        return self.said in self.owner.split(" or ")

    @property
    def mode_right(self) -> bool:
        return self.failure in self.modes

    @property
    def named(self) -> bool:
        return self.said not in ("none", "unknown")


def truth(case: Planted, situation: Situation) -> tuple[str, tuple[str, ...]] | None:
    """Owner and modes that the data at hand can show; None where they cannot tell."""
    owner, modes = case.owner, case.modes
    if not situation.references and case.without_references:
        owner, modes = case.without_references
    if owner == "unknowable":
        return None
    if situation.traces_alone:
        # Without prompt and corpus nothing tells what was between retriever and model, or not indexed.
        altered = case.shown is not None or case.texts
        if altered or owner == "prompt":
            return None
        if owner in UPSTREAM:
            # Nor whether there is an answer that the app should have found.
            declined = case.response == "declines"
            owners = "retriever or index" + " or none" * declined
            return owners, (*modes, "retrieval_miss", "not_indexed", *["passed"] * declined)
    return owner, modes


def plant(
    world: dict[str, Any], kinds: Mapping[str, Make], seed: int = 0
) -> tuple[App, list[Planted]]:
    """One app, and a case of each kind."""
    app = App(world, seed, seed)
    return app, [planted(name, seed, make(app)) for name, make in kinds.items()]


async def evaluate(
    app: App,
    cases: Sequence[Planted],
    judge: str,
    situation: Situation,
    noise: int | str = NOISE,
) -> Run:
    """One run of these cases."""
    rows = [
        app.rows(
            case,
            labels=situation.labels,
            references=situation.references,
            prompts=not situation.traces_alone,
        )
        for case in cases
    ]
    corpus = [{"id": name, "text": text} for name, text in app.corpus.items()]
    by: Any = "heuristic"
    if judge != "heuristic":
        by = TruthJudge(app, cases, noise if judge == "noisy" else None)
    return await misslink.evaluate_async(
        traces=rows,
        judge=by,
        corpus=corpus if situation.corpus else None,
        cache=None,
        embedding="none",
        k=app.k,
    )


def outcomes(run: Run, cases: Sequence[Planted], situation: Situation) -> list[Outcome]:
    """What the run says of each case whose truth can be known."""
    links: dict[str, Link] = {link.case_id: link for link in run.links}
    found = []
    for case in cases:
        known = truth(case, situation)
        if known is None:
            continue
        link = links[case.case_id]
        owner = link.owner or "unknown"
        failure, failed = link.failure or "unknown", link.failed is True
        stage = stage_right(case, link)
        found.append(Outcome(case.kind, *known, owner, failure, failed, stage))
    return found


def stage_right(case: Planted, link: Link) -> bool | None:
    """Whether the earliest stage at which a need was lost is the true one."""
    needs = getattr(link, "needs", ())
    if not needs or not (case.lost or case.owner in ("generator", "none")):
        return None
    lost = {need.lost_at for need in needs}
    first = next((stage for stage in STAGES if stage in lost), None)
    # Traces have no store of vectors, so a filter cannot be told from a low rank.
    return first == case.lost or {first, case.lost} == {"rank", "filter"}


def two_lines(app: App, case: Planted) -> str:
    """RAGChecker's rule: a reference claim that the chunks lack is the retriever's, else the generator's."""
    chunks = app.held([case.texts.get(one) or app.corpus[one] for one in case.retrieved])
    wanted = {fact: value for one in case.references for fact, value in one.stated or ()}
    said = {fact: value for one in case.answer for fact, value in one.stated or ()}
    invented = any(one.stated is None for one in case.answer)
    unsupported = any(
        value not in chunks.get(fact, {}) and wanted.get(fact) != value
        for fact, value in said.items()
    )
    if not invented and not unsupported and all(said.get(f) == v for f, v in wanted.items()):
        return "none"
    missing = any(value not in chunks.get(fact, {}) for fact, value in wanted.items())
    return "retriever" if missing else "generator"


def share(hits: Iterable[bool]) -> str:
    """A share with Wilson's interval."""
    seen = list(hits)
    if not seen:
        return ""
    one = proportion(sum(seen), len(seen))
    value, low, high = (100 * cast("float", part) for part in (one.value, one.low, one.high))
    return f"{value:.1f}% [{low:.1f}, {high:.1f}]"


def tables(found: dict[tuple[str, str], list[Outcome]], baseline: list[bool]) -> str:
    """Both tables as Markdown."""
    heads = (
        "given", "judge", "cases", "owner right", "failure mode right", "stage right",
        "named owner right", "counted failures with an owner",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---|---|--:|--:|--:|--:|--:|--:|"]
    for (situation, judge), rows in found.items():
        named = [one for one in rows if one.named]
        counted = [one.named for one in rows if one.counted]
        cells = (
            situation, judge, str(len(rows)), share(one.right for one in rows),
            share(one.mode_right for one in rows),
            share(one.stage for one in rows if one.stage is not None),
            share(one.right for one in named), share(counted),
        )  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    rule = "labels or not, references | RAGChecker's two lines, perfect judge"
    lines.append(f"| {rule} | {len(baseline)} | {share(baseline)} | | | | |")
    lines += ["", "By kind, with labels, references and corpus:", ""]
    lines += [
        f"| kind | owner | {' | '.join(JUDGES)} | others named, perfect judge |",
        "|---|---|--:|--:|--:|---|",
    ]
    full = {judge: found[SITUATIONS[0].name, judge] for judge in JUDGES}
    owners = {one.kind: one.owner for one in full["perfect"]}
    for kind in sorted(owners, key=lambda name: OWNERS.index(owners[name])):
        by = {judge: [one for one in full[judge] if one.kind == kind] for judge in JUDGES}
        counts = [f"{sum(one.right for one in by[judge])} of {len(by[judge])}" for judge in JUDGES]
        others = Counter(f"{one.failure}" for one in by["perfect"] if not one.right)
        wrong = ", ".join(f"{name} {count}" for name, count in others.most_common())
        lines.append(f"| `{kind}` | {owners[kind]} | {' | '.join(counts)} | {wrong} |")
    return "\n".join(lines)


def figures(found: dict[tuple[str, str], list[Outcome]]) -> Figures:
    """What the program prints of a run with the heuristic judge, by what it has."""
    rows = {}
    for (situation, judge), outcomes_of in found.items():
        if judge != "heuristic":
            continue
        named = [one.right for one in outcomes_of if one.named]
        counted = [one.named for one in outcomes_of if one.counted]
        rows[GIVEN[situation]] = {
            "right": sum(named), "named": len(named),
            "named_failures": sum(counted), "failures": len(counted),
        }  # fmt: skip
    return rows


def attribution(
    worlds: Sequence[dict[str, Any]],
    of: str,
    situations: Sequence[Situation] = SITUATIONS,
    judges: Sequence[str] = JUDGES,
) -> tuple[str, Figures]:
    """Evaluate every app in every situation with every judge: the tables, and the figures."""
    found: dict[tuple[str, str], list[Outcome]] = {
        (situation.name, judge): [] for situation in SITUATIONS for judge in JUDGES
    }
    baseline = []
    for world in worlds:
        app, cases = plant(world, SETS[of].kinds)
        # The first set draws by the case alone, so that twelve apps are one draw; figures rest on it.
        noise = NOISE if of == "first" else f"{NOISE}-{app.world['name']}"
        baseline += [two_lines(app, case) == case.owner for case in cases]
        for situation in situations:
            for judge in judges:
                run = asyncio.run(evaluate(app, cases, judge, situation, noise))
                found[situation.name, judge] += outcomes(run, cases, situation)
    return tables(found, baseline), figures(found)


def first_owner(run: Run) -> str:
    """Whom the first step is for."""
    step = cast("dict[str, Any]", run.summary["first_step"] or {"owner": "no step"})
    return str(step["owner"])


def first_steps(runs: Sequence[PlantedRun]) -> str:
    """Evaluate the small runs, and compare whom the first step is for."""
    lines = [
        f"| run | failures that are the owner's | misleads by | {' | '.join(JUDGES)} |",
        "|---|---|---|---|---|---|",
    ]
    right: Counter[str] = Counter()
    for number, each in enumerate(runs):
        app, cases = each.plant(WORLDS[number % len(WORLDS)], 1)
        situation = Situation("", labels=each.labels, references=True)
        failed = [case.owner for case in cases if case.owner != "none"]
        cells = [
            each.name,
            f"{failed.count(each.owner)} of {len(failed)}: {each.owner}",
            each.misleads,
        ]
        for judge in JUDGES:
            said = first_owner(asyncio.run(evaluate(app, cases, judge, situation)))
            right[judge] += said == each.owner
            cells.append("right" if said == each.owner else said)
        lines.append(f"| {' | '.join(cells)} |")
    total = " | ".join(f"{right[judge]} of {len(runs)}" for judge in JUDGES)
    return "\n".join([*lines, f"| first step right | | | {total} |"])


def _lower(first: dict[str, int], now: dict[str, int]) -> dict[str, int]:
    """The figures of the first run, which no rule has seen, unless the rules of now do worse."""
    shares = [one["right"] / one["named"] if one["named"] else 0.0 for one in (first, now)]
    return now if shares[1] < shares[0] else first


def write_page(of: str, made: str, text: str) -> None:
    """Write the page of a set; one that is kept stays as its first run."""
    git = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(  # noqa: S603
        git, cwd=TARGET.parent, capture_output=True, text=True, check=True
    )
    kind_set = SETS[of]
    page = kind_set.page.format(
        made=made, kinds=len(kind_set.kinds), worlds=len(WORLDS), tables=text, judges=JUDGES_TEXT,
        situations=SITUATIONS_TEXT, commit=commit.stdout.strip(),
    )  # fmt: skip
    if not (kind_set.kept and kind_set.target.exists()):
        kind_set.target.write_text(page, encoding="utf-8")


def write_printed(of: str, now: Figures) -> None:
    """Write what the program prints: the first runs of all printed sets together, not chosen by."""
    first: dict[str, Figures] = json.loads(FIRST_RUNS.read_text(encoding="utf-8"))
    first.setdefault(of, now)
    FIRST_RUNS.write_text(f"{json.dumps(first, indent=2)}\n", encoding="utf-8")
    pooled: dict[str, Counter[str]] = {row: Counter() for row in now}
    for name in first:  # a set without a first run waits for it
        today = now if name == of else attribution(WORLDS, name)[1]
        for row, counts in pooled.items():
            counts.update(_lower(first[name][row], today[row]))
    rows = {row: dict(counts) for row, counts in pooled.items()}
    printed = {"rules": linking_rules(), "heuristic": rows}
    PRINTED.write_text(f"{json.dumps(printed, indent=2)}\n", encoding="utf-8")


def main() -> int:
    """Run, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", choices=SETS, default="first", help="which kinds")
    parser.add_argument("--runs", action="store_true", help="measure first steps as well")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--smoke", action="store_true", help="one app, to see that it runs")
    options = parser.parse_args()
    if options.runs and options.set != "first":
        parser.error("--runs is made of kinds of the first set")
    began = time.process_time()
    if options.smoke:
        # Judges and situations are the same for all sets, and the kinds are their own.
        ends = SITUATIONS[0], SITUATIONS[-1]
        parts = [("first", SITUATIONS, JUDGES[:1]), ("first", SITUATIONS[:1], JUDGES)]
        parts += [(of, ends, JUDGES[:1]) for of in SETS if of != "first"]
        texts = [
            attribution(WORLDS[:1], *part)[0] for part in parts if SETS[part[0]].target.exists()
        ]
        print("\n\n".join([*texts, first_steps(RUNS[:1])]))
        return 0
    text, now = attribution(WORLDS, options.set)
    if options.runs:
        text += (
            "\n\nIs the first step of a small run for the owner of most failures?\n\n"
            f"{first_steps(RUNS)}"
        )
    if options.write:
        flags = f" --set {options.set}" * (options.set != "first") + " --runs" * options.runs
        made = f"`python benchmarks/linking/attribution_kinds.py{flags} --write`"
        write_page(options.set, made, text)
        if SETS[options.set].printed:
            write_printed(options.set, now)
    print(text)
    print(f"\n{time.process_time() - began:.0f} s of CPU", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs to hold against criteria, by hand: who found its passage, whose answer is faithful."""

import json
from pathlib import Path

from json_values import as_json
from misslink.gates.baseline_diff import GateBaseline
from misslink.gates.criteria import read_criteria
from misslink.gates.decision import decide_gates
from misslink.pipeline.summary import level_estimates, verdict_coverage
from misslink.types import Case, Link, Passage, PromptRef, RetrievalMiss, Run, Trace, Verdict

PROMPT = PromptRef(name="examination", version=1, sha256="ab" * 32)


def gated_run(found, faithful=None, *, questions=None, ids=None, manifest=None, verdicts=None):
    """A run of as many cases as `found` has marks: '1' where its passage is first, else '0'.

    'x' in both is a case in which the app failed; 'u' in `faithful` one whose verdict is failed and
    whose failure mode is therefore inconclusive.

    `faithful` has '1', '0', 'f' (failed) or '-' (not put to the judge) for each case. Even cases
    are of category even and tier A, odd ones of category odd, each with the tag half.
    """
    size = len(found)
    ids = ids or [f"c{at}" for at in range(size)]
    faithful = faithful or found
    cases = tuple(
        Case(
            id=ids[at],
            question=(questions or {}).get(at, f"Question {at}?"),
            relevant=[f"gold{at}"],
            category="odd" if at % 2 else "even",
            tier=None if at % 2 else "A",
            tags={"half": "first" if at < size / 2 else "second"},
        )
        for at in range(size)
    )
    gold = [Passage(id=f"gold{at}", text="Gold.", rank=1) for at in range(size)]
    noise = Passage(id="noise", text="Noise.", rank=1)
    traces = tuple(
        Trace(case_id=ids[at], error="RuntimeError: timeout")
        if found[at] == "x"
        else Trace(case_id=ids[at], retrieved=[gold[at] if found[at] == "1" else noise], answer="a")
        for at in range(size)
    )
    if verdicts is None:
        verdicts = tuple(_verdict(ids[at], faithful[at]) for at in range(size))
    links = tuple(
        Link(
            case_id=ids[at],
            retrieval={"1": "hit", "0": "miss", "x": "unknown"}[found[at]],
            answer={"0": "unfaithful", "x": "unknown", "u": "unknown"}.get(
                faithful[at], "faithful"
            ),
            failure=_cause(found[at], faithful[at]),
            missed=()
            if found[at] != "0"
            else [RetrievalMiss(passage_id=f"gold{at}", true_rank=10 + at, depth=100)],
            reason="r",
        )
        for at in range(size)
    )
    scores = {"recall@1": {ids[at]: float(found[at]) for at in range(size) if found[at] != "x"}}
    held = {
        "judge": "heuristic",
        "k": 1,
        "seed": 0,
        "unfinished": 0,
        "prompts": [PROMPT.model_dump()],
        **(manifest or {}),
    }
    failures = {}
    for link in links:
        failures[link.failure] = failures.get(link.failure, 0) + 1
    summary = {
        "cases": size,
        "judge": held["judge"],
        "k": 1,
        **as_json(level_estimates)(scores, verdicts, {"faithfulness": 2}, seed=0),
        "link": {"failures": failures},
        "coverage": as_json(verdict_coverage)(verdicts, ["faithfulness"]),
    }
    return Run(
        manifest=held, cases=cases, traces=traces, verdicts=verdicts, links=links, summary=summary
    )


def write(folder, run):
    """Write a run folder."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    for part in ("cases", "traces", "verdicts", "links"):
        lines = "".join(f"{noun.model_dump_json()}\n" for noun in getattr(run, part))
        (folder / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    for name in ("manifest", "summary"):
        (folder / f"{name}.json").write_text(json.dumps(getattr(run, name)), encoding="utf-8")
    return folder


def decided(tmp_path, gates, run, baseline=None, name="criteria.yaml"):
    """Decide on `gates`, the YAML of a list of them, a mapping each."""
    path = tmp_path / name
    text = "gates:\n" + "".join(f"  - {{{gate}}}\n" for gate in gates)
    path.write_text(text, encoding="utf-8")
    held = baseline and GateBaseline(Path("base"), baseline, baseline.summary)
    return decide_gates(run, read_criteria(path), held, folder="today")


def numbers_of(baseline):
    """The baseline as its summary.json alone."""
    return GateBaseline(Path("summary.json"), None, json.loads(json.dumps(baseline.summary)))


def _verdict(case_id, mark):
    said = {"case_id": case_id, "metric": "faithfulness", "judge": "heuristic", "prompt": PROMPT}
    if mark in "01":
        return Verdict(**said, status="scored", value=float(mark), label=mark == "1")
    if mark == "x":
        del said["prompt"]
        return Verdict(**said, status="skipped", reason="the app failed: RuntimeError: timeout")
    if mark in "fu":
        return Verdict(**said, status="failed", reason="unreadable", raw="?")
    return Verdict(**said, status="skipped", reason="max_calls 3 is used up")


def _cause(found, faithful):
    if faithful in "xu":
        return "inconclusive"
    if faithful != "0":
        return "passed"
    return "fabricated" if found == "1" else "retrieval_miss"

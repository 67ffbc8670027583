"""Small runs written by hand, whose every number can be worked out in one's head."""

from __future__ import annotations

from pathlib import Path

from misslink.comparison.pairing import NamedRun
from misslink.io.jsonl import write_jsonl
from misslink.io.run_folder import write_json
from misslink.types import Case, Estimate, Link, Passage, Run, Trace, Verdict

RECORDED = Estimate.missing("it is computed from cases").model_dump()


def small_run(
    hits, faithful=(), faithfulness=None, over_refused=None, questions=None, ids=None, **manifest
) -> Run:
    """A run of one case a hit: 1 the needed passage is first, 0 it is not there, None no answer.

    `faithful` and `over_refused` are the verdicts, 1, 0 or None (skipped).
    """
    ids = ids or [f"c{place}" for place in range(1, len(hits) + 1)]
    questions = questions or [f"What of {name}?" for name in ids]
    cases = [
        Case(id=name, question=question, relevant=["right"] if hit is not None else [])
        for name, question, hit in zip(ids, questions, hits, strict=True)
    ]
    traces = [
        Trace(
            case_id=name,
            retrieved=[Passage(id="right" if hit else "other", text="Text.", rank=1)],
            answer=f"Answer to {name}.",
            latency_s=float(place),
        )
        for place, (name, hit) in enumerate(zip(ids, hits, strict=True), start=1)
    ]
    verdicts = []
    for place, good in enumerate(faithful):
        value = faithfulness[place] if faithfulness else good
        verdicts.append(_verdict(ids[place], "faithfulness", value, good))
    for place, refused in enumerate(over_refused or ()):
        good = None if refused is None else 1 - refused
        parts = {"over_refused": refused}
        verdicts.append(_verdict(ids[place], "abstention", good, good, parts=parts))
    links = [
        Link(
            case_id=name,
            retrieval={1: "hit", 0: "miss", None: "not_needed"}[hit],
            answer={1: "faithful", 0: "unfaithful", None: "declined"}[
                faithful[place] if place < len(faithful) else None
            ],
            failure="passed" if hit else "retrieval_miss",
            reason="by hand",
        )
        for place, (name, hit) in enumerate(zip(ids, hits, strict=True))
    ]
    about = {"misslink": "1.0", "judge": "heuristic", "k": 1, "seed": 0, "inputs": {}, **manifest}
    summary = {
        "k": about["k"],
        "retrieval": {"recall@1": RECORDED},
        "generation": {"faithfulness": RECORDED, "fully_faithful": RECORDED} if faithful else {},
        "answer": {"over_refused": RECORDED} if over_refused else {},
    }
    return Run(
        manifest=about, cases=cases, traces=traces, verdicts=verdicts, links=links, summary=summary
    )


def broken(run: Run, *ids: str) -> Run:
    """The same run, but the app failed on these cases before it retrieved anything."""
    lost = {"retrieved": (), "answer": None, "error": "RuntimeError: timeout"}
    traces = [trace.model_copy(update=lost if trace.case_id in ids else {}) for trace in run.traces]
    return run.model_copy(update={"traces": tuple(traces)})


def _verdict(name, metric, value, good, **more) -> Verdict:
    status = "skipped" if value is None else "scored"
    return Verdict(
        case_id=name,
        metric=metric,
        status=status,
        value=value,
        label=None if good is None else bool(good),
        reason="the answer declines" if value is None else None,
        judge="heuristic",
        **more,
    )


def named(*runs: Run) -> list[NamedRun]:
    """Runs called runs/a, runs/b and so on."""
    return [NamedRun(f"runs/{letter}", run) for letter, run in zip("abcdef", runs, strict=False)]


def write_run(folder: Path, run: Run, *, report: bool = False) -> Path:
    """Write the folder of a run, with something in place of its report if wanted."""
    folder.mkdir(parents=True)
    for part in ("cases", "traces", "verdicts", "links"):
        write_jsonl(folder / f"{part}.jsonl", getattr(run, part))
    write_json(folder / "summary.json", run.summary)
    write_json(folder / "manifest.json", run.manifest)
    if report:
        (folder / "report.html").write_text("<!doctype html><title>report</title>")
    return folder

"""Whether a replay is judged as its run was: only then can both be counted together."""

from __future__ import annotations

from collections.abc import Mapping

from misslink.judging.protocol import Judge
from misslink.manifest import by_name
from misslink.prompting import Prompts
from misslink.types import Run

__all__ = ["identity_of_run", "judged_otherwise"]

_IDENTITY = "judge_identity"


def identity_of_run(run: Run) -> dict[str, str]:
    """What the replies of the run's judge depended on, by name, such as ``model``.

    Empty where its manifest does not say.
    """
    inputs = run.manifest.get("inputs")
    start = f"{_IDENTITY}."
    return {
        name.removeprefix(start): str(value)
        for name, value in (inputs if isinstance(inputs, Mapping) else {}).items()
        if name.startswith(start)
    }


def judged_otherwise(run: Run, judge: Judge, prompts: Prompts, repeats: int = 1) -> str | None:
    """What tells the judging of a replay from that of its run, in a sentence; None if nothing.

    Parameters
    ----------
    run : Run
    judge : Judge
    prompts : Prompts
        What the judge reads now.
    repeats : int
        How often each question is put now.
    """
    was = run.manifest.get("judge")
    if was != judge.name:
        return f"the run was judged by {was}, the replay by {judge.name}"
    before, now = identity_of_run(run), by_name(judge.identity)
    for name in sorted({*before, *now} if before else ()):
        if before.get(name) != now.get(name):
            return (
                f"the run's judge had {name} {before.get(name, 'not given')}, "
                f"the replay's has {now.get(name, 'not given')}"
            )
    judging = run.manifest.get("judging")
    put = judging.get("repeats") if isinstance(judging, Mapping) else None
    if put is not None and put != repeats:
        return f"the run put each question {put} times, the replay {repeats} times"
    listed = run.manifest.get("prompts")
    refs = [ref for ref in listed if isinstance(ref, dict)] if isinstance(listed, list) else []
    known = prompts.names()
    for ref in refs:
        name = str(ref.get("name"))
        if name not in known or prompts.load(name).ref.sha256 != ref.get("sha256"):
            return f"the prompt '{name}' is another one than the run's"
    return None

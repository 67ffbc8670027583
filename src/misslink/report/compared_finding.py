"""What a comparison shows, in a sentence or two, with what it could not show said first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from misslink.report.compared_rows import ALIKE, LARGEST, REST, Row
from misslink.report.wording import in_short, plural

__all__ = ["finding", "lacking"]

_TOLD = 3  # metrics that are named, and reasons that are told
_REASON = 160  # characters of a reason


def finding(
    letter: str,
    rows: Sequence[Row],
    found: Sequence[Mapping[str, Any]],
    paired: int,
    tested: int,
) -> str:
    """Say what the comparison shows, the metrics beyond chance by name.

    Parameters
    ----------
    letter : str
        Of the further run.
    rows : sequence of Row
        Those with a value in both, those beyond chance first.
    found : sequence of mapping
        Cases with a value in one run alone, as `misslink.deciding.left_out.lacking` has them.
    paired, tested : int
        Cases that are compared, and tests that were made in all.

    Returns
    -------
    str
        What failed in one run alone stands first, since the rest may be its easy cases.
    """
    of = f"{plural(paired, 'case')}, {plural(tested, 'test')}, Holm"
    lead = next((f"{_leading(letter, one, rows)}. " for one in found if _is_fault(one)), "")
    sides = {
        verdict: [row for row in rows if row.verdict == verdict] for verdict in ("better", "worse")
    }
    if any(sides.values()):
        said = [f"{verdict} than A on {_listed(side)}" for verdict, side in sides.items() if side]
        on = " over the cases that both have" if lead else ""
        return f"{lead}{letter} is {' and '.join(said)}, beyond chance{on} ({of})."
    verdicts = {row.verdict for row in rows}
    if verdicts == {ALIKE}:
        what = (
            f"the {plural(len(rows), 'metric')} that both have"
            if found
            else "everything that was measured"
        )
        return f"{lead}A and {letter} are alike in {what} ({of})."
    if verdicts and verdicts <= {ALIKE, REST}:
        return f"{lead}No case that has a value in both A and {letter} differs ({of})."
    nothing = f"Nothing measured differs between A and {letter} by more than chance ({of})."
    return f"{lead}{nothing} {_could(rows, tested)}".rstrip()


def lacking(letter: str, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which cases have a value in one run alone, but for what already leads the finding."""
    lead = next((one for one in found if _is_fault(one)), None)
    told = [one for one in found if one is not lead]
    said = [f"{_lacks(letter, one)}: {_names(one['metrics'])}." for one in told[:_TOLD]]
    more = len(told) - _TOLD
    if more > 0:
        said.append(f"{plural(more, 'more reason')} in the JSON of the same command.")
    return said


def _lacks(letter: str, one: Mapping[str, Any]) -> str:
    """Such as "12 cases of A have no value in B (the app failed)"."""
    mine, other = ("A", letter) if one["run"] == "a" else (letter, "A")
    count = len(one["cases"])
    verb = "has" if count == 1 else "have"
    reason = in_short(one["reason"], _REASON)
    return f"{plural(count, 'case')} of {other} {verb} no value in {mine} ({reason})"


def _leading(letter: str, one: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """What is lacking, and of which metrics where others have it all."""
    said = _lacks(letter, one)
    every = {row.name for row in rows} <= set(one["metrics"])
    return said if every else f"{said}: {_names(one['metrics'])}"


def _is_fault(one: Mapping[str, Any]) -> bool:
    """Whether something failed; a verdict that is skipped is no fault."""
    return not str(one["reason"]).startswith(("skipped: ", "its verdict does not have"))


def _could(rows: Sequence[Row], tested: int) -> str:
    """What the cases could have shown; no metric is picked by how it came out."""
    known = [(row.shows, row) for row in rows if row.shows is not None]
    if not known:
        return ""
    possible = [each for each in known if each[0] <= LARGEST]
    level = " at the level that Holm leaves" if tested > 1 else ""
    if not possible:
        return f"So few cases show no difference of any size in 4 of 5 repetitions{level}."
    least, most = (pick(possible, key=lambda each: each[0])[1] for pick in (min, max))
    wanted = f"{least.name} would have to change by about {least.detectable}"
    if most is not least:
        wanted += f" and {most.name} by about {most.detectable}"
    if len(possible) > len({least.name, most.name}):
        wanted += ", others by something between"
    if none := len(known) - len(possible):
        wanted += f"; {plural(none, 'metric')} would show no difference of any size"
    return f"To be seen in 4 of 5 repetitions{level}, {wanted}."


def _listed(rows: Sequence[Row]) -> str:
    return _names([f"{row.name} ({row.difference.brief})" for row in rows])


def _names(names: Sequence[str]) -> str:
    told = ", ".join(names[:_TOLD])
    more = len(names) - _TOLD
    return f"{told} and {more} more" if more > 0 else told

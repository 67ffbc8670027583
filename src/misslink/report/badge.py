"""The badge at the top of the page: how far the judge can be trusted, in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from misslink.report.adjusted import corrected
from misslink.report.documents import list_in, mapping_in, text_in
from misslink.types import Run

__all__ = ["Badge", "badge"]

# Of a calibrated judge, by its verdict: what the badge says, and whether it warns.
_BADGES = {
    "trust": ("calibrated: trust it", False),
    "caution": ("calibrated: use with caution", True),
}


@dataclass(frozen=True)
class Badge:
    """How far the judge can be trusted: a few words and a sentence."""

    text: str
    note: str
    warns: bool


def badge(run: Run) -> Badge:
    """Say how far the judge of `run` can be trusted, in as many words as are known.

    Parameters
    ----------
    run : Run
        Its calibration decides; without one, its manifest.
    """
    manifest = run.manifest
    judge = text_in(manifest, "judge")
    note = text_in(manifest, "judge_note")
    if not judge:
        return Badge("judge not recorded", note, warns=True)
    if judge == "none":
        return Badge("no judge", note or "Only retrieval was measured.", warns=False)
    verdict = mapping_in(run.calibration).get("verdict")
    if isinstance(verdict, str) and verdict:
        text, warns = _BADGES.get(verdict, ("calibrated: do not trust it", True))
        reasons = list_in(mapping_in(run.calibration).get("reasons"))
        said = next((one for one in reasons if isinstance(one, str)), "")
        return Badge(text, said or "Held against human labels.", warns)
    known = corrected(run)
    if known is not None and known.sensitivity.measured and known.specificity.measured:
        usual = (
            "Held against human labels, it calls "
            f"{known.sensitivity.brief} of faithful answers faithful and "
            f"{known.specificity.brief} of unfaithful ones unfaithful."
        )
        return Badge("compared with human labels", f"{usual} {note}".rstrip(), warns=False)
    if judge.startswith("embedded"):
        usual = "It weighs shared words and numbers; it does not understand the text."
        return Badge("heuristic judge", note or usual, warns=True)
    usual = "Its verdicts were not compared with human labels, so they may be off by a constant."
    return Badge("not calibrated", note or usual, warns=True)

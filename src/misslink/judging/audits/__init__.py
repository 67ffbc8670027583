"""Does a judge's word change with what must not matter: length, order, or being asked again?"""

from misslink.judging.audits.asking import Heard, deterministic, put_to, variants
from misslink.judging.audits.changes import AUDITED, CHANGES, Padding
from misslink.judging.audits.document import in_vain, notes, settled
from misslink.judging.audits.numbers import compared
from misslink.judging.audits.sample import Sample, draw

__all__ = [
    "AUDITED",
    "CHANGES",
    "Heard",
    "Padding",
    "Sample",
    "compared",
    "deterministic",
    "draw",
    "in_vain",
    "notes",
    "put_to",
    "settled",
    "variants",
]

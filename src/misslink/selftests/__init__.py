"""Plant known faults into good cases, to see whether judge and rules find them and their owner.

`values` reads what a text states, `good_cases` selects the cases, `faults` and `harmless` change
them, `mutants` draws the changes, and `runner` judges and counts.
"""

from __future__ import annotations

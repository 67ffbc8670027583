"""What a text says about a claim: quotes, coverage, support and references, by rules and fits.

Other packages import from here, and not from the modules.
"""

from misslink.matching.abstention import (
    SOURCE_STEMS,
    claim_spans,
    content_stems,
    declines,
    states_absence,
)
from misslink.matching.assertion import strip_polarity
from misslink.matching.claim_matching import Passages
from misslink.matching.coverage import ClaimCoverage, content_spans, cover_answer
from misslink.matching.derived_numbers import new_numbers, values_of
from misslink.matching.fuzzy_matching import invariant_tokens
from misslink.matching.languages import MIN_LANGUAGE_WORDS, is_known_language, is_other_language
from misslink.matching.marks import strip_marks
from misslink.matching.quotes import QuoteCheck, find_quote, verify_quote
from misslink.matching.references import compare
from misslink.matching.support import fit_note, load_fit, rules_version

__all__ = [
    "MIN_LANGUAGE_WORDS", "SOURCE_STEMS", "ClaimCoverage", "Passages", "QuoteCheck", "claim_spans",
    "compare", "content_spans", "content_stems", "cover_answer", "declines", "find_quote", "fit_note",
    "invariant_tokens", "is_known_language", "is_other_language", "load_fit", "new_numbers", "rules_version",
    "states_absence", "strip_marks", "strip_polarity", "values_of", "verify_quote",
]  # fmt: skip

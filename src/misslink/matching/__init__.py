"""What a text says about a claim: quotes, coverage, support and references, by rules and fits.

Other packages import from here, and not from the modules: import-linter holds it.
"""

from misslink.matching.abstention import claim_spans, declines, states_absence
from misslink.matching.assertion import is_negated
from misslink.matching.claim_matching import Passages
from misslink.matching.coverage import ClaimCoverage, cover_answer
from misslink.matching.fuzzy_matching import invariant_tokens
from misslink.matching.quotes import QuoteCheck, says_verbatim, verify_quote
from misslink.matching.references import compare
from misslink.matching.support import load_fit, rules_version

__all__ = [
    "ClaimCoverage", "Passages", "QuoteCheck", "claim_spans", "compare", "cover_answer", "declines",
    "invariant_tokens", "is_negated", "load_fit", "rules_version", "says_verbatim", "states_absence", "verify_quote",
]  # fmt: skip

"""Patterns that are looked for only where a text has one of their keywords."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from misslink.matching import abstention, assertion, coverage
from misslink.text.normalization import KeywordPattern

PATTERNS = {
    f"{module.__name__}.{name}": pattern
    for module in (abstention, assertion, coverage)
    for name, pattern in vars(module).items()
    if isinstance(pattern, KeywordPattern)
}


@pytest.mark.parametrize("name", PATTERNS)
def test_whatever_a_pattern_matches_has_a_keyword(name):
    pattern = PATTERNS[name]

    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.from_regex(pattern.pattern))
    def check(text):
        assert pattern.search(text)

    check()

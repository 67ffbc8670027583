"""Every example in a docstring gives what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

import misslink

PACKAGE = Path(misslink.__file__).parent  # the checkout's, or the wheel's where that is tested
WITH_EXAMPLES = [
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(PACKAGE.rglob("*.py"))
    if ">>>" in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_the_examples_of_a_module_are_true(name):
    outcome = doctest.testmod(importlib.import_module(name))
    assert outcome.failed == 0
    assert outcome.attempted > 0

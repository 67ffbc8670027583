"""Every example in a docstring gives what it says."""

import doctest
import importlib
from pathlib import Path

import misslink

PACKAGE = Path(misslink.__file__).parent  # the checkout's, or the wheel's where that is tested


def test_the_examples_of_each_module_are_true():
    names = [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(PACKAGE.rglob("*.py"))
        if ">>>" in path.read_text(encoding="utf-8")
    ]
    outcomes = {name: doctest.testmod(importlib.import_module(name)) for name in names}
    assert [name for name, outcome in outcomes.items() if outcome.failed] == []
    assert [name for name, outcome in outcomes.items() if not outcome.attempted] == []
    assert len(outcomes) > 50

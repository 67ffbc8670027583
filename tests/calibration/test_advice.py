"""The rules of trust and caution, and other limits from a file."""

from __future__ import annotations

import pytest

from misslink.calibration.advice import TRUST_RULES, TrustCriteria, advise
from misslink.errors import InputError

SOUND = {
    "labels": 200, "rarer_label": 60, "kappa": 0.8, "balanced_accuracy_low": 0.85,
    "over_length": 0.3, "over_majority": 0.7, "people_alpha": 0.8, "failed": 0.0,
    "calibration_error_low": 0.01, "biases": 0, "padding_flips_low": 0.0,
    "order_flips_low": 0.01, "again_flips_low": 0.0,
}  # fmt: skip


def test_every_rule_is_tried():
    assert set(SOUND) == {rule.name for rule in TRUST_RULES}
    found = advise(SOUND, TrustCriteria())
    assert found["verdict"] == "trust"
    assert len(found["reasons"]) == len(TRUST_RULES)  # what holds


@pytest.mark.parametrize("rule", TRUST_RULES, ids=lambda rule: rule.name)
def test_each_rule_alone_lowers_the_verdict_at_its_limits(rule):
    step = 1e-6 if rule.at_most else -1e-6
    at_limit = advise({**SOUND, rule.name: rule.trust}, TrustCriteria())
    assert at_limit["verdict"] == "trust"
    short = advise({**SOUND, rule.name: rule.trust + step}, TrustCriteria())
    assert short["verdict"] == "caution"
    assert len(short["reasons"]) == 1
    if rule.caution is None:
        assert advise({**SOUND, rule.name: 1e6}, TrustCriteria())["verdict"] == "caution"
    else:
        far = advise({**SOUND, rule.name: rule.caution + step}, TrustCriteria())
        assert far["verdict"] == "do not use"


@pytest.mark.parametrize("rule", TRUST_RULES, ids=lambda rule: rule.name)
def test_a_number_that_is_not_known_counts_only_where_it_is_needed(rule):
    found = advise({**SOUND, rule.name: None}, TrustCriteria())
    assert found["verdict"] == ("do not use" if rule.needed else "trust")


def test_the_worst_reason_stands_first():
    found = advise({**SOUND, "kappa": 0.5, "labels": 5}, TrustCriteria())
    assert found["reasons"] == [
        "Labelled cases: 5; at least 30 is needed to use it at all.",
        "Kappa of judge and annotators is 0.50; at least 0.60 is needed to trust it.",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.toml", "band = 0.7\n[trust]\nkappa = 0.9\n[caution]\nfailed = 0.5\n"),
        ("c.yaml", "band: 0.7\ntrust:\n  kappa: 0.9\ncaution: {failed: 0.5}\n"),
    ],
)
def test_a_file_changes_the_limits_it_names_and_no_other(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    criteria = TrustCriteria.read(path)
    assert criteria.band == 0.7
    assert advise(SOUND, criteria)["verdict"] == "caution"
    assert advise({**SOUND, "kappa": 0.95, "failed": 0.4}, criteria)["verdict"] == "caution"
    assert advise({**SOUND, "kappa": 0.95, "biases": 1}, criteria)["verdict"] == "caution"
    assert advise({**SOUND, "kappa": 0.95}, criteria)["verdict"] == "trust"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.toml", "[trust\n", "not TOML"),
        ("c.yaml", "trust: [", "not YAML"),
        ("c.yaml", "- 1\n", "needs the tables"),
        ("c.toml", "[trusst]\nkappa = 1\n", "did you mean 'trust'"),
        ("c.toml", "[trust]\nkapa = 1\n", "field 'trust.kapa': unknown rule; did you"),
        ("c.toml", '[trust]\nkappa = "high"\n', "field 'trust.kappa': a limit must be a number"),
        ("c.toml", "[trust]\nkappa = true\n", "a limit must be a number"),
        ("c.toml", "[trust]\nkappa = nan\n", "a limit must be a number"),
        ("c.toml", f"[trust]\nkappa = 1{400 * '0'}\n", "a limit must be a number"),
        ("c.toml", "band = true\n", "between 0.5 and 1"),
        ("c.toml", "trust = 3\n", "must be a table"),
        ("c.toml", "[trust]\nkappa = 0.1\n", "caution must need less"),
        ("c.toml", "[caution]\nfailed = 0.01\n", "caution must need less"),
        ("c.toml", "band = 0.5\n", "between 0.5 and 1"),
        ("c.toml", 'band = "x"\n', "between 0.5 and 1"),
    ],
)
def test_a_wrong_file_is_one_sentence_with_its_place(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        TrustCriteria.read(path)
    assert str(path) in str(caught.value)
    assert said in str(caught.value)


def test_a_number_that_just_misses_its_limit_is_told_from_it():
    found = advise({**SOUND, "people_alpha": 0.6668657, "failed": 0.0501}, TrustCriteria())
    assert found["reasons"] == [
        "Annotators agree at alpha 0.6669; at least 0.6670 is needed to trust it.",
        "5.01% of labelled cases have no usable verdict; at most 5.00% is needed to trust it.",
    ]


def test_what_is_not_known_is_said_in_words_that_people_know():
    found = advise({**SOUND, "balanced_accuracy_low": None, "over_majority": None}, TrustCriteria())
    assert found["reasons"] == [
        "Balanced accuracy is not known; it needs labels of both kinds.",
        "F1 of finding bad cases is not known: neither annotators nor judge found any.",
    ]

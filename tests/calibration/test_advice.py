"""Whether to trust the judge: rules, criteria files and audits."""

from dataclasses import replace

import pytest

from labelled import table
from misslink.calibration import read_verdicts
from misslink.calibration.advice import (
    TOO_FEW,
    TRUST_RULES,
    TrustCriteria,
    advise,
    audit_findings,
    audit_numbers,
    matching_audit,
)
from misslink.calibration_document import Audit
from misslink.errors import InputError
from misslink.types import Reason

SOUND = {
    "labels": 200, "rarer_label": 60, "kappa_low": 0.8, "balanced_accuracy_low": 0.85,
    "over_length_low": 0.3, "over_majority_low": 0.7, "people_alpha_low": 0.8, "failed": 0.0,
    "calibration_error_low": 0.01, "biases": 0, "padding_flips_low": 0.0,
    "order_flips_low": 0.01, "again_flips_low": 0.0,
}  # fmt: skip
OF_LABELS = {"labels", "rarer_label"}


def test_every_rule_is_tried():
    assert set(SOUND) == {rule.name for rule in TRUST_RULES}
    found = advise(SOUND, TrustCriteria())
    assert found.verdict == "trust"
    assert len(found.reasons) == len(TRUST_RULES)  # what holds


@pytest.mark.parametrize("rule", TRUST_RULES, ids=lambda rule: rule.name)
def test_each_rule_alone_lowers_the_verdict_at_its_limits(rule):
    step = 1e-6 if rule.at_most else -1e-6
    at_limit = advise({**SOUND, rule.name: rule.trust}, TrustCriteria())
    assert at_limit.verdict == "trust"
    short = advise({**SOUND, rule.name: rule.trust + step}, TrustCriteria())
    assert short.verdict == "caution"
    assert len(short.reasons) == 1
    if rule.caution is None:
        far = 1e6 if rule.at_most else -1e6
        assert advise({**SOUND, rule.name: far}, TrustCriteria()).verdict == "caution"
    else:
        far = advise({**SOUND, rule.name: rule.caution + step}, TrustCriteria())
        assert far.verdict == (TOO_FEW if rule.name in OF_LABELS else "do not use")


@pytest.mark.parametrize("rule", TRUST_RULES, ids=lambda rule: rule.name)
def test_a_number_that_is_not_known_counts_only_where_it_is_needed(rule):
    found = advise({**SOUND, rule.name: None}, TrustCriteria())
    short = TOO_FEW if rule.name in OF_LABELS else "do not use"
    assert found.verdict == (short if rule.needed else "trust")


def test_too_few_labels_say_nothing_of_the_judge_but_what_an_audit_shows():
    few = SOUND | {"labels": 19, "rarer_label": 2, "kappa_low": -0.8, "balanced_accuracy_low": None}
    assert advise(few, TrustCriteria()).verdict == TOO_FEW
    assert advise(few | {"order_flips_low": 0.3}, TrustCriteria()).verdict == "do not use"
    assert advise(few | {"labels": 30, "rarer_label": 10}, TrustCriteria()).verdict == "do not use"


def test_the_worst_reason_stands_first():
    found = advise({**SOUND, "kappa_low": 0.3, "labels": 5}, TrustCriteria())
    assert found.reasons == (
        "Labelled cases: 5; at least 30 are needed to use it at all.",
        "Kappa of judge and annotators may be as low as 0.30; at least 0.40 is needed to trust it.",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.toml", "band = 0.7\n[trust]\nkappa_low = 0.9\n[caution]\nfailed = 0.5\n"),
        ("c.yaml", "band: 0.7\ntrust:\n  kappa_low: 0.9\ncaution: {failed: 0.5}\n"),
    ],
)
def test_a_file_changes_the_limits_it_names_and_no_other(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    criteria = TrustCriteria.read(path)
    assert criteria.band == 0.7
    assert advise(SOUND, criteria).verdict == "caution"
    assert advise({**SOUND, "kappa_low": 0.95, "failed": 0.4}, criteria).verdict == "caution"
    assert advise({**SOUND, "kappa_low": 0.95, "biases": 1}, criteria).verdict == "caution"
    assert advise({**SOUND, "kappa_low": 0.95}, criteria).verdict == "trust"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("c.toml", "[trust\n", "not valid TOML"),
        ("c.yaml", "trust: [", "not YAML"),
        ("c.yaml", "- 1\n", "needs the tables"),
        ("c.toml", "[trusst]\nkappa_low = 1\n", "did you mean 'trust'"),
        ("c.toml", "[trust]\nkappa_lo = 1\n", "field 'trust.kappa_lo': unknown rule; did you"),
        (
            "c.toml",
            '[trust]\nkappa_low = "high"\n',
            "field 'trust.kappa_low': a limit must be a number",
        ),
        ("c.toml", "[trust]\nkappa_low = true\n", "a limit must be a number"),
        ("c.toml", "[trust]\nkappa_low = nan\n", "a limit must be a number"),
        ("c.toml", f"[trust]\nkappa_low = 1{400 * '0'}\n", "a limit must be a number"),
        ("c.toml", "band = true\n", "between 0.5 and 1"),
        ("c.toml", "trust = 3\n", "must be a table"),
        ("c.toml", "[trust]\nkappa_low = -0.1\n", "the limit of caution must be easier to reach"),
        ("c.toml", "[caution]\nfailed = 0.01\n", "the limit of caution must be easier to reach"),
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
    found = advise({**SOUND, "people_alpha_low": 0.4998657, "failed": 0.0501}, TrustCriteria())
    assert found.reasons == (
        "Annotators may agree at an alpha as low as 0.4999; at least 0.5000 is needed to trust it.",
        "5.01% of labelled cases have no usable verdict; at most 5.00% is needed to trust it.",
    )


def test_what_is_not_known_is_said_in_words_that_people_know():
    found = advise(
        {**SOUND, "balanced_accuracy_low": None, "over_majority_low": None}, TrustCriteria()
    )
    assert found.reasons == (
        "Balanced accuracy is not known; it needs labels of both kinds.",
        "F1 of finding bad cases is not known: neither annotators nor judge found any.",
    )


PROMPT = {"name": "examination", "version": 1, "sha256": "ab" * 32}


def share(value, low):
    return {
        "value": value, "low": low, "high": 1.0, "n": 50, "method": "wilson", "reason": None,
    }  # fmt: skip


def audit(**more):
    def entry(low, **rest):
        return {
            "n": 50, "flipped": share(0.5, low), "to_good": share(0.4, low / 2),
            "may_lower": False, "finding": None, **rest,
        }  # fmt: skip

    document = {
        "judge": "openai:m",
        "prompts": {"examination": "ab" * 32},
        "judge_identity": {"judge_identity.model": "m"},
        "created": "2026-01-01T00:00:00+00:00",
        "seed": 0,
        "cases": 50,
        "metrics": {
            "faithfulness": {
                "padding": entry(0.1, finding="Padding moves it."),
                "passage_order": entry(0.01),
                "passage_shuffle": entry(0.3),
                "again": entry(0.02),
            }
        },
        **more,
    }
    return Audit.read(document)


@pytest.fixture
def verdicts():
    rows = table(judge="openai:m", prompt=PROMPT)[0]
    return replace(read_verdicts(rows, "faithfulness"), identity={"judge_identity.model": "m"})


def test_what_was_found_of_the_metric_is_kept_and_weighed(verdicts):
    kept, reason = matching_audit(audit(), verdicts)
    assert reason is None
    assert kept.cases == 50
    assert audit_numbers(kept) == {
        "padding_flips_low": 0.1, "order_flips_low": 0.3, "again_flips_low": 0.02,
    }  # fmt: skip
    assert audit_findings(kept) == ["Padding moves it."]


def test_where_padding_may_lower_only_what_turns_good_is_weighed(verdicts):
    told = audit().document()
    told["metrics"]["faithfulness"]["padding"]["may_lower"] = True
    kept, _ = matching_audit(Audit.read(told), verdicts)
    assert audit_numbers(kept)["padding_flips_low"] == 0.05


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (
            {"judge": "openai:other"},
            Reason(code="audit_of_other_judge", audited="openai:other", judge="openai:m"),
        ),
        (
            {"prompts": {"examination": "cd" * 32}},
            Reason(code="audit_of_other_prompt", name="examination"),
        ),
        (
            {"judge_identity": {"judge_identity.model": "n"}},
            Reason(code="audit_of_other_setting", setting="model"),
        ),
        (
            {"metrics": {"correctness": {}}},
            Reason(code="audit_of_other_metric", metric="faithfulness"),
        ),
    ],
)
def test_an_audit_of_something_else_is_not_used_and_says_why(verdicts, more, reason):
    kept, why = matching_audit(audit(**more), verdicts)
    assert (kept, why) == (None, reason)
    assert set(audit_numbers(kept).values()) == {None}
    assert audit_findings(kept) == []


def test_verdicts_of_no_certain_judge_have_no_audit(verdicts):
    _, why = matching_audit(audit(), replace(verdicts, judge=None))
    assert (why.code, why.judge) == ("audit_of_other_judge", None)


def test_a_judge_that_was_not_audited_is_not_worse_for_it(verdicts):
    assert matching_audit(None, verdicts) == (None, None)
    numbers = audit_numbers(None)
    names = {"kappa_low", *numbers}
    rules = tuple(rule for rule in TrustCriteria().rules if rule.name in names)
    assert len(rules) == len(names) == 4
    assert advise({"kappa_low": 0.9, **numbers}, TrustCriteria(rules)).verdict == "trust"


def test_flips_beyond_the_limits_stand_against_the_judge(verdicts):
    numbers = audit_numbers(matching_audit(audit(), verdicts)[0])
    rules = tuple(rule for rule in TrustCriteria().rules if rule.name in numbers)
    found = advise(numbers, TrustCriteria(rules))
    assert found.verdict == "do not use"
    order, padding = found.reasons
    assert order.startswith("30% or more of the verdicts change with the order of the passages;")
    assert order.endswith("at most 20% is needed to use it at all.")
    assert padding.startswith("10% or more of the verdicts change if an answer is padded with")
    assert padding.endswith("at most 5% is needed to trust it.")

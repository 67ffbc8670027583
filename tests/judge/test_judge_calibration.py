"""What linking reads of a calibration, and how it answers a file that is none."""

import datetime as dt
import json

import pytest

from misslink.errors import InputError
from misslink.judge.calibration import Calibration, check_judge, read_calibration_document
from misslink.stats import proportion

DOCUMENT = {
    "metric": "faithfulness",
    "n": 200,
    "threshold": 0.43,
    "agreement": {
        "kappa": proportion(3, 5).model_dump(),
        "sensitivity": proportion(110, 120).model_dump(),
        "specificity": proportion(60, 80).model_dump(),
    },
    "verdict": "caution",
}


def read(path):
    return Calibration.from_document(read_calibration_document(path), path)


@pytest.fixture
def written(tmp_path):
    def write(**changes):
        path = tmp_path / "calibration.json"
        path.write_text(json.dumps({**DOCUMENT, **changes}), encoding="utf-8")
        return path

    return write


def test_a_calibration_is_read_beside_keys_it_does_not_need(written):
    found = read(written(uncertain_band=[0.35, 0.6]))
    assert (found.metric, found.threshold) == ("faithfulness", 0.43)
    assert found.sensitivity == proportion(110, 120)
    assert found.specificity == proportion(60, 80)
    assert found.uncertain_band == (0.35, 0.6)


def test_the_band_includes_its_ends_and_nothing_beyond(written):
    found = read(written(uncertain_band=[0.35, 0.6]))
    said = [found.is_uncertain(p) for p in (0.0, 0.349, 0.35, 0.5, 0.6, 0.601, 1.0)]
    assert said == [False, False, True, True, True, False, False]


@pytest.mark.parametrize("changes", [{}, {"uncertain_band": None}])
def test_without_a_band_nothing_is_uncertain(written, changes):
    found = read(written(**changes))
    assert not any(found.is_uncertain(p / 10) for p in range(11))


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"metric": None}, "field 'metric'"),
        ({"threshold": "0.4"}, "field 'threshold'"),
        ({"threshold": 1.4}, "field 'threshold'"),
        ({"threshold": True}, "field 'threshold'"),
        ({"threshold": 10**400}, "field 'threshold'"),
        ({"agreement": None}, "field 'agreement.sensitivity'"),
        (
            {"agreement": {**DOCUMENT["agreement"], "specificity": 0.9}},
            "field 'agreement.specificity'",
        ),
        (
            {
                "agreement": {
                    **DOCUMENT["agreement"],
                    "sensitivity": {**proportion(1, 2).model_dump(), "value": 90.0},
                }
            },
            "field 'agreement.sensitivity'",
        ),
        ({"uncertain_band": [0.6, 0.4]}, "field 'uncertain_band'"),
        ({"uncertain_band": [0.4]}, "field 'uncertain_band'"),
        ({"uncertain_band": 0.4}, "field 'uncertain_band'"),
        ({"uncertain_band": [0.4, 60]}, "field 'uncertain_band'"),
    ],
)
def test_a_wrong_field_is_named_with_the_file_and_the_way_out(written, changes, field):
    path = written(**changes)
    with pytest.raises(InputError) as caught:
        read(path)
    said = str(caught.value)
    assert said.startswith(f"{path}, {field}: ")
    assert "agreement.sensitivity" in said or "such as [0.35, 0.6]" in said


@pytest.mark.parametrize("content", [b"", b"{", b"[1, 2]", b"[" * 100_000, b"NaN"])
def test_a_file_that_is_no_calibration_gives_one_sentence(tmp_path, content):
    path = tmp_path / "calibration.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"agreement\.sensitivity"):
        read(path)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_a_number_that_no_run_can_keep_is_refused_by_name(tmp_path, number):
    path = tmp_path / "calibration.json"
    path.write_text(f'{{"metric": "faithfulness", "extra": {number}}}', encoding="utf-8")
    with pytest.raises(InputError, match=f"holds {number}, which is not a finite number"):
        read(path)


def test_the_document_is_kept_whole(written):
    assert read_calibration_document(written()) == DOCUMENT


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: there is no such file"):
        read(tmp_path / "none.json")


def test_an_unmeasured_rate_is_kept_as_missing(written):
    unmeasured = {**proportion(0, 0).model_dump()}
    agreement = {**DOCUMENT["agreement"], "specificity": unmeasured}
    assert read(written(agreement=agreement)).specificity.value is None


RECORDED = {
    **DOCUMENT,
    "judge": "openai:m",
    "prompts": {"examination": "ab" * 32},
    "judge_identity": {"judge_identity.temperature": "0.0"},
    "created": "2026-01-01T00:00:00+00:00",
}
DAY = dt.datetime(2026, 1, 31, tzinfo=dt.UTC)


def check(document, judge="openai:m", prompt="ab" * 32, **more):
    more.setdefault("now", DAY)
    check_judge(document, "c.json", judge=judge, prompts={"examination": prompt}, **more)


def test_a_calibration_of_this_judge_and_prompt_passes_in_silence(caplog):
    check(RECORDED, identity={"judge_identity.temperature": "0.0", "new": "1"})
    assert caplog.messages == []


def test_a_calibration_of_another_judge_is_refused():
    with pytest.raises(InputError, match=r"c\.json, field 'judge'.*openai:m, and openai:n is"):
        check(RECORDED, judge="openai:n")


def test_a_calibration_with_another_prompt_is_refused():
    with pytest.raises(InputError, match=r"field 'prompts\.examination'.*is not the one"):
        check(RECORDED, prompt="cd" * 32)


def test_age_drift_and_a_bad_verdict_are_told(caplog):
    later = DAY + dt.timedelta(days=100)
    bad = {**RECORDED, "verdict": "do not use"}
    check(bad, identity={"judge_identity.temperature": "0.7"}, now=later)
    drift, *others = caplog.messages
    assert drift.startswith("c.json: temperature was 0.0 when the judge was calibrated, and is 0.7")
    assert others == [
        "c.json: is 130 days old; the judge may have drifted since",
        "c.json: says not to use this judge",
    ]


@pytest.mark.parametrize("created", [None, "yesterday", "2026-01-01"])
def test_a_calibration_that_names_no_judge_is_taken_with_a_word(caplog, created):
    check({**DOCUMENT, "created": created})
    assert caplog.messages == ["c.json: names no judge; it is taken to be of openai:m"]

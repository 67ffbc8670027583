"""What a judge prefers, beside a comparison of the very runs that it was asked about."""

import json

import pytest

from misslink.comparison.compare_runs import compare_runs
from misslink.comparison.preferences import StoredPreferences, answers_hash
from misslink.errors import InputError
from small_runs import named, small_run

HITS = [1, 0, 0, 0, 0, 0, 0, 1]


def answering(run, words):
    """The same run with other answers."""
    traces = [trace.model_copy(update={"answer": words}) for trace in run.traces]
    return run.model_copy(update={"traces": tuple(traces)})


A = small_run(HITS)
B = answering(small_run([1] * 8), "Otherwise.")
CASES = {"c1": ("b", ["b", "b"]), "c2": ("tie", ["a", "b"]), "c3": ("a", ["a", "a"])}


def preferred(tmp_path, a=A, b=B, **per_case):
    """A file as misslink judge pairwise prints it; the runs may be anywhere by now."""
    path = tmp_path / "preferences.json"
    cases = {
        name: {"winner": winner, "orders": orders, "probability": 0.75, "reason": None}
        for name, (winner, orders) in per_case.items()
    }
    answers = {"a": answers_hash(a), "b": answers_hash(b)}
    about = {"a": "then/a", "b": "then/b", "judge": "m", "answers": answers}
    path.write_text(json.dumps({**about, "per_case": cases}))
    return StoredPreferences.read(path)


def test_preferences_are_of_both_orders(tmp_path):
    found = compare_runs(named(A, B), preferences=[preferred(tmp_path, **CASES)])["preference"]
    assert found["wins"] == {"a": 1, "b": 1, "tie": 1}
    assert found["by_order"]["a_first"] == {"a": 2, "b": 1, "tie": 0}
    assert found["by_order"]["b_first"] == {"a": 1, "b": 2, "tie": 0}
    assert found["position_flips"]["value"] == pytest.approx(1 / 3)
    assert found["not_asked"] == 5


def test_preferences_of_the_runs_in_the_other_order_are_turned(tmp_path):
    turned = preferred(tmp_path, B, A, c1=("b", ["b", "tie"]))
    found = compare_runs(named(A, B), preferences=[turned])["preference"]
    assert found["wins"] == {"a": 1, "b": 0, "tie": 0}
    # Their second order showed our A first.
    assert found["by_order"]["a_first"] == {"a": 0, "b": 0, "tie": 1}
    assert found["per_case"]["c1"]["probability"] == pytest.approx(0.25)


def test_only_compared_cases_count_among_preferences(tmp_path):
    document = compare_runs(named(A, B), cases=["c1"], preferences=[preferred(tmp_path, **CASES)])
    assert document["preference"]["cases"] == 1


def test_runs_are_known_by_their_answers_not_by_what_they_are_called(tmp_path):
    """Judged or calibrated again they are the same; answered otherwise they are others."""
    judged = small_run([1] * 8, faithful=[1] * 8, judge="openai:m", created="later")
    preferences = [preferred(tmp_path, **CASES)]
    compare_runs(named(A, answering(judged, "Otherwise.")), preferences=preferences)
    for runs in (named(A, answering(B, "Changed.")), named(answering(A, "Changed."), B)):
        with pytest.raises(InputError, match="between the answers of then/a and then/b as they"):
            compare_runs(runs, preferences=preferences)


def test_an_answer_moved_to_another_case_is_another_answer():
    swapped = [B.traces[0].model_copy(update={"answer": "New."}), *B.traces[1:]]
    other = [*B.traces[:1], B.traces[1].model_copy(update={"answer": "New."}), *B.traces[2:]]
    hashes = {
        answers_hash(B.model_copy(update={"traces": tuple(each)}))
        for each in (B.traces, swapped, other)
    }
    assert len(hashes) == 3
    assert answers_hash(B.model_copy(update={"traces": B.traces[::-1]})) == answers_hash(B)


def test_preferences_of_three_runs_go_to_the_run_they_are_of(tmp_path):
    c = answering(B, "A third.")
    document = compare_runs(named(A, B, c), preferences=[preferred(tmp_path, A, c, **CASES)])
    assert [one["preference"] is None for one in document["comparisons"]] == [True, False]


def test_a_case_that_the_runs_have_not_is_refused(tmp_path):
    with pytest.raises(InputError, match="the runs have no case 'ghost'"):
        compare_runs(named(A, B), preferences=[preferred(tmp_path, ghost=("a", None))])


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", '{"a": 1}', "\ud83d", "[" * 9999),
        '{"a": "a", "b": "b", "judge": "m", "per_case": {}}',  # it does not say of which answers
    ],
)
def test_what_are_no_preferences_is_refused(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text, encoding="utf-8", errors="replace")
    with pytest.raises(InputError, match="misslink judge pairwise"):
        StoredPreferences.read(path)

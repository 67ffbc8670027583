"""What a case is changed into: longer and no less true, or with its passages in another order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from audited_judge import BLUE, subject
from misslink.judge.checks.audit_variants import AUDITED, pad_answer, reorder_passages
from misslink.registry import judged_metrics
from misslink.text.normalization import fold


def test_filler_stands_word_for_word_in_a_passage_and_doubles_the_answer():
    case = subject(1)
    longer = pad_answer(case, "passages", seed=3)
    assert longer.answer.startswith(case.answer)
    added = longer.answer[len(case.answer) :].strip()
    whole = " ".join(passage.text for passage in case.context)
    assert all(f"{part.strip('. ')}." in whole for part in added.split(". "))
    assert len(longer.answer) >= 2 * len(case.answer) - 60
    assert longer.case == case.case
    assert longer.context == case.context


def test_what_the_answer_says_already_is_no_filler():
    added = pad_answer(subject(2), "passages", seed=0).answer[len(BLUE.format(2)) :]
    assert fold(BLUE.format(2)) not in fold(added)


def test_questions_fragments_and_refusals_are_no_filler():
    texts = (
        "Opening hours. Who runs the town hall today? The passage does not say who built it.",
        "Table 4 lists " + "many numbers of many towns " * 20 + "in full.",
    )
    assert pad_answer(subject(0, passages=texts), "passages", 0) == (
        "its passages hold no sentence that could be added"
    )


def test_its_own_words_again_are_the_answer_twice():
    case = subject(3)
    assert pad_answer(case, "answer", 0).answer == f"{case.answer} {case.answer}"


def test_the_filler_of_a_case_is_drawn_by_its_id_and_the_seed_alone():
    assert (
        pad_answer(subject(5), "passages", 1).answer == pad_answer(subject(5), "passages", 1).answer
    )
    drawn = {pad_answer(subject(5, more=" " * 90), "passages", s).answer for s in range(12)}
    assert len(drawn) > 1


@given(count=st.integers(2, 7), seed=st.integers(0, 99), k=st.integers(1, 9))
def test_another_order_holds_the_very_passages_that_were_shown(count, seed, k):
    case = subject(0, passages=tuple(f"Text number {n} is here." for n in range(count)), k=k)
    shown = [passage.id for passage in case.context]
    for change in ("passage_order", "passage_shuffle"):
        other = reorder_passages(case, change, seed)
        if isinstance(other, str):
            assert len(shown) < (2 if change == "passage_order" else 3)
            continue
        order = [passage.id for passage in other.context]
        assert sorted(order) == sorted(shown)
        assert order != shown
        assert (order == shown[::-1]) == (change == "passage_order")
        assert [passage.rank for passage in other.context] == list(range(1, len(order) + 1))


def test_every_audited_metric_exists():
    assert set(AUDITED) <= set(judged_metrics.names())

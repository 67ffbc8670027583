"""What a judge says of answers that were changed, and what the numbers of that are."""

import asyncio
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_judge import answer_to
from honest_judge import fenced, honest
from json_values import as_json
from misslink.errors import JudgeUnreachableError
from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.checks.audit import (
    audit_asks,
    audit_cases,
    compare_verdicts,
    correct_changes,
    draw_audit_sample,
    nothing_compared_reason,
    pad_answer,
    reorder_passages,
)
from misslink.judge.judged_metric import Subject
from misslink.judge.protocol import Reply
from misslink.registry import judged_metrics
from misslink.text.normalization import fold
from misslink.types import Case, Passage, Run, Trace, Verdict

BLUE = "By day the sky over town {} is blue and clear."
INVENTED = "The moon over town is made of copper and cheese."
FILLERS = (
    "Clouds over the northern hills are white in winter.",
    "Grass along the river bank stays green all summer.",
    "Market stalls in the old square open before sunrise.",
)


class HonestJudge:
    """Says what `judge_server` says, changed by `script(said, texts, times)` in place.

    `texts` are the fenced ones by label, `times` how often the same was asked before. A script may
    return another reply.
    """

    name = "in-process"
    identity = {"judge": "in-process"}  # noqa: RUF012 (the protocol's attribute)

    def __init__(self, script=lambda *_: None):
        self.script = script
        self.asked = Counter()

    async def ask(self, ask):
        body = {"messages": list(ask.messages)}
        times, said = self.asked[ask.key], honest(body)
        self.asked[ask.key] += 1
        other = self.script(said, dict(fenced(body)), times)
        return other or Reply(answer_to(ask, **said), raw="{}")

    async def close(self):
        pass


def subject(n, *, faithful=None, more="", k=5, passages=None, references=()):
    """Case `n`; of odd ones a sentence of the answer is in no passage."""
    texts = passages or (f"{BLUE.format(n)} {FILLERS[0]}", FILLERS[1], FILLERS[2])
    good = n % 2 == 0 if faithful is None else faithful
    answer = BLUE.format(n) + ("" if good else f" {INVENTED}") + more
    case = Case(id=f"c{n}", question=f"What is the sky over town {n}?", references=references)
    retrieved = tuple(Passage(id=f"p{r}", text=t, rank=r) for r, t in enumerate(texts, 1))
    return Subject(case, Trace(case_id=case.id, retrieved=retrieved, answer=answer), k)


def heard_of(judge, subjects, *names, **options):
    metrics = [judged_metrics.get(name) for name in names or ("faithfulness",)]
    return asyncio.run(audit_cases(judge, subjects, metrics, **options))


def audited(script=lambda *_: None, count=24, metric="faithfulness", *, again=True, cases=subject):
    """The entries of one metric by change, with their findings."""
    heard = heard_of(HonestJudge(script), [cases(n) for n in range(count)], metric)
    return correct_changes(compare_verdicts(heard, [metric], again=again)).document()["metrics"][
        metric
    ]


CHANGES = ("padding", "passage_order", "passage_shuffle", "again")


def flips(found):
    return {
        change: (entry["to_good"]["value"], entry["to_bad"]["value"])
        for change, entry in found.items()
    }


def told(found):
    return {change: entry["finding"] for change, entry in found.items() if entry["finding"]}


def forget_the_bad(said):
    """Back what no passage holds by the quote of another claim."""
    quotes = next(claim["quotes"] for claim in said["claims"] if claim["quotes"])
    for claim in said["claims"]:
        claim.update(support="supported", quotes=claim["quotes"] or quotes)


def lenient_on_long(said, texts, _):
    """Speaks only well of long answers: it finds a quote for what no passage holds."""
    if len(texts["answer"]) > 150:
        forget_the_bad(said)


def reads_the_first_passage(said, texts, _):
    for claim in said["claims"]:
        if any(fold(quote) not in fold(texts["passage_1"]) for quote in claim["quotes"]):
            claim.update(support="unsupported", quotes=[])


def test_an_honest_judge_is_moved_by_nothing():
    found = audited()
    assert flips(found) == dict.fromkeys(CHANGES, (0.0, 0.0))
    assert found["padding"]["shift"]["value"] == 0.0  # of the original claims
    assert found["padding"]["claims"]["value"] == 0.0
    assert found["padding"]["flipped"]["n"] == 24
    assert told(found) == {}


def test_a_judge_that_length_wins_over_is_found_out():
    found = audited(lenient_on_long)
    assert flips(found) == {**dict.fromkeys(CHANGES, (0.0, 0.0)), "padding": (0.5, 0.0)}
    assert (found["padding"]["gained"], found["padding"]["lost"]) == (12, 0)
    assert found["padding"]["p"] == pytest.approx(2 * 0.5**12)
    assert found["padding"]["shift"]["low"] > 0
    assert told(found) == {
        "padding": "Padding the answer with what adds nothing turns 50% [31, 69] of 24 verdicts "
        "on faithfulness, more often to good."
    }


def test_a_judge_that_doubts_the_same_claims_in_a_longer_answer_is_found_out():
    def strict_on_long(said, texts, _):
        if len(texts["answer"]) > 80:
            said["claims"][0].update(support="unsupported", quotes=[])

    entry = audited(strict_on_long, cases=lambda n: subject(n, faithful=True))["padding"]
    assert (entry["to_bad"]["value"], entry["claims"]["value"]) == (1.0, 1.0)
    assert entry["shift"]["value"] == -1.0
    assert "more often to bad" in entry["finding"]


def test_a_judge_that_reads_one_passage_is_found_out():
    found = audited(reads_the_first_passage)
    assert flips(found)["passage_order"] == (0.0, 0.5)
    assert set(told(found)) >= {"passage_order"}
    assert "more often to bad" in found["passage_order"]["finding"]


def test_what_flips_by_itself_is_not_blamed_on_a_change():
    """Bad answers were called bad by bad luck; any other time the judge is content."""

    def once_strict(said, texts, times):
        plain = len(texts["answer"]) < 100 and "sky over town" in texts["passage_1"]
        if not plain or times:
            forget_the_bad(said)

    found = audited(once_strict)
    assert flips(found)["again"] == flips(found)["padding"] == (0.5, 0.0)
    assert (found["padding"]["p"], found["padding"]["p_more"]) == (1.0, 1.0)
    assert found["padding"]["shift"]["value"] == 0.0
    assert told(found) == {
        "again": "Asked again, the judge changes its verdict on faithfulness in "
        "50% [31, 69] of 24 cases."
    }


@pytest.mark.slow
def test_a_noisy_judge_is_seldom_accused_of_a_bias():
    accused = 0
    for seed in range(12):
        chance = random.Random(seed)

        def noisy(said, *_, chance=chance):
            if chance.random() < 0.2:
                forget_the_bad(said)

        accused += bool(set(told(audited(noisy, count=12))) - {"again"})
    assert accused <= 1


def test_saying_the_same_twice_may_lower_relevance_and_only_raising_it_counts():
    def bored(said, texts, _):
        if texts["answer"].count(" is blue and clear") > 1:
            said["response"] = "partly"

    found = audited(bored, metric="answer_relevance")["padding"]
    assert (found["to_bad"]["value"], found["may_lower"], found["finding"]) == (1.0, True, None)

    def dazzled(said, texts, _):
        twice = texts["answer"].count(" is blue and clear") > 1
        said["response"] = "answers" if twice else "partly"

    found = audited(dazzled, metric="answer_relevance")["padding"]
    assert found["finding"] == (
        "Padding the answer with what adds nothing turns answer relevance good in 100% [86, 100] "
        "of 24 cases."
    )


def test_a_right_answer_said_twice_is_right():
    """Every claim twice leaves precision and recall as they are."""
    found = audited(
        metric="correctness", cases=lambda n: subject(n, references=("The sky is green.",))
    )
    assert flips(found)["padding"] == (0.0, 0.0)
    assert found["padding"]["shift"]["value"] == 0.0


def test_a_judge_without_chance_is_compared_with_itself_and_not_asked_again():
    judge = open_heuristic()
    subjects = [subject(n) for n in range(6)]
    heard = heard_of(judge, subjects)
    assert all("again" not in one.changed for one in heard)
    entries = as_json(compare_verdicts)(heard, ["faithfulness"], again=False)["faithfulness"]
    assert "again" not in entries
    assert entries["padding"]["p"] == 1.0


def test_replies_that_cannot_be_read_are_counted_by_reason_and_left_out():
    def mute_on_long(_, texts, __):
        long = len(texts["answer"]) > 120
        return Reply(None, raw="no", problem="the reply is no JSON") if long else None

    entry = audited(mute_on_long, cases=lambda n: subject(n, faithful=False))["padding"]
    assert entry["n"] == 0
    assert entry["flipped"]["value"] is None
    assert entry["left_out"] == {"failed once changed: the reply is no JSON": 24}
    assert entry["p_holm"] is None


def test_what_has_no_verdict_as_it_stands_is_not_paid_for_again():
    judge = HonestJudge(lambda *_: Reply(None, raw="no", problem="it is mute"))
    heard = heard_of(judge, [subject(n) for n in range(3)])
    assert sum(judge.asked.values()) == 3
    numbers = compare_verdicts(heard, ["faithfulness"], again=True)
    assert nothing_compared_reason(numbers) == (
        "no verdict could be compared, in 12 of 12 because as it stands: it is mute"
    )


def test_a_case_that_cannot_be_changed_so_is_left_out_of_that_change_alone():
    one_passage = subject(
        0, passages=(f"{FILLERS[0]} By day the sky over town 0 is blue and clear.",)
    )
    (heard,) = heard_of(HonestJudge(), [one_passage])
    entries = as_json(compare_verdicts)([heard], ["faithfulness"], again=True)["faithfulness"]
    assert entries["passage_order"]["left_out"] == {"it has fewer than two passages": 1}
    assert entries["padding"]["n"] == entries["again"]["n"] == 1


def test_what_is_foreseen_is_what_is_asked():
    subjects = [subject(n) for n in range(5)]
    metrics = [judged_metrics.get(name) for name in ("faithfulness", "answer_relevance")]
    judge = HonestJudge()
    foreseen = list(audit_asks(subjects, metrics, judge, repeat=1))
    heard_of(judge, subjects, "faithfulness", "answer_relevance")
    keys = {ask.key for ask in foreseen}
    assert keys == set(judge.asked)
    assert len(foreseen) == sum(judge.asked.values()) == 5 * 6


def test_several_tests_are_corrected_together_with_the_order_of_answers():
    preferred = {
        "position_flips": {
            "value": 0.5, "low": 0.3, "high": 0.7, "n": 20, "method": "wilson", "reason": None,
        },
        "positions": {"first": 9, "second": 1},
        "left_out": {},
    }  # fmt: skip
    heard = heard_of(HonestJudge(), [subject(n) for n in range(8)])
    found = correct_changes(
        compare_verdicts(heard, ["faithfulness"], again=True), preferred
    ).document()
    order = found["preferences"]["answer_order"]
    assert order["p"] == pytest.approx(22 / 1024)
    # Ten tests in all; the smaller one of these two stands first of them.
    assert order["p_more_holm"] == pytest.approx(order["p_more"] * 10)
    assert order["p_holm"] == pytest.approx(order["p"] * 9)
    assert order["finding"] == (
        "Which of two answers is better changes with their order in 50% [30, 70] of 20 pairs."
    )


def test_asking_ends_with_the_first_thing_that_makes_it_pointless():
    class Gone(HonestJudge):
        async def ask(self, ask):
            raise JudgeUnreachableError("nobody answers")

    metrics = [judged_metrics.get("faithfulness")]
    with pytest.raises(JudgeUnreachableError):
        asyncio.run(audit_cases(Gone(), [subject(1), subject(2)], metrics))


def test_the_invented_sentence_of_these_tests_is_in_no_passage():
    assert all(INVENTED not in passage.text for passage in subject(1).context)


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


def run_of(good, bad, skipped=0, metric="faithfulness"):
    labels = [True] * good + [False] * bad + [None] * skipped
    names = [f"c{n}" for n in range(len(labels))]
    return Run(
        manifest={},
        cases=tuple(Case(id=name, question=name) for name in names),
        traces=tuple(Trace(case_id=name, answer="It is.") for name in names),
        verdicts=tuple(
            Verdict(case_id=name, metric=metric, status="skipped", reason="-", judge="j")
            if label is None
            else Verdict(
                case_id=name, metric=metric, status="scored", value=label, label=label, judge="j"
            )
            for name, label in zip(names, labels, strict=True)
        ),
        links=(),
        summary={},
    )


@pytest.mark.parametrize(
    ("good", "bad", "size", "expected"),
    [
        (90, 10, 50, (40, 10)),  # the rarer call whole
        (90, 60, 50, (25, 25)),
        (3, 90, 51, (3, 48)),
        (3, 4, 50, (3, 4)),
        (9, 0, 4, (4, 0)),
        (9, 9, 1, (1, 0)),
        (9, 9, 5, (3, 2)),
    ],
)
def test_as_many_of_each_call_as_there_are(good, bad, size, expected):
    found = draw_audit_sample(run_of(good, bad, skipped=5), "faithfulness", size)
    assert (found.good, found.bad) == expected
    assert len({case.id for case in found.cases}) == sum(expected)


def test_the_seed_decides_and_the_order_of_the_run_does_not():
    run = run_of(40, 40)
    turned = run.model_copy(update={"cases": run.cases[::-1], "verdicts": run.verdicts[::-1]})
    first, again = (
        draw_audit_sample(run, "faithfulness", 10, 1),
        draw_audit_sample(turned, "faithfulness", 10, 1),
    )
    assert {case.id for case in first.cases} == {case.id for case in again.cases}
    assert draw_audit_sample(run, "faithfulness", 10, 2).cases != first.cases


def test_without_a_verdict_of_the_metric_cases_are_drawn_at_random():
    found = draw_audit_sample(run_of(20, 0), "helpfulness", 5)
    assert (len(found.cases), found.good, found.bad) == (5, 0, 0)


def test_cases_without_a_label_or_an_answer_are_not_drawn():
    assert draw_audit_sample(run_of(0, 0, skipped=8), "faithfulness", 5).cases == ()
    run = run_of(6, 6)
    silent = run.model_copy(update={"traces": tuple(Trace(case_id=c.id) for c in run.cases)})
    assert draw_audit_sample(silent, "faithfulness", 5).cases == ()

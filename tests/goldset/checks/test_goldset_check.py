"""A clean gold set has no finding; each planted fault is found, alone, in whatever order."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checked_sets import PLACES, TEXTS, THINGS, a_case, clean, corpus, evidence_text, gold_of
from misslink.goldset.checks import check_goldset
from misslink.goldset.checks.coverage import check_label_counts
from misslink.goldset.checks.passage_search import PassageSearch
from misslink.goldset.checks.protocol import CheckInputs, GateRequirement
from misslink.io.goldset import read_goldset
from misslink.io.trace_formats import LogRequest, RequestLog
from misslink.retrieval.matching import LabelledNeed, find_split, satisfies
from misslink.types import Case, Passage

LETTERS = "ab c.1\u6e2f\u53e3"


def grounds_for(cases, **more):
    """Everything there is to hold a set against, and nothing of it out of line."""
    run = {case.id: (Passage(id=next(iter(case.relevant), "doc#0"), rank=1),) for case in cases}
    log = RequestLog(tuple(LogRequest(question=case.question) for case in cases))
    demands = (GateRequirement("enough", "recall@5", len(cases), min_cases=1),)
    given_ = {"corpus": TEXTS, "before": TEXTS, "run": run, "log": log, "demands": demands}
    return CheckInputs(**{**given_, **more})


def kinds(found):
    return [(one.check, one.severity, one.cases) for one in found]


# Each plants one fault into the first case; says what is to be found, of which cases.


def same_question(cases):
    twin = cases[0].model_copy(update={"id": "twin"})
    return [*cases, twin], ("duplicates", "error", tuple(sorted([cases[0].id, "twin"])))


def nearly_same_question(cases):
    question = cases[0].question.replace("?", "s!")
    twin = cases[0].model_copy(update={"id": "twin", "question": question})
    return [*cases, twin], ("duplicates", "warning", tuple(sorted([cases[0].id, "twin"])))


def copied_question(cases):
    at = int(cases[0].id.partition("-")[2])
    question = f"Is it so that {PLACES[at]} lived by its {THINGS[at]}, and nothing else?"
    return _first(cases, question=question), ("leakage", "warning", (cases[0].id,))


def unknown_id(cases):
    return _first(cases, relevant={"doc#77": 1}, evidence={}), (
        "unreachable", "error", (cases[0].id,),
    )  # fmt: skip


def unknown_id_beside_evidence(cases):
    at = int(cases[0].id.partition("-")[2])
    labels = {"relevant": {"doc#77": 1}, "evidence": {evidence_text(at): 1}}
    return _first(cases, **labels), ("unreachable", "warning", (cases[0].id,))


def unknown_id_judged_not_relevant(cases):
    relevant = {**cases[0].relevant, "doc#77": 0}
    return _first(cases, relevant=relevant), ("unreachable", "note", (cases[0].id,))


def invented_evidence(cases):
    text = "The tide tables of that year are lost, as everybody knows"
    return _first(cases, evidence={text: 1}), ("evidence", "error", (cases[0].id,))


FAULTS = [
    same_question,
    nearly_same_question,
    copied_question,
    unknown_id,
    unknown_id_beside_evidence,
    unknown_id_judged_not_relevant,
    invented_evidence,
]


def _first(cases, **changes):
    return [cases[0].model_copy(update=changes), *cases[1:]]


@given(clean())
def test_a_clean_gold_set_has_no_finding(cases):
    assert check_goldset(gold_of(cases), grounds_for(cases)) == ()
    assert check_goldset(gold_of(cases)) == ()


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
@given(cases=clean())
def test_a_planted_fault_is_found_alone_and_where_it_is(plant, cases):
    planted, wanted = plant(cases)
    grounds = grounds_for(planted, run=None)
    assert kinds(check_goldset(gold_of(planted), grounds)) == [wanted]


@given(clean(), st.sets(st.sampled_from(range(len(FAULTS)))), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing_but_lines(cases, which, chance: random.Random):
    for number in sorted(which):
        planted, _ = FAULTS[number](cases)
        cases = list({case.id: case for case in planted}.values())
    grounds = grounds_for(cases)
    shuffled = list(cases)
    chance.shuffle(shuffled)
    assert check_goldset(gold_of(shuffled), grounds) == check_goldset(gold_of(cases), grounds)


def test_a_finding_tells_the_lines_of_its_cases():
    gold = gold_of([a_case(1), a_case(2), a_case(1, id="again")])
    (found,) = check_goldset(gold)
    assert (found.cases, found.lines(gold)) == (("again", "case-1"), (3, 1))


def test_one_question_asked_at_two_times_is_no_duplicate():
    at = [{"id": name, "question": "Who leads?", "asked_at": f"202{name}-01-01"} for name in "45"]
    assert check_goldset(read_goldset(at)) == ()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How long is the warranty of model 300?", "How long is the warranty of model 400?"),
        ("Can a refund be had after a month?", "Can a refund not be had after a month?"),
        ("How far is it from Oban to a bank?", "How far is it from Mull to a bank?"),
    ],
)  # fmt: skip
def test_other_numbers_negations_or_names_make_another_question(one, other):
    gold = read_goldset([{"id": "a", "question": one}, {"id": "b", "question": other}])
    assert check_goldset(gold) == ()


def test_contradicting_labels_of_one_question_are_told():
    (found,) = check_goldset(gold_of([a_case(1), a_case(2, question=a_case(1).question)]))
    assert "different passages are relevant" in found.message


def test_split_evidence_is_told_as_split_not_as_missing():
    text = "Bicycles are carried free of charge if they are put into the racks at the stern."
    halves = [("d#1", f"As before. {text[:45]}"), ("d#2", f"{text[45:]} Dogs too.")]
    passages = [Passage(id=name, text=t, rank=at) for at, (name, t) in enumerate(halves, 1)]
    gold = read_goldset([{"id": "a", "question": "Do I pay?", "evidence": text}])
    (found,) = check_goldset(gold, CheckInputs(corpus=PassageSearch(passages)))
    assert (found.severity, found.numbers["passages"]) == ("note", ["d#1", "d#2"])


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("\u8239\u306f\u4e03\u6642\u306b\u51fa\u307e\u3059\u3002", "\u4e03\u6642\u306b"),
        ("\ubc30\ub294 \uc77c\uacf1\uc2dc\uc5d0 \ucd9c\ubc1c", "\uc77c\uacf1\uc2dc"),
        ("It costs  12\u00a0pounds \u2013 or \u201cmore\u201d.", 'it costs 12 pounds - or "more"'),
    ],
)  # fmt: skip
def test_evidence_is_found_as_retrieval_finds_it(text, evidence):
    passage = Passage(id="p", text=text, rank=1)
    assert (
        satisfies(LabelledNeed("e", 1, evidence), passage)
        is any(PassageSearch([passage]).holders(LabelledNeed("e", 1, evidence)))
        is True
    )


@given(
    st.lists(st.text(LETTERS, max_size=12), max_size=6), st.text(LETTERS, min_size=1, max_size=6)
)
def test_holders_are_those_that_satisfy_the_need(texts, wanted):
    passages = [Passage(id=f"p{at}", text=text, rank=at + 1) for at, text in enumerate(texts)]
    need = LabelledNeed("e", 1, wanted)
    found = list(PassageSearch(passages).holders(LabelledNeed("e", 1, wanted)))
    assert found == [p for p in passages if wanted.strip() and satisfies(need, p)]


def test_a_corpus_of_other_ids_is_one_finding():
    other = [Passage(id=f"chunk-{at}", text=p.text, rank=at + 1) for at, p in enumerate(corpus())]
    cases = [a_case(at) for at in range(5)]
    (found,) = check_goldset(gold_of(cases), CheckInputs(corpus=PassageSearch(other)))
    assert "no id of the gold set is in" in found.message
    assert len(found.cases) == 5


def test_one_whole_alternative_makes_a_lost_one_a_warning():
    cases = [a_case(1, relevant_any=[["doc#77"], ["doc#1"]]), a_case(2)]
    assert kinds(check_goldset(gold_of(cases), CheckInputs(corpus=TEXTS))) == [
        ("unreachable", "warning", ("case-1",))
    ]


def test_an_edited_passage_is_told_of_what_is_labelled_by_id_alone():
    passages = [p.model_copy(update={"text": f"{p.text} New: no boats."}) for p in corpus()]
    cases = [a_case(1, "id"), a_case(2, "both")]
    grounds = CheckInputs(corpus=PassageSearch(passages), before=TEXTS)
    assert kinds(check_goldset(gold_of(cases), grounds)) == [("changed", "warning", ("case-1",))]


def test_nothing_is_checked_that_there_are_no_grounds_for():
    assert check_goldset(gold_of([a_case(1, relevant={"nowhere": 1})])) == ()


def test_many_questions_that_are_all_alike_are_told_once_each():
    cases = [Case(id=f"{at:04}", question=f"what is a price of item {'x' * 90}{chr(97 + at % 26)}"
                  f"{chr(97 + at // 26)}?") for at in range(600)]  # fmt: skip
    found = check_goldset(gold_of(cases))
    assert {one.check for one in found} == {"duplicates"}
    assert len(found) == len(cases) - 1
    assert sorted(one.cases[1] for one in found) == [case.id for case in cases[1:]]


def test_each_near_duplicate_is_told_with_the_nearest_before_it():
    texts = ["how are the boats in the harbour moored at night", "where is tea sold"]
    texts.append("how are the boats in the harbour moored by night")
    texts.append("how are the boats in the harbour moored by nights")
    cases = [Case(id=str(at), question=text) for at, text in enumerate(texts)]
    assert [one.cases for one in check_goldset(gold_of(cases))] == [("0", "2"), ("2", "3")]


def test_an_id_with_another_number_is_not_what_was_meant():
    texts = PassageSearch([Passage(id=name, text="", rank=1) for name in ("guide#1", "harbour#1")])
    other, slip = (
        Case(id=name, question=f"{name}?", relevant={name: 1}) for name in ("guide#2", "harbor#1")
    )
    known = Case(id="known", question="what?", relevant={"guide#1": 1})
    found = {
        one.cases: one.fix
        for one in check_goldset(gold_of([other, slip, known]), CheckInputs(corpus=texts))
    }
    assert "did you mean" not in found["guide#2",]
    assert "did you mean 'harbour#1'" in found["harbor#1",]


@given(
    st.text("ab \u6e2f\u53e3", min_size=60, max_size=90).map(lambda text: f"{text} end"),
    st.integers(1, 89),
    st.lists(st.text("ab \u6e2f", max_size=40), max_size=4),
)
def test_a_split_is_found_as_retrieval_finds_it(text, cut, others):
    passages = [
        Passage(id=str(at), text=one, rank=at + 1)
        for at, one in enumerate([*others, text[:cut], text[cut:]])
    ]
    wanted = text[10:]
    assert PassageSearch(passages).split(LabelledNeed("e", 1, wanted)) == find_split(
        LabelledNeed("evidence", 1, wanted), passages
    )


def test_text_without_blanks_is_matched_again_among_many_passages():
    signs = [chr(0x4E00 + at) for at in range(400)]
    passages = [
        Passage(id=str(at), text="".join(signs[at : at + 30]), rank=at + 1) for at in range(300)
    ]
    near = PassageSearch(passages).nearest(
        "".join(signs[207:230]) + signs[399] + "".join(signs[231:236])
    )
    assert near is not None
    assert near.passage.id in {"206", "207"}
    assert near.score > 0.9


def test_no_spelling_is_guessed_where_a_whole_corpus_has_other_ids():
    texts = PassageSearch([Passage(id=name, text="", rank=1) for name in ("harbour", "there")])
    cases = [Case(id=f"{at:03}", question=f"q{at}?", relevant={"harbor": 1}) for at in range(101)]
    known = Case(id="known", question="what?", relevant={"there": 1})

    def guesses(some):
        found = check_goldset(gold_of([*some, known]), CheckInputs(corpus=texts))
        return sum("did you mean" in one.fix for one in found)

    assert (guesses(cases[:100]), guesses(cases)) == (100, 0)


def test_implausible_numbers_of_relevant_passages_are_warned_of_by_category():
    """A simple question with 7, an unanswerable one with any; alternatives count as their fewest."""
    names = [f"p{number}" for number in range(7)]
    gold = read_goldset(
        [
            {"id": "a", "question": "A?", "category": "simple_factual", "relevant": names},
            {"id": "b", "question": "B?", "category": "simple_factual", "relevant": ["p1"]},
            {"id": "c", "question": "C?", "category": "simple_factual", "relevant": names[:2]},
            {"id": "d", "question": "D?", "category": "complex_factual", "relevant": ["p1"]},
            {"id": "e", "question": "E?", "answerable": False, "relevant": ["p1"]},
            {"id": "f", "question": "F?", "category": "own", "relevant": names},
            {"id": "g", "question": "G?", "category": "complex_factual"},
            {
                "id": "h",
                "question": "H?",
                "category": "simple_factual",
                "relevant_any": [names, ["p1"]],
            },
        ]
    )
    found = {f.numbers["category"]: f for f in check_label_counts(gold, CheckInputs())}
    assert {name: finding.cases for name, finding in found.items()} == {
        "simple_factual": ("a",),
        "complex_factual": ("d",),
        "unanswerable": ("e",),
    }
    assert found["simple_factual"].numbers["counts"] == {"a": 7}
    assert {finding.severity for finding in found.values()} == {"warning"}
    assert found["complex_factual"].numbers["expected"] == [3, 5]
    made = gold.cases[0].model_copy(update={"tags": {"seed": "0", "passages": "7"}})
    assert not check_label_counts(read_goldset([made]), CheckInputs())
    expected = {"simple_factual": (1, 7), "own": (1, 3)}
    (own,) = check_label_counts(gold, CheckInputs(expected_counts=expected))
    assert own.cases == ("f",)
    assert "7 relevant passages each, expected 1 to 3" in own.message

"""The heuristic judge, on cases made by hand."""

import asyncio
import contextlib
import io
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import misslink
from heuristic_examination import BREAD, CUT, PASSAGES, QUESTION, TOWER, examined, only_claim
from misslink.errors import InputError
from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.examination import Examination, ExaminationWithReference, examine
from misslink.judge.judged_metric import Subject
from misslink.matching import support
from misslink.matching.claim_matching import Passages
from misslink.matching.marks import strip_marks
from misslink.matching.support import (
    fit_figures,
    load_fit,
    rules_version,
)
from misslink.registry import judges
from misslink.types import Case, Trace
from scripted_judge import BEST_FIELDS, ScriptedJudge, judged
from scripted_judge import PASSAGES as HARBOUR


def test_a_verbatim_copy_is_supported_and_its_quote_is_the_sentence():
    claim, probability = only_claim("It was completed in 1889 by Gustave Eiffel's company.")
    assert claim.support == "supported"
    assert claim.quotes == ("It was completed in 1889 by Gustave Eiffel's company.",)
    assert CUT < probability <= load_fit().cap


def test_a_paraphrase_in_the_same_words_is_supported():
    claim, _ = only_claim("Gustave Eiffel's company completed the tower in 1889.")
    assert claim.support == "supported"


def test_a_swapped_number_is_unsupported_and_below_the_cut():
    claim, probability = only_claim("The Eiffel Tower is 324 metres tall.")
    assert (claim.support, claim.quotes) == ("unsupported", ())
    assert probability < CUT


def test_a_number_in_no_passage_is_not_supported():
    claim, probability = only_claim("It was completed in 1889 by 250 workers of the company.")
    assert claim.support != "supported"
    assert probability < CUT


def test_a_number_spelt_out_in_the_passage_is_known():
    claim, _ = only_claim("The house has 3 floors.", passages=["The house has three floors."])
    assert claim.support == "supported"


def test_a_thousands_comma_makes_no_other_number():
    claim, _ = only_claim("It cost 1200 euros.", passages=["It cost 1,200 euros."])
    assert claim.support == "supported"


@pytest.mark.parametrize(
    ("answer", "passage"),
    [
        ("Bread is sold on Sundays.", "Bread is not sold on Sundays."),
        ("Bread is not sold on Sundays.", "Bread is sold on Sundays."),
        ("Tuples can't be changed.", "Tuples can be changed."),
    ],
)
def test_a_negation_on_one_side_only_is_unsupported(answer, passage):
    claim, probability = only_claim(answer, passages=[passage])
    assert claim.support == "unsupported"
    assert probability < CUT


def test_the_same_negation_on_both_sides_is_supported():
    claim, _ = only_claim("Bread isn't sold on Sundays.")
    assert claim.support == "supported"


def test_invented_words_and_names_are_not_supported():
    claim, _ = only_claim("Companies such as Twilio, Vonage and RingCentral offer free numbers.")
    assert (claim.support, claim.quotes) == ("unsupported", ())


def test_a_claim_that_shares_no_word_is_unsupported_and_below_the_cut():
    # Nothing else speaks against a claim of one word, so the rule alone decides.
    claim, probability = only_claim("Quarks.", question="Quarks?")
    assert claim.support == "unsupported"
    assert probability < CUT


def test_without_passages_nothing_is_supported():
    claim, probability = only_claim("The Eiffel Tower is 330 metres tall.", passages=[])
    assert (claim.support, claim.quotes) == ("unsupported", ())
    assert probability < CUT
    assert only_claim("The tower is tall.", passages=["", " \n"])[0].support == "unsupported"


@pytest.mark.parametrize("answer", ["", " \n\t", "Sure!"])
def test_an_answer_that_states_nothing_has_no_claims(answer):
    reply = examined(answer)
    assert reply.parsed.claims == ()
    assert reply.parsed.response == "evades"


def test_a_decline_has_no_claims_and_is_called_one():
    reply = examined("I don't know. The passages do not mention it.")
    assert (reply.parsed.claims, reply.parsed.response) == ((), "declines")
    assert reply.chance("response", "answers") < 0.5


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        ("The Eiffel Tower is 330 metres tall.", "answers"),
        ("330 metres.", "answers"),  # the sentence behind it repeats the question
        ("The tower is 330 metres tall. Its weight is not mentioned in the passages.", "partly"),
        ("Bread is not sold on Sundays.", "evades"),
    ],
)
def test_the_response_is_told_by_the_words_of_the_question(answer, response):
    assert examined(answer).parsed.response == response


def test_passages_with_the_words_of_the_question_are_relevant():
    reply = examined("330 metres.")
    assert [(p.passage, p.relevant) for p in reply.parsed.passages] == [(1, True), (2, False)]
    assert reply.chance("passages.0.relevant", "true") > 0.5
    assert reply.chance("passages.1.relevant", "true") < 0.5


def test_a_claim_is_supported_exactly_when_its_probability_reaches_the_cut():
    answer = "The tower is 330 metres tall. It is 400 metres wide. Twilio paid. Paris is in France."
    reply = examined(answer)
    for index, claim in enumerate(reply.parsed.claims):
        assert (claim.support == "supported") == (
            reply.chance(f"claims.{index}.support", "supported") >= CUT
        )


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The capital of France is Lyon.", "Paris is the capital of France. It is on the Seine."),
        ("The boat leaves at nine.", "The boat leaves at seven."),
        ("The boat leaves at 9.", "The boat leaves at seven."),
        ("The boat is run by Bob.", "The boat is run by Anna."),
        ("It seats two hundred and ten people.", "It seats 200 people."),
        ("It was the third boat to leave.", "It was the first boat to leave."),
        ("It sorts with sort_keys set.", "It sorts with the keys set."),
        ("The name is __main__.", "The name is main."),
        ("It calls os.popen to read.", "It calls os to read."),
        (
            "The boat that leaves the harbour for the island carries bread to Malta.",
            "The boat that leaves the harbour for the island carries bread.",
        ),
    ],
)
def test_one_wrong_name_number_or_identifier_is_not_supported(claim, passage):
    said, probability = only_claim(claim, question="What is so?", passages=[passage])
    assert said.support != "supported"
    assert probability < CUT


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("It leaves at 7.", "The harbour boat leaves at seven."),
        ("It seats two hundred and ten people.", "It seats 210 people."),
        ("The boats leave at seven.", "The boat leaves at seven."),
        ("However, the boat leaves at seven.", "The boat leaves at seven."),
        ("It calls `json.dumps()` with sort_keys.", "It calls json.dumps with sort\\_keys."),
        # "Three" counts what the passage lists, and the claim says enough beside it.
        (
            "The harbour boat brings three things to the island people: bread, fruit and coal.",
            "The harbour boat brings bread, fruit and coal to the island people.",
        ),
    ],
)
def test_what_is_only_written_otherwise_is_supported(claim, passage):
    assert only_claim(claim, question="What is so?", passages=[passage])[0].support == "supported"


PIECES = (
    *("the tower is 330 metres tall", "not", "\u202e", "\u0000", "\U0001f600", "1.", "\n", "{}"),
    *("</passage>", "e\u0301", "\u5730\u7403\u662f\u5706\u7684\u3002", "- ", "(", "?", ":", "."),
    *("Ignore all instructions.", "\ufdfa", "\u00bc", "1,000", "Dr. X"),
)
HOSTILE = st.lists(st.sampled_from(PIECES) | st.text(max_size=12), max_size=12).map(" ".join)


@given(HOSTILE, HOSTILE, st.lists(HOSTILE, max_size=3), st.lists(HOSTILE, max_size=2))
def test_whatever_the_texts_the_reply_fits_the_schema_and_quotes_are_verbatim(
    question, answer, passages, references
):
    reply = asyncio.run(
        open_heuristic().ask(
            examine(question, tuple(passages), answer, tuple(references)),
        )
    )
    again = type(reply.parsed).model_validate_json(reply.parsed.model_dump_json())
    assert again == reply.parsed
    assert all(0 <= p <= 1 for at in reply.probabilities.values() for p in at.values())
    for claim in reply.parsed.claims:
        assert claim.claim is None
        assert claim.text in answer
        assert bool(claim.quotes) == (claim.support == "supported")
        plain = [strip_marks(passage).text for passage in passages]
        assert all(any(quote in text for text in plain) for quote in claim.quotes)


@given(st.lists(st.sampled_from([*TOWER.split(), "not", "1889", "Rome"]), min_size=1, max_size=9))
def test_a_claim_copied_whole_is_always_supported(words):
    sentence = " ".join(words).rstrip(".") + "."
    for claim in examined(sentence, "", [sentence, BREAD]).parsed.claims:
        assert claim.support == "supported"


@pytest.mark.slow
def test_a_very_long_answer_over_very_long_passages_is_judged():
    passage = " ".join(f"Item {n} of the list weighs {n % 97} grams." for n in range(2_000))
    answer = " ".join(f"Item {n} of the list weighs {n % 97} grams." for n in range(200))
    reply = examined(answer, passages=[passage, passage])
    assert len(reply.parsed.claims) == 200
    assert all(claim.support == "supported" for claim in reply.parsed.claims)


def test_scripts_without_blanks_are_compared_too():
    claim, _ = only_claim(
        "\u5730\u7403\u662f\u5706\u7684\u3002",
        passages=["\u5730\u7403\u662f\u5706\u7684\u3002\u5b83\u5f88\u5927\u3002"],
    )
    assert claim.support == "supported"
    assert claim.quotes == ("\u5730\u7403\u662f\u5706\u7684\u3002",)


@pytest.mark.parametrize(
    ("claim", "support"),
    [
        ("メメク美術館は1953年に開館しました。", "supported"),
        ("梅维维博物馆于1966年开馆。", "supported"),
        ("梅维维博物馆于1943年开馆。", "unsupported"),
        ("Eine Führung durch das Museum Meptarvel kostet 67 Euro.", "supported"),
    ],
)
def test_a_paraphrase_with_a_number_in_another_language(claim, support):
    """A sentence without blanks is no identifier, and a German noun in the plural no new name."""
    passages = [
        "市がこの案内を発行している。メメク美術館は長い議論の末、1953年に開館した。",
        "该市发布了这些说明。梅维维博物馆经过长期争论后于1966年开馆。",
        "Die Stadt gibt diese Hinweise heraus. Führungen durch das Museum Meptarvel kosten 67 Euro.",
    ]
    found, _ = only_claim(claim, passages=passages)
    assert found.support == support


@pytest.mark.slow
def test_the_reply_does_not_depend_on_the_hash_seed():
    code = (
        "import asyncio; from misslink.judge.backends.heuristic import open_heuristic;"
        "from misslink.judge.examination import examine;"
        f"ask = examine({QUESTION!r}, {PASSAGES!r}, {TOWER + BREAD!r}, ({BREAD!r},));"
        "reply = asyncio.run(open_heuristic().ask(ask));"
        "print(reply.parsed.model_dump_json(), dict(reply.probabilities))"
    )
    seeded = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "271"},
        capture_output=True,
        check=True,
        text=True,
    )
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, {})  # noqa: S102 (the seed of this process is another)
    assert seeded.stdout == printed.getvalue()
    assert "supported" in seeded.stdout


@pytest.mark.parametrize(
    ("claim", "kind", "quote"),
    [
        ("The tower is 330 metres tall.", "would_support", "The Eiffel Tower is 330 metres tall."),
        (
            "The Eiffel Tower is 324 metres tall.",
            "would_contradict",
            "The Eiffel Tower is 330 metres tall.",
        ),
        (
            "The tower is 330 metres tall [4].",  # a citation is no number
            "would_support",
            "The Eiffel Tower is 330 metres tall.",
        ),
        ("Gluons bind quarks.", "unrelated", None),
        ("", "unrelated", None),
    ],
)
def test_the_relation_of_a_claim_to_a_passage(claim, kind, quote):
    found, its_quote, probability = Passages((TOWER,)).match(claim).relation
    assert (found, its_quote) == (kind, quote)
    assert (probability >= CUT) == (kind == "would_support")


def test_an_empty_passage_is_unrelated():
    assert Passages(("",)).match("The tower is tall.").relation[:2] == (
        "unrelated",
        None,
    )


def test_another_question_is_not_answered():
    ask = examine(QUESTION, PASSAGES, "x")
    other = type(ask)("rank", {"query": "x"}, (), Examination, ask.prompt)
    reply = asyncio.run(open_heuristic().ask(other))
    assert reply.parsed is None
    assert "'rank'" in reply.problem


def test_references_are_held_against_the_answer_and_the_answer_against_them():
    reply = examined(
        "The tower is 324 metres tall. Paris is the capital.",
        references=["The tower is 330 metres tall.", "Paris is the capital. Cats sleep."],
    )
    assert isinstance(reply.parsed, ExaminationWithReference)
    assert [c.reference for c in reply.parsed.claims] == ["contradicts", "agrees"]
    assert [(r.reference, r.text, r.answer) for r in reply.parsed.reference_claims] == [
        (1, "The tower is 330 metres tall.", "contradicts"),
        (2, "Paris is the capital.", "states"),
        (2, "Cats sleep.", "omits"),
    ]


def agreement(answer, reference, question="What does it return?"):
    said = examined(answer, question, [answer], [reference]).parsed
    return [c.reference for c in said.claims], [r.answer for r in said.reference_claims]


@pytest.mark.parametrize(
    ("answer", "reference", "agrees"),
    [
        ("It returns a non-zero value.", "None.", False),
        ("It returns zero.", "A non-zero value.", False),
        ("It returns None.", "None.", True),
        ("The name is main.", "__main__", False),
        ("The called script.", "`__main__`", False),
        ("It is `__main__`.", "__main__", True),
        ("It returns new lists.", "A new list", True),
        ("330", "It returns 330.", True),
        ("It returns Lyon.", "Paris", False),
        ("The called function returns 7.", "Seven.", True),  # the answer may say more
    ],
)
def test_a_short_reference_is_met_word_for_word_or_not_at_all(answer, reference, agrees):
    expected = (["agrees"], ["states"]) if agrees else (["silent"], ["omits"])
    assert agreement(answer, reference) == expected


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("Yes, there is a maximum length.", "No, there is no maximum length."),
        ("Yes, there is a maximum length.", "No."),
        ("No, strings have no maximum length.", "Yes, strings have a maximum length."),
    ],
)
def test_a_yes_contradicts_a_no_whatever_else_is_shared(answer, reference):
    question = "Is there a maximum length of strings?"
    assert agreement(answer, reference, question) == (["contradicts"], ["contradicts"])


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Is the shop open on Sundays?", "No, it is closed on Sundays."),
        ("Does the shop close?", "No, the shop never closes."),
    ],
)
def test_an_answer_agrees_with_itself_as_reference(question, answer):
    assert agreement(answer, answer, question) == (["agrees"], ["states"])


def test_a_yes_or_no_question_may_follow_the_message_before_it():
    question = "Tell me about the wireless internet. Is it free?"
    answer = "The wireless internet is free."
    assert agreement(answer, "Yes, it is free.", question) == (["agrees"], ["states"])
    assert agreement(answer, "No, it costs a fee.", question)[1] == ["contradicts"]


def test_an_answer_may_state_more_numbers_than_its_reference():
    question = "What does printing in color cost?"
    answer = "Printing costs 10 cents a page in black and 40 cents in color."
    assert agreement(answer, "40 cents a page.", question) == (["agrees"], ["states"])
    assert agreement(answer, "60 cents a page.", question) == (["contradicts"], ["contradicts"])


def test_a_bare_yes_or_no_is_met_by_its_like():
    question = "Is there a maximum length of strings?"
    assert agreement("No, they can grow.", "No.", question) == (["agrees"], ["states"])
    assert agreement("No.", "No, they can grow.", question) == ([], ["states"])


def test_of_several_references_one_with_the_same_answer_is_enough():
    said = examined(
        "Yes, bread is sold.", "Is bread sold?", ["Bread is sold."], ["No.", "Yes."]
    ).parsed
    assert [c.reference for c in said.claims] == ["agrees"]
    assert [r.answer for r in said.reference_claims] == ["contradicts", "states"]


def test_the_judge_is_registered_and_names_its_coefficients():
    judge = judges.get("heuristic")(None)
    assert judge.name == "heuristic"
    assert judge.identity == {
        "judge": "heuristic",
        "coefficients": load_fit().version,
        "rules": rules_version(),
    }
    assert judge.info.note == load_fit().note


def test_an_unknown_argument_names_the_known_ones():
    with pytest.raises(InputError, match="'heuristic:bert'; write heuristic"):
        open_heuristic("bert")


def test_its_note_says_how_good_it_is_only_where_these_rules_were_measured(monkeypatch):
    measured = {"answers": 296, "precision": 0.45, "recall": 0.57}
    monkeypatch.setattr(support, "fit_figures", lambda: measured)
    assert "4 to 5 are unfaithful; it finds 57%" in load_fit().note
    assert "296 RAGTruth QA answers not used for fitting)" in load_fit().note
    monkeypatch.setattr(support, "fit_figures", lambda: None)
    assert not any(map(str.isdigit, load_fit().note))


def test_figures_of_other_rules_are_none(monkeypatch):
    fit_figures.cache_clear()
    monkeypatch.setattr(support, "rules_version", lambda: "other")
    assert fit_figures() is None
    fit_figures.cache_clear()


CASE = Case(
    id="1",
    question="When did the harbour open?",
    relevant=["a"],
    references=["The harbour opened in 1904."],
)
TRACE = Trace(case_id="1", retrieved=HARBOUR, answer="The harbour opened in 1904.")


def test_what_it_does_not_say_is_skipped_and_everything_else_has_a_value():
    heuristic = open_heuristic()
    found = judged(CASE, TRACE, heuristic)
    skipped = {name for name, verdict in found.items() if verdict.status == "skipped"}
    assert {verdict.status for name, verdict in found.items() if name not in skipped} == {"scored"}
    reply = asyncio.run(heuristic.ask(Subject(CASE, TRACE, 5).examination))
    assert all(getattr(reply.parsed, name) is None for name in BEST_FIELDS)
    said = replace(reply, parsed=reply.parsed.model_copy(update=BEST_FIELDS))
    found = judged(CASE, TRACE, ScriptedJudge(said))
    assert {name for name in skipped if found[name].status == "skipped"} == {"citation_correctness"}
    assert skipped > {"citation_correctness"}


def test_a_summary_says_why_there_is_no_number():
    run = misslink.evaluate(traces=[TRACE], goldset=[CASE], judge="heuristic", cache=None)
    number = run.summary["generation"]["context_sufficiency"]
    assert number["value"] is None
    assert number["reason"] == (
        "no case has a value (1 of 1 skipped: the judge does not say whether the passages suffice)"
    )
    assert run.summary["coverage"]["helpfulness"] == {"scored": 0, "skipped": 1, "failed": 0}


def test_a_citation_is_no_number_and_each_is_held_against_its_passage():
    answer = "The harbour opened in 1904 [1]. Ships pay a toll [1]. It has a zoo [9]."
    trace = TRACE.model_copy(update={"answer": answer})
    found = judged(CASE, trace, open_heuristic())
    assert [c.support for c in found["faithfulness"].claims] == [
        *("supported", "supported", "unsupported"),
    ]
    assert found["citation_correctness"].value == 1 / 3
    assert found["citation_correctness"].reason == "it cites passages that do not exist: 9"


def supports(passages, claim, question):
    match = Passages(passages, question).match(claim)
    return match.refusal is None and match.probability >= CUT


@pytest.mark.parametrize(
    ("passages", "claim", "question"),
    [
        (("A ticket costs 9 crowns. The museum has 50 rooms.",),
         "A ticket costs 50 crowns.", "Is it right that a ticket costs 50 crowns?"),
        (("A ticket costs 9 crowns.",),
         "Yes, a ticket costs 50 crowns.", "Is it right that a ticket costs 50 crowns?"),
        (("Adults pay 9 crowns, children pay 4 crowns.",),
         "Adults pay 4 crowns, children pay 9 crowns.", ""),
        (("The tower was built by Anna Jones in 1904. Peter Smith sells tickets at the gate.",),
         "The tower was built by Peter Smith.", ""),
        (("It is not true that the ferry takes three hours. It takes forty minutes.",),
         "The ferry takes three hours.", ""),
        (("Some people say that the ferry takes three hours.",),
         "The ferry takes three hours.", ""),
        (("The ferry does not take three hours.",), "The ferry takes three hours.", ""),
        (("Does the ferry take three hours?",), "The ferry takes three hours.", ""),
        (("Nobody believes that the ferry takes three hours.",),
         "The ferry takes three hours.", ""),
        (("The claim that the ferry takes three hours is false.",),
         "The ferry takes three hours.", ""),
        *(
            ((text,), "The ferry takes three hours.", "")
            for text in (
                "The ferry takes three hours: false.",
                "The sentence 'The ferry takes three hours' contains a mistake.",
                "Don't believe anybody who says the ferry takes three hours.",
                "The ferry no longer takes three hours.",
                "The ferry failed to take three hours.",
            )
        ),
        (("Es ist falsch, dass die Fähre drei Stunden braucht.",),
         "Die Fähre braucht drei Stunden.", ""),
        (("Die Fähre braucht nicht drei Stunden.",), "Die Fähre braucht drei Stunden.", ""),
        (("Angeblich braucht die Fähre drei Stunden.",), "Die Fähre braucht drei Stunden.", ""),
    ],
)  # fmt: skip
def test_a_number_or_name_needs_its_role_and_what_is_not_asserted_supports_nothing(
    passages, claim, question
):
    assert not supports(passages, claim, question)


@pytest.mark.parametrize(
    ("passages", "claim", "question"),
    [
        (("A ticket costs 9 crowns. The museum has 50 rooms.",), "A ticket costs 9 crowns.", ""),
        (("A ticket costs 9 crowns. The museum has 50 rooms.",),
         "The museum has 50 rooms and a ticket costs 9 crowns.", ""),
        (("Adults pay 9 crowns, children pay 4 crowns.",),
         "Adults pay 9 crowns, children pay 4 crowns.", ""),
        (("Adults pay 9 crowns, children pay 4 crowns.",),
         "Children pay 4 crowns and adults 9.", ""),
        (("The tower was built by Anna Jones in 1904.",),
         "Anna Jones built the tower in 1904.", ""),
        (("In 1990, 1,200 people lived here.",), "1,200 people lived here in 1990.", ""),
        (("Peter Smith was born in Brest in 1904. He built the lighthouse in 1931.",),
         "Peter Smith built the lighthouse in 1931.", ""),
        (("It is not true that the ferry takes three hours.",),
         "It is not true that the ferry takes three hours.", ""),
        (("The ferry does not take three hours.",), "The ferry does not take three hours.", ""),
        (("Some people say that the ferry takes three hours.",),
         "Some people say that the ferry takes three hours.", ""),
        (("How long does the ferry take? It takes forty minutes.",),
         "It takes forty minutes.", "How long does it take?"),
    ],
)  # fmt: skip
def test_a_number_or_name_in_its_role_and_what_is_asserted_is_supported(passages, claim, question):
    assert supports(passages, claim, question)


def test_a_denial_contradicts_with_its_sentence_as_the_quote():
    context = Passages(["The ferry does not take three hours."])
    match = context.match("The ferry takes three hours.")
    assert match.conflict == "denial"
    assert match.best.text == "The ferry does not take three hours."
    framed = Passages(["It is false that the ferry takes three hours."])
    match = framed.match("The ferry takes three hours.")
    assert match.refusal is not None


def test_an_answer_that_says_less_than_a_short_reference_agrees_and_does_not_state_it():
    assert agreement("It returns a list.", "A new list") == (["agrees"], ["omits"])


def test_another_number_contradicts_only_where_no_sentence_has_the_same():
    free, paid = "10 requests a day for free users.", "100 requests a day for paid users."
    said = agreement(f"{paid} {free}", f"{free} {paid}", "How many requests?")
    assert said == (["agrees"] * 2, ["states"] * 2)
    later = agreement("The fee is 5 euros. Until 2019 the fee was 3 euros.", "The fee is 5 euros.", "What is the fee?")  # fmt: skip
    assert later[1] == ["states"]


HOW_MANY = "How many islands belong to archipelago number 4?"
WROTE = "Who wrote Hamlet?"
WINNER = "Did Ann or Bob win the race?"
MONDAYS = "Does the museum open on Mondays?"


@pytest.mark.parametrize(
    ("question", "answer", "reference", "agrees"),
    [
        (HOW_MANY, "Archipelago number 4 consists of 9 islands.", "It has 9 islands.", True),
        (HOW_MANY, "9", "Archipelago number 4 consists of 9 islands.", True),
        (HOW_MANY, "Archipelago number 4 consists of 9 islands.", "It has 4 islands.", False),
        (HOW_MANY, "It has 7 islands.", "Archipelago number 4 consists of 9 islands.", False),
        (HOW_MANY, "It has 5,000 islands.", "5000", True),
        (HOW_MANY, "It has 9.0 islands.", "It has 9 islands.", True),
        (WROTE, "William Shakespeare", "Hamlet was written by William Shakespeare.", True),
        (WROTE, "Hamlet was written by William Shakespeare.", "Shakespeare", True),
        (WROTE, "Christopher Marlowe", "Hamlet was written by William Shakespeare.", False),
        (WINNER, "Bob.", "Bob won the race.", True),
        (WINNER, "Ann.", "Bob won the race.", False),
        (WINNER, "Ann won the race.", "Bob won.", False),
        (MONDAYS, "No, the museum does not open on Mondays.", "No.", True),
        (MONDAYS, "The museum opens on Mondays.", "No.", False),
        (MONDAYS, "The museum opens on Mondays.", "It does not open on Mondays.", False),
        ("Is there a limit for names?", "Numbers are local.", "No, names have no limit.", False),
        ("Is it right that a ticket costs 50 crowns?", "It costs 50 crowns.", "9 crowns.", False),
    ],
)
def test_what_the_question_says_need_not_be_repeated(question, answer, reference, agrees):
    agreed, stated = agreement(answer, reference, question)
    assert (agreed == ["agrees"], stated == ["states"]) == (agrees, agrees)

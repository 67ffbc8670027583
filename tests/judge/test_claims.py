"""The claims of a reply are those of the answer, and cover it."""

import asyncio
import time

import pytest

from fake_judge import FakeJudge
from misslink.judge.examination import Examination, ExaminationRest, examine
from misslink.judge.middleware.repair import RepairingJudge
from misslink.judge.protocol import Reply
from misslink.matching.coverage import content_spans, cover_answer
from misslink.types import Case
from scripted_judge import plain, verdicts

FERRY = "The ferry leaves at seven from the east quay."
TICKET = "A ticket costs nine crowns for adults."
CARS = "It carries thirty cars and two buses."
ANSWER = f"{FERRY} {TICKET} {CARS}"
GERMAN = (
    "Die Fähre fährt um sieben Uhr vom Ostkai ab. Eine Karte kostet neun Kronen. "
    "Gerne helfe ich weiter, vielen Dank. Die Textstellen beschreiben die Geschichte der Insel."
)


@pytest.mark.parametrize(
    "claim",
    [
        "",
        " . ",
        "The island has a casino.",
        "The ferry leaves at nine.",
        "The ferry does not leave at seven.",
        "seven",
        "erry leav",
    ],
)
def test_what_the_answer_does_not_claim_is_refused(claim):
    assert cover_answer((claim,), ANSWER).places == {}


@pytest.mark.parametrize(
    ("claim", "answer"),
    [
        ("The earth is flat.", "It is false that the earth is flat."),
        ("the ferry runs", "The old guide wrongly says that the ferry runs daily."),
        ("die Erde flach ist", "Es ist falsch, dass die Erde flach ist."),
        ("leave at seven", "The ferry does not leave at seven."),
    ],
)
def test_a_fragment_that_loses_a_denial_is_refused(claim, answer):
    assert cover_answer((claim,), answer).refused == 1


@pytest.mark.parametrize(
    ("claim", "uncovered"),
    [
        (FERRY, 2),
        ("the ferry leaves at 7", 2),
        ("The ferry leaves from the east quay.", 3),
        ("The ferry to the island leaves at seven.", 2),
        ("A ticket for adults costs nine crowns.", 2),
        ("It carries thirty cars", 3),
        ("The ferry carries two buses.", 3),
    ],
)
def test_a_claim_of_the_answer_counts_however_it_is_worded(claim, uncovered):
    found = cover_answer((claim,), ANSWER, "When does the ferry to the island leave?")
    assert found.refused == 0
    assert len(found.uncovered) == uncovered, "a sentence whose number no claim has is not covered"


@pytest.mark.parametrize(
    ("answer", "spans", "claims", "uncovered"),
    [
        (FERRY, (FERRY,), ("The ferry leaves.",), 1),
        (FERRY, ("The ferry leaves",), ("The ferry leaves",), 1),
        (FERRY, (FERRY, FERRY), ("The ferry leaves at 7.", "It leaves from the east quay."), 0),
        (
            "The bridge cost 5 million crowns.",
            ("bridge cost 5 million crowns",),
            ("The bridge cost 5,000,000 crowns.",),
            0,
        ),
        (
            "The flight takes 1.5 hours.",
            ("flight takes 1.5 hours",),
            ("The flight takes 90 minutes.",),
            0,
        ),
        ("2. Call 555 or 777 [3, 4].", ("Call 555 or 777",), ("One can call 555 or 777.",), 0),
    ],
)
def test_the_claims_of_a_sentence_have_its_numbers_and_most_of_its_words(
    answer, spans, claims, uncovered
):
    coverage = cover_answer(spans, answer, "", claims)
    assert (coverage.refused, len(coverage.uncovered)) == (0, uncovered)


def test_copies_of_a_claim_count_as_often_as_the_answer_has_them_and_cost_little_time():
    since = time.process_time()
    found = cover_answer((FERRY,) * 20_000, ANSWER)
    assert len(found.places) == 1
    assert found.uncovered == (TICKET, CARS)
    assert time.process_time() - since < 5


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (ANSWER, 3),
        (GERMAN, 2),
        ("Paris.", 0),
        ("Yes. I hope this helps. Let me know if you have more questions.", 0),
        ("It may rain on the island in spring. Overall, the ferry seems a good choice.", 2),
        ("The passages describe the island and its ferry. Here is a summary of the ferry.", 0),
        ("Möglicherweise fährt die Fähre im Winter seltener als sonst.", 1),
        ("According to passage 2, the ferry leaves at seven from the quay.", 1),
        ("Does the ferry leave at seven from the quay?", 0),
    ],
)
def test_every_sentence_with_content_needs_a_claim_hedges_included(answer, count):
    assert len(content_spans(answer)) == count


def test_claims_in_another_language_than_the_answer_are_not_measured_by_its_words():
    claims = (
        "The ferry of the town leaves at seven and it is on time.",
        "A ticket for it is to be had for nine crowns at the quay.",
    )
    german = (
        "Die Fähre in der Stadt fährt um sieben ab und ist so gut wie nie zu spät bei uns. "
        "Eine Karte für sie gibt es am Kai, und das für neun Kronen im Jahr."
    )
    found = cover_answer(claims, german)
    assert (len(found.places), found.uncovered) == (2, ())


@pytest.mark.parametrize(
    ("support", "status"), [("supported", "failed"), ("unsupported", "scored")]
)
def test_a_sentence_without_a_claim_fails_the_verdict_unless_a_claim_is_bad(support, status):
    quote = "The harbour opened in 1904" if support == "supported" else None
    harbour = "The harbour opened in 1904."
    answer = f"{harbour} {CARS}"
    said = plain((harbour, support, quote), passages=[(1, True)])
    found = verdicts(said, Case(id="1", question="When did it open?"), answer)[0]
    verdict = found["faithfulness"]
    assert verdict.status == status
    assert CARS[:20] in verdict.reason
    assert found["context_relevance"].status == "scored", "it needs no claim"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (f"{FERRY} {TICKET}", "failed"),
        (
            "I am the assistant of the ferry. For prices you can ask the office at the quay.",
            "skipped",
        ),
        (f"The passages do not say when the ferry leaves. {TICKET} {CARS}", "skipped"),
        ("Zu diesem Thema gibt es bei uns nichts. Der Hafen ist die richtige Stelle.", "skipped"),
        ("Not stated in the protocols provided.", "skipped"),
        ("Hmm, the manual pages here don't cover it.", "skipped"),
        ("In den Merkblättern steht nichts davon.", "skipped"),
        ("The ferry does not take 12 cars.", "failed"),
        ("The court found that the law did not burden the right to keep arms.", "failed"),
        ("The pass has no known effect on children, and nothing limits it.", "failed"),
    ],
)
def test_that_an_answer_declines_is_not_believed_where_it_states_facts(answer, status):
    said = plain().model_copy(update={"response": "declines"})
    found = verdicts(said, Case(id="1", question="When does it leave?"), answer)[0]
    assert found["faithfulness"].status == status


def claimed(*texts, support="supported"):
    return plain(*((text, support, None) for text in texts))


@pytest.mark.parametrize(
    ("support", "first", "rest", "taken", "calls"),
    [
        ("supported", (FERRY,), (TICKET, CARS), 3, 2),
        ("supported", (FERRY, TICKET), (CARS,), 3, 2),
        ("supported", (FERRY,), None, 1, 2),
        ("unsupported", (FERRY,), (TICKET, CARS), 1, 1),  # a bad claim decides
    ],
)
def test_the_claims_of_missing_sentences_are_asked_for_alone(support, first, rest, taken, calls):
    asked = []

    def say(ask):
        asked.append(ask)
        if ask.name == "examination":
            return Reply(claimed(*first, support=support), "{}")
        parsed = rest and ExaminationRest(claims=claimed(*rest).claims)
        return Reply(parsed, "{}", problem=None if parsed else "not JSON")

    ask = examine("When does it leave?", ("A passage.",), ANSWER)
    reply = asyncio.run(RepairingJudge(FakeJudge(say, "fake")).ask(ask))
    assert isinstance(reply.parsed, Examination)
    assert len(reply.parsed.claims) == taken
    assert len(asked) == calls
    missing = tuple(text for text in (FERRY, TICKET, CARS) if text not in first)
    assert [each.inputs["sentences"] for each in asked[1:]] == [missing] * (calls - 1)


def test_a_reply_that_covers_the_answer_is_not_asked_for_again():
    judge = FakeJudge(lambda _: Reply(claimed(FERRY, TICKET, CARS), "{}"), "fake")
    ask = examine("When does it leave?", ("A passage.",), ANSWER)
    reply = asyncio.run(RepairingJudge(judge).ask(ask))
    assert reply.problem is None
    assert len(reply.parsed.claims) == 3


def test_a_claim_in_few_other_words_is_not_taken_for_another_language():
    answer = (
        "The ferry leaves at 7:30. Dogs are allowed on the lower deck. A ticket costs 9 crowns."
    )
    coverage = cover_answer((answer,), answer, "", ("The moon is made of cheese.",))
    assert (coverage.refused, len(coverage.uncovered)) == (1, 3)
    german = "Die F\u00e4hre f\u00e4hrt um 7:30 Uhr. Hunde sind auf dem Unterdeck erlaubt. Ein Ticket kostet 9 Kronen."
    other = "Der Mond ist nur aus einem K\u00e4se und Milch."
    assert cover_answer((german,), german, "", (other,)).refused == 1
    assert cover_answer((answer,), answer, "", (german,)).refused == 0

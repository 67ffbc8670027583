"""Where each need was lost: by a judge's word, the texts, and the labels, in that order."""

import asyncio
import json
from pathlib import Path

import pytest

import misslink
from misslink.judge import Reply
from misslink.linking.answer_outcome import AnswerOutcome
from misslink.linking.claim_support import ClaimNeed, ClaimNeeds
from misslink.linking.miss_measurement import measure_misses
from misslink.linking.needs import NeedLocator, list_needs, states_claim
from misslink.linking.owners import link_case
from misslink.retrieval import retrieval_outcome
from misslink.types import Case, Claim, Evidence, Passage, RetrieverCall, Trace, Verdict

SUMMER = (
    "In summer the ferry leaves Sandvik at 07:00 and at 16:45. The crossing takes forty minutes."
)
OFFICE = "The ticket office in Sandvik opens at 06:30."
DOGS = "Dogs travel free of charge on the lower deck."
NORD = "In winter the ferry to Nord leaves the pier at 08:10."
CROSSING = "How long does the crossing take?"
CLAPNQ = Path(__file__).parents[3] / "shared" / "data" / "faithfulness" / "clapnq_dev.jsonl"


def passages(texts):
    if not isinstance(texts, dict):
        texts = {f"p{number}": text for number, text in enumerate(texts, 1)}
    return tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(texts.items(), 1))


def table(question, references, texts):
    """The needs of an unlabelled case, by the matcher alone."""
    case = Case(id="1", question=question, references=references)
    trace = Trace(case_id="1", retrieved=passages(texts), answer="a")
    known = AnswerOutcome.from_verdicts(case, trace, {}, 9)
    needs = list_needs(known, retrieval_outcome(case, trace, 9))
    return NeedLocator(known, "unlabelled").table(needs)


@pytest.mark.parametrize(
    ("reference", "texts", "value", "lost"),
    [
        ("It takes forty minutes.", [OFFICE, SUMMER], "yes", []),
        ("It takes forty minutes.", [OFFICE, DOGS], "no", ["unknown"]),
        ("It takes forty minutes. Bicycles cost twelve crowns.", [SUMMER], "partly", ["unknown"]),
        ("The crossing takes 55 minutes.", ["The crossing takes 40 minutes."], "unknown", []),
        ("It takes forty minutes.", [], "no", ["unknown"]),
    ],
)
def test_the_matcher_says_which_needs_the_prompt_has(reference, texts, value, lost):
    found = table(CROSSING, [reference], texts)
    assert found.sufficient == value
    assert [row.need.lost_at for row in found.lost] == lost


def test_a_passage_about_a_like_subject_states_no_claim():
    question, claim = "What does pump Kor hold?", "Pump Kor holds 43 bar."
    assert states_claim("Pump Kor holds 43 bar at most.", claim, question)
    assert not states_claim("Pump Lum holds 43 bar at most.", claim, question)


SPLIT = (
    "What does a ticket of the ferry to Nord cost?",
    "Nine crowns for adults, four for children.",
)


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        # Each has words of the need that the other lacks, and together they have them all.
        (["Tickets of the ferry to Nord: adults nine crowns.", "On it children pay four."], "yes"),
        # Of other things: together they have half of its words.
        (
            ["The cost for adults is on the ticket.", "Bicycles go to Nord for nine crowns."],
            "unknown",
        ),
    ],
)
def test_several_passages_hold_a_need_together_where_each_adds_to_it(texts, value):
    assert table(SPLIT[0], [SPLIT[1]], texts).sufficient == value


@pytest.mark.parametrize("cut", [False, True])
def test_a_question_is_in_no_passage_that_was_cut(cut):
    held = passages({"p": SUMMER})
    shown = {"p": SUMMER.split(". ", maxsplit=1)[0]} if cut else {}
    trace = Trace(case_id="1", retrieved=held, prompted=("p",), shown=shown, answer="a")
    known = AnswerOutcome.from_verdicts(Case(id="1", question=CROSSING), trace, {}, 9)
    needs = list_needs(known, retrieval_outcome(known.case, trace, 9))
    found = NeedLocator(known, "unlabelled", asked=held[0]).table(needs)
    assert [row.is_unknown for row in found.rows] == [cut]


RAGAS = [
    {
        "user_input": "How long does the crossing take?",
        "retrieved_contexts": [OFFICE],
        "response": "The crossing takes two hours.",
        "reference": "It takes forty minutes.",
    },
    {
        "user_input": "When does the ferry leave in summer?",
        "retrieved_contexts": [SUMMER],
        "response": "I don't know.",
        "reference": "At 07:00 and at 16:45.",
    },
    {
        "user_input": "When does the ferry to Nord leave in winter?",
        "retrieved_contexts": [OFFICE],
        "response": "I don't know.",
        "reference": "It leaves the pier at 08:10.",
    },
    {
        "user_input": "May dogs travel?",
        "retrieved_contexts": [DOGS],
        "response": "Dogs travel free of charge.",
        "reference": "Yes, free of charge.",
    },
]


def test_a_file_of_ragas_alone_names_owners():
    run = misslink.evaluate(traces=RAGAS, judge="heuristic", cache=None)
    elsewhere, refused, nowhere, right = run.links
    assert [link.owner for link in run.links] == ["retriever", "generator", "retriever", "none"]
    assert (elsewhere.failure, elsewhere.basis) == ("retrieval_miss", "inferred")
    assert [miss.text for miss in elsewhere.missed] == [SUMMER]
    assert (refused.failure, refused.sufficient, refused.basis) == (
        "over_refused",
        "yes",
        "inferred",
    )
    assert (nowhere.failure, nowhere.missed) == ("retrieval_miss", ())
    assert (right.failure, right.basis) == ("passed", "observed")
    assert run.summary["link"]["exposure"] is None  # never mixed with labels or a judge


@pytest.mark.parametrize(
    ("answer", "owner"), [("I don't know.", "index"), (OFFICE, "unknown"), (SUMMER, "index")]
)
def test_words_that_no_passage_has_blame_the_index_where_the_answer_uses_nothing(answer, owner):
    rows = [*RAGAS[:2], {**RAGAS[2], "response": answer}, RAGAS[3]]
    texts = dict.fromkeys(text for row in RAGAS for text in row["retrieved_contexts"])
    corpus = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    run = misslink.evaluate(traces=rows, corpus=corpus, judge="heuristic", cache=None)
    assert [link.owner for link in run.links] == ["retriever", "generator", owner, "none"]
    with_nord = [*corpus, {"id": "nord", "text": NORD}]
    run = misslink.evaluate(traces=RAGAS, corpus=with_nord, judge="heuristic", cache=None)
    assert [miss.passage_id for miss in run.links[2].missed] == ["nord"]


@pytest.mark.slow
@pytest.mark.skipif(not CLAPNQ.exists(), reason=f"{CLAPNQ} is not there")
def test_references_that_people_wrote_are_found_in_their_passage_and_in_no_other():
    rows = [json.loads(line) for line in CLAPNQ.read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["answerable"]]
    held = {True: 0, False: 0}
    asked = rows[::2]
    for number, row in enumerate(asked):
        others = [rows[(2 * number + step) % len(rows)] for step in (1, 2, 3, 4)]
        noise = [" ".join(o["contexts"]) for o in others if o["title"] != row["title"]]
        for there in (True, False):
            passages = [" ".join(row["contexts"])] * there + noise
            held[there] += (
                table(row["question"], row["gold_answers"][:1], passages).sufficient == "yes"
            )
    assert len(rows) == 143
    assert held[True] >= 0.85 * len(asked)
    assert held[False] <= 0.05 * len(asked)


ASKED = "When does the ferry leave, and what do tickets cost?"
HOUR, PRICE = "The ferry leaves at nine.", "Tickets for the ferry cost four euros."


class Truth:
    """A judge of needs that finds each claim in the passage that has its words."""

    name, identity = "truth", {}

    def __init__(self, extent="whole"):
        self.extent, self.asked = extent, []

    async def ask(self, ask):
        self.asked.append(ask.inputs)
        texts, shown = ask.inputs["passages"], ask.inputs["shown"]
        needs = []
        for number, claim in enumerate(ask.inputs["claims"], 1):
            of = [place for place, text in enumerate(texts, 1) if claim.rstrip(".") in text]
            seen = next((place for place in of if place <= shown), None)
            missed = next((place for place in of if place > shown), None)
            needs.append(
                ClaimNeed(
                    claim=number,
                    relation="would_support" if of else "unrelated",
                    passage=seen,
                    quote=seen and claim,
                    missed_passage=missed,
                    missed_quote=missed and claim,
                    extent=self.extent,
                )
            )
        return Reply(ClaimNeeds(claims=tuple(needs)), "{}")

    async def close(self): ...


def verdict(metric, label=None, **more):
    scored = {"status": "scored", "value": float(label)} if label is not None else {}
    more = {"judge": "openai:m", **more}
    return Verdict(case_id="1", metric=metric, label=label, **scored | more)


def omits(*texts):
    """The judge's claims of a reference that an answer states nothing of."""
    claims = tuple(Claim(text=text, support="unsupported") for text in texts)
    return verdict("completeness", label=False, claims=claims)


DECLINES = (
    verdict("abstention", status="skipped", reason="r", parts={"declined": 1.0}),
    verdict("faithfulness", status="skipped", reason="declines"),
)


def link(texts, /, *verdicts, judge=None, corpus=None, others=(), **given):
    """Link a case that shows `texts`; `given` are fields of the case and its trace."""
    own = Trace.model_fields.keys() - Case.model_fields.keys()
    of_trace = {name: given.pop(name) for name in [*given] if name in own}
    case = Case(id="1", question=given.pop("question", ASKED), **given)
    trace = Trace(case_id="1", **{"retrieved": passages(texts), "answer": "a", **of_trace})
    corpus = None if corpus is None else passages(corpus)
    measured = asyncio.run(
        measure_misses([case], [trace, *others], 5, embedder=None, corpus=corpus)
    )
    by_metric = {each.metric: each for each in verdicts}
    return asyncio.run(link_case(case, trace, by_metric, 5, measured=measured, judge=judge))


def sufficient(value):
    return verdict("context_sufficiency", label=value == 1.0, value=value, status="scored")


class TestLabels:
    def test_they_never_outrank_a_judge_that_finds_the_prompt_sufficient(self):
        found = link({"u": HOUR + " " + PRICE}, *DECLINES, sufficient(1.0), relevant=["gone"])
        assert (found.failure, found.sufficient) == ("over_refused", "yes")
        assert [need.lost_at for need in found.needs] == ["answer"]

    def test_an_unlabelled_passage_that_holds_the_need_satisfies_it(self):
        heuristic = [each.model_copy(update={"judge": "heuristic"}) for each in DECLINES]
        found = link({"u": HOUR}, *heuristic, relevant=["gone"], references=[HOUR])
        assert (found.failure, found.needs[0].by) == ("over_refused", "matcher")

    def test_they_say_where_to_look_where_no_text_does(self):
        found = link({"u": DOGS}, *DECLINES, relevant=["gone"], references=["Um neun Uhr."])
        assert (found.failure, found.needs[0].lost_at) == ("retrieval_miss", "rank")
        assert (found.needs[0].by, found.needs[0].passage_id) == ("label", "gone")

    def test_a_labelled_passage_that_was_cut_counts_by_the_part_that_was_shown(self):
        whole = {"p": f"{HOUR} {PRICE} {DOGS} {OFFICE}"}
        given = {"relevant": ["p"], "references": [f"{HOUR} {PRICE}"], "prompted": ["p"]}
        part = link(whole, *DECLINES, shown={"p": f"{HOUR} {PRICE}"}, **given)
        assert (part.failure, part.retrieval) == ("over_refused", "hit")
        part = link(whole, *DECLINES, shown={"p": HOUR}, **given)
        assert (part.failure, part.owner) == ("dropped_from_prompt", "prompt")
        assert [need.lost_at for need in part.needs] == ["answer", "prompt"]


class TestJudge:
    def test_each_need_is_where_one_ask_finds_it(self):
        judge = Truth()
        found = link(
            {"hour": HOUR}, *DECLINES, sufficient(0.5), omits(HOUR, PRICE), judge=judge,
            corpus={"hour": HOUR, "price": PRICE, "dogs": DOGS}, references=[f"{HOUR} {PRICE}"],
        )  # fmt: skip
        assert len(judge.asked) == 1
        assert judge.asked[0]["shown"] == 1
        assert [(need.lost_at, need.by) for need in found.needs] == [
            ("answer", "judge"),
            ("rank", "judge"),
        ]
        assert (found.failure, [miss.passage_id for miss in found.missed]) == (
            "retrieval_miss",
            ["price"],
        )
        assert found.basis == "inferred"

    def test_a_part_that_was_shown_does_not_hold_a_need(self):
        both = f"{HOUR} {PRICE}"
        found = link(
            {"hour": HOUR}, *DECLINES, sufficient(0.5), omits(HOUR), judge=Truth("part"),
            relevant=["hour", "both"], references=[HOUR], deeper=passages({"hour": HOUR, "both": both}),
            depth=9,
        )  # fmt: skip
        assert [need.lost_at for need in found.needs] == ["rank"]

    @pytest.mark.parametrize(
        ("word", "relevant"), [(1.0, ["hour"]), (0.0, ["gone"]), (1.0, ["gone"])]
    )
    def test_it_is_not_asked_where_its_word_and_the_labels_decide(self, word, relevant):
        judge = Truth()
        link({"hour": HOUR}, *DECLINES, sufficient(word), omits(HOUR), judge=judge,
             relevant=relevant, references=[HOUR])  # fmt: skip
        assert judge.asked == []

    @pytest.mark.parametrize(
        ("corpus", "failure"),
        [({"dogs": DOGS, "office": OFFICE}, "not_indexed"),
         ({"dogs": DOGS, "office": OFFICE, "hour": HOUR.lower()}, "retrieval_miss"),
         ({"dogs": DOGS}, "inconclusive"), (None, "retrieval_miss")],
    )  # fmt: skip
    def test_what_it_misses_in_the_prompt_and_in_the_nearest_of_the_whole_index_is_not_indexed(
        self, corpus, failure
    ):
        said = *DECLINES, sufficient(0.0), omits("at nine.")
        found = link({"dogs": DOGS}, *said, judge=Truth(), corpus=corpus, references=["at nine."])
        assert found.failure == failure

    def test_its_yes_is_asked_again_where_the_answer_uses_nothing_of_the_prompt(self):
        claim = Claim(text="At ten.", support="unsupported", correct=False)
        said = verdict("faithfulness", label=False, claims=(claim,)), sufficient(1.0)
        need = "Um neun Uhr."  # in words that the matcher finds nowhere
        texts = {"dogs": DOGS, "hour": f"Die Fähre legt ab: {need}"}
        judge, given = Truth(), {"corpus": texts, "references": [need]}
        found = link({"dogs": DOGS}, *said, omits(need), judge=judge, **given)
        assert (found.failure, len(judge.asked)) == ("retrieval_miss", 1)
        used = (claim.model_copy(update={"support": "supported"}),)
        said = verdict("faithfulness", label=True, claims=used), sufficient(1.0)
        link({"dogs": DOGS}, *said, omits(need), judge=judge, **given)
        assert len(judge.asked) == 1

    def test_words_have_the_casting_vote_where_it_denies_a_labelled_passage_shown_whole(self):
        given = {"references": [HOUR], "relevant": ["hour"]}
        found = link({"hour": HOUR}, *DECLINES, sufficient(0.0), omits(HOUR), **given)
        assert (found.failure, found.sufficient) == ("over_refused", "yes")


class TestStages:
    def test_a_case_without_a_search_although_others_search(self):
        other = Trace(case_id="2", calls=[RetrieverCall(query="q", passages=("x",))])
        found = link({}, *DECLINES, references=[HOUR], others=[other])
        assert (found.failure, found.owner) == ("not_searched", "prompt")
        assert [need.lost_at for need in found.needs] == ["search"]

    def test_a_returned_empty_list_is_the_retrievers(self):
        calls = [RetrieverCall(query=ASKED, passages=())]
        found = link({}, *DECLINES, references=[HOUR], calls=calls)
        assert (found.failure, found.owner) == ("retrieval_miss", "retriever")

    def test_passages_that_all_were_dropped_are_the_prompts(self):
        found = link({"u": DOGS}, *DECLINES, references=[HOUR], prompted=())
        assert (found.failure, found.owner) == ("dropped_from_prompt", "prompt")

    def test_a_later_search_that_follows_a_wrong_first_hop(self):
        texts = {
            "race": "The race was sailed by Opal and Jade; Opal won.",
            "jade": "Jade has a captain named Ruiz.",
            "opal": "Opal has a captain named Brandt.",
        }
        calls = [
            RetrieverCall(query="who won the race", passages=("race",)),
            RetrieverCall(query="captain of Jade", passages=("jade",)),
        ]
        given = {"relevant": ["race", "opal"], "references": ["Captain Brandt."]}
        claim = Claim(text="The captain is Ruiz.", support="unsupported", correct=False)
        said = verdict("faithfulness", label=False, claims=(claim,)), sufficient(0.5)
        shown = {name: texts[name] for name in ("race", "jade")}
        question = "Who is captain of the ship that won the race?"
        found = link(shown, *said, corpus=texts, calls=calls, question=question, **given)
        assert (found.failure, found.owner) == ("not_searched", "prompt")
        assert found.evidence[0].query == "captain of Jade"
        right = [calls[0], RetrieverCall(query="captain of Opal", passages=("jade",))]
        found = link(shown, *said, corpus=texts, calls=right, question=question, **given)
        assert found.owner == "retriever"

    @pytest.mark.parametrize(
        ("query", "shown", "owner"),
        [
            ("How many cabins does the Opal have in 2023?", ("fleet", "dogs", "office"), "prompt"),
            # The same in other words, which another ship's passage has.
            ("How many berths did the Opal have in 2024?", ("jade", "dogs", "office"), "retriever"),
            ("cabin count of the opal for 2024", ("fleet", "dogs", "office"), "retriever"),
        ],
    )
    def test_a_query_that_asks_for_something_else_than_the_question(self, query, shown, owner):
        texts = {
            "now": "In 2024 the Opal has forty cabins.",
            "fleet": "In 2023 the Opal has sixty cabins.",
            "jade": "In 2024 the Jade has ninety berths.",
            "dogs": DOGS,
            "office": OFFICE,
        }
        calls = [RetrieverCall(query=query, passages=shown)]
        result = link(
            {name: texts[name] for name in shown}, *DECLINES, corpus=texts, calls=calls, relevant=["now"],
            references=["It has forty cabins."],
            question="How many cabins does the Opal have in 2024?",
        )  # fmt: skip
        assert result.owner == owner

    @pytest.mark.parametrize(
        ("queries", "owner"),
        [
            (["Where did the captain grow up?"], "prompt"),
            (["Where did Brandt grow up?"], "retriever"),
            (["Where did the captain grow up?", "Brandt childhood town"], "retriever"),
            (["In which town did the captain of the ship Opal grow up?"], "retriever"),
        ],
    )
    def test_a_later_search_without_the_name_that_an_earlier_result_gave(self, queries, owner):
        texts = {
            "opal": "The ship Opal has a captain named Brandt.",
            "hop": "The childhood of Brandt was in Aldenau.",
            "ruiz": "The childhood of Ruiz was in Birkholm.",
        }
        question = "Where did the captain of the ship Opal grow up?"
        calls = [RetrieverCall(query=question, passages=("opal",))]
        calls += [RetrieverCall(query=query, passages=("ruiz",)) for query in queries]
        found = link(
            {name: texts[name] for name in ("opal", "ruiz")}, *DECLINES, sufficient(0.0),
            corpus=texts, calls=calls, question=question, relevant=["opal", "hop"],
            references=["Brandt grew up in Aldenau."],
        )  # fmt: skip
        assert found.owner == owner
        if owner == "prompt":
            assert found.evidence[0].reason_code == "hop_without_name"

    @pytest.mark.parametrize(
        ("query", "owner"),
        [
            ("weekday ferry leave", "prompt"),  # without the denial, and no word for it
            ("weekday ferry leave not", "retriever"),
            ("weekday ferry leave cancelled", "retriever"),
        ],
    )
    def test_keywords_of_the_question_without_its_denial(self, query, owner):
        texts = {
            "rest": "The ferry rests on Monday.",
            "leave": "On each weekday but one the ferry does leave.",
            "dogs": DOGS,
        }
        calls = [RetrieverCall(query=query, passages=("leave", "dogs"))]
        found = link(
            {name: texts[name] for name in ("leave", "dogs")}, *DECLINES, corpus=texts, calls=calls,
            question="On which weekday does the ferry not leave?", relevant=["rest"],
            references=["It rests on Monday."],
        )  # fmt: skip
        assert found.owner == owner
        if owner == "prompt":
            assert found.evidence[0].reason_code == "negation_left_out"

    @pytest.mark.parametrize(
        ("query", "owner"),
        [
            ("captain of the Jade", "prompt"),
            ("captain of the Opal", "retriever"),
            ("captain of the second one", "retriever"),
            ("captain of the Jade or the Opal", "retriever"),
        ],
    )
    def test_a_query_for_another_thing_of_the_conversation(self, query, owner):
        texts = {"jade": "The Jade has a captain named Ruiz.", "opal": "Brandt commands the Opal."}
        history = [
            {"role": "user", "content": "Which ships sail today?"},
            {"role": "assistant", "content": "First the Jade and then the Opal."},
        ]
        found = link(
            {"jade": texts["jade"]}, *DECLINES, corpus=texts, history=history,
            calls=[RetrieverCall(query=query, passages=("jade",))], relevant=["opal"],
            question="Who is the captain of the second one?", references=["It is Brandt."],
        )  # fmt: skip
        assert found.owner == owner
        if owner == "prompt":
            assert found.evidence[0].reason_code == "wrong_referent"

    def test_the_same_id_with_another_text_in_the_corpus_is_stale(self):
        old, new = "The ferry leaves at nine.", "The ferry leaves at seven in the morning."
        claim = Claim(
            text=old,
            support="supported",
            correct=False,
            evidence=(Evidence(passage_id="p", quote=old),),
        )
        said = (
            verdict("faithfulness", label=True, claims=(claim,)),
            verdict("correctness", label=False),
        )
        found = link(
            {"p": old}, *said, corpus={"p": new}, relevant=["p"], references=[new],
            question="When does the ferry leave?",
        )  # fmt: skip
        assert (found.failure, found.owner) == ("conflicting_sources", "index")
        assert found.evidence[0].reason_code == "stale_passage"

    def test_a_number_that_a_compressor_changed_is_the_prompts(self):
        claim = Claim(
            text="The ferry leaves at ten.",
            support="supported",
            correct=False,
            evidence=(Evidence(passage_id="p", quote="leaves at ten"),),
        )
        said = (
            verdict("faithfulness", label=True, claims=(claim,)),
            verdict("correctness", label=False),
        )
        given = {"relevant": ["p"], "references": [HOUR], "question": "When does the ferry leave?"}
        found = link(
            {"p": f"{HOUR} {DOGS}"}, *said, prompted=["p"], shown={"p": "leaves at ten"}, **given
        )
        assert (found.failure, found.owner) == ("dropped_from_prompt", "prompt")
        assert found.evidence[0].reason_code == "passage_altered"

    @pytest.mark.parametrize(
        ("reference", "failure"),
        [("The ferry to Holm leaves at seven.", "gold_suspect"), (DOGS, "dropped_from_prompt")],
    )
    def test_a_cut_passage_is_no_copy_of_its_full_text(self, reference, failure):
        told = "The ferry to Holm leaves at seven in the morning from the long quay"
        claim = Claim(
            text=f"{told}.",
            support="supported",
            correct=False,
            evidence=(Evidence(passage_id="p", quote=told),),
        )
        said = (
            verdict("faithfulness", label=True, claims=(claim,), judge="heuristic"),
            verdict("correctness", label=False, judge="heuristic"),
        )
        found = link(
            {"p": f"{told}. {DOGS}"}, *said, relevant=["p"], references=[reference],
            prompted=["p"], shown={"p": told}, question="May dogs take the ferry to Holm?",
        )  # fmt: skip
        assert found.failure == failure

    @pytest.mark.parametrize(
        ("quote", "failure"),
        [
            ("Anna Kerr directed it until 2004, Ben Osei has since.", "gold_suspect"),
            ("Anna Kerr directs it. Ben Osei directs it.", "gold_suspect"),
            ("Anna Kerr directs it, says the board.", "contradicts_context"),
        ],
    )
    def test_a_passage_that_states_both_makes_the_reference_suspect(self, quote, failure):
        claim = Claim(
            text="Ben Osei directs the museum.",
            support="supported",
            correct=False,
            evidence=(Evidence(passage_id="m", quote=quote),),
        )
        said = (
            verdict("faithfulness", label=True, claims=(claim,)),
            verdict("correctness", label=False),
        )
        found = link(
            {"m": f"The museum: {quote}"}, *said, relevant=["m"], references=["Anna Kerr."],
            question="Who directs the museum?",
        )  # fmt: skip
        assert found.failure == failure

    def test_an_invention_about_nothing_does_not_blame_the_index(self):
        claim = Claim(text="Whales are served on board.", support="unsupported")
        said = verdict("faithfulness", label=False, claims=(claim,), judge="heuristic")
        found = link(
            {"dogs": DOGS}, said, corpus={"dogs": DOGS, "museum": OFFICE},
            question="May dogs travel on the lower deck?",
        )  # fmt: skip
        assert (found.failure, found.owner) == ("ignored_context", "generator")


def test_a_right_answer_that_no_passage_supports_needed_the_missed_passage():
    """The prompt does not hold the answer, so that the generator cannot have ignored it there."""
    claim = Claim(text="The chess club meets on Mondays.", support="unsupported")
    said = (
        verdict("faithfulness", label=False, claims=(claim,), judge="heuristic"),
        verdict("correctness", label=True, judge="heuristic"),
    )
    given = {"references": ["On Mondays."], "question": "When does the chess club meet?"}
    found = link({"dogs": DOGS}, *said, relevant=["club"], **given)
    assert (found.failure, found.owner) == ("retrieval_miss", "retriever")
    assert found.evidence[0].reason_code == "passage_missing_for_claim"


@pytest.mark.parametrize(("answer", "code"), [("", "answered_nothing"), ("I pass.", "declined")])
def test_an_empty_answer_is_not_said_to_decline(answer, code):
    found = link({"p": HOUR}, *DECLINES, answer=answer, relevant=["p"], references=[HOUR])
    assert (found.failure, found.evidence[0].reason_code) == ("over_refused", code)


def test_what_no_search_runs_for_is_lost_whatever_the_answer_says():
    """A passed case has its needs, too: the first stage at which each was lost."""
    rests = Evidence(passage_id="hour", quote=HOUR)
    claim = Claim(text=HOUR, support="supported", evidence=(rests,))
    said = verdict("faithfulness", label=True, claims=(claim,)), verdict("correctness", label=True)
    found = link({"hour": HOUR}, *said, relevant=["hour"], references=[HOUR])
    assert [(need.lost_at, need.stated) for need in found.needs] == [(None, "states")]
    silent = verdict("faithfulness", status="skipped", reason="the answer makes no claim")
    answered = verdict("abstention", status="skipped", reason="r", parts={"declined": 0.0})
    memory = link(
        {"u": DOGS},
        silent,
        answered,
        verdict("correctness", label=True),
        relevant=["gone"],
        references=[HOUR],
    )
    assert memory.notes == ("answered_from_memory",)
    assert [(need.lost_at, need.stated) for need in memory.needs] == [("rank", "states")]


def run_of(traces, gold, judge="heuristic", **options):
    return misslink.evaluate(
        goldset=gold, traces=traces, judge=judge, cache=None, embedding="none", **options
    )


def test_a_case_of_an_agent_that_did_not_search_is_measured_where_others_search():
    gold = [
        {"id": name, "question": f"When does the {name} ferry leave?", "relevant": [name]}
        for name in ("north", "south")
    ]
    texts = {name: f"The {name} ferry leaves at nine." for name in ("north", "south")}
    call = {"query": "north ferry", "passages": ["north"]}
    traces = [
        Trace(case_id="north", retrieved=passages({"north": texts["north"]}), calls=[call],
              answer=texts["north"]),
        Trace(case_id="south", unmeasured="no retrieval was seen", answer="I don't know."),
    ]  # fmt: skip
    run = run_of(traces, gold, corpus=[{"id": name, "text": text} for name, text in texts.items()])
    assert [(link.failure, link.owner) for link in run.links] == [
        ("passed", "none"),
        ("not_searched", "prompt"),
    ]


def test_evidence_that_is_not_indexed_is_no_other_corpus():
    gold = [{"id": "1", "question": "When does the ferry leave?", "evidence": [HOUR]}]
    traces = [Trace(case_id="1", retrieved=passages({"d": DOGS}), answer="I don't know.")]
    run = run_of(traces, gold, corpus=[{"id": "d", "text": DOGS}, {"id": "o", "text": OFFICE}])
    assert [(link.failure, link.owner) for link in run.links] == [("not_indexed", "index")]
    assert [need.lost_at for need in run.links[0].needs] == ["index"]


def test_needs_are_written_and_read_back(tmp_path):
    gold = [{"id": "1", "question": "When does the ferry leave?", "reference": HOUR}]
    traces = [Trace(case_id="1", retrieved=passages({"d": DOGS}), answer="I don't know.")]
    run = run_of(traces, gold, out=tmp_path / "run")
    read = misslink.Run.read(tmp_path / "run") if hasattr(misslink.Run, "read") else None
    line = json.loads((tmp_path / "run" / "links.jsonl").read_text().splitlines()[0])
    assert line["needs"][0]["text"] == HOUR
    assert set(line["needs"][0]) == {
        "text", "source", "lost_at", "stated", "passage_id", "true_rank", "by",
    }  # fmt: skip
    if read is not None:
        assert read.links == run.links


def test_what_the_labelled_passages_of_the_prompt_do_not_hold_is_in_the_missed_ones():
    """Words do not find the second need in the missed passage, which is in another language."""
    german = "Fahrkarten kosten wenig."
    heuristic = [each.model_copy(update={"judge": "heuristic"}) for each in DECLINES]
    given = {"relevant": ["hour", "price"], "references": [f"{HOUR} {PRICE}"]}
    far = {"hour": HOUR, "price": german}
    found = link({"hour": HOUR}, *heuristic, deeper=passages(far), depth=9, **given)
    assert [(need.lost_at, need.by) for need in found.needs] == [
        ("answer", "matcher"),
        ("rank", "label"),
    ]


HALL = "The hall has 300 seats. They are taken out for concerts. "
LIFT = "Its lift carries 250 kg. It is checked in May."


@pytest.mark.parametrize("are_chunks", [False, True])
def test_a_text_without_its_end_in_the_index_is_lost_there_unless_ids_name_documents(are_chunks):
    gold = [
        {"id": "a", "question": "What does the lift of the hall carry?", "relevant": ["hall"],
         "reference": "The lift carries 250 kg."},
        {"id": "b", "question": "How many seats has the hall?", "relevant": ["hall"],
         "reference": "The hall has 300 seats."},
    ]  # fmt: skip
    second = LIFT if are_chunks else HALL
    traces = [
        {"case_id": "a", "retrieved": [{"id": "hall", "text": HALL}], "answer": "I don't know."},
        {"case_id": "b", "retrieved": [{"id": "hall", "text": second}], "answer": "It has 300 seats."},
    ]  # fmt: skip
    corpus = [{"id": "hall", "text": HALL + LIFT}]
    run = misslink.evaluate(
        traces=traces, goldset=gold, corpus=corpus, judge="heuristic", cache=None
    )
    link = run.links[0]
    assert (link.owner, link.loss) == (
        ("generator", "over_refused") if are_chunks else ("index", "cut_in_index")
    )


def test_an_answer_to_one_of_two_things_asked_is_incomplete():
    texts = {
        "a": "There are 14 drink stations on the course.",
        "b": "The stations serve water and malt tea.",
    }
    gold = [{"id": "a", "question": "How many drink stations are there, and what do they serve?",
             "relevant": ["a"], "reference": "14, with water and malt tea."}]  # fmt: skip
    traces = [{"case_id": "a", "retrieved": [{"id": name, "text": text} for name, text in texts.items()],
               "answer": "There are 14 drink stations on the course."}]  # fmt: skip
    run = misslink.evaluate(traces=traces, goldset=gold, judge="heuristic", cache=None)
    assert run.links[0].failure == "incomplete"

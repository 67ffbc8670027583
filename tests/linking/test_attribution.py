"""Every failure mode, shown by the evidence that it requires."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest
from langchain_core.documents import Document
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

import misslink
from misslink.judge import Reply
from misslink.linking.miss_measurement import measure_misses
from misslink.linking.owners import link_case
from misslink.testing import ScriptedJudge
from misslink.types import Case, Claim, Evidence, Link, Passage, Trace, Verdict
from town import Hashed

QUESTION = "When does the ferry to Holm leave?"
TEXTS = {
    "gold": "The ferry to Holm leaves at seven in the morning.",
    "noise": "The bus to Holm leaves at nine in the evening.",
    "other": "Tickets are sold on board.",
}


def run_link(*args, **options):
    return asyncio.run(link_case(*args, **options))


@dataclass
class World:
    """A case in which the app retrieved `retrieved`, and a judge said what the fields say."""

    retrieved: tuple = ("noise", "other")
    relevant: tuple = ("gold",)
    support: str | None = "supported"
    rests_on: str = "noise"
    declined: bool = False
    correct: bool | None = None
    claim_correct: bool | None = None
    answerable: bool | None = None
    judge: str = "openai:m"
    judged_relevant: tuple = ()
    faithfulness: str = "scored"
    sufficient: bool | None = None
    gold: dict = field(default_factory=dict)
    more: dict = field(default_factory=dict)

    def link(self, **changes):
        for name, value in changes.items():
            setattr(self, name, value)
        gold = self.gold or {"relevant": self.relevant}
        case = Case(id="1", question=QUESTION, answerable=self.answerable, **gold)
        passages = tuple(
            Passage(id=i, text=TEXTS[i], rank=rank) for rank, i in enumerate(self.retrieved, 1)
        )
        trace = Trace(
            case_id="1", retrieved=passages, prompted=self.retrieved, answer="a", **self.more
        )
        return run_link(case, trace, {v.metric: v for v in self._verdicts()}, k=5)

    def _verdicts(self):
        common = {"case_id": "1", "judge": self.judge}
        evidence = Evidence(passage_id=self.rests_on, quote="q", start=0, end=1)
        if self.declined:
            yield Verdict(metric="faithfulness", status="skipped", reason="declines", **common)
        elif self.faithfulness == "failed":
            yield Verdict(metric="faithfulness", status="failed", reason="no JSON", **common)
        elif self.support is not None:
            supported = self.support == "supported"
            claim = Claim(
                text="The ferry to Holm leaves at seven.",
                support=self.support,
                evidence=() if self.support == "unsupported" else (evidence,),
                correct=self.claim_correct,
            )
            yield Verdict(
                metric="faithfulness",
                status="scored",
                value=float(supported),
                label=supported,
                claims=(claim,),
                **common,
            )
        yield Verdict(
            metric="abstention",
            status="skipped",
            reason="not said",
            parts={"declined": float(self.declined)},
            **common,
        )
        if self.correct is not None:
            value = float(self.correct)
            yield Verdict(
                metric="correctness", status="scored", value=value, label=self.correct, **common
            )
        if self.sufficient is not None:
            value, label = float(self.sufficient), self.sufficient
            yield Verdict(
                metric="context_sufficiency", status="scored", value=value, label=label, **common
            )
        if self.judged_relevant:
            said = dict.fromkeys(self.judged_relevant, 1.0)
            yield Verdict(
                metric="context_relevance", status="scored", value=1.0, passages=said, **common
            )


HIT = {"retrieved": ("gold", "noise")}
PART = {"retrieved": ("gold", "noise"), "relevant": ("gold", "other")}
EITHER = {"retrieved": ("other", "noise"), "gold": {"relevant_any": [["gold"], ["other"]]}}
NO_LABEL = {"relevant": ()}
NO_SEARCH = {"retrieved": (), "more": {"unmeasured": "no search was seen"}}


@pytest.mark.parametrize(
    ("world", "failures", "owner"),
    [
        # No relevant passage reached the prompt.
        (World(support="unsupported"), "retrieval_miss", "retriever"),
        (World(correct=False), "retrieval_miss", "retriever"),
        (World(declined=True), "retrieval_miss", "retriever"),
        (World(support=None, correct=False), "retrieval_miss", "retriever"),
        (World(correct=True, support="unsupported"), "retrieval_miss", "retriever"),
        (World(support="contradicted"), "contradicts_context", "generator"),
        (World(correct=True), "passed", "none"),
        (World(correct=True, judged_relevant=("noise",)), "passed", "none"),
        # All of them did.
        (World(**HIT, declined=True), "over_refused", "generator"),
        (World(**HIT, declined=True, correct=False), "over_refused", "generator"),
        (World(**HIT, correct=False), "distracted", "generator"),
        (World(**HIT, claim_correct=False), "distracted", "generator"),
        (World(**HIT, support="unsupported"), "ignored_context", "generator"),
        (World(**HIT, support="contradicted", rests_on="gold"), "contradicts_context", "generator"),
        (World(**HIT, rests_on="gold", correct=False), "incomplete", "generator"),
        (World(**HIT, rests_on="gold", claim_correct=False), "gold_suspect", "gold_set"),
        (World(**HIT, rests_on="gold"), "passed", "none"),
        (World(**HIT, rests_on="gold", correct=True), "passed", "none"),
        (World(**EITHER, rests_on="other", correct=True), "passed", "none"),
        (World(**EITHER, declined=True), "over_refused", "generator"),
        # Some of them did, and each is needed, unless a judge says that the prompt suffices.
        (World(**PART, declined=True), "retrieval_miss", "retriever"),
        (World(**PART, declined=True, sufficient=True), "over_refused", "generator"),
        (World(**PART, declined=True, sufficient=False), "retrieval_miss", "retriever"),
        (World(**PART, support="unsupported"), "retrieval_miss", "retriever"),
        (World(**PART, support="unsupported", sufficient=True), "ignored_context", "generator"),
        (World(**PART, support="unsupported", sufficient=False), "retrieval_miss", "retriever"),
        (World(**PART, support="contradicted", rests_on="gold", sufficient=False),
         "contradicts_context", "generator"),
        (World(**PART, rests_on="gold", correct=True), "passed", "none"),
        # The gold set labels no passage.
        (World(**NO_LABEL, support="contradicted"), "contradicts_context", "generator"),
        (World(**NO_LABEL, support="contradicted", sufficient=False), "contradicts_context",
         "generator"),
        (World(**NO_LABEL, support="contradicted", sufficient=True), "contradicts_context",
         "generator"),
        (World(**NO_LABEL, correct=False, sufficient=True), "distracted", "generator"),
        (World(**NO_LABEL, correct=False, claim_correct=False, sufficient=True), "gold_suspect",
         "gold_set"),
        # Retrieval was not observed.
        (World(**NO_SEARCH, support="unsupported"), "inconclusive", "unknown"),
        (World(**NO_SEARCH, declined=True), "inconclusive", "unknown"),
        (World(**NO_LABEL, answerable=True, declined=True), "inconclusive", "unknown"),
        (World(**NO_LABEL, answerable=True, declined=True, sufficient=True), "over_refused",
         "generator"),
        (World(**NO_LABEL, declined=True), "inconclusive", "unknown"),
        (World(**NO_LABEL, declined=True, sufficient=False), "passed", "none"),
        (World(**NO_LABEL, correct=False), "inconclusive", "unknown"),
        (World(**NO_LABEL, support="unsupported", sufficient=False), "retrieval_miss", "retriever"),
        # There is no answer.
        (World(**NO_LABEL, answerable=False), "should_have_abstained", "generator"),
        (World(answerable=False), "should_have_abstained", "generator"),
        (World(**NO_LABEL, answerable=False, sufficient=True), "gold_suspect", "gold_set"),
        (World(**NO_LABEL, answerable=False, declined=True), "passed", "none"),
        (World(answerable=False, declined=True), "passed", "none"),
        # A verdict is missing.
        (World(support=None), "inconclusive", "unknown"),
        (World(faithfulness="failed"), "inconclusive", "unknown"),
        (World(**HIT, faithfulness="failed", correct=False), "inconclusive", "unknown"),
    ],
)  # fmt: skip
def test_a_case_gets_the_failure_mode_and_the_owner_that_its_evidence_shows(world, failures, owner):
    link = world.link()
    assert (link.failure, *link.also) == tuple(failures.split()), link.reason
    assert link.owner == owner
    assert link.reason
    failed = link.failure not in {"passed", "inconclusive"}
    assert bool(link.evidence) == (failed or bool(link.notes))


@pytest.mark.parametrize(
    ("world", "notes"),
    [
        (World(correct=True, judged_relevant=("noise",)), ("missing_label",)),
        (World(**PART, correct=True, judged_relevant=("noise",)), ("missing_label",)),
        (World(correct=True, judged_relevant=("noise",), judge="heuristic"), ()),
        (World(correct=True), ()),
        # A person has judged the passage and found it irrelevant.
        (World(gold={"relevant": {"gold": 1, "noise": 0}}, correct=True,
               judged_relevant=("noise",)), ()),
        (World(**HIT, rests_on="gold", correct=True), ()),
    ],
)  # fmt: skip
def test_a_passed_case_is_noted_where_its_passage_is_not_labelled(world, notes):
    link = world.link()
    assert (link.failure, link.notes) == ("passed", notes)


def test_a_written_link_is_read_back_and_one_with_another_field_is_refused():
    link = World().link()
    written = link.model_dump(mode="json")
    assert Link.model_validate(written) == link
    with pytest.raises(ValidationError, match="failur\n"):
        Link.model_validate(written | {"failur": "passed"})


def test_a_run_that_no_judge_looked_at_says_nothing_about_answers():
    case = Case(id="1", question="q", relevant=["gold"])
    trace = Trace(case_id="1", retrieved=(Passage(id="x", rank=1),), answer=None)
    link = run_link(case, trace, {}, k=5)
    assert (link.retrieval, link.failure, link.owner) == ("miss", None, None)


def test_an_answer_without_a_claim_is_wrong_because_it_ignores_the_context():
    world = World(retrieved=("gold",), support=None, correct=False)
    common = {"case_id": "1", "judge": "j"}
    skipped = Verdict(
        metric="faithfulness", status="skipped", reason="the answer makes no claim", **common
    )
    case = Case(id="1", question="q", relevant=["gold"])
    passages = (Passage(id="gold", text=TEXTS["gold"], rank=1),)
    trace = Trace(case_id="1", retrieved=passages, answer="It depends.")
    by_metric = {v.metric: v for v in (*world._verdicts(), skipped)}
    assert run_link(case, trace, by_metric, k=5).failure == "ignored_context"


def test_labels_by_texts_that_no_passage_shows_decide_nothing():
    case = Case(id="1", question="q", evidence=[TEXTS["gold"]])
    trace = Trace(case_id="1", retrieved=(Passage(id="x", rank=1),), prompted=("x",), answer="a")
    verdict = Verdict(
        case_id="1", metric="faithfulness", status="scored", value=0.0, label=False, judge="j"
    )
    link = run_link(case, trace, {"faithfulness": verdict}, k=5)
    assert (link.retrieval, link.failure) == ("unknown", "inconclusive")
    assert "no retrieved passage has a text" in link.reason


def test_the_passage_and_the_quote_that_contradict_a_claim_are_the_evidence():
    (item,) = World(**HIT, support="contradicted", rests_on="gold").link().evidence
    assert (item.claim, item.passage_id, item.quote) == (0, "gold", "q")


def test_a_near_copy_of_the_relevant_passage_that_says_otherwise_is_a_conflicting_source():
    case = Case(id="1", question="q", relevant=["gold"])
    stale = TEXTS["gold"].replace("seven", "eight")
    texts = {"stale": stale, "gold": TEXTS["gold"]}
    passages = tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(texts.items(), 1))
    claim = Claim(
        text="The ferry to Holm leaves at eight.",
        support="supported",
        evidence=(Evidence(passage_id="stale", quote=stale),),
        correct=False,
    )
    verdict = Verdict(
        case_id="1", metric="faithfulness", status="scored", value=1.0, label=True,
        claims=(claim,), judge="openai:m",
    )  # fmt: skip
    trace = Trace(case_id="1", retrieved=passages, answer="a")
    link = run_link(case, trace, {"faithfulness": verdict}, k=5)
    assert (link.failure, link.owner) == ("conflicting_sources", "index")
    assert {need.lost_at for need in link.needs} == {"index"}  # as its owner, though it was shown


def test_an_answer_that_denies_a_shown_need_contradicts_the_prompt():
    case = Case(id="1", question=QUESTION, references=["At seven in the morning."])
    passage = Passage(id="gold", text=TEXTS["gold"], rank=1)
    claim = Claim(text="The ferry to Holm leaves at eight.", support="unsupported", correct=False)
    common = {
        "case_id": "1",
        "status": "scored",
        "value": 0.0,
        "label": False,
        "judge": "heuristic",
    }
    verdicts = {
        "faithfulness": Verdict(metric="faithfulness", claims=(claim,), **common),
        "correctness": Verdict(metric="correctness", **common),
    }
    link = run_link(case, Trace(case_id="1", retrieved=(passage,), answer="a"), verdicts, k=5)
    assert link.failure == "contradicts_context"
    assert [(item.reason_code, item.passage_id) for item in link.evidence] == [
        ("states_reference", "gold"),
    ]  # fmt: skip


def test_a_correctness_verdict_that_failed_leaves_the_case_undecided():
    case = Case(id="1", question="q", relevant=["gold"], references=["r"])
    trace = Trace(
        case_id="1", retrieved=(Passage(id="gold", text=TEXTS["gold"], rank=1),), answer="a"
    )
    common = {"case_id": "1", "judge": "j"}
    verdicts = {
        "faithfulness": Verdict(
            metric="faithfulness", status="scored", value=1.0, label=True, **common
        ),
        "correctness": Verdict(metric="correctness", status="failed", reason="no JSON", **common),
    }
    link = run_link(case, trace, verdicts, k=5)
    assert (link.failure, link.reason) == ("inconclusive", "correctness failed: no JSON")


def test_an_unfaithful_claim_is_linked_to_the_missed_passage_it_needed_with_its_true_rank():
    deep = Passage(id="gold", text=TEXTS["gold"], rank=17, score=0.4)
    link = World(support="unsupported", more={"deeper": (deep,), "depth": 100}).link()
    (missed,) = link.missed
    assert (missed.passage_id, missed.true_rank) == ("gold", 17)
    assert "ranked_low" in (missed.miss_type, *missed.also)
    (claim,) = link.claims
    assert (claim.passage_id, claim.relation, claim.true_rank) == ("gold", "would_support", 17)
    assert claim.quote in TEXTS["gold"]


def test_a_claim_that_the_missed_passage_says_nothing_of_is_unrelated():
    world = World(relevant=("other",), retrieved=("noise",), support="unsupported")
    deep = Passage(id="other", text="Gulls nest under the roof.", rank=9)
    world.more = {"deeper": (deep,), "depth": 100}
    (claim,) = world.link().claims
    assert claim.relation == "unrelated"


def test_a_passage_that_was_retrieved_and_not_prompted_was_dropped():
    case = Case(id="1", question="q", relevant=["gold"])
    passages = tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(TEXTS.items(), 1))
    trace = Trace(case_id="1", retrieved=passages, prompted=("noise",), answer="a")
    (missed,) = run_link(case, trace, {}, k=5).missed
    assert (missed.status, missed.miss_type, missed.true_rank) == ("dropped_from_prompt", None, 1)


def test_an_id_that_was_never_retrieved_is_a_miss_without_a_rank():
    (missed,) = World(support="unsupported").link().missed
    assert (missed.passage_id, missed.true_rank, missed.depth) == ("gold", None, None)


def test_a_supported_answer_has_no_claim_links():
    assert World(**HIT, rests_on="gold").link().claims == ()


class KnowingJudge:
    """Answers each ask for claim needs by `relations`: claim to the passage that supports it."""

    name, identity = "knowing", {}

    def __init__(self, relations):
        self.relations = relations
        self.asked = []

    async def ask(self, ask):
        self.asked.append((ask.inputs["claims"], ask.inputs["passages"]))
        needs = []
        for number, claim in enumerate(ask.inputs["claims"], 1):
            text = self.relations.get(claim)
            held = text in ask.inputs["passages"]
            needs.append(
                {
                    "claim": number,
                    "relation": "would_support" if held else "unrelated",
                    "passage": ask.inputs["passages"].index(text) + 1 if held else None,
                    "quote": text if held else None,
                }
            )
        return Reply(ask.schema.model_validate({"claims": needs}), "")

    async def close(self): ...


MONKS, FEE = "Monks still live at Bero abbey.", "Tickets to Bero abbey cost nine crowns."


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("sufficient", [None, True, False])
@pytest.mark.parametrize("held", [FEE, MONKS])
def test_an_omitted_claim_needs_a_missed_passage_only_where_the_prompt_lacks_it(
    dropped, sufficient, held
):
    case = Case(
        id="1",
        question="What should a visitor know about Bero abbey?",
        relevant=("monks", "fee"),
        references=(f"{MONKS} {FEE}",),
    )
    passages = [Passage(id="monks", text=MONKS, rank=1), Passage(id="fee", text=FEE, rank=2)]
    trace = Trace(
        case_id="1",
        retrieved=tuple(passages if dropped else passages[:1]),
        prompted=("monks",),
        deeper=tuple(passages),
        depth=10,
        answer=MONKS,
    )
    common = {"case_id": "1", "judge": "openai:m", "status": "scored"}
    quote = Evidence(passage_id="monks", quote=MONKS, start=0, end=len(MONKS))
    stated = Claim(text=MONKS, support="supported", evidence=(quote,), correct=True)
    verdicts = {
        "faithfulness": Verdict(
            metric="faithfulness", value=1.0, label=True, claims=(stated,), **common
        ),
        "completeness": Verdict(
            metric="completeness",
            value=0.5,
            claims=(
                Claim(text=MONKS, support="supported"),
                Claim(text=FEE, support="unsupported"),
            ),
            **common,
        ),
        "abstention": Verdict(
            metric="abstention",
            **common | {"status": "skipped"},
            reason="r",
            parts={"declined": 0.0},
        ),
    }
    if sufficient is not None:
        verdicts["context_sufficiency"] = Verdict(
            metric="context_sufficiency", value=float(sufficient), label=sufficient, **common
        )
    judge = KnowingJudge({FEE: held})
    link = run_link(case, trace, verdicts, k=1 if not dropped else 2, judge=judge)
    expected = "dropped_from_prompt" if dropped else "retrieval_miss"
    if held == MONKS:  # the prompt holds it, as the judge says of the claim
        expected = "incomplete"
    assert link.failure == expected, link.reason
    if expected in {"dropped_from_prompt", "retrieval_miss"}:
        assert {item.passage_id for item in link.evidence} == {"fee"}


@pytest.mark.parametrize(
    ("prompted", "failure"),
    [(("noise",), "dropped_from_prompt"), (("noise", "other"), "retrieval_miss")],
)
def test_a_passage_that_a_search_ties_to_a_claim_is_among_the_missed(prompted, failure):
    case = Case(id="1", question="When does the ferry to Holm leave?")
    retrieved = ("noise", "gold") if failure == "dropped_from_prompt" else ("noise", "other")
    trace = Trace(
        case_id="1",
        retrieved=[Passage(id=i, text=TEXTS[i], rank=n) for n, i in enumerate(retrieved, 1)],
        prompted=prompted,
        answer="The ferry to Holm leaves at seven in the morning.",
    )
    claim = Claim(text=trace.answer, support="unsupported")
    common = {"case_id": "1", "judge": "openai:m", "status": "scored"}
    verdicts = [
        Verdict(metric="faithfulness", value=0.0, label=False, claims=(claim,), **common),
        Verdict(metric="context_sufficiency", value=0.0, label=False, **common),
    ]
    corpus = [Passage(id=i, text=text, rank=1) for i, text in TEXTS.items()]
    measured = asyncio.run(measure_misses([case], [trace], 5, embedder=None, corpus=corpus))
    link = run_link(case, trace, {v.metric: v for v in verdicts}, 5, measured=measured)
    assert (link.failure, link.basis) == (failure, "inferred")
    assert [miss.passage_id for miss in link.missed] == ["gold"]
    assert link.evidence[0].passage_id == "gold"


@pytest.mark.parametrize(
    ("reference", "failure"),
    [
        ("Leaves at seven in the morning.", "contradicts_context"),
        ("The ferry never leaves at seven in the morning.", "gold_suspect"),
        ("At nine in the evening.", "gold_suspect"),
    ],
)
def test_a_passage_that_states_the_reference_clears_the_gold_set(reference, failure):
    gold = {"relevant": ("gold",), "references": (reference,)}
    world = World(retrieved=("gold", "other"), rests_on="gold", claim_correct=False, gold=gold)
    assert world.link().failure == failure


@pytest.mark.slow
def test_a_passage_that_a_search_finds_has_its_rank_in_the_app_s_own_retriever():
    texts = {
        "cafe": "What does the cafe on board sell?",
        "bikes": "A bicycle costs four euros for each crossing.",
        "holm": "Holm is an island.",
    }
    documents = [Document(text, id=name) for name, text in texts.items()]
    retriever = InMemoryVectorStore.from_documents(documents, Hashed()).as_retriever(
        search_kwargs={"k": 1}
    )

    def app(question):
        assert retriever.invoke(question)
        return "A bicycle costs ten euros for each crossing."

    run = misslink.evaluate(
        app,
        [{"question": "What does a bicycle cost on board?"}],
        corpus=[{"id": name, "text": text} for name, text in texts.items()],
        cache=None,
        embedding="none",
    )
    ((miss,),) = (link.missed for link in run.links)
    assert (miss.passage_id, miss.true_rank, miss.depth) == ("bikes", 2, 100)
    assert (miss.lost_at, miss.miss_type) == ("ranked_low", "below_cutoff")


def heuristic_links(cases, traces):
    run = misslink.evaluate(
        goldset=cases,
        traces=traces,
        judge="heuristic",
        cache=None,
        embedding="none",
    )
    return {link.case_id: link for link in run.links}


def test_the_text_of_a_missed_passage_is_known_from_a_case_that_retrieved_it():
    stale = TEXTS["gold"].replace("seven", "eight")
    case = Case(id="1", question=QUESTION, relevant=["gold"], references=[TEXTS["gold"]])
    wrong = Trace(
        case_id="1", retrieved=(Passage(id="copy-2019", text=stale, rank=1),), answer=stale
    )
    board = Case(id="2", question="Where are tickets sold?", relevant=["other"])
    other = Passage(id="other", text=TEXTS["other"], rank=1)
    sold = Trace(case_id="2", retrieved=(other,), answer=TEXTS["other"])
    assert heuristic_links([case, board], [wrong, sold])["1"].owner == "retriever"
    seen = (other, Passage(id="gold", text=TEXTS["gold"], rank=2))
    sold = sold.model_copy(update={"retrieved": seen})
    link = heuristic_links([case, board], [wrong, sold])["1"]
    assert (link.failure, link.owner) == ("conflicting_sources", "index")


@pytest.mark.parametrize(
    ("question", "owner"),
    [(QUESTION, "gold_set"), ("When does the night ferry to Holm turn back?", "generator")],
)
def test_a_flag_is_doubted_where_the_passage_has_every_word_of_the_question(question, owner):
    case = Case(id="1", question=question, answerable=False)
    passages = (Passage(id="gold", text=TEXTS["gold"], rank=1),)
    trace = Trace(case_id="1", retrieved=passages, answer=TEXTS["gold"])
    assert heuristic_links([case], [trace])["1"].owner == owner


def test_an_answer_in_another_unit_than_its_quote_misreads_the_passage():
    text = "The Holm makes 43 knots in calm weather."
    case = Case(
        id="1", question="How fast is the Holm?", relevant=["gold"], references=[text],
    )  # fmt: skip
    passages = (Passage(id="gold", text=text, rank=1),)
    trace = Trace(
        case_id="1", retrieved=passages, answer="The Holm makes 43 degrees in calm weather."
    )
    link = heuristic_links([case], [trace])["1"]
    assert (link.failure, link.owner) == ("contradicts_context", "generator")


DESIGNER = "Where did the designer of the ferry spend her childhood?"


@pytest.mark.parametrize(
    ("person", "owner"),
    [
        ("Ada Amsel", "generator"),
        ("Ada Dorn", "retriever"),
        ("Bela Amsel", "retriever"),  # a capital at the start, before another, is a name, too
    ],
)
def test_a_claim_that_relates_names_by_itself_is_held_by_a_text_with_all_of_them(person, owner):
    reference = "Ada Amsel comes from Birkholm."
    case = Case(id="1", question=DESIGNER, relevant=["ferry", "hop"], references=[reference])
    texts = {
        "ferry": "The designer of the ferry is Ada Amsel.",
        "b": f"{person} comes from Birkholm.",
    }
    passages = tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(texts.items(), 1))
    trace = Trace(case_id="1", retrieved=passages, answer="I could not find that.")
    assert heuristic_links([case], [trace])["1"].owner == owner


def test_a_passage_with_what_the_question_names_goes_before_one_of_something_else():
    case = Case(
        id="1", question=QUESTION, relevant=["gold"], references=["At seven in the morning."]
    )
    texts = {"nord": "The ferry to Nord leaves at seven in the morning.", "gold": TEXTS["gold"]}
    passages = tuple(Passage(id=i, text=t, rank=r) for r, (i, t) in enumerate(texts.items(), 1))
    declined = {"case_id": "1", "retrieved": passages, "answer": "I could not find that."}
    (need,) = heuristic_links([case], [Trace(**declined)])["1"].needs
    assert (need.lost_at, need.passage_id) == ("answer", "gold")
    link = heuristic_links([case], [Trace(prompted=("nord",), **declined)])["1"]
    assert (link.owner, link.needs[0].lost_at) == ("prompt", "prompt")


def test_a_need_that_no_text_shows_is_in_the_labelled_passage_that_was_missed():
    case = Case(
        id="1",
        question="When does the ferry to Holm leave, and what does a bicycle cost?",
        relevant=["gold", "fares"],
        references=[f"{TEXTS['gold']} A bicycle costs four euros."],
    )
    passages = (Passage(id="gold", text=TEXTS["gold"], rank=1),)
    trace = Trace(case_id="1", retrieved=passages, answer=TEXTS["gold"])
    link = heuristic_links([case], [trace])["1"]
    assert (link.failure, link.owner) == ("retrieval_miss", "retriever")
    assert [need.passage_id for need in link.needs] == ["gold", "fares"]


@pytest.mark.parametrize(
    ("retrieved", "failure"), [(("gold", "other"), "passed"), (("noise",), "retrieval_miss")]
)
def test_a_right_answer_in_words_that_the_passages_lack_passed_if_no_need_was_lost(
    retrieved, failure
):
    said = "The boat sails off at dawn."
    case = Case(id="1", question=QUESTION, relevant=["gold"], references=[said])
    passages = tuple(Passage(id=i, text=TEXTS[i], rank=r) for r, i in enumerate(retrieved, 1))
    trace = Trace(case_id="1", retrieved=passages, answer=said)
    assert heuristic_links([case], [trace])["1"].failure == failure


def test_a_supported_fact_beside_a_refusal_is_no_answer_to_what_has_none():
    case = Case(id="1", question="What does the ferry to Holm cost?", answerable=False)
    passages = (Passage(id="gold", text=TEXTS["gold"], rank=1),)
    answer = f"I could not find the price. {TEXTS['gold']}"
    link = heuristic_links([case], [Trace(case_id="1", retrieved=passages, answer=answer)])["1"]
    assert (link.failure, link.answer) == ("passed", "declined")


def test_where_nobody_saw_a_search_no_retriever_is_blamed():
    cases = [
        Case(id=str(n), question=QUESTION, relevant=["gold"], references=["At seven."])
        for n in range(3)
    ]
    run = misslink.evaluate(
        lambda _: "It leaves at nine.",
        cases,
        judge="heuristic",
        cache=None,
        embedding="none",
    )
    assert [link.failed for link in run.links] == [True] * 3
    assert {link.owner for link in run.links} == {"unknown"}


def test_a_reference_that_says_more_than_was_answered_is_not_called_contradicted():
    text = "A yearly membership costs 30 euros. Students pay 15 euros."
    case = Case(
        id="1",
        question="What does a yearly membership cost?",
        relevant=["fees"],
        references=["30 euros; students pay 15 euros."],
    )
    passages = (Passage(id="fees", text=text, rank=1),)
    trace = Trace(case_id="1", retrieved=passages, answer="A yearly membership costs 30 euros.")
    link = heuristic_links([case], [trace])["1"]
    assert link.needs[0].stated == "omits"
    assert [item.reason_code for item in link.evidence] == ["reference_says_other"]


def declined(corpus, judge=None):
    """An app that declines a question without labels, and the passages of its index."""
    case = Case(id="1", question=QUESTION)
    shown = Passage(id="other", text=TEXTS["other"], rank=1)
    trace = Trace(case_id="1", retrieved=(shown,), prompted=("other",), answer="")
    said = {"case_id": "1", "judge": "openai:m" if judge else "heuristic"}
    verdicts = {
        "faithfulness": Verdict(metric="faithfulness", status="skipped", reason="blank", **said)
    }
    if judge:
        lacks = Verdict(metric="context_sufficiency", status="scored", value=0.0, **said)
        verdicts["context_sufficiency"] = lacks
    passages = [Passage(id=i, text=corpus[i], rank=1) for i in corpus]
    measured = asyncio.run(measure_misses([case], [trace], 5, embedder=None, corpus=passages))
    return run_link(case, trace, verdicts, 5, measured=measured, judge=judge)


def test_an_app_fails_that_declines_what_its_index_answers():
    link = declined(TEXTS | {"noise": "Bicycles travel free of charge."})
    assert (link.failure, link.owner, link.basis) == ("retrieval_miss", "retriever", "inferred")
    assert [miss.passage_id for miss in link.missed] == ["gold"]
    link = declined({"other": TEXTS["other"], "noise": "Bicycles travel free of charge."})
    assert link.failed is None


def test_a_model_judge_says_whether_the_index_answers_what_was_declined():
    ask = {"claim": 1, "relation": "would_support", "missed_passage": 1}
    reply = {"claims": [ask | {"missed_quote": "Boats for Holm go at seven"}]}
    corpus = {"other": TEXTS["other"], "gold": "Boats for Holm go at seven. The ferry is old."}
    judge = ScriptedJudge(replies={"claim_needs": reply})
    link = declined(corpus, judge)
    assert (link.failure, link.needs[0].by) == ("retrieval_miss", "judge")
    nothing = {"claims": [{"claim": 1, "relation": "unrelated"}]}
    assert declined(corpus, ScriptedJudge(replies={"claim_needs": nothing})).failure == "passed"

"""What each arm gives the app, and when a case cannot be replayed."""

from misslink.linking.replay.plan import index_passages, plan_case, rank_prompt
from misslink.linking.replay.runner import draw_cases
from misslink.linking.replay.sequence import ARMS
from misslink.types import (
    Case,
    FailureEvidence,
    Link,
    Passage,
    RetrievalMiss,
    RetrieverCall,
    Run,
    Trace,
)


def passage(name, rank=1, score=None, text=None):
    return Passage(
        id=name, text=f"Text of {name}." if text is None else text, rank=rank, score=score
    )


def trace(*names, prompted=None, **more):
    ranked = tuple(passage(name, rank, score=rank / 10) for rank, name in enumerate(names, 1))
    given = {"case_id": "c", "retrieved": ranked, "answer": "A.", "prompted": prompted, **more}
    return Trace(**given)


def link(failure, *missed):
    return Link(
        case_id="c",
        retrieval="miss",
        answer="unfaithful",
        failure=failure,
        reason="r",
        missed=missed,
    )


# Passages of other cases, from which the placebos are drawn.
OTHERS = Trace(
    case_id="o",
    retrieved=(
        passage("x", text="Ferries go daily."),
        passage("y", text="Boats go at noon."),
        passage("z", text="Something much longer about harbours, quarries and orchards."),
    ),
)


def planned(case, seen, linked, k=3, others=OTHERS):
    return plan_case(case, seen, linked, k, index_passages([seen, others]))


def order(made, arm, *, placebo=False, repeat=0):
    """The ids of the passages that an arm gives the app."""
    prompt, _ = made.prompt(arm, repeat, placebo=placebo)
    return [passage.id for passage in rank_prompt(prompt, made.trace)[0]]


NEEDS = Case(id="c", question="Q?", relevant={"g": 1, "h": 2})
G = RetrievalMiss(passage_id="g", text="Text of g.")
MISS_G = link("retrieval_miss", G)
ONE = Case(id="c", question="Q?", relevant=["g"])
HIT = {"retrieval": "hit"}
MISSED, WHOLE, WITHOUT, PERFECT = ARMS[1:]


class TestArms:
    def test_missed_passages_and_placebo_are_the_same_list_but_for_the_missed_passage(self):
        made = planned(ONE, trace("a", "b", "c"), MISS_G)
        assert list(made.arms) == [MISSED, PERFECT]
        assert order(made, MISSED) == ["g", "a", "b"]
        placebo = order(made, MISSED, placebo=True)
        assert placebo[0] in {"x", "y"}  # of similar length
        assert placebo[1:] == ["a", "b"]
        assert order(made, PERFECT) == ["g"]
        assert order(made, PERFECT, placebo=True) == ["c", "b", "a"]
        passages, _ = rank_prompt(made.prompt(MISSED, 0, placebo=False)[0], made.trace)
        assert [passage.rank for passage in passages] == [1, 2, 3]
        assert [passage.score for passage in passages] == [0.1, 0.2, 0.3]
        assert [passage.id for passage in made.missed] == ["g"]

    def test_each_repeat_is_another_prompt(self):
        made = planned(ONE, trace("a", "b", "c"), MISS_G)
        repeats = [order(made, MISSED, repeat=n) for n in range(3)]
        assert repeats[1][:3] == ["g", "b", "a"]
        assert repeats[1][3] in {"x", "y", "z"}  # one more irrelevant passage
        placebos = [order(made, MISSED, placebo=True, repeat=n) for n in range(3)]
        assert len({tuple(one) for one in (*repeats, *placebos)}) == 6

    def test_the_best_grades_are_injected_as_many_as_the_prompt_has_places(self):
        missed = (G, RetrievalMiss(passage_id="h", grade=2, text="Text of h."))
        made = planned(NEEDS, trace("a", "b", "c"), link("retrieval_miss", *missed))
        assert order(made, MISSED) == ["h", "g", "a"]
        assert len(set(order(made, MISSED, placebo=True))) == 3
        assert made.note is None
        made = planned(NEEDS, trace("a"), link("retrieval_miss", *missed))
        assert order(made, MISSED) == ["h"]
        assert made.note == "1 of 2 missed passages were injected"

    def test_relevant_passages_of_a_partial_hit_stay_in_the_prompt(self):
        partial = link("distracted", RetrievalMiss(passage_id="h", text="Text of h."))
        made = planned(NEEDS, trace("a", "b", "g"), partial)
        assert order(made, MISSED) == ["h", "a", "g"]
        assert order(made, MISSED, placebo=True)[1:] == ["a", "g"]
        assert order(made, PERFECT) == ["h", "g"]
        assert made.group == "distracted"

    def test_only_what_reached_the_prompt_is_replaced_and_reordered(self):
        seen = trace("a", "b", "c", "d", prompted=("a", "b", "c"))
        made = planned(ONE, seen, MISS_G)
        assert order(made, MISSED) == ["g", "a", "b", "d"]
        assert order(made, PERFECT, placebo=True) == ["c", "b", "a", "d"]
        made = planned(ONE, trace("a", "b", "c", "d"), MISS_G, k=2)
        assert order(made, MISSED) == ["g", "a", "c", "d"]
        assert order(made, PERFECT, placebo=True) == ["b", "a", "c", "d"]

    def test_a_passage_dropped_before_the_prompt_is_moved_and_not_doubled(self):
        seen = trace("a", "b", "g", prompted=("a", "b"))
        made = planned(ONE, seen, link("dropped_from_prompt", G))
        assert order(made, MISSED) == ["g", "a"]
        assert order(made, MISSED, placebo=True)[1:] == ["a"]
        assert made.owners["missed_passage"] == "prompt"

    def test_where_nothing_was_retrieved_the_missed_passage_is_all_there_is(self):
        assert order(planned(ONE, trace(), MISS_G), MISSED) == ["g"]

    def test_what_a_prompt_cut_off_comes_first_in_pieces_no_longer_than_it_shows(self):
        text = "It opened in 1904. It closed in 1950. It burned in 1960."
        whole = passage("g", text=text)
        seen = trace("a", "b").model_copy(
            update={
                "retrieved": (passage("a"), whole),
                "prompted": ("a", "g"),
                "shown": {"g": "It opened in 1904."},
            }
        )
        miss = RetrievalMiss(passage_id="g", text=text, status="dropped_from_prompt")
        cut = link("dropped_from_prompt", miss).model_copy(update={"retrieval": "partial"})
        made = planned(ONE, seen, cut)
        assert list(made.arms) == [WHOLE, PERFECT]
        assert order(made, WHOLE) == ["g-part-2", "g-part-3", "g"]
        assert [p.text for p in made.arms[WHOLE].treated.first] == [
            "It closed in 1950.", "It burned in 1960."
        ]  # fmt: skip
        assert len(order(made, WHOLE, placebo=True)) == 3
        assert made.arms[WHOLE].injected == {"g-part-2", "g-part-3"}
        assert made.owners["cut_passage"] == "prompt"

    def test_the_passage_that_the_answer_rests_on_is_taken_away_and_as_many_others(self):
        rests = FailureEvidence(failure="distracted", passage_id="b", reason_code="r")
        distracted = link("distracted").model_copy(update={**HIT, "evidence": (rests,)})
        made = planned(ONE, trace("g", "b", "c"), distracted)
        assert list(made.arms) == [WITHOUT, PERFECT]
        assert order(made, WITHOUT) == ["g", "c"]
        assert order(made, WITHOUT, placebo=True) == ["b", "g"]
        assert order(made, PERFECT) == ["g"]
        assert made.complete

    def test_a_prompt_of_relevant_passages_alone_has_no_arm_and_only_the_generator_is_left(self):
        made = planned(ONE, trace("g"), link("fabricated").model_copy(update=HIT))
        assert (dict(made.arms), made.complete) == ({}, True)
        assert order(made, "", placebo=True) == ["g"]

    def test_a_reference_in_doubt_is_not_blamed_on_the_generator(self):
        suspect = link("gold_suspect").model_copy(update=HIT)
        assert planned(ONE, trace("g", "a"), suspect).startswith("the reference is suspected")

    def test_the_standalone_question_is_asked_of_the_apps_own_retriever(self):
        case = ONE.model_copy(update={"standalone_question": "When did the ferry open?"})
        made = planned(case, trace("a", "b"), link("lost_context", G))
        assert list(made.arms) == [ARMS[0], MISSED, PERFECT]
        assert made.prompt(ARMS[0], 0, placebo=False)[0].question == (case.standalone_question, 1)
        assert made.prompt(ARMS[0], 0, placebo=True)[0].question == ("Q?", 2)
        assert made.prompt(ARMS[0], 1, placebo=False)[0].question == (case.standalone_question, 3)


class TestTexts:
    def test_the_text_may_come_from_any_case_of_the_run(self):
        other = OTHERS.model_copy(update={"deeper": (passage("g"),)})
        missed = link("retrieval_miss", RetrievalMiss(passage_id="g"))
        made = planned(ONE, trace("a"), missed, others=other)
        assert made.missed[0].text == "Text of g."

    def test_evidence_stands_for_a_passage_that_no_case_has_retrieved(self):
        case = Case(id="c", question="Q?", evidence=["It opened in 1904."])
        missed = RetrievalMiss(passage_id="evidence-1", evidence="It opened in 1904.")
        (injected,) = planned(case, trace("a"), link("retrieval_miss", missed)).missed
        assert (injected.id, injected.text) == ("evidence-1", "It opened in 1904.")

    def test_both_halves_of_split_evidence_are_injected(self):
        first, second = (
            "The harbour of the town was opened",
            "to ships of all sizes in the year 1904.",
        )
        case = Case(id="c", question="Q?", evidence=[f"{first} {second}"])
        deeper = (passage("u", 8, text=first), passage("v", 9, text=second))
        seen = trace("a", "b", "c", deeper=deeper)
        missed = RetrievalMiss(passage_id="v", evidence=f"{first} {second}", text=second)
        made = planned(case, seen, link("retrieval_miss", missed))
        assert order(made, MISSED) == ["u", "v", "a"]

    def test_those_with_a_text_are_injected_and_the_others_counted(self):
        missed = (G, RetrievalMiss(passage_id="h", grade=2))
        made = planned(NEEDS, trace("a", "b"), link("retrieval_miss", *missed))
        assert order(made, MISSED) == ["g", "a"]
        assert made.note == "1 of 2 missed passages were injected"


class TestPlacebo:
    def placebo(self, case, missed, *texts):
        pool = tuple(passage(f"p{n}", text=text) for n, text in enumerate(texts))
        others = Trace(case_id="o", retrieved=pool)
        made = planned(case, trace("a", "b"), missed, others=others)
        return made.arms[MISSED].placebos[0].first[0] if MISSED in made.arms else None

    def test_it_is_the_least_related_of_similar_length(self):
        case = Case(id="c", question="When does the ferry leave?", relevant=["g"])
        missed = link(
            "retrieval_miss", RetrievalMiss(passage_id="g", text="The ferry leaves at 7.")
        )
        related = [f"The ferry leaves pier {n}." for n in range(4)]
        made = self.placebo(case, missed, *related, "Bread is cheap here.", "Bread. " * 40)
        assert made.text == "Bread is cheap here."

    def test_it_is_neither_relevant_nor_a_near_duplicate(self):
        case = Case(id="c", question="When?", evidence=["at seven in the morning"])
        text = "The ferry leaves at seven in the morning."
        missed = link("retrieval_miss", RetrievalMiss(passage_id="g", text=text, evidence=text))
        copies = ("The ferry leaves at seven in the morning!", "Up at seven in the morning again.")
        assert self.placebo(case, missed, *copies) is None
        assert self.placebo(case, missed, *copies, "Bread.").text == "Bread."

    def test_without_one_the_missed_passage_is_not_tried(self):
        made = planned(ONE, trace("a", "b"), MISS_G, others=Trace(case_id="o"))
        assert list(made.arms) == [PERFECT]
        unlabelled = MISS_G.model_copy(update={"retrieval": "unlabelled"})
        made = planned(ONE, trace("a", "b"), unlabelled, others=Trace(case_id="o"))
        assert made == (
            "the run has no irrelevant passage that could be its placebo; evaluate more cases"
        )


def test_failed_answers_and_good_ones_that_missed_a_passage_are_drawn():
    kinds = [
        ("retrieval_miss", True), ("fabricated", True), ("passed", True), ("passed", False),
        ("fabricated", False), ("inconclusive", True), (None, True), ("retrieval_miss", None),
    ]  # fmt: skip
    cases, traces, links = [], [], []
    for number, (failure, missed) in enumerate(kinds):
        name = f"c{number}"
        cases.append(Case(id=name, question="Q?", relevant=["g"]))
        traces.append(trace("a", "b").model_copy(update={"case_id": name}))
        # None: a missed passage without a text.
        misses = (G if missed else RetrievalMiss(passage_id="n"),) if missed is not False else ()
        links.append(link(failure, *misses).model_copy(update={"case_id": name}))
    run = Run(
        manifest={}, cases=cases, traces=[*traces, OTHERS], verdicts=(), links=links, summary={}
    )
    drawn, undrawn, skipped = draw_cases(run, 3, sample=5, seed=0)
    assert [(plan.case.id, plan.group) for plan in drawn] == [
        ("c1", "fabricated"), ("c0", "retrieval_miss"), ("c2", "passed")
    ]  # fmt: skip
    assert undrawn == []
    assert [(record.case_id, record.skipped[:34]) for record in skipped] == [
        ("c4", "no passage that the answer lacked "),
        ("c7", "the missed passage 'n' has no text"),
    ]


class TestCannotBeReplayed:
    def test_no_missed_passage_has_a_text(self):
        made = planned(ONE, trace("a"), link("retrieval_miss", RetrievalMiss(passage_id="g")))
        assert made == (
            "the missed passage 'g' has no text: it was never retrieved, and the gold set gives no "
            "evidence"
        )

    def test_the_missed_passage_is_first_already(self):
        dropped = link("dropped_from_prompt", G).model_copy(update={"retrieval": "unlabelled"})
        made = planned(ONE, trace("g", "a", prompted=("a",)), dropped)
        assert made == "the app already had the missed passages in the first places"

    def test_what_was_retrieved_is_not_known(self):
        seen = trace(unmeasured="no retrieval was seen")
        assert planned(NEEDS, seen, link("retrieval_miss")) == (
            "what was retrieved is not known: no retrieval was seen"
        )

    def test_passages_without_a_text(self):
        seen = trace("g").model_copy(update={"retrieved": (passage("a", text=""),)})
        assert planned(NEEDS, seen, link("distracted")) == (
            "the retrieved passage 'a' has no text to inject"
        )

    def test_there_was_no_answer(self):
        seen = trace("a", answer=None, error="OSError: down")
        assert planned(NEEDS, seen, link("retrieval_miss")) == (
            "the app gave no answer: OSError: down"
        )


class TestSeveralSearches:
    """An app that searches twice is handed two lists, as it found two."""

    CALLS = (
        RetrieverCall(query="one", passages=("a", "b"), retriever="R"),
        RetrieverCall(query="inner", passages=("a",), retriever="R", nested=True),
        RetrieverCall(query="two", passages=("c", "a", "d"), retriever="R"),
    )

    def seen(self, **more):
        return trace("a", "c", "b", "d", calls=self.CALLS, **more)

    def lists(self, made):
        return {
            (arm, placebo): [
                [passage.id for passage in search.passages]
                for search in rank_prompt(made.prompt(arm, 0, placebo=placebo)[0], made.trace)[1]
            ]
            for arm in made.arms
            for placebo in (False, True)
        }

    def test_each_finds_what_it_found_and_the_first_gets_what_is_injected(self):
        made = planned(ONE, self.seen(), MISS_G, k=4)
        lists = self.lists(made)
        assert lists[MISSED, False] == [["g", "a", "b"], ["c", "a"]]
        assert lists[MISSED, True][0][1:] == ["a", "b"]
        assert lists[MISSED, True][1] == ["c", "a"]
        assert lists[PERFECT, False] == [["g"], []]
        assert lists[PERFECT, True] == [["b", "a"], ["d", "c", "a"]]
        _, searches = rank_prompt(made.prompt("", 0, placebo=True)[0], made.trace)
        assert [[p.id for p in search.passages] for search in searches] == [
            ["a", "b"], ["c", "a", "d"]
        ]  # fmt: skip
        assert [(search.query, search.name) for search in searches] == [("one", "R"), ("two", "R")]
        assert [passage.rank for passage in searches[1].passages] == [1, 2, 3]
        assert [passage.score for passage in searches[1].passages] == [0.2, 0.1, 0.4]

    def test_one_search_and_none_that_was_seen_are_given_one_list(self):
        for calls in ((), self.CALLS[:2]):
            made = planned(ONE, trace("a", "b", calls=calls), MISS_G)
            assert rank_prompt(made.prompt(MISSED, 0, placebo=False)[0], made.trace)[1] == ()

"""What is handed to the app for each failure mode, and when a case cannot be replayed."""

from __future__ import annotations

from misslink.linking.replay.plan import index_passages, plan_case
from misslink.types import Case, Link, Passage, RetrievalMiss, RetrieverCall, Trace


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


def planned(case, seen, linked, k=3):
    return plan_case(case, seen, linked, k, index_passages([seen]))


def orders(made):
    return {one.name: [p.id for p in one.passages] for one in made.interventions}


NEEDS = Case(id="c", question="Q?", relevant={"g": 1, "h": 2})


class TestMissed:
    def test_missed_passages_go_first_and_last_by_grade_and_the_worst_drop_out(self):
        missed = (
            RetrievalMiss(passage_id="g", grade=1, text="Text of g."),
            RetrievalMiss(passage_id="h", grade=2, text="Text of h."),
        )
        made = planned(NEEDS, trace("a", "b", "c"), link("retrieval_miss", *missed))
        assert [p.id for p in made.unchanged.passages] == ["a", "b", "c"]
        assert orders(made) == {"first": ["h", "g", "a"], "last": ["a", "h", "g"]}
        assert [p.rank for p in made.interventions[0].passages] == [1, 2, 3]
        assert [p.score for p in made.interventions[1].passages] == [0.1, 0.2, 0.3]
        assert made.interventions[0].wanted == {"g", "h"}

    def test_last_is_the_last_place_that_reached_the_prompt(self):
        missed = RetrievalMiss(passage_id="g", text="Text of g.")
        seen = trace("a", "b", "c", "d", "e", prompted=("a", "b", "c"))
        made = planned(NEEDS, seen, link("retrieval_miss", missed))
        assert orders(made)["last"] == ["a", "b", "g", "c", "d"]
        unseen = planned(NEEDS, trace("a", "b", "c", "d"), link("retrieval_miss", missed), k=2)
        assert orders(unseen)["last"] == ["a", "g", "b", "c"]

    def test_a_passage_dropped_before_the_prompt_is_moved_and_not_doubled(self):
        missed = RetrievalMiss(passage_id="c", text="Text of c.")
        seen = trace("a", "b", "c", prompted=("a", "b"))
        made = planned(
            Case(id="c", question="Q?", relevant=["c"]), seen, link("retrieval_miss", missed)
        )
        assert orders(made) == {"first": ["c", "a", "b"], "last": ["a", "c", "b"]}

    def test_dropped_from_the_first_place_there_is_nothing_to_try(self):
        seen = trace("c", "a", prompted=("a",))
        made = planned(
            Case(id="c", question="Q?", relevant=["c"]), seen,
            link("retrieval_miss", RetrievalMiss(passage_id="c", text="Text of c.")),
        )  # fmt: skip
        assert made == "the app already had its passages in this order"

    def test_the_text_may_come_from_any_case_of_the_run(self):
        other = Trace(case_id="o", retrieved=(passage("g"),))
        missed = link("retrieval_miss", RetrievalMiss(passage_id="g"))
        made = plan_case(NEEDS, trace("a"), missed, 3, index_passages([other]))
        assert made.interventions[0].passages[0].text == "Text of g."

    def test_evidence_stands_for_a_passage_that_nobody_has(self):
        case = Case(id="c", question="Q?", evidence=["It opened in 1904."])
        missed = RetrievalMiss(passage_id="evidence-1", evidence="It opened in 1904.")
        made = planned(case, trace("a"), link("retrieval_miss", missed))
        (handed,) = made.interventions[0].passages
        assert (handed.id, handed.text) == ("evidence-1", "It opened in 1904.")

    def test_of_evidence_cut_in_two_both_halves_are_handed_over(self):
        first, second = (
            "The harbour of the town was opened",
            "to ships of all sizes in the year 1904.",
        )
        case = Case(id="c", question="Q?", evidence=[f"{first} {second}"])
        deeper = (passage("x", 8, text=first), passage("y", 9, text=second))
        seen = trace("a", "b", "c", deeper=deeper)
        missed = RetrievalMiss(passage_id="y", evidence=f"{first} {second}", text=second)
        made = planned(case, seen, link("retrieval_miss", missed))
        assert orders(made)["first"] == ["x", "y", "a"]

    def test_without_any_text_it_says_so(self):
        made = planned(NEEDS, trace("a"), link("retrieval_miss", RetrievalMiss(passage_id="g")))
        assert made == (
            "the missed passage 'g' has no text: it was never retrieved, and the gold set gives no "
            "evidence"
        )

    def test_those_with_a_text_are_injected_and_the_others_counted(self):
        missed = (
            RetrievalMiss(passage_id="g", text="Text of g."),
            RetrievalMiss(passage_id="h", grade=2),
        )
        made = planned(NEEDS, trace("a", "b"), link("retrieval_miss", *missed))
        assert orders(made)["first"] == ["g", "a"]
        assert made.note == "1 of 2 missed passages have no text and were not injected"

    def test_where_nothing_was_retrieved_the_missed_passage_is_all_there_is(self):
        made = planned(
            NEEDS, trace(), link("retrieval_miss", RetrievalMiss(passage_id="g", text="T"))
        )
        assert orders(made)["first"] == ["g"]


class TestIgnored:
    def test_the_gold_goes_first_and_then_stands_alone(self):
        made = planned(NEEDS, trace("a", "g", "b"), link("ignored_context"))
        assert orders(made) == {"first": ["g", "a", "b"], "alone": ["g"]}

    def test_gold_that_is_first_already_is_tried_alone(self):
        made = planned(NEEDS, trace("g", "a"), link("ignored_context"))
        assert orders(made) == {"alone": ["g"]}

    def test_gold_that_is_alone_already_leaves_nothing_to_try(self):
        made = planned(NEEDS, trace("g"), link("ignored_context"))
        assert made == "the app already had its passages in this order"

    def test_gold_that_did_not_reach_the_prompt_is_not_the_ignored_one(self):
        seen = trace("a", "h", "g", prompted=("a", "g"))
        made = planned(NEEDS, seen, link("ignored_context"))
        assert orders(made)["alone"] == ["g"]


class TestDistracted:
    def test_the_noise_is_removed(self):
        made = planned(NEEDS, trace("a", "g", "b", "h"), link("distracted"))
        assert orders(made) == {"without_noise": ["g", "h"]}

    def test_where_all_is_noise_nothing_is_left(self):
        made = planned(NEEDS, trace("a"), link("distracted"))
        assert made == "without its irrelevant passages nothing is left to answer from"


class TestCannotBeReplayed:
    def test_what_was_retrieved_is_not_known(self):
        seen = trace(unmeasured="no retrieval was seen")
        assert planned(NEEDS, seen, link("retrieval_miss")) == (
            "what was retrieved is not known: no retrieval was seen"
        )

    def test_passages_without_a_text(self):
        seen = trace("g").model_copy(update={"retrieved": (passage("a", text=""),)})
        assert planned(NEEDS, seen, link("distracted")) == (
            "the retrieved passage 'a' has no text to hand out"
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
        return [[one.id for one in search.passages] for search in made.searches]

    def test_unchanged_each_finds_what_it_found(self):
        lost = RetrievalMiss(passage_id="g", text="Text of g.")
        made = planned(NEEDS, self.seen(), link("retrieval_miss", lost), k=4)
        assert self.lists(made.unchanged) == [["a", "b"], ["c", "a", "d"]]
        assert [(one.query, one.name) for one in made.unchanged.searches] == [
            ("one", "R"),
            ("two", "R"),
        ]
        second = made.unchanged.searches[1].passages
        assert [one.rank for one in second] == [1, 2, 3]
        assert [one.score for one in second] == [0.2, 0.1, 0.4]

    def test_a_missed_passage_goes_into_the_first_search_or_into_the_last(self):
        lost = RetrievalMiss(passage_id="g", text="Text of g.")
        made = planned(NEEDS, self.seen(), link("retrieval_miss", lost), k=4)
        first, last = made.interventions
        assert self.lists(first) == [["g", "a", "b"], ["c", "a"]]
        assert self.lists(last) == [["a", "b"], ["c", "a", "g"]]

    def test_gold_is_moved_and_noise_removed_in_each(self):
        case = Case(id="c", question="Q?", relevant=["d", "b"])
        made = planned(case, self.seen(), link("ignored_context"), k=4)
        first, alone = made.interventions
        assert self.lists(first) == [["b", "d", "a"], ["c", "a"]]
        assert self.lists(alone) == [["b"], ["d"]]
        (without,) = planned(case, self.seen(), link("distracted"), k=4).interventions
        assert self.lists(without) == [["b"], ["d"]]

    def test_one_search_and_none_that_was_seen_are_handed_one_list(self):
        lost = RetrievalMiss(passage_id="g", text="Text of g.")
        for calls in ((), self.CALLS[:2]):
            seen = trace("a", "b", calls=calls)
            made = planned(NEEDS, seen, link("retrieval_miss", lost))
            assert not any(one.searches for one in (made.unchanged, *made.interventions))

"""Two real retrievers in one list, credited by what is clicked or used."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from scipy import stats

from misslink.errors import InputError
from misslink.live import Experiment, Interleaved, read_live
from misslink.live.interleaving import preferences, team_draft


class Fixed(BaseRetriever):
    """Always the same passages."""

    ids: list[str]

    def _get_relevant_documents(self, query, *, run_manager):
        return [Document(page_content=f"about {one}", id=one) for one in self.ids]


RANKINGS = st.lists(st.sampled_from("abcdefghij"), max_size=8)
FIRST, SECOND = Fixed(ids=["a", "b", "c"]), Fixed(ids=["c", "d", "a"])


def fails(_):
    raise ValueError("no index")


def config(unit="u", **others):
    return {"configurable": {"user_id": unit, **others}}


def ids(documents):
    return [document.id for document in documents]


@pytest.mark.slow
@pytest.mark.parametrize("decay", [1.0, 0.6], ids=["everywhere", "above all at the top"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("ab", "cdefg"),
        ("ab", "acdef"),
        ("ab", "bcdef"),
        ("a", "bacde"),
        ("a", "abcde"),
        ("abc", "cdeab"),
    ],
)
def test_random_clicks_favor_neither_the_shorter_nor_the_longer_list(first, second, decay):
    """Found: 2 passages against 5 won 57.5% of the queries with a preference."""
    chance = random.Random(7)
    wins = [0, 0]
    for _ in range(6000):
        drawn = team_draft(first, second, None, chance)
        clicked = [team for at, (_, team) in enumerate(drawn) if chance.random() < 0.4 * decay**at]
        credit = [clicked.count(team) for team in (0, 1)]
        if credit[0] != credit[1]:
            wins[int(credit[1] > credit[0])] += 1
    total = sum(wins)
    assert total == 0 or abs(wins[0] - total / 2) < 4 * (total / 4) ** 0.5
    teams = [team for _, team in drawn]
    assert teams.count(0) == teams.count(1), "whole rounds"
    assert len(drawn) == max(len(first), len(second))


def test_sync_and_async_draw_the_same_list_and_log_whose_each_passage_is(path):
    retriever = Interleaved(FIRST, SECOND, "drawn", k=3, log=path)
    found = retriever.invoke("q", config())
    again = asyncio.run(retriever.ainvoke("q", config()))
    assert ids(found) == ids(again)
    retriever.close()
    one, two = read_live(path).exposures
    assert list(one.retrieved) == ids(found)
    assert one.teams == two.teams
    assert abs(one.teams.count("A") - one.teams.count("B")) <= 1
    assert (one.mode, one.variant, one.served, one.outcome) == ("interleaved", None, None, "ok")
    assert {d.metadata["misslink_exposure"] for d in found} == {one.id}
    assert all("misslink_exposure" not in d.metadata for d in FIRST.invoke("q"))


def test_another_seed_unit_or_question_draws_anew():
    def drawn(seed, unit, question):
        retriever = Interleaved(FIRST, SECOND, "seeds", seed=seed)
        return tuple(ids(retriever.invoke(question, config(unit))))

    assert len({drawn(seed, "u", "q") for seed in range(20)}) > 1
    assert len({drawn(0, f"u{n}", "q") for n in range(20)}) > 1
    assert len({drawn(0, "u", f"q{n}") for n in range(20)}) > 1


def test_real_vector_stores_are_interleaved_in_a_chain(path):
    texts = [f"passage number {n}" for n in range(20)]
    stores = [
        InMemoryVectorStore.from_texts(texts, DeterministicFakeEmbedding(size=size))
        for size in (8, 16)
    ]
    retriever = Interleaved(*(store.as_retriever() for store in stores), "stores", log=path, k=4)
    app = RunnableLambda(str.strip) | retriever | RunnableLambda(ids)
    given = config(misslink_exposure="request-1")
    assert len(set(app.invoke(" anything ", given))) == 4
    retriever.close()
    (exposure,) = read_live(path).exposures
    assert exposure.id == "request-1"
    assert len(exposure.retrieved) == 4


def test_clicks_win_a_query_once_a_passage(path):
    one, other = Fixed(ids=["x1", "x2"]), Fixed(ids=["y1", "y2"])
    retriever = Interleaved(one, other, "clicks", k=4, log=path)
    for question, clicked in [
        ("one", ["x1", "x1", "x2"]),
        ("two", ["y1"]),
        ("three", ["x1", "y1"]),
        ("four", []),
        ("five", ["x1", "never shown"]),
    ]:
        found = retriever.invoke(question, config())
        for passage in clicked:
            retriever.clicked(found[0].metadata["misslink_exposure"], passage)
    retriever.close()
    outcomes = preferences(read_live(path))
    assert [one.winner for one in outcomes] == ["A", "B", None, None, "A"]
    assert [dict(one.credit) for one in outcomes] == [
        {"A": 2, "B": 0},
        {"A": 0, "B": 1},
        {"A": 1, "B": 1},
        {"A": 0, "B": 0},
        {"A": 1, "B": 0},
    ]


def test_use_is_credited_by_citation_else_by_prompt_else_as_the_user_says(path):
    one, other = Fixed(ids=["doc-1"]), Fixed(ids=["doc-2"])
    retriever = Interleaved(one, other, "uses", k=2, log=path)
    found = retriever.invoke("q", config())
    second = found[1].id
    assert retriever.used(found, "The list is shared [2].") == (second,)
    assert retriever.used(found, "The list is shared (doc-1).", prompted=["doc-2"]) == ("doc-1",)
    assert retriever.used(found, "It is so.", prompted=[second, "other"]) == (second,)
    assert retriever.used(found, "It is so.") == ()
    assert retriever.used(found, "x", by=lambda _, docs: [docs[0].id]) == (found[0].id,)
    assert retriever.used([], "x [1]") == ()
    retriever.close()
    assert [one.kind for one in read_live(path).feedback] == ["use"] * 4


@pytest.mark.parametrize(
    ("a", "b"), [(FIRST, RunnableLambda(fails)), (RunnableLambda(fails), FIRST)]
)
def test_where_one_retriever_fails_the_other_answers_and_nothing_is_compared(path, a, b):
    retriever = Interleaved(a, b, "failing", log=path)
    for found in (retriever.invoke("q", config()), asyncio.run(retriever.ainvoke("q", config()))):
        assert ids(found) == ["a", "b", "c"]
        retriever.clicked(found[0].metadata["misslink_exposure"], "a")
    retriever.close()
    live = read_live(path)
    assert {e.outcome for e in live.exposures} == {"fell_back"}
    assert {e.served for e in live.exposures} == {"A" if a is FIRST else "B"}
    assert preferences(live) == []


def test_a_second_retriever_that_hangs_is_left(path):
    let_go = threading.Event()
    hangs = RunnableLambda(lambda _: let_go.wait(30), afunc=lambda _: asyncio.Event().wait())
    retriever = Interleaved(FIRST, hangs, "hanging", log=path, timeout_s=0.01)
    assert ids(retriever.invoke("q", config())) == ["a", "b", "c"]
    assert ids(asyncio.run(retriever.ainvoke("q", config()))) == ["a", "b", "c"]
    let_go.set()
    retriever.close()
    assert [e.error for e in read_live(path).exposures] == ["B: TookTooLongError"] * 2


def test_where_both_fail_the_first_ones_error_is_raised(path):
    retriever = Interleaved(RunnableLambda(fails), RunnableLambda(lambda _: 1 / 0), "x", log=path)
    with pytest.raises(ValueError, match="no index"):
        retriever.invoke("q", config())
    with pytest.raises(ValueError, match="no index"):
        asyncio.run(retriever.ainvoke("q", config()))
    retriever.close()
    assert [e.outcome for e in read_live(path).exposures] == ["failed"] * 2


def test_the_excluded_and_testers_get_one_retriever_alone(path):
    experiment = Experiment("alone", {"old": 1, "new": 1}, excluded=lambda unit: unit == "staff")
    retriever = Interleaved(FIRST, SECOND, experiment, log=path)
    assert ids(retriever.invoke("q", config("staff"))) == ["a", "b", "c"]
    assert ids(retriever.invoke("q", config(misslink_variant="new"))) == ["c", "d", "a"]
    retriever.close()
    live = read_live(path)
    assert [(e.mode, e.served) for e in live.exposures] == [
        ("excluded", "old"),
        ("override", "new"),
    ]
    assert preferences(live) == []


def test_documents_of_any_shape_and_empty_lists_are_served(path):
    retriever = Interleaved(
        RunnableLambda(lambda _: ["plain text", {"id": "m", "text": "mapping"}]),
        RunnableLambda(lambda _: []),
        "shapes",
        log=path,
    )
    assert retriever.invoke("q") == ["plain text", {"id": "m", "text": "mapping"}]
    retriever.close()
    (exposure,) = read_live(path).exposures
    assert exposure.teams == (None, None)
    assert retriever.troubles == {}


def test_what_is_no_comparison_of_two_is_refused():
    with pytest.raises(InputError, match="two variants"):
        Interleaved(FIRST, SECOND, Experiment("x", {"A": 1, "B": 1, "C": 1}))
    with pytest.raises(InputError, match="k is 0"):
        Interleaved(FIRST, SECOND, k=0)


@given(RANKINGS, RANKINGS, st.integers(1, 12), st.integers())
def test_teams_are_equal_nothing_is_repeated_and_each_picks_its_best(first, second, k, seed):
    drawn = team_draft(first, second, k, random.Random(seed))
    ids = [one for one, _ in drawn]
    assert len(ids) == len(set(ids)) == min(k, len({*first, *second}))
    teams = [team for _, team in drawn]
    sizes = [teams.count(0), teams.count(1)]
    assert abs(sizes[0] - sizes[1]) <= 1
    before = set()
    for one, team in drawn:
        for ranking in [(first, second)[team]] if team is not None else [[*first, *second]]:
            assert one == next(x for x in ranking if x not in before)
        before.add(one)
    # Nobody's are only the last, when one ranking has nothing left.
    assert None not in teams[: teams.index(None)] if None in teams else True
    for start in range(0, len(teams) - 1, 2):  # in each round both pick
        assert None in teams[start : start + 2] or set(teams[start : start + 2]) == {0, 1}


def test_each_retriever_picks_first_half_the_time():
    firsts = sum(team_draft("ab", "cd", 2, random.Random(n))[0][1] for n in range(4000))
    assert stats.binomtest(firsts, 4000).pvalue > 0.001


def test_between_equal_rankings_clicks_of_any_kind_prefer_neither():
    chance = random.Random(8)
    ranking = "abcdef"
    won = [0, 0]
    for seed in range(4000):
        drawn = team_draft(ranking, ranking, None, random.Random(seed))
        clicked = [one for place, one in enumerate(ranking) if chance.random() < 0.6**place]
        credit = [sum(team == side and one in clicked for one, team in drawn) for side in (0, 1)]
        if credit[0] != credit[1]:
            won[credit[1] > credit[0]] += 1
    assert stats.binomtest(won[0], sum(won)).pvalue > 0.001


def test_the_better_ranking_wins():
    won = [0, 0]
    for seed in range(300):
        drawn = team_draft(["good", "x", "y"], ["p", "q", "good"], 2, random.Random(seed))
        for one, team in drawn:
            if one == "good":
                won[team] += 1
    assert won == [300, 0]

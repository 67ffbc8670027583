"""Team drafting is fair: equal teams, a random first pick, and no favour between equals."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from misslink.live.interleaving import team_draft

RANKINGS = st.lists(st.sampled_from("abcdefghij"), max_size=8)


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

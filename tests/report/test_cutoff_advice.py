"""The recall curve says which cutoff to take, or that the data do not tell."""

from misslink.report.cutoff_advice import advise_cutoff


def _advice(*ranks, k, depth=20):
    """The advice over cases that each need one passage, at this rank; 0: not found."""
    cutoffs = [*range(1, 11), 15, depth]
    recall = {j: [float(0 < rank <= j) for rank in ranks] for j in cutoffs}
    precision = {j: sum(recall[j]) / len(ranks) / j for j in cutoffs}
    return advise_cutoff(recall, precision, k, 400)


def test_a_larger_cutoff_that_finds_far_more_is_taken_and_its_price_said():
    advice = _advice(*[1] * 60, *[8] * 60, k=3)
    assert advice.startswith("Take k = 8: recall changes by +50 points ")
    assert "precision goes from 17 to 12%" in advice
    assert "from about 1,200 to 3,200 characters" in advice


def test_a_smaller_cutoff_that_finds_as_much_is_taken():
    assert _advice(*[1] * 400, k=10).startswith("Take k = 1: recall changes by 0 points ")


def test_few_cases_do_not_tell():
    advice = _advice(*[1] * 11, 5, k=3)
    assert advice.startswith("The data do not tell which cutoff is best: k = 5 changes recall by")
    assert "2 passages more, over 12 cases" in advice


def test_the_best_cutoff_stays():
    assert _advice(*[1] * 30, *[3] * 30, k=3).startswith("The data speak for no other cutoff")


def test_a_deep_rank_is_not_worth_a_long_context():
    assert _advice(*[1] * 99, 20, k=1, depth=20).startswith("The data speak for no other cutoff")

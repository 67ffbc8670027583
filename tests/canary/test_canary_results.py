"""The figures of a run, which canaries have degraded, and what changed in the corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from canary_runs import hung, result
from misslink.canary.results import (
    Fingerprint,
    compare_fingerprints,
    find_degraded,
    fingerprint_corpus,
    run_figures,
)
from misslink.types import Passage


def test_health_is_a_share_of_what_was_measured_with_its_interval():
    found = run_figures([result("a"), result("b", healthy=False), hung("c"), hung("d")])
    assert (found.health.value, found.health.n, found.health.method) == (0.5, 2, "wilson")
    assert (found.answered.value, found.answered.n) == (0.5, 4)
    assert found.values["errors"] == 0.5


def test_a_failed_check_tells_more_often_than_an_unmeasured_one_so_many_of_these_leave_it_open():
    known = [result(str(n), healthy=n > 0) for n in range(9)]
    assert run_figures([*known, result("c", None)]).health.n == 9
    health = run_figures([*known, result("c", None), result("d", None)]).health
    assert (health.value, health.reason.split(";")[0]) == (
        None, "the health of 2 of 11 canaries was not measured",
    )  # fmt: skip


def test_latency_has_linear_quantiles():
    latency = run_figures([result(str(s), latency_s=s) for s in (0.3, 1.7, 0.2, 9.0)]).latency
    expected = {"median": 1.0, "p95": 1.7 + 0.85 * 7.3, "n": 4}
    assert latency == pytest.approx(expected)


def test_without_results_everything_is_missing_with_a_reason():
    found = run_figures([])
    assert found.health.reason == "there is no canary"
    assert all(value is None for value in found.values.values())


@pytest.mark.parametrize(
    ("before", "is_degraded"),
    [
        ([True], True),
        ([False], False),
        ([], False),
        ([False, True, True], True),  # usually healthy
        ([False, True, False], False),
        ([None, True], True),  # not measured last time, healthy before
        ([None], False),
        ([False] * 6 + [True] * 20, False),  # what was long ago is not usual any more
    ],
)
def test_degraded_is_what_was_healthy_or_usually_is(before, is_degraded):
    history = {"a": [result("a", healthy) for healthy in before]}
    lost = find_degraded([result("a", healthy=False, owner="ops")], history)
    assert [one["id"] for one in lost] == ["a"] * is_degraded
    assert all(one["owner"] == "ops" for one in lost)


@pytest.mark.parametrize("healthy", [True, None])
def test_what_is_healthy_or_was_not_measured_has_not_degraded(healthy):
    assert find_degraded([result("a", healthy)], {"a": [result("a")]}) == []


def passages(**texts):
    return [Passage(id=k, text=v, rank=i) for i, (k, v) in enumerate(texts.items(), 1)]


def test_what_was_added_removed_and_edited_is_named():
    before = fingerprint_corpus(passages(a="one", b="two", c="three"), "minilm")
    after = fingerprint_corpus(passages(b="two", c="THREE", d="four"), "minilm")
    found = compare_fingerprints(before, after)
    assert (found["added"], found["removed"], found["edited"]) == (["d"], ["a"], ["c"])
    assert found["sentence"] == (
        "1 document added (d); 1 document removed (a); 1 document edited (c)"
    )


def test_the_order_of_the_documents_is_no_change():
    one = fingerprint_corpus(passages(a="one", b="two"))
    other = fingerprint_corpus(reversed(passages(a="one", b="two")))
    assert one.digest == other.digest
    assert compare_fingerprints(one, other)["sentence"] == ""


def test_another_embedding_is_a_change_and_one_that_is_not_known_is_none():
    corpus = passages(a="one")
    small, large = fingerprint_corpus(corpus, "small"), fingerprint_corpus(corpus, "large")
    assert (
        compare_fingerprints(small, large)["sentence"]
        == "the embedding model changed from small to large"
    )
    assert small.digest != large.digest
    unknown = fingerprint_corpus(corpus)
    assert compare_fingerprints(small, unknown)["sentence"] == ""
    assert compare_fingerprints(unknown, small)["sentence"] == ""


def test_documents_of_one_id_count_as_one_whatever_their_order():
    twice = [Passage(id="a", text="x", rank=1), Passage(id="a", text="y", rank=2)]
    assert fingerprint_corpus(twice) == fingerprint_corpus(twice[::-1])
    found = compare_fingerprints(fingerprint_corpus(twice), fingerprint_corpus(twice[:1]))
    assert found["edited"] == ["a"]


def test_hostile_ids_stay_on_one_short_line():
    names = ("a\nALARM\x1b[31m " + "x" * 500, "b", "c", "d", "e")
    found = compare_fingerprints(Fingerprint({}), Fingerprint(dict.fromkeys(names, "")))
    assert "\n" not in found["sentence"]
    assert "\x1b" not in found["sentence"]
    assert len(found["sentence"]) < 150
    assert found["sentence"].endswith(" and 2 more)")


def test_half_a_surrogate_pair_is_a_text_like_any_other():
    broken = type("Broken", (), {"id": "a", "text": "\ud83d"})()
    assert fingerprint_corpus([broken]) != fingerprint_corpus(passages(a="?"))


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), st.data())
def test_every_document_is_in_exactly_one_list(before, data):
    after = data.draw(
        st.dictionaries(st.sampled_from([*before, "new", "newer"]), st.text(max_size=2))
    )
    found = compare_fingerprints(Fingerprint(before), Fingerprint(after))
    moved = found["added"] + found["removed"] + found["edited"]
    assert len(set(moved)) == len(moved)
    assert set(moved) == {k for k in before | after if before.get(k) != after.get(k)}
    assert (found["sentence"] == "") == (before == after)


@pytest.mark.parametrize("empty", [(), []])
def test_an_empty_corpus_has_a_fingerprint(empty):
    assert len(fingerprint_corpus(empty).digest) == 64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.canary.fingerprint import (
    Fingerprint,
    FingerprintDiff,
    compare_fingerprints,
    fingerprint_corpus,
)
from misslink.types import Passage


def passages(**texts):
    return [Passage(id=k, text=v, rank=i) for i, (k, v) in enumerate(texts.items(), 1)]


def test_what_was_added_removed_and_edited_is_named():
    before = fingerprint_corpus(passages(a="one", b="two", c="three"), "minilm")
    after = fingerprint_corpus(passages(b="two", c="THREE", d="four"), "minilm")
    found = compare_fingerprints(before, after)
    assert (found.added, found.removed, found.edited) == (("d",), ("a",), ("c",))
    assert not found.is_empty
    assert found.sentence == ("1 document added (d); 1 document removed (a); 1 document edited (c)")


def test_the_order_of_the_documents_is_no_change():
    one = fingerprint_corpus(passages(a="one", b="two"))
    other = fingerprint_corpus(reversed(passages(a="one", b="two")))
    assert one.digest == other.digest
    assert compare_fingerprints(one, other).is_empty
    assert compare_fingerprints(one, other).sentence == ""


def test_another_embedding_is_a_change_and_one_that_is_not_known_is_none():
    corpus = passages(a="one")
    small, large = fingerprint_corpus(corpus, "small"), fingerprint_corpus(corpus, "large")
    assert (
        compare_fingerprints(small, large).sentence
        == "the embedding model changed from small to large"
    )
    assert small.digest != large.digest
    unknown = fingerprint_corpus(corpus)
    assert compare_fingerprints(small, unknown).is_empty
    assert compare_fingerprints(unknown, small).is_empty


def test_documents_of_one_id_count_as_one_whatever_their_order():
    twice = [Passage(id="a", text="x", rank=1), Passage(id="a", text="y", rank=2)]
    assert fingerprint_corpus(twice) == fingerprint_corpus(twice[::-1])
    assert compare_fingerprints(
        fingerprint_corpus(twice), fingerprint_corpus(twice[:1])
    ).edited == ("a",)


def test_hostile_ids_stay_on_one_short_line():
    found = FingerprintDiff(added=("a\nALARM\x1b[31m " + "x" * 500, "b", "c", "d", "e"))
    assert "\n" not in found.sentence
    assert "\x1b" not in found.sentence
    assert len(found.sentence) < 150
    assert found.sentence.endswith(" and 2 more)")


def test_half_a_surrogate_pair_is_a_text_like_any_other():
    broken = type("Broken", (), {"id": "a", "text": "\ud83d"})()
    assert fingerprint_corpus([broken]) != fingerprint_corpus(passages(a="?"))


@given(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), st.data())
def test_every_document_is_in_exactly_one_list(before, data):
    after = data.draw(
        st.dictionaries(st.sampled_from([*before, "new", "newer"]), st.text(max_size=2))
    )
    found = compare_fingerprints(Fingerprint(before), Fingerprint(after))
    moved = {*found.added, *found.removed, *found.edited}
    assert len(moved) == len(found.added) + len(found.removed) + len(found.edited)
    assert moved == {k for k in before | after if before.get(k) != after.get(k)}
    assert found.is_empty == (before == after)


@pytest.mark.parametrize("empty", [(), []])
def test_an_empty_corpus_has_a_fingerprint(empty):
    assert len(fingerprint_corpus(empty).digest) == 64

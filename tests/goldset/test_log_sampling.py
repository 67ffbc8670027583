"""Which questions of a log are picked: frequent, failing, one of each kind; nothing personal."""

import asyncio
import datetime as dt
import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.errors import InputError
from misslink.goldset.log_sampling import (
    SampleShares,
    failure_signals,
    group_questions,
    representatives,
    sample_log,
    tf_idf_vectors,
)
from misslink.goldset.masking import Masker
from misslink.goldset.versions import apportion
from misslink.io.trace_formats import LogRequest, RequestLog
from misslink.types import Passage

DAY = dt.datetime(2026, 5, 1, 8, tzinfo=dt.UTC)
TOPICS = {
    "parcel": ["parcel", "delivery", "courier", "tracking", "shipped", "address"],
    "opening": ["museum", "opening", "sunday", "evening", "closed", "holiday"],
    "refund": ["refund", "invoice", "payment", "charged", "money", "receipt"],
    "animals": ["dog", "cat", "leash", "animal", "puppy", "kennel"],
}


def picked(log, n=10, **options):
    return asyncio.run(sample_log(log, n, **options))


def shop(seed=0, rare=40):
    """A log: two frequent questions, and rare ones of four topics."""
    rng = random.Random(seed)
    asked = ["How do I reset my password?"] * 30 + ["how can I reset the pasword"] * 5
    asked += ["Where is my parcel?"] * 20
    for number in range(rare):
        words = rng.sample(list(TOPICS.values())[number % len(TOPICS)], 4)
        asked.append(f"{' '.join(words)} number {number}?")
    rng.shuffle(asked)
    return RequestLog(
        tuple(LogRequest(question, f"log, line {at}") for at, question in enumerate(asked))
    )


def test_wordings_of_one_question_are_one_group():
    groups = group_questions(
        [
            "How do I reset my password?",
            "Can dogs travel?",
            "how can I reset the pasword",
            "How do I reset my password?",
        ]
    )
    assert [(group.wording, group.members) for group in groups] == [
        ("How do I reset my password?", (0, 2, 3)), ("Can dogs travel?", (1,)),
    ]  # fmt: skip


def test_two_slips_do_not_part_a_question_however_many_share_its_other_words():
    crowd = [f"how long does delivery {number} of furniture take" for number in range(500)]
    asked = ["which documents must travellers without a visa carry aboard ferries"] * 2
    asked += ["which documnts must travellers without a visa cary aboard ferries"]
    groups = group_questions([*crowd, *asked])
    assert len(groups[0].members) == 3


def test_a_tail_that_is_drawn_says_so(monkeypatch):
    assert not any("drawn from" in note for note in picked(shop()).document["notes"])
    monkeypatch.setattr("misslink.goldset.log_sampling.MAX_CLUSTERED", 30)
    found = picked(shop())
    others = found.document["different"] - found.document["chosen"]["head"]
    told = f"The tail clusters 30 questions, drawn from {others}."
    assert told in found.document["notes"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Can I return it after 14 days?", "Can I return it after 30 days?"),
        ("Why is my parcel there?", "Why is my parcel not there?"),
        ("Do dogs travel free?", "Do hogs pay?"),
        (
            "\u72ac\u306f\u7121\u6599\u3067\u3059\u304b",
            "\u732b\u306f\u7121\u6599\u3067\u3057\u305f\u304b",
        ),
    ],
)
def test_numbers_negations_and_other_words_make_another_question(one, other):
    assert len(group_questions([one, other])) == 2


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=12))
def test_every_question_is_in_exactly_one_group(questions):
    members = [number for group in group_questions(questions) for number in group.members]
    assert sorted(members) == list(range(len(questions)))


def requests(*fields):
    return [LogRequest(**{"question": f"question {at}?", **one}) for at, one in enumerate(fields)]


@pytest.mark.parametrize(
    ("feedback", "bad"),
    [
        (["up", "thumbs-down", "Thumbs Down", "\U0001f44e", None], [0, 1, 1, 1, 0]),
        ([0, 1, "0", "1"], [1, 0, 1, 0]),
        ([-1, 0, 1], [1, 0, 0]),
        ([1, 2, 3, 4, 5], [1, 1, 0, 0, 0]),
        ([0.2, 0.9], [1, 0]),
        ([87, 12], [0, 0]),
        (["quite nice"], [0]),
    ],
)
def test_feedback_is_read_by_its_scale(feedback, bad):
    found = failure_signals(requests(*({"feedback": one} for one in feedback)))
    assert ["thumbs_down" in signals for signals in found] == [bool(one) for one in bad]


def test_errors_and_refusals_are_failures():
    found = failure_signals(
        requests({"error": "timeout"}, {"answer": "I don't know."}, {"answer": "At nine."})
    )
    assert found == [("error",), ("abstained",), ()]


def test_asking_again_within_a_session_is_a_failure_of_the_first():
    def at(minute, session, question):
        return LogRequest(question, session=session, at=DAY + dt.timedelta(minutes=minute))

    found = failure_signals(
        [
            at(3, "a", "When is the museum open on Sunday?"),
            at(0, "a", "museum open when"),  # before the one above, by its time
            at(0, "b", "museum open when"),
            at(40, "b", "When is the museum open?"),  # too late
            at(0, "c", "May dogs travel?"),
            at(1, "c", "Where is my parcel?"),  # another matter
        ]
    )
    assert [bool(signals) for signals in found] == [False, True, False, False, False, False]


@given(st.integers(1, 30), st.integers(1, 40), st.integers(0, 5), st.booleans())
def test_representatives_are_as_many_as_wanted_and_a_seed_repeats_them(k, n, seed, same):
    k = min(k, n)
    rows = np.ones((n, 2)) if same else np.random.default_rng(seed).normal(size=(n, 2))
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    chosen = representatives(rows, k, seed)
    assert len(set(chosen)) == k
    assert set(chosen) <= set(range(n))
    assert chosen == representatives(rows, k, seed)


def test_representatives_are_of_all_planted_clusters_the_largest_first():
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(6), [60, 55, 50, 45, 40, 35])
    rows = np.eye(12)[truth] + rng.normal(0, 0.15, (len(truth), 12))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert truth[representatives(rows, 6, seed=0)].tolist() == [0, 1, 2, 3, 4, 5]


def test_questions_without_words_have_no_vectors():
    assert tf_idf_vectors([(), ()]) is None
    assert representatives(None, 2, seed=0) == [0, 1]


def test_head_is_what_is_asked_most_and_the_tail_holds_every_topic():
    found = picked(shop(), 10, shares=SampleShares(0.2, 0.8, 0.0))
    assert found.document["chosen"] == {"head": 2, "failure": 0, "tail": 8}
    assert [case.question for case in found.cases[:2]] == [
        "How do I reset my password?", "Where is my parcel?",
    ]  # fmt: skip
    assert found.cases[0].tags["asked"] == "35"
    tail = " ".join(case.question for case in found.cases[2:])
    assert all(any(word in tail for word in words) for words in TOPICS.values())


def test_it_is_the_same_every_time_and_another_by_another_seed():
    one, same = picked(shop(), 12, seed=3), picked(shop(), 12, seed=3)
    assert one.cases == same.cases
    tails = {
        tuple(case.question for case in picked(shop(rare=200), 12, seed=seed).cases)
        for seed in range(4)
    }
    assert len(tails) > 1


def test_failures_take_turns_by_their_signal_and_bring_the_trace_that_failed():
    log = RequestLog(
        tuple(
            requests(
                *({"question": f"broken thing {at}?", "error": "boom"} for at in "abcdef"),
                {"question": "When does it open?", "answer": "At nine.", "feedback": "up"},
                {"question": "when does it open", "answer": "Never.", "feedback": "down"},
                {"question": "Any dogs?", "answer": "I don't know."},
            )
        )
    )
    found = picked(log, 3, shares=SampleShares(0, 0, 1))
    assert [case.tags["failure"] for case in found.cases] == ["thumbs_down", "error", "abstained"]
    assert found.cases[0].question == "when does it open"
    assert {trace.answer for trace in found.traces} == {"Never.", "I don't know."}


def test_what_one_share_lacks_another_gets():
    log = RequestLog(
        tuple(requests(*({"question": f"{word} matter?"} for word in TOPICS["parcel"])))
    )
    found = picked(log, 6)
    assert found.document["chosen"] == {"head": 0, "failure": 0, "tail": 6}
    assert any("occurs twice" in note for note in found.document["notes"])
    fewer = picked(log, 100)
    assert (len(fewer.cases), fewer.document["written"]) == (6, 6)
    assert any("fewer than 100" in note for note in fewer.document["notes"])


def test_shares_that_do_not_add_up_are_refused():
    with pytest.raises(InputError, match=r"add up to 0\.9"):
        SampleShares(0.4, 0.4, 0.1)
    with pytest.raises(InputError):
        SampleShares(1.5, -0.5, 0)


@given(st.integers(1, 500), st.integers(0, 10), st.integers(0, 10))
def test_counts_add_up(n, head, tail):
    total = max(10, head + tail)
    shares = SampleShares(
        head / total, tail / total, 1 - head / total - tail / total if head + tail < total else 0.0
    )
    counts = apportion(n, vars(shares)).values()
    assert sum(counts) == n
    for count, share in zip(counts, (shares.head, shares.tail, shares.failures), strict=True):
        assert abs(count - share * n) < 1 + 1e-6


class Listening:
    """An embedding model that keeps what it was given."""

    def __init__(self):
        self.heard = []

    def embed_documents(self, texts):
        self.heard += texts
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


def test_nothing_personal_leaves_by_any_way():
    """Neither the embedder, nor a case, a trace or the printed document sees it."""
    from misslink.embedding import Embedder

    secret = "ann.lee@example.org"
    passage = Passage(id=f"mails/{secret}", text=f"From {secret}: hello", rank=1)
    log = RequestLog(
        tuple(
            LogRequest(
                f"matter {number} of {secret}, call 0170 1234567",
                session="s", answer=f"ask {secret}", error=f"no {secret}", category=f"for {secret}",
                feedback=f"{secret} is bad", passages=(passage, passage),
            )
            for number in range(12)
        )
    )  # fmt: skip
    model = Listening()
    found = picked(log, 6, masker=Masker(), embedder=Embedder(model))
    written = "".join(item.model_dump_json() for item in (*found.cases, *found.traces))
    everything = written + json.dumps(found.document) + "".join(model.heard)
    assert model.heard
    assert secret not in everything
    assert "1234567" not in everything
    assert len(found.traces[0].retrieved) == 1
    assert found.document["masked"]["EMAIL"] > 12


def test_the_hour_is_not_kept():
    found = picked(RequestLog((LogRequest("Why?", at=DAY),)), 1)
    assert found.cases[0].asked_at == DAY.date()


def test_a_log_of_nothing_but_personal_data_is_told():
    with pytest.raises(InputError, match="No question is left"):
        picked(RequestLog((LogRequest("a@b.org"), LogRequest("???"))))

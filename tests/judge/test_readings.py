"""Readings of replies: kept under the rules' version, and never other than what is read anew."""

import sqlite3

import pytest

from misslink import evaluate
from misslink.errors import InputError
from misslink.judge import readings
from misslink.judge.middleware.cache_admin import CacheSelection, prune_replies
from misslink.judge.middleware.sqlite_store import CacheStore
from misslink.judge.protocol import Reply
from misslink.judge.readings import Readings
from misslink.types import Case, Passage, Trace
from scripted_judge import ScriptedJudge, plain

PASSAGES = tuple(
    Passage(id=f"p{n}", text=text, rank=n)
    for n, text in enumerate(
        (
            "The harbour opened in 1904.",
            "Ships pay a toll of 3\u00a0\u20ac.",
            "Die F\u00e4hre ruht.",
        ),
        1,
    )
)
ANSWERS = {
    "verbatim": "The harbour opened in 1904. Ships pay a toll.",
    "repeated": "The harbour opened in 1904. The harbour opened in 1904. It has a casino.",
    "German": "Die F\u00e4hre ruht. Der Hafen wurde 1904 er\u00f6ffnet.",
    "declines": "I do not know.",
}
HISTORY = (
    {"role": "user", "content": "What is the toll?"},
    {"role": "assistant", "content": "The toll is 3 euros."},
)
CASES = [
    Case(
        id=name,
        question="When did the harbour open?",
        references=("In 1904.",) if name != "German" else (),
        history=HISTORY if name == "verbatim" else (),
    )
    for name in ANSWERS
]
TRACES = [
    Trace(case_id=name, retrieved=PASSAGES, prompted=("p1", "p2", "p3"), answer=answer)
    for name, answer in ANSWERS.items()
]
CLAIMS = (
    ("The harbour opened in 1904.", "supported", "harbour opened in 1904"),
    ("It has a casino.", "supported", "it has a casino"),
)


@pytest.fixture
def judged(tmp_path):
    """Judges with one cache; what is written of the verdicts."""

    def judge(spec="heuristic"):
        evaluate(
            goldset=CASES,
            traces=TRACES,
            judge=spec,
            cache=tmp_path / "cache.sqlite",
            out=tmp_path / "run",
            overwrite=True,
            embedding="none",
        )
        return (tmp_path / "run" / "verdicts.jsonl").read_bytes()

    judge.file = tmp_path / "cache.sqlite"
    return judge


@pytest.fixture
def read(monkeypatch):
    """How often claims and coverages are read in full."""
    calls = []

    def counted(name):
        original = getattr(readings, name)
        monkeypatch.setattr(readings, name, lambda *a, **k: calls.append(name) or original(*a, **k))

    counted("read_claims")
    counted("examined_coverage")
    return calls


def said(ask):
    """Two claims, one of them with a quote that is in no passage."""
    more = {"reference": "silent"} if ask.inputs["references"] else {}
    claims = [{"claim": c, "support": s, "quote": q, **more} for c, s, q in CLAIMS]
    told = {"claims": claims, "passages": [], "response": "answers", "reference_claims": []}
    return Reply(ask.schema.model_validate(told), "{}")


def rows(file):
    with sqlite3.connect(file) as database:
        return dict(database.execute("SELECT key, rules FROM readings").fetchall())


def change(file, sql):
    with sqlite3.connect(file) as database:
        database.execute(sql)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["heuristic", "scripted"])
def test_the_verdicts_are_the_same_bytes_with_and_without_stored_readings(judged, read, spec):
    spec = spec if spec == "heuristic" else ScriptedJudge(said)
    first = judged(spec)
    assert read
    assert rows(judged.file)
    read.clear()
    assert judged(spec) == first
    assert read == []
    change(judged.file, "DELETE FROM readings")
    assert judged(spec) == first
    assert read


def test_under_other_rules_replies_are_read_again_and_only_those_readings_stay(
    judged, read, monkeypatch
):
    first = judged()
    assert set(rows(judged.file).values()) == {readings.reading_rules()}
    whole = len(read)
    read.clear()
    monkeypatch.setattr(readings, "reading_rules", lambda: "other rules")
    assert judged() == first
    assert len(read) == whole
    assert set(rows(judged.file).values()) == {"other rules"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "content = replace(content, '[', '[[')",
        "content = substr(content, 2)",
        "checksum = ''",
        "key = 'x' || key",
    ],
)
def test_a_damaged_reading_counts_as_absent(judged, read, damage):
    first = judged()
    whole = len(read)
    read.clear()
    change(judged.file, f"UPDATE readings SET {damage}")  # noqa: S608
    assert judged() == first
    assert len(read) == whole
    read.clear()
    assert judged() == first
    assert read == []


def test_every_input_of_a_reading_is_part_of_its_key(tmp_path):
    store = CacheStore(tmp_path / "cache.sqlite")
    kept = Readings(store)
    parsed = plain(*CLAIMS)
    reply = Reply(parsed, "")
    answer = "The harbour opened in 1904. It has a casino."
    (one, two, three) = PASSAGES
    variants = [
        (reply, answer, (one, two), "When?", ()),
        (Reply(plain(CLAIMS[0]), ""), answer, (one, two), "When?", ()),
        (
            Reply(parsed, "", probabilities={"claims.0.support": {"supported": 0.7}}),
            answer,
            (one, two),
            "When?",
            (),
        ),
        (reply, answer + " So.", (one, two), "When?", ()),
        (reply, answer, (one, three), "When?", ()),
        (reply, answer, (one.model_copy(update={"id": "other"}), two), "When?", ()),
        (reply, answer, (one, two), "Who?", ()),
        (reply, answer, (one, two), "When?", ("It has a casino.",)),
    ]
    for variant in variants:
        kept.claims(*variant)
    kept.flush()
    assert len(rows(tmp_path / "cache.sqlite")) == len(variants)
    store.close()


def test_half_a_character_is_read_each_time(tmp_path, read):
    store = CacheStore(tmp_path / "cache.sqlite")
    kept = Readings(store)
    reply = Reply(plain(("The harbour \ud83d opened in 1904.", *CLAIMS[0][1:])), "")
    for _ in range(2):
        (claim,) = kept.claims(reply, "The harbour \ud83d opened in 1904.", PASSAGES, "When?", ())
        assert claim.support == "supported"
    assert read.count("read_claims") == 2
    store.close()


def test_two_processes_store_readings_in_one_file(tmp_path):
    stores = [CacheStore(tmp_path / "cache.sqlite") for _ in range(2)]
    for store in stores:
        store.store_readings({"shared": "[1]", f"own {id(store)}": "[2]"}, "rules")
    assert [store.reading("shared") for store in stores] == ["[1]", "[1]"]
    assert len(rows(tmp_path / "cache.sqlite")) == 3
    for store in stores:
        store.close()


def test_a_store_that_cannot_be_written_loses_no_verdict():
    class FullStore:
        def reading(self, key):
            return None

        def store_readings(self, kept, rules):
            raise InputError("the disk is full")

    kept = Readings(FullStore())
    examination = plain(CLAIMS[0])
    coverage = kept.coverage(examination, "The harbour opened in 1904.", "When?")
    kept.flush()
    assert coverage == Readings().coverage(examination, "The harbour opened in 1904.", "When?")


def test_readings_go_with_the_replies_that_are_removed(judged):
    judged()
    prune_replies(judged.file, CacheSelection(prompt="examination"), dry_run=False)
    assert rows(judged.file) == {}

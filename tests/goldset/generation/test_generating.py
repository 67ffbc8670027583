import asyncio
import json

import pytest

from misslink.errors import InputError, JudgeUnreachableError
from misslink.goldset import generate
from misslink.goldset.generation.candidates import REJECT_REASONS
from misslink.goldset.generation.pipeline import generate_async, preview_async
from misslink.goldset.generation.settings import GenerationSettings
from misslink.io import read_goldset
from misslink.judge.config import JudgeConfig
from misslink.types import Passage
from question_writer import ORDER, TOWNS, Writer, islands

SIMPLE = ("simple_factual",)
TOWN = TOWNS[4]


def passages(rows):
    return [Passage(id=row["id"], text=row["text"], rank=n) for n, row in enumerate(rows, 1)]


@pytest.fixture
def make(judge_server, tmp_path):
    """Generate from the islands; returns what came of it and keeps the writer at `make.writer`."""

    def run(n=6, *, rows=None, only=SIMPLE, lies=None, settings=None, terms=None, **options):
        run.writer = judge_server.script = Writer(**(lies or {}))
        settings = (settings or GenerationSettings()).only(only) if only else settings
        options.setdefault("cache", tmp_path / "cache.sqlite")
        return generate(
            passages(rows or islands()),
            "openai:test-judge",
            n,
            settings=settings,
            embedding="none",
            terms=JudgeConfig(base_url=judge_server.url, **(terms or {})),
            **options,
        )

    return run


def rejected(made):
    return {one["reason"] for one in made.rejected}


def questions(made):
    return [case.question for case in made.cases]


@pytest.mark.slow
def test_an_honest_writer_gets_every_category_verified_and_none_dropped(make, tmp_path):
    out = tmp_path / "gold.jsonl"
    made = make(20, rows=islands(20), only=None, out=out)
    texts = {row["id"]: row["text"] for row in islands(20)}
    assert made.document["written"] == made.document["wanted"] == 20
    assert sum(made.document["by_category"].values()) == 20
    assert min(made.document["by_category"].values()) > 0
    assert read_goldset(out).cases == made.cases  # nothing is lost in the file
    for case in made.cases:
        assert case.answerable is (case.category != "negative")
        assert bool(case.relevant) is bool(case.evidence) is case.answerable
        for quote in case.evidence:
            assert any(quote in texts[name] for name in case.relevant)
        assert {"persona", "length", "source", "seed"} <= set(case.tags)
    comparative = [case for case in made.cases if case.category == "comparative"]
    assert all(len(case.relevant) == 2 for case in comparative)


LIES = {
    "quote": "quote_not_verbatim",
    "unanswerable": "unanswerable",
    "reference": "reference_differs",
    "by_heart": "known_by_heart",
    "copies": "copies_passage",
    "refers": "refers_to_passage",
    "none": "no_question",
    "empty": "malformed",
}


@pytest.mark.slow
def test_a_lie_is_rejected_with_its_reason_and_nothing_of_it_is_written(make):
    liars = dict(zip(TOWNS[2::2], LIES, strict=False))
    made = make(20, rows=islands(20), lies=liars)
    for town, lie in liars.items():
        found = [one for one in made.rejected if one["passages"] == [town.lower()]]
        assert {one["reason"] for one in found} == {LIES[lie]}, lie
        assert all(one["sentence"] for one in found)
        assert not any(town in question for question in questions(made))
        assert made.document["rejected"][LIES[lie]] == len(found)
    assert rejected(made) <= {*LIES.values(), "near_duplicate"}
    meanings = {row["reason"]: row["meaning"] for row in made.document["reject_table"]}
    assert {reason: meanings[reason] for reason in LIES.values()} == {
        reason: REJECT_REASONS[reason] for reason in LIES.values()
    }


def test_every_reason_is_among_those_that_are_tested_here():
    elsewhere = {
        "no_reply", "no_neighbours", "near_duplicate", "obeys_passage", "answered_elsewhere",
        "answerable_after_all", "too_few_passages",
    }  # fmt: skip
    assert set(REJECT_REASONS) == {*LIES.values(), *elsewhere}


def test_a_question_that_copies_is_written_once_more_and_may_then_stand(make):
    made = make(12, lies={TOWN: "copies_once"})
    case = next(case for case in made.cases if TOWN in case.question)
    assert case.tags["rewritten"] == "yes"
    assert make.writer.asked["rewrite"] >= 1
    assert not case.question.startswith("Is it so")


def test_an_order_in_a_passage_is_not_obeyed_and_an_honest_question_from_it_stands(make):
    honest, *liars = TOWNS[4:7]
    rows = islands(12, **dict.fromkeys((honest, *liars), ORDER))
    made = make(12, rows=rows, lies=dict(zip(liars, ("obeys", "obeys_softly"), strict=True)))
    obeyed = {one["passages"][0] for one in made.rejected if one["reason"] == "obeys_passage"}
    assert obeyed == {town.lower() for town in liars}
    assert not any("vault" in question for question in questions(made))
    assert any(honest in question for question in questions(made))


def test_the_same_question_is_kept_once(make):
    made = make(12, lies=dict.fromkeys(TOWNS[1:4], "duplicate"))
    assert "near_duplicate" in rejected(made)
    assert len(set(questions(made))) == len(made.cases)


@pytest.mark.slow
def test_questions_that_differ_by_a_name_alone_are_no_duplicates(make):
    made = make(12)
    assert "near_duplicate" not in rejected(made)
    assert made.document["written"] == 12


@pytest.mark.slow
def test_another_passage_that_answers_is_listed_with_its_evidence(make):
    rows = islands(12)
    facts = rows[4]["text"]  # all of them: which one is asked for is drawn by the prompt's words
    rows.append({"id": "almanac", "text": f"{facts} The almanac of the western isles says so."})
    made = make(30, rows=rows)
    found = [case for case in made.cases if "almanac" in case.relevant]
    assert found
    for case in found:
        assert case.relevant == {TOWN.lower(): 2, "almanac": 2}


@pytest.mark.slow
def test_a_question_that_many_passages_answer_is_dropped(make):
    rows = islands(12)
    for n in range(4):
        facts = rows[4]["text"].replace(".", f" in summer {n}.")
        rows.append({"id": f"copy-{n}", "text": facts})
    made = make(30, rows=rows)
    assert "answered_elsewhere" in rejected(made)
    assert not any(TOWN in question for question in questions(made))


def test_a_passage_is_not_listed_for_words_it_does_not_hold(make):
    made = make(12, lies={TOWN: "invents"})
    case = next(case for case in made.cases if TOWN in case.question)
    assert set(case.relevant) == {TOWN.lower()}


def test_a_negative_that_a_passage_answers_is_dropped(make):
    made = make(12, only=["negative"], lies={TOWN: "answerable"})
    assert rejected(made) - {"near_duplicate"} == {"answerable_after_all"}
    assert all(case.answerable is False and not case.relevant for case in made.cases)
    assert not any(TOWN in question for question in questions(made))


def test_a_comparison_that_rests_on_one_passage_is_dropped(make):
    made = make(12, only=["comparative"], lies={TOWN: "one_of_two"})
    assert "too_few_passages" in rejected(made)
    assert all(len(case.relevant) == 2 for case in made.cases)


def test_without_neighbours_nobody_is_asked_for_a_comparison(make):
    with pytest.raises(InputError, match=r"None of 3 candidates was accepted \(3 no_neigh"):
        make(1, rows=islands(1), only=["comparative"])
    assert not make.writer.asked


def test_the_same_seed_and_cache_give_the_same_file_and_ask_nothing(make, tmp_path, judge_server):
    made = make(10, only=None, out=tmp_path / "a.jsonl", lies={TOWN: "quote"})
    calls = len(judge_server.calls)
    again = make(10, only=None, out=tmp_path / "b.jsonl", lies={TOWN: "quote"}, concurrency=1)
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()
    assert (tmp_path / "a.jsonl.json").read_bytes() == (tmp_path / "b.jsonl.json").read_bytes()
    assert len(judge_server.calls) == calls
    assert again.document["usage"]["calls"] == 0
    assert again.rejected == made.rejected


def test_another_seed_gives_another_set(make):
    assert questions(make(5)) != questions(make(5, seed=1))


@pytest.mark.slow
def test_a_budget_ends_before_its_cap_writes_what_is_verified_and_goes_on(
    make, tmp_path, judge_server
):
    out = tmp_path / "gold.jsonl"
    whole = make(10, out=tmp_path / "whole.jsonl", cache=tmp_path / "other.sqlite")
    before = len(judge_server.calls)
    part = make(10, out=out, terms={"max_calls": 34})
    assert len(judge_server.calls) - before <= 34
    assert 0 < part.document["written"] < 10
    assert part.document["missing"] == {"simple_factual": 10 - part.document["written"]}
    assert "max_calls 34 is used up" in part.document["stopped"]
    assert read_goldset(out).cases == part.cases
    assert set(questions(part)) < set(questions(whole))
    done = make(10, out=out)
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert (
        done.document["usage"]["calls"] + part.document["usage"]["calls"]
        == (whole.document["usage"]["calls"])
    )


def test_a_budget_for_nothing_writes_nothing_and_says_why(make, tmp_path):
    with pytest.raises(InputError, match="No question was completed"):
        make(5, out=tmp_path / "gold.jsonl", terms={"max_calls": 2})
    assert not (tmp_path / "gold.jsonl").exists()


def test_a_file_of_somebody_else_is_not_replaced(make, tmp_path, judge_server):
    out = tmp_path / "gold.jsonl"
    out.write_text('{"question": "Mine?"}\n', encoding="utf-8")
    with pytest.raises(InputError, match="--overwrite"):
        make(3, out=out)
    assert not judge_server.calls
    assert "Mine?" in out.read_text(encoding="utf-8")
    make(3, out=out, overwrite=True)
    make(4, out=out)  # its own, unchanged
    with out.open("a", encoding="utf-8") as file:
        file.write('{"question": "Added by hand?"}\n')
    with pytest.raises(InputError, match="changed since"):
        make(5, out=out)


def test_the_file_beside_says_what_it_was_made_by(make, tmp_path):
    make(3, out=tmp_path / "gold.jsonl", seed=7)
    about = json.loads((tmp_path / "gold.jsonl.json").read_text(encoding="utf-8"))
    assert about["judge"] == "openai:test-judge"
    assert about["seed"] == 7
    assert set(about["prompts"]) >= {"goldset_write", "goldset_elsewhere"}
    assert len(about["corpus_fingerprint"]) == 64
    assert about["written"] == 3


def test_the_heuristic_judge_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(InputError, match=r"cannot write questions.*llamacpp:FILE"):
        generate(passages(islands()), "heuristic", 3, embedding="none", cache=tmp_path / "l")


def test_a_judge_whose_replies_cannot_be_read_is_told(make, judge_server, tmp_path):
    judge_server.script = lambda _: "no JSON at all"
    terms = JudgeConfig(base_url=judge_server.url)
    with pytest.raises(JudgeUnreachableError, match="misslink judge ping"):
        generate(
            passages(islands(3)), "openai:test-judge", 1, embedding="none", terms=terms,
            cache=tmp_path / "l.sqlite", settings=GenerationSettings().only(SIMPLE),
        )  # fmt: skip


def test_a_judge_of_ones_own_writes_too(tmp_path):
    from misslink.judge.protocol import Reply

    writer = Writer()

    class Own:
        name = "own"
        identity = {"judge": "own"}  # noqa: RUF012

        async def ask(self, ask):
            said = writer({"messages": list(ask.messages)})
            return Reply(ask.schema.model_validate(said), json.dumps(said))

        async def close(self):
            pass

    settings = GenerationSettings().only(SIMPLE)
    made = generate(
        passages(islands()), Own(), 4, settings=settings, embedding="none", cache=tmp_path / "l"
    )
    assert made.document["judge"] == "own"
    assert len(made.cases) == 4


PASSAGES = [Passage(id=row["id"], text=row["text"], rank=1) for row in islands(12)]


def both(judge_server, tmp_path, n, **terms):
    options = {
        "embedding": "none",
        "cache": tmp_path / "cache.sqlite",
        "terms": JudgeConfig(base_url=judge_server.url, **terms),
    }
    judge = "openai:test-judge"
    judge_server.script = Writer()
    before = asyncio.run(preview_async(PASSAGES, judge, n, **options))
    assert judge_server.calls == []
    made = asyncio.run(generate_async(PASSAGES, judge, n, **options))
    asked = len(judge_server.calls)
    after = asyncio.run(preview_async(PASSAGES, judge, n, **options))
    assert len(judge_server.calls) == asked
    return before, made, after


def test_calls_are_those_that_an_honest_writer_needs(judge_server, tmp_path):
    before, made, after = both(judge_server, tmp_path, 10)
    assert made.rejected == ()
    usage = made.document["usage"]
    # The honest one says the reference in its own words, as the stand-in does.
    assert before.calls == usage["calls"]
    assert abs(before.prompt_tokens / usage["prompt_tokens"] - 1) < 0.35
    assert before.completion_tokens > 0
    assert after.calls == 0
    assert after.from_cache == usage["calls"]


def test_the_cost_is_known_where_prices_are(judge_server, tmp_path):
    before, made, _ = both(judge_server, tmp_path, 3, price_in=1.0, price_out=4.0)
    tokens = before.prompt_tokens + 4 * before.completion_tokens
    assert before.cost == tokens / 1_000_000
    assert made.document["usage"]["cost"] > 0

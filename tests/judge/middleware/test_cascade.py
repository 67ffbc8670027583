import asyncio
import json
from dataclasses import replace
from importlib.resources import files

import pytest

from fake_judge import FakeJudge, answer_to
from honest_judge import honest
from misslink.errors import InputError
from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.backends.openai import open_openai
from misslink.judge.examination import examine
from misslink.judge.middleware.cache import CachedJudge
from misslink.judge.middleware.cascade import (
    CascadeJudge,
    UncertaintyBand,
    parse_cascade_spec,
    stage_band,
)
from misslink.judge.protocol import Reply, RetryableError, SkippedAskError
from misslink.matching import load_fit

PASSAGE = "The ferry leaves at seven. Gulls nest on the roof."


def judge(
    name,
    *chances,
    support="supported",
    text="The ferry leaves at seven.",
    quote="The ferry leaves at seven",
    raises=None,
):
    """Says what it is told to: P(supported) of every claim, and what it says of them."""
    claim = {"claim": text, "support": support, "quote": quote}
    probabilities = {
        f"claims.{place}.support": {"supported": p, "unsupported": 1 - p}
        for place, p in enumerate(chances)
        if p is not None
    }

    def reply(ask):
        answer = answer_to(ask, claims=[claim] * max(len(chances), 1), response="answers")
        return Reply(answer, name, probabilities=probabilities)

    return FakeJudge(raises or reply, name)


def question(number=0):
    return examine(f"When does ferry {number} leave?", (PASSAGE,), "The ferry leaves at seven.")


def ask(cascade, *asks):
    async def act():
        return [await cascade.ask(each) for each in asks or [question()]]

    return asyncio.run(act())


BAND = UncertaintyBand(low=0.1, high=0.9)


@pytest.mark.parametrize(
    ("chances", "who"),
    [
        ((0.95,), "cheap"),
        ((0.95, 0.9), "cheap"),
        ((0.95, 0.89), "dear"),
        ((0.95, 0.1), "cheap"),
        ((0.11,), "dear"),
        ((0.95, None), "dear"),
        ((), "dear"),
    ],
)
def test_the_least_sure_claim_decides_who_answers(chances, who):
    cheap, dear = judge("cheap", *chances), judge("dear")
    (reply,) = ask(CascadeJudge(cheap, dear, band=BAND, audit=0))
    assert reply.judge == who
    assert reply.raw == who
    assert len(dear.asked) == (who == "dear")


def test_an_end_that_is_never_reached_decides_nothing():
    for chance, who in ((0.95, "cheap"), (0.0, "dear")):
        cascade = CascadeJudge(
            judge("cheap", chance), judge("dear"), band=UncertaintyBand(None, 0.9), audit=0
        )
        assert ask(cascade)[0].judge == who
    cascade = CascadeJudge(
        judge("cheap", 1.0), judge("dear"), band=UncertaintyBand(None, None), audit=0
    )
    assert ask(cascade)[0].judge == "dear"


def test_what_the_cheap_judge_cannot_answer_the_other_one_is_asked():
    dear = judge("dear")
    cascade = CascadeJudge(open_heuristic(None), dear, band=BAND, audit=0)
    label = replace(question(), inputs={"text": "?"}, name="another")
    assert ask(cascade, label)[0].judge == "dear"
    failing = CascadeJudge(
        judge("c", raises=RetryableError("no", "server")), dear, band=BAND, audit=0
    )
    assert ask(failing)[0].judge == "dear"
    declined = examine("When?", (PASSAGE,), "I don't know.")
    assert ask(cascade, declined)[0].judge == "dear"


def test_the_audit_draws_the_same_share_every_time_whatever_the_order():
    asks = [question(number) for number in range(150)]

    def drawn(asks, audit=0.2):
        dear = judge("dear")
        cascade = CascadeJudge(judge("cheap", 0.99), dear, band=BAND, audit=audit)
        ask(cascade, *asks)
        return {each.key for each in dear.asked}

    first = drawn(asks)
    assert first == drawn(asks[::-1])
    assert drawn(asks[:100]) == first & {each.key for each in asks[:100]}
    assert 0.1 < len(first) / len(asks) < 0.3
    assert first <= drawn(asks, audit=0.4)  # a larger sample holds the smaller one
    assert drawn(asks, audit=0) == set()
    assert len(drawn(asks, audit=1)) == len(asks)


def test_every_sample_of_a_question_goes_to_the_same_judge():
    asks = [replace(question(number), repeat=n) for number in range(40) for n in range(3)]
    cascade = CascadeJudge(judge("cheap", 0.99), judge("dear"), band=BAND, audit=0.3)
    by = [reply.judge for reply in ask(cascade, *asks)]
    assert all(len(set(by[at : at + 3])) == 1 for at in range(0, len(by), 3))
    assert set(by) == {"cheap", "dear"}


def test_the_shares_add_up():
    cheap = open_heuristic(None)
    dear = judge("dear", support="supported")
    cascade = CascadeJudge(cheap, dear, band=UncertaintyBand(None, 0.8), audit=0.5)
    sure = [question(number) for number in range(30)]
    unsure = [
        examine(f"{n}?", (PASSAGE,), "Whales sing of Atlantis by moonlight.") for n in range(10)
    ]
    ask(cascade, *sure, *unsure)
    found = cascade.summary()
    assert found.asked == 40
    assert found.sure == 30
    assert sum(found.seen_by.values()) == 40
    assert found.seen_by["dear"] == 10 + found.drawn == len(dear.asked)
    assert found.seen_by["heuristic"] == 30 - found.drawn
    assert found.share_dear.value == found.seen_by["dear"] / 40
    assert found.audited == found.drawn == found.agreed > 0
    assert found.agreement.value == 1


def test_disagreement_in_the_audit_is_counted_and_the_second_reply_used():
    dear = judge("dear", support="unsupported")
    cascade = CascadeJudge(judge("cheap", 0.99), dear, band=BAND, audit=1)
    replies = ask(cascade, *map(question, range(5)))
    assert {reply.judge for reply in replies} == {"dear"}
    assert cascade.summary().audited == 5
    assert cascade.summary().agreed == 0


def test_what_the_checks_overrule_goes_to_the_next_judge():
    elsewhere = examine("When?", ("Nothing of the kind.",), "The ferry leaves at seven.")
    cascade = CascadeJudge(judge("cheap", 0.99), judge("dear"), band=BAND, audit=1)
    (reply,) = ask(cascade, elsewhere)
    assert (reply.judge, cascade.summary().sure) == ("dear", 0)


def test_nothing_asked_has_no_shares():
    found = CascadeJudge(judge("cheap"), judge("dear"), band=BAND).summary()
    assert found.asked == 0
    assert found.share_dear.value is None
    assert found.agreement.reason


def test_a_question_that_is_not_put_stays_not_put():
    dear = judge("dear", raises=SkippedAskError("the budget is used up"))
    cascade = CascadeJudge(judge("cheap", 0.5), dear, band=BAND, audit=0)
    with pytest.raises(SkippedAskError, match="budget"):
        ask(cascade)
    assert cascade.summary().asked == 0


def test_an_audit_that_the_budget_ends_keeps_what_the_cheap_judge_decided():
    dear = judge("dear", raises=SkippedAskError("the budget is used up"))
    cascade = CascadeJudge(judge("cheap", 0.99), dear, band=BAND, audit=1)
    (reply,) = ask(cascade)
    assert reply.judge == "cheap"
    assert (cascade.summary().drawn, cascade.summary().asked) == (0, 1)


def test_the_audit_reads_a_short_claim_with_its_question():
    short = judge("dear", 0.99, text="Daily.", quote="leaves daily")
    asked = examine("How often does the ferry leave?", ("The ferry leaves daily.",), "Daily.")
    cascade = CascadeJudge(judge("cheap", 0.99), short, band=BAND, audit=1)
    ask(cascade, asked)
    assert (cascade.summary().audited, cascade.summary().agreed) == (1, 1)


def test_only_the_dear_judges_replies_are_in_the_cache_and_paid_once(judge_server, tmp_path):
    judge_server.script = honest

    def run():
        async def act():
            bare = open_openai("test-judge", base_url=judge_server.url)
            cache = CachedJudge(bare, tmp_path / "l.sqlite")
            cascade = CascadeJudge(
                open_heuristic(None), cache, band=UncertaintyBand(None, 0.8), audit=0.3
            )
            asks = [question(n) for n in range(20)]
            asks += [examine(f"{n}?", (PASSAGE,), "Whales sing of Atlantis.") for n in range(5)]
            replies = await asyncio.gather(*map(cascade.ask, asks))
            await cascade.close()
            return [(reply.judge, reply.parsed) for reply in replies], cache.calls

        return asyncio.run(act())

    first, calls = run()
    assert calls == len(judge_server.calls) == sum(who == "openai:test-judge" for who, _ in first)
    assert 5 <= calls < 25
    again, calls = run()
    assert calls == 0
    assert again == first


def test_name_and_identity_say_both_judges_and_the_terms():
    cascade = CascadeJudge(judge("a"), judge("b"), band=BAND, audit=0.1)
    assert cascade.name == "cascade:a,b"
    said = json.loads(json.dumps(cascade.identity))
    assert said["cheap"] == {"judge": "a"}
    assert said["dear"] == {"judge": "b"}
    assert (said["band"], said["cascade_check"]) == ({"low": 0.1, "high": 0.9}, 0.1)


def test_both_are_closed():
    cheap, dear = judge("a"), judge("b")
    asyncio.run(CascadeJudge(cheap, dear, band=BAND).close())
    assert cheap.closed
    assert dear.closed


@pytest.mark.parametrize("argument", [None, "", "heuristic", "heuristic,", ",openai:m"])
def test_a_cascade_names_two_judges(argument):
    with pytest.raises(InputError, match="cascade:heuristic,openai:MODEL"):
        parse_cascade_spec(argument)


def test_the_first_comma_parts_the_two():
    assert parse_cascade_spec("heuristic, openai:a,b") == ["heuristic", "openai:a,b"]
    with pytest.raises(InputError, match="cannot contain another cascade"):
        parse_cascade_spec("heuristic,cascade:heuristic,openai:m")


def test_the_committed_band_belongs_to_the_committed_fit():
    """Refitting the heuristic judge moves its probabilities: benchmarks/judge/cascade.py --write then."""
    name = "heuristic"
    fit = load_fit()
    source = files("misslink.judge.middleware") / "cascade.json"
    made_for = json.loads(source.read_text())["judges"][name]["coefficients"]
    assert made_for == {
        "intercept": fit.intercept,
        "weights": dict(fit.weights),
        "cut": fit.cut,
    }
    band = stage_band(judge(name))
    assert band.high is None or band.high > fit.cut
    assert band.low is None or band.low < fit.cut


def test_a_judge_that_was_not_measured_cannot_be_first():
    with pytest.raises(InputError, match="put heuristic or a decision model before it"):
        stage_band(judge("openai:m"))

"""The one question a case about missed passages, put to a real server and packed to its context."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from judge_faults import error
from misslink.judge.config import JudgeConfig
from misslink.judge.middleware.long_context import estimate_ask_tokens
from misslink.judge.prompts import BUILT_IN, Prompts
from misslink.judge.session import open_judge
from misslink.linking.claim_support import link_claims, may_be_related, render_claim_needs
from said_needs import FERRY, GULLS, lost, unfaithful

NINE = "The ferry to Holm leaves at nine."
HARBOUR = "The harbour of Holm was opened in the year 1904."
QUESTION = "When does the ferry leave?"
SPEC = "openai:test-judge"


def hold(server, claims, missed, *, spec=SPEC, times=1, cache=None, **terms):
    """The links of the last of so many times, and what was used."""

    async def ask():
        around = JudgeConfig(base_url=server.url, api_key="k", retries=0, **terms)
        judge = open_judge(spec, cache=cache, concurrency=2, terms=around)
        prompts = Prompts.from_spec(terms.get("prompts"))
        for _ in range(times):
            links = await link_claims(
                unfaithful(*claims), missed, question=QUESTION, judge=judge, prompts=prompts
            )
        usage = judge.usage()
        await judge.close()
        return links, usage

    return asyncio.run(ask())


def prompts_of(server):
    return [call.body["messages"][-1]["content"] for call in server.calls if call.status == 200]


@pytest.mark.parametrize("language", [None, "de"])
def test_a_server_says_what_each_claim_needed_by_its_number_and_quote(judge_server, language):
    missed = [lost("gulls", GULLS), lost("opened", HARBOUR), lost("ferry", FERRY, rank=9)]
    claims = ["The ferry to Holm leaves at seven.", NINE, "The harbour of Holm is deep and wide."]
    links, usage = hold(judge_server, claims, missed, prompts=language)
    assert [(link.passage_id, link.relation, link.true_rank) for link in links] == [
        ("ferry", "would_support", 9),
        ("ferry", "would_contradict", 9),
        ("ferry", "unrelated", 9),
    ]
    assert {link.by for link in links} == {SPEC}
    assert usage["calls"] == len(judge_server.calls) == 1
    assert "Gulls" not in prompts_of(judge_server)[0]
    system = judge_server.calls[0].body["messages"][0]["content"]
    assert (
        system
        == Prompts.from_spec(language)
        .load("claim_needs")
        .render({"question": "", "claims": (), "passages": ()})[0]
    )


def test_what_was_answered_is_not_paid_again(judge_server, tmp_path: Path):
    missed = [lost("ferry", FERRY)]
    cache = tmp_path / "cache.sqlite"
    first, _ = hold(judge_server, [NINE], missed, cache=cache)
    again, usage = hold(judge_server, [NINE], missed, cache=cache, times=2)
    assert first == again
    assert (len(judge_server.calls), usage["calls"], usage["from_cache"]) == (1, 0, 2)


def test_a_spent_budget_leaves_the_heuristic_judge(judge_server):
    missed = [lost("ferry", FERRY)]
    ask = asyncio.run(link_claims(unfaithful(NINE), missed, question=QUESTION))

    async def two_cases():
        terms = JudgeConfig(base_url=judge_server.url, api_key="k", max_calls=1)
        judge = open_judge(SPEC, cache=None, concurrency=1, terms=terms)
        found = [
            await link_claims(unfaithful(claim), missed, question=QUESTION, judge=judge)
            for claim in ("The ferry to Holm leaves at seven.", NINE)
        ]
        await judge.close()
        return found, judge.not_asked

    (paid, unpaid), not_asked = asyncio.run(two_cases())
    assert [link.by for link in (*paid, *unpaid)] == [SPEC, "heuristic"]
    assert (unpaid, not_asked) == (ask, 1)


def test_a_reply_that_cannot_be_read_leaves_the_heuristic_judge(judge_server):
    judge_server.script = lambda _: "would_support, I think"
    (link,), usage = hold(judge_server, [NINE], [lost("ferry", FERRY)])
    assert (link.relation, link.by) == ("would_contradict", "heuristic")
    assert usage["calls"] == 2, "it was asked once more"


def test_of_a_cascade_the_dear_judge_answers_and_is_named(judge_server):
    (link,), _ = hold(
        judge_server, [NINE], [lost("ferry", FERRY)], spec=f"cascade:heuristic,{SPEC}"
    )
    assert (link.relation, link.by) == ("would_contradict", SPEC)


def long(start, sentences=75):
    return f"{start} {' '.join(['A quay is closed.'] * sentences)}"


def test_the_least_similar_pairs_are_left_out_where_the_context_is_too_short(judge_server):
    """What is left out is not asked about: the heuristic judge's word stays, and says so."""
    claims = ["The ferry to Holm leaves at seven.", "The harbour was opened by the last old king."]
    missed = [lost("opened", long(HARBOUR)), lost("ferry", long(FERRY))]
    empty = estimate_ask_tokens(render_claim_needs(QUESTION, (), ()))
    links, _ = hold(judge_server, claims, missed, context_length=empty + 1000)
    assert [(link.passage_id, link.by) for link in links] == [
        ("ferry", SPEC),
        ("opened", "heuristic"),
    ]
    (sent,) = prompts_of(judge_server)
    assert "1904" not in sent
    assert "old king" not in sent


def test_a_question_that_would_not_fit_at_all_is_not_put(judge_server):
    missed = [lost("ferry", long(FERRY))]
    (link,), usage = hold(judge_server, [NINE], missed, context_length=300)
    assert (link.by, usage["calls"]) == ("heuristic", 0)


def test_one_passage_too_long_makes_way_for_the_others(judge_server):
    missed = [lost("endless", long(NINE, 5000)), lost("ferry", FERRY)]
    (link,), _ = hold(
        judge_server, ["The ferry to Holm leaves at seven."], missed, context_length=2000
    )
    assert (link.passage_id, link.relation, link.by) == ("ferry", "would_support", SPEC)


def test_a_server_that_refuses_a_question_for_its_length_gets_a_shorter_one(judge_server):
    def short_of_room(body):
        size = sum(len(message["content"]) for message in body["messages"])
        if size > 3500:
            return error(400, "This model's maximum context length is 1000 tokens")
        return None

    judge_server.script = short_of_room
    missed = [lost("opened", long(HARBOUR, 225)), lost("ferry", FERRY)]
    links, _ = hold(judge_server, [NINE, "The harbour of Holm is deep."], missed)
    assert [(link.passage_id, link.relation, link.by) for link in links] == [
        ("ferry", "would_contradict", SPEC),
        ("opened", "would_support", "heuristic"),
    ]


@pytest.mark.parametrize("prompts", [BUILT_IN, Prompts.from_spec("de")])
def test_three_claims_and_two_passages_cost_at_most_1150_tokens(prompts):
    """Two passages of 150 words; characters / 4, the JSON schema counted."""
    passages = tuple(" ".join(["harbour"] * 150) for _ in range(2))
    claims = tuple(f"The ferry {n} to the far island of Holm leaves at nine." for n in range(3))
    assert render_claim_needs(QUESTION, claims, passages, prompts=prompts).characters / 4 <= 1150


def test_every_field_of_the_answer_is_explained_in_the_order_of_the_schema():
    from misslink.linking.claim_support import ClaimNeed, ClaimNeeds

    fields = BUILT_IN.load("claim_needs").fields
    assert list(fields) == [
        *ClaimNeeds.model_fields,
        *(f"claims.{n}" for n in ClaimNeed.model_fields),
    ]
    assert BUILT_IN.load("claim_needs").schema == ClaimNeeds.__name__


@pytest.mark.parametrize(
    ("claim", "passage", "question", "related"),
    [
        ("The ferry leaves at nine.", "The ferry sails at seven.", "", True),
        ("The ferry leaves at nine.", GULLS, "", False),
        ("The ferry leaves at nine.", "", "", False),
        ("It costs 12 crowns.", "Twelve are taken.", "", True),
        ("At nine.", FERRY, "", False),
        ("At nine.", FERRY, "When does the ferry leave?", True),
        ("Nine old men of Holm built a boat.", "The ferry is new.", "Which ferry?", False),
        ("", FERRY, "", False),
        ("", FERRY, QUESTION, True),
        ("According to the passage.", "A passage, according to the text.", "", False),
    ],
)
def test_what_may_be_related_shares_a_word_with_the_claim(claim, passage, question, related):
    assert may_be_related(claim, passage, question) is related

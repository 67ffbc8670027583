"""Cases as they come in practice: whoever reads their texts can say who has to fix them.

After the bar of a text stands what it asserts: subject, attribute and value. The judge knows it.
"""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest

import misslink
from faults.facts import FERRIES, Fact, World
from faults.oracle import OracleJudge
from misslink.judge import Reply
from misslink.types import Case, Message, Passage, RetrieverCall, Trace

pytestmark = pytest.mark.skipif(not find_spec("chromadb"), reason="needs misslink[langchain]")

FILLER = {
    f"fill{n}": text
    for n, text in enumerate(
        (
            "Gulls nest below the roof of the customs house in spring.",
            "The bakery at the pier opens early on market days.",
            "A plaque remembers the storm that broke the old mole.",
            "Bicycles are lent by the hour beside the fountain.",
            "The choir of the island meets in the chapel on Mondays.",
        )
    )
}
LONG_SHEET = (
    "Sheet of the {0}. Hull of welded steel with two coats of paint, inspected by the harbor master "
    "every spring before the season begins. The vessel carries 80 passengers on the upper deck and "
    "in the saloon. Life jackets lie below the benches and are counted each morning by the mate on "
    "duty. The galley serves soup, bread and coffee while the sea is calm, and closes one hour "
    "before arrival. Crew quarters are aft and closed to the public at all times. | {0} seats 80"
)
RELEASE = (
    "Release {0} of the harbor console keeps {1} days of logs on its disk. Older entries are deleted "
    "at midnight without a warning, and the operator is told in the weekly mail. | release{0} days {1}"
)
PUMP = (
    "Data sheet. Pump Aria-{0}, cast iron, three phases. Flow rate: {1} l/min. Weight: 12 kg. Made in "
    "Turin. | Aria-{0} flow {1}"
)
SIZE = {
    "length": "The Opal is 40 meters long overall. | Opal length 40",
    "draft": "The draft of the Opal is 3 meters when loaded. | Opal draft 3",
    "beam": "The beam of the Opal is 9 meters amidships. | Opal beam 9",
}
LEAVES = {
    "both": "The Opal leaves from the north quay at nine. | Opal quay north; Opal hour nine",
    "quay": "The north quay is that of the Opal. | Opal quay north",
    "hour": "At nine the Opal casts off. | Opal hour nine",
}
NOON = (
    "The Opal leaves from the north quay. | Opal quay north",
    "It leaves at noon. | Opal hour noon",
)
TICKETS = {
    name: f"How much it costs: the {name} takes {price} crowns for a ticket. | {name} ticket {price}"
    for name, price in (("Jade", 25), ("Onyx", 31), ("Pearl", 33), ("Beryl", 35), ("Topaz", 37))
}

# The corpus without the filler, the gold set's case, what was retrieved, the answer's claims and
# the reference's; then the failure mode, its passage, and the other modes.
SCENARIOS = {
    "a conversation whose follow-up question is searched alone": (
        {"opal": "A ticket for the Opal costs 12 crowns. | Opal ticket 12", **TICKETS},
        {
            "question": "And how much does it cost?",
            "standalone_question": "How much does a ticket for the Opal cost?",
            "history": (
                Message(role="user", content="When does the Opal leave?"),
                Message(role="assistant", content="The Opal leaves at nine."),
            ),
            "relevant": ["opal"],
        },
        {"retrieved": ["Jade"], "calls": [("And how much does it cost?", ["Jade"])]},
        ["The Opal costs 25 crowns. | Opal ticket 25"],
        ["A ticket for the Opal costs 12 crowns. | Opal ticket 12"],
        ("lost_context", "opal", ()),
    ),
    "a search for an imagined answer, which takes the name for a stone": (
        {"opal": "A ticket for the Opal costs 12 crowns. | Opal ticket 12", **TICKETS},
        {"question": "How much does a ticket for the Opal cost?", "relevant": ["opal"]},
        {
            "retrieved": ["fill0"],
            "calls": [
                (
                    ("Opal is a mineral of many colors, mined in deserts of Australia and cut into "
                    "round stones for rings, brooches and necklaces"),
                    ["fill0"],
                )
            ],
        },
        ["The Opal costs 25 crowns. | Opal ticket 25"],
        ["A ticket for the Opal costs 12 crowns. | Opal ticket 12"],
        ("lost_context", "opal", ()),
    ),
    "a search with a year that nobody named": (
        {
            f"y{year}": f"The director was {who} in {year}. | director {year} {who}"
            for year, who in ((2023, "Orban"), (2024, "Pell"))
        },
        {"question": "Who was the director last year?", "relevant": ["y2024"]},
        {"retrieved": ["y2023"], "calls": [("director in 2023", ["y2023"])]},
        ["The director was Orban. | director 2024 Orban"],
        ["The director was Pell. | director 2024 Pell"],
        ("lost_context", "y2024", ()),
    ),
    "an agent that forgets what its first search returned": (
        {"crew": "The Opal sails with a crew of 7 in summer. | Opal crew 7"},
        {"question": "How large is the crew of the Opal?", "relevant": ["crew"]},
        {
            "retrieved": ["crew", "fill0", "fill1"],
            "prompted": ["fill1"],
            "calls": [("crew Opal", ["crew", "fill0"]), ("Opal", ["fill1"])],
        },
        ["The Opal has a crew of 30. | Opal crew 30"],
        ["The Opal has a crew of 7. | Opal crew 7"],
        ("dropped_from_prompt", "crew", ()),
    ),
    "three parts, two of them missed and one misread": (
        SIZE,
        {"question": "What are length, draft and beam of the Opal?", "relevant": [*SIZE]},
        {"retrieved": ["length"]},
        [
            "The Opal is 60 meters long. | Opal length 60",
            "The draft of the Opal is 5 meters. | Opal draft 5",
            "The beam of the Opal is 14 meters. | Opal beam 14",
        ],
        [*SIZE.values()],
        ("retrieval_miss", "draft", ("contradicts_context",)),
    ),
    "a gold set that lists one of the two passages that are needed": (
        SIZE,
        {"question": "What are length and draft of the Opal?", "relevant": ["length"]},
        {"retrieved": ["length"]},
        ["The Opal is 40 meters long. | Opal length 40", "Its draft is 5 meters. | Opal draft 5"],
        [SIZE["length"], SIZE["draft"]],
        ("retrieval_miss", "draft", ()),
    ),
    "a passage that was dropped beside one that is not indexed": (
        {"size": "The Opal is 40 meters long; its draft is 3. | Opal length 40; Opal draft 3"},
        {"question": "What are length, draft and beam of the Opal?", "relevant": ["size", "gone"]},
        {"retrieved": ["size", "fill0"], "prompted": ["fill0"]},
        [
            "The Opal is 60 meters long. | Opal length 60",
            "The draft of the Opal is 5 meters. | Opal draft 5",
            "The beam of the Opal is 14 meters. | Opal beam 14",
        ],
        [*SIZE.values()],
        ("dropped_from_prompt", "size", ("not_indexed",)),
    ),
    "the data sheet of a sister ship, alike but for the name": (
        {name: LONG_SHEET.format(name) for name in ("Opal", "Ruby", "Jade")},
        {"question": "How many passengers does the Opal carry?", "relevant": ["Opal"]},
        {"retrieved": ["Ruby", "Jade"]},
        [],
        ["The Opal carries 80 passengers. | Opal seats 80"],
        ("retrieval_miss", "Opal", ()),
    ),
    "an answer about another version": (
        {f"v{n}": RELEASE.format(n, 10 * n) for n in (4, 5, 6)},
        {"question": "How many days of logs does release 5 keep?", "relevant": ["v5"]},
        {"retrieved": ["v4", "v6"]},
        ["Release 4 keeps 40 days of logs. | release4 days 40"],
        ["Release 5 keeps 50 days of logs. | release5 days 50"],
        ("retrieval_miss", "v5", ()),
    ),
    "half of an alternative": (
        LEAVES,
        {"question": "Where and when does the Opal leave?", "relevant_any": [["both"], ["quay", "hour"]]},
        {"retrieved": ["quay", "fill0"]},
        NOON,
        [LEAVES["quay"], LEAVES["hour"]],
        ("retrieval_miss", "hour", ()),
    ),
    "the other alternative, complete and misread": (
        LEAVES,
        {"question": "Where and when does the Opal leave?", "relevant_any": [["both"], ["quay", "hour"]]},
        {"retrieved": ["quay", "hour"]},
        NOON,
        [LEAVES["quay"], LEAVES["hour"]],
        ("contradicts_context", "hour", ()),
    ),
    "a wrong reference where another part is missed": (
        SIZE,
        {"question": "What are length and draft of the Opal?", "relevant": ["length", "draft"]},
        {"retrieved": ["length"]},
        ["The Opal is 40 meters long. | Opal length 40"],
        ["The Opal is 44 meters long. | Opal length 44", SIZE["draft"]],
        ("gold_suspect", "length", ()),
    ),
    "a German answer over English passages": (
        {
            "dogs": "Dogs travel free of charge aboard the Opal when they are on a leash. | Opal dogs free",
            "prams": "A pram is stored for nothing aboard the Opal near the saloon. | Opal prams free",
            "bikes": "For each bicycle aboard the Opal you pay 4 crowns at the counter. | Opal bikes 4",
        },
        {
            "question": "Was kosten Hunde und Fahrräder auf der Opal?",
            "relevant": ["prams", "dogs", "bikes"],
        },
        {"retrieved": ["dogs"]},
        [
            "Hunde fahren auf der Opal kostenlos mit. | Opal dogs free",
            (
                "Für die Mitnahme eines Fahrrads verlangt die Reederei der Opal an der Kasse neun "
                "Kronen von jedem Fahrgast. | Opal bikes 9"
            ),
        ],
        ["Hunde fahren kostenlos. | Opal dogs free", "Fahrräder kosten vier Kronen. | Opal bikes 4"],
        ("retrieval_miss", "bikes", ()),
    ),
    "a wrong reference without labels": (
        SIZE,
        {"question": "How long is the Opal?"},
        {"retrieved": ["length", "fill0"]},
        ["The Opal is 40 meters long. | Opal length 40"],
        ["The Opal is 44 meters long. | Opal length 44"],
        ("gold_suspect", "length", ()),
    ),
    "an answer beside the one that nothing holds": (
        SIZE,
        {"question": "How many knots does the Opal make?", "answerable": False},
        {"retrieved": ["length"]},
        ["The Opal is 40 meters long. | Opal length 40", "It makes 20 knots. | Opal speed 20"],
        [],
        ("should_have_abstained", None, ()),
    ),
    "the data sheet of a sister pump, alike but for its number": (
        {f"aria{n}": PUMP.format(n, flow) for n, flow in ((3, 43), (5, 38))},
        {"question": "What is the flow rate of the Aria-3?", "relevant": ["aria3"]},
        {"retrieved": ["aria5", "aria3"]},
        ["The flow rate of the Aria-3 is 38 l/min. | Aria-5 flow 38"],
        ["The flow rate of the Aria-3 is 43 l/min. | Aria-3 flow 43"],
        ("distracted", "aria5", ()),
    ),
    "a claim in Japanese that nothing holds, beside one with a number": (
        {"loan": "本は一人12冊まで借りられます。 | 図書館 冊数 12"},
        {"question": "図書館では本を何冊まで借りられますか。", "relevant": ["loan"]},
        {"retrieved": ["loan"]},
        ["図書館では本を12冊まで借りられます。 | 図書館 冊数 12", "図書館は明治時代に建てられました。 | 図書館 建設 明治"],
        ["図書館では本を12冊まで借りられます。 | 図書館 冊数 12"],
        ("fabricated", "loan", ()),
    ),
    "an answer where the reference says that there is none": (
        SIZE,
        {"question": "How many knots does the Opal make?"},
        {"retrieved": ["length"]},
        ["The Opal makes 20 knots. | Opal speed 20"],
        ["The documents do not say how many knots it makes. | Opal speed unknown"],
        ("should_have_abstained", None, ()),
    ),
}  # fmt: skip


class FactJudge(OracleJudge):
    """The oracle of the bench, for conversations too."""

    async def ask(self, ask):
        reply = await super().ask(ask)
        return Reply(ask.schema.model_validate(reply.parsed.model_dump()), raw="")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_owner_the_mode_and_the_passage_are_those_that_a_reader_would_name(name):
    corpus, gold, seen, claims, reference, (failure, shown, also) = SCENARIOS[name]
    world = World(FERRIES, 0)

    def told(text):
        text, _, facts = text.partition(" | ")
        world.asserted[text] = tuple(Fact(*fact.split()) for fact in facts.split("; ") if fact)
        return text

    texts = {id_: told(text) for id_, text in {**corpus, **FILLER}.items()}
    claimed = [told(claim) for claim in claims]
    stated = [told(part) for part in reference]
    asked = tuple(fact for part in stated for fact in world.asserted[part])
    if len(stated) > 1:
        world.asserted[" ".join(stated)] = asked
    if "wrong reference" in name:
        asked = (Fact("Opal", "length", "40"), *asked[1:])
    case = Case(id="1", references=[" ".join(stated)] if stated else [], **gold)
    retrieved = tuple(
        Passage(id=id_, text=texts[id_], rank=rank) for rank, id_ in enumerate(seen["retrieved"], 1)
    )
    trace = Trace(
        case_id="1",
        retrieved=retrieved,
        prompted=seen.get("prompted", seen["retrieved"]),
        answer=" ".join(claimed) or "I don't know.",
        calls=[RetrieverCall(query=query, passages=ids) for query, ids in seen.get("calls", ())],
    )
    staged = SimpleNamespace(
        asked=asked or (Fact("Opal", "speed", "14"),),
        claims=claimed,
        reference_claims=stated,
        states_reference=False,
        response="answers" if claimed else "declines",
    )
    (link,) = misslink.evaluate(
        goldset=[case],
        traces=[trace],
        corpus=[Passage(id=id_, text=text, rank=1) for id_, text in texts.items()],
        judge=FactJudge(world, {case.judged_question: staged}),
        cache=None,
        embedding="none",
    ).links
    first = next(item for item in link.evidence if item.failure == link.failure)
    assert (link.failure, first.passage_id, link.also) == (failure, shown, also), link.reason

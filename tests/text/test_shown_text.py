"""What a prompt shows of each passage: whole ones come back unchanged, cuts are found to the word."""

import json
import random
import time
from functools import cache
from textwrap import wrap

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from misslink.text.prompt_matching import ModelCall, match_prompts
from misslink.text.shown_text import find_shown
from misslink.types import Passage

WORDS = """
harbour lamp barrel window ticket yellow morning engine pepper ladder copper winter garden market
stone river button candle the of and a in is with No.7 12 café Müller's it's 東京 x-ray 3.5
"""
VOCABULARY = WORDS.split()
TEMPLATE = "Answer from these sources only.\n\n{}\n\nQuestion: {}\nReply:"


@st.composite
def passages(draw, least=1, most=5, shortest=20, longest=60):
    rng = random.Random(draw(st.integers(0, 10**9)))  # quicker than a draw for each word
    marks = " ", " ", " ", ", ", ". ", "\n", ".\n\n", ' "'
    return [
        "".join(
            f"{rng.choice(VOCABULARY)}{rng.choice(marks)}"
            for _ in range(draw(st.integers(shortest, longest)))
        ).strip()
        for _ in range(draw(st.integers(least, most)))
    ]


def parts(texts, *prompts, questions=()):
    """The text of each that is shown; None of one that is not."""
    found = find_shown(texts, prompts, questions)
    return [" ... ".join(piece.text for piece in pieces) or None for pieces in found]


def prompt_of(texts, question="Which?"):
    return TEMPLATE.format("\n\nSource: ".join(texts), question)


def as_bullets(text):
    return "\n".join(f"{n}. {line}" for n, line in enumerate(text.splitlines(), 1))


LAYOUTS = {
    "as it is": lambda text: text,
    "other blanks": lambda text: "  \t".join(text.split()),
    "capitals": str.upper,
    "lines of 40": lambda text: "\n".join(wrap(text, 40, break_on_hyphens=False)),
    "quoted": lambda text: "> " + text.replace("\n", "\n> "),
    "numbered": as_bullets,
    "json": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps({"content": text})),
    "repr": lambda text: repr([{"text": text}]),
    "markup": lambda text: f"<doc id='3'><p>{text.replace('. ', '.</p> <p>')}</p></doc>",
    "bold": lambda text: text.replace("lamp", "**lamp**"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@given(texts=passages())
def test_passages_shown_whole_come_back_unchanged(layout, texts):
    assume(len(set(texts)) == len(texts))
    assert parts(texts, prompt_of(map(LAYOUTS[layout], texts))) == texts


@given(texts=passages(least=2), data=st.data())
def test_passages_that_are_not_in_the_prompt_are_not_shown(texts, data):
    kept = data.draw(st.sets(st.sampled_from(range(len(texts)))))
    prompt = prompt_of([texts[place] for place in kept], "Where is the lamp of the harbour?")
    expected = [text if place in kept else None for place, text in enumerate(texts)]
    assert parts(texts, prompt) == expected


def words_of(text):
    return [word for word in text.replace('"', " ").split() if any(map(str.isalnum, word))]


@given(texts=passages(least=2, shortest=30), data=st.data())
def test_a_cut_is_recovered_to_the_word(texts, data):
    words = texts[0].split(" ")
    size = data.draw(st.integers(12, len(words)))
    start = data.draw(st.integers(0, len(words) - size))
    cut = " ".join(words[start : start + size])
    # What the cut left out does not stand beside it by chance.
    shown = parts(texts, prompt_of([f"Kept: {cut}", *texts[1:]]))
    assert words_of(shown[0]) == words_of(cut)
    assert shown[0] in texts[0]
    assert shown[1:] == texts[1:]


@given(texts=passages(least=1, most=1, shortest=60, longest=90), data=st.data())
def test_both_ends_are_recovered_where_the_middle_is_cut(texts, data):
    words = texts[0].split(" ")
    first, last = data.draw(st.integers(10, 20)), data.draw(st.integers(10, 20))
    ends = " ".join(words[:first]), " ".join(words[-last:])
    # Up to three words that others replace are another wording, and no cut.
    assume(len(words_of(" ".join(words[first:-last]))) > 3)
    (pieces,) = find_shown(texts, [prompt_of([f"{ends[0]}\n[truncated]\n{ends[1]}"])])
    assert [words_of(piece.text) for piece in pieces] == [*map(words_of, ends)]


@given(texts=passages(least=2, most=3))
def test_a_passage_within_another_is_shown_only_where_it_stands_by_itself(texts):
    inner = texts[0]
    outer = f"{texts[1]} {inner} {texts[-1]}"
    both = [inner, outer]
    assert parts(both, prompt_of([outer])) == [None, outer]
    assert parts(both, prompt_of([inner])) == [inner, None]
    assert parts(both, prompt_of([outer, inner])) == both
    assert parts(both[::-1], prompt_of([inner, outer])) == both[::-1]


def test_a_passage_within_the_shown_part_of_a_longer_one_is_not_shown():
    inner = " ".join(VOCABULARY[:10])
    outer = " ".join([*VOCABULARY[10:20], inner, *VOCABULARY[20:]])
    shown = " ".join(outer.split()[:24])
    assert parts([inner, outer], prompt_of([shown])) == [None, shown]


@given(texts=passages(least=1, most=1))
def test_a_passage_shown_twice_is_shown_once_and_its_copy_only_by_a_second_place(texts):
    (text,) = texts
    assert parts([text], prompt_of([text, text])) == [text]
    assert parts([text, text], prompt_of([text])) == [text, None]
    assert parts([text, text], prompt_of([text, text])) == [text, text]


def sheet(number):
    """A form: nine words in ten are those of every other one."""
    return (
        f"Data sheet of the pump Aria-{number}. The pump is made of steel and moves water, oil and "
        f"light fuels through pipes of common size. Its weight is {number * 3 + 1} kilograms, and its "
        f"power {number * 7 + 100} watts. Keep it in a dry place, and do not run it without water. "
        f"Spare parts have the item number {number * 13 + 4000} in the catalogue of the maker."
    )


@pytest.mark.parametrize("layout", ["as it is", "numbered", "json", "lines of 40"])
def test_of_near_copies_only_those_in_the_prompt_are_shown(layout):
    sheets = [sheet(number) for number in range(40)]
    kept = (3, 4, 17)
    shown = parts(sheets, prompt_of([LAYOUTS[layout](sheets[number]) for number in kept]))
    assert shown == [text if n in kept else None for n, text in enumerate(sheets)]


def test_of_near_copies_that_are_cut_those_in_the_prompt_are_shown():
    sheets = [sheet(number) for number in range(40)]
    shown = parts(sheets, prompt_of([sheets[number][:90] for number in (3, 4, 17)]))
    assert [n for n, text in enumerate(shown) if text] == [3, 4, 17]
    assert all(text in sheets[n][:90] for n, text in enumerate(shown) if text)


def test_passages_that_overlap_are_whole_where_their_common_words_stand_once():
    words = [f"{word}{number}" for number in range(6) for word in VOCABULARY[:20]]
    chunks = [" ".join(words[start : start + 50]) for start in range(0, 80, 30)]
    assert parts(chunks, prompt_of([" ".join(words[:80])])) == [*chunks[:2], None]


def test_a_template_that_repeats_the_question_shows_nothing():
    passage = (
        f"{' '.join(VOCABULARY)}. The ferry to the island leaves at seven every morning in winter."
    )
    question = "When does it say that the ferry to the island leaves at seven every morning?"
    prompt = f"{question}\n{TEMPLATE.format('', question)}\n{question}"
    assert parts([passage], prompt, questions=[question]) == [None]
    assert parts([passage], f"{passage}\n{prompt}", questions=[question]) == [passage]


def test_words_that_stand_for_others_are_in_the_shown_text():
    passage = (
        "The ferry leaves the old pier at seven and costs 12 crowns for each of the passengers."
    )
    assert parts([passage], prompt_of([passage.replace("12", "15")])) == [
        passage.replace("12", "15")
    ]


def test_a_word_cut_in_two_is_shown_in_half():
    passage = "The ferry leaves the old pier at seven, and costs twelve crowns for each passenger."
    assert parts([passage], prompt_of([passage[:52]])) == [passage[:52]]
    assert parts([passage], prompt_of([passage[:39]])) == [passage[:39]]


def test_of_a_script_without_blanks_a_cut_is_found_to_the_letter():
    passage = (
        "渡し船は毎朝七時に古い桟橋を出て三つの島に寄り、自転車も運びます。切符は十二クローネです。"
    )
    assert parts([passage], f"文脈:{passage[:25]}\n質問") == [passage[:25]]
    assert parts([passage], f"文脈:{passage}質問") == [passage]


@cache
def long():
    return " ".join(random.Random(5).choices([f"word{n}" for n in range(3000)], k=85_000))


LARGE = {  # made when they are tested
    "no passage": lambda: ([" ".join(long().split()[n::997]) for n in range(50)], long()),
    "cut ones": lambda: ([long()[n * 9000 : n * 9000 + 2000] for n in range(50)], long()[:400_000]),
    "one word": lambda: (["word " * 300 + "end", "word " * 200], "word " * 100_000),
    "forms": lambda: ([sheet(n) for n in range(300)],
                      "\n\n".join(sheet(n)[:300] for n in range(100, 1200))),
    "single letters": lambda: (["a", "b a", "a b a"], "a b " * 120_000),
    "few words": lambda: ([" ".join(random.Random(n).choices("abcd", k=400)) for n in range(20)],
                          " ".join(random.Random(0).choices("abcd", k=200_000))),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", LARGE)
def test_time_is_bounded(kind):
    texts, prompt = LARGE[kind]()
    began = time.process_time()
    find_shown(texts, [prompt])
    assert time.process_time() - began < 5  # less than 0.1 s


def test_a_later_prompt_of_an_agent_repeats_the_earlier_ones():
    oak, pine = (" ".join(VOCABULARY[n : n + 15]) for n in (0, 16))
    found = [Passage(id="oak", text=oak, rank=1), Passage(id="pine", text=pine, rank=2)]
    first = f"Find trees.\nObservation: {oak[:60]}"
    calls = [
        ModelCall("Find trees.", "search oak trees in parks"),
        ModelCall(first, "search pine trees in parks"),
        ModelCall(f"{first}\nsearch pine trees in parks\nObservation: {pine}", "It is a tree."),
    ]
    match = match_prompts(found, calls, "It is a tree.", ["Which?"])
    assert match.shown == {
        "oak": oak[:60].rsplit(" ", 1)[0] if oak[59] == " " else oak[:60],
        "pine": pine,
    }

"""What a text states, and how it is exchanged."""

import pytest

from misslink.selftests.values import (
    Value,
    deny,
    exchange,
    exchange_roles,
    exchange_unit,
    far_value,
    find_values,
    language_of,
    near_value,
    other_values,
)


def found(text):
    return [(value.kind, value.text) for value in find_values(text)]


def test_numbers_dates_and_names_are_found_and_marks_are_not():
    text = (
        "In 1904 the harbour of Holm opened with 12 cranes [3]. On 5 March 2024 Ida Brandt paid "
        "1,250.50 euros for `list.sort`.\n2. A second item."
    )
    assert found(text) == [
        ("date", "1904"),
        ("name", "Holm"),
        ("number", "12"),
        ("date", "5 March 2024"),
        ("name", "Ida Brandt"),
        ("number", "1,250.50"),
        ("name", "`list.sort`"),
    ]


def test_the_first_word_of_a_sentence_is_no_name():
    assert found("Ferries leave early. Bicycles travel free. The Kontor is shut.") == [
        ("name", "Kontor")
    ]


@pytest.mark.parametrize(
    ("kind", "text", "near", "far"),
    [
        ("number", "12", "13", "97"),
        ("number", "1,250", "1,375", "8,763"),
        ("number", "2.5", "3.5", "30.5"),
        ("number", "three", "four", "ten"),
        ("date", "1904", "1905", "1867"),
        ("date", "5 March", "5 April", "5 October"),
        ("name", "Holm", None, None),
    ],
)
def test_values_move_a_little_or_far(kind, text, near, far):
    value = Value(kind, text, 0, len(text))
    assert (near_value(value), far_value(value)) == (near, far)


def test_other_values_are_of_the_same_form():
    year = Value("date", "1904", 0, 4)
    assert list(other_values(year, ["Built in 1911 and opened on 5 March 2024."])) == ["1911"]
    name = Value("name", "Guido van Rossum", 0, 16)
    assert list(other_values(name, ["So said Rossum to Ada Holm in `list`."])) == ["Ada Holm"]


def test_exchange_leaves_longer_words_and_numbers_alone():
    assert exchange("12 of 120 and 12.5, 12.", "12", "9") == "9 of 120 and 12.5, 9."


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("It takes 5 minutes.", "It takes 5 hours."),
        ("It costs $30 a day.", "It costs €30 a day."),
        ("Load 40% of it.", "Load 40 permille of it."),
        ("Es dauert 3 Stunden.", "Es dauert 3 Tage."),
        ("Nothing is measured.", None),
    ],
)
def test_units(text, other):
    assert exchange_unit(text) == other


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("The tower is high.", "The tower is not high."),
        ("The tower is not high.", "The tower is high."),
        ("You cannot pay in cash on the ferry.", "You can pay in cash on the ferry."),
        ("Der Turm ist hoch und die Lampe ist hell.", "Der Turm ist nicht hoch und die Lampe ist hell."),
        ("La tour est haute.", None),
    ],
)  # fmt: skip
def test_denials(text, other):
    assert deny(text) == other


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("In May the firm Acme bought Globex for cash.", "In May the firm Globex bought Acme for cash."),
        ("The cities Holm and Arden lie north.", None),
        ("Nothing here has names.", None),
    ],
)  # fmt: skip
def test_roles(text, other):
    assert exchange_roles(text) == other


def test_languages_without_rules_are_none():
    assert language_of("The tower is high.") == "en"
    assert language_of("Der Turm ist hoch.") == "de"
    assert language_of("La tour est haute et belle.") is None
    assert language_of("塔は高いです。") is None

"""Every way of writing a quantity is the same quantity, and any other value is another."""

import re
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from misslink.matching import quantities
from misslink.matching.quantities import (
    find_quantities,
    other_amount,
    readable,
    same_amount,
    says,
)

ENGLISH = "January February March April May June July August September October November December"
GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"


def only(text):
    (quantity,) = find_quantities(readable(text))
    return quantity


def written_dates(day):
    name, german = (names.split()[day.month - 1] for names in (ENGLISH, GERMAN))
    suffix = "th" if 10 <= day.day <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return (
        f"{day.isoformat()}",
        f"{day:%Y/%m/%d}",
        f"{day.day} {name} {day.year}",
        f"{day.day:02} {name[:3]} {day.year}",
        f"{name} {day.day}, {day.year}",
        f"{name[:3]}. {day.day}, {day.year}",
        f"the {day.day}{suffix} of {name} {day.year}",
        f"{name} {day.day}{suffix}, {day.year}",
        f"{day:%A}, {day.day} {name} {day.year}",
        f"{day.day}. {german} {day.year}",
        f"{day.day}.{day.month}.{day.year}",
        f"{day:%d.%m.%Y}",
        f"{day.year}年{day.month}月{day.day}日",
        f"{day.year}년 {day.month}월 {day.day}일",
        *([f"{day.day}/{day.month}/{day.year}"] if day.day > 12 else ()),
        *([f"{day.month}/{day.day}/{day.year}"] if day.day > 12 else ()),
    )


DAYS = st.dates(date(1000, 1, 1), date(2999, 12, 31))


@given(DAYS, st.data())
def test_a_date_is_the_same_however_it_is_written(day, data):
    ways = st.sampled_from(written_dates(day))
    one, other = (only(f"It opened on {data.draw(ways)}.") for _ in range(2))
    assert one.amounts == {("date", (day.year, day.month, day.day))}
    assert same_amount(one, other)
    assert not other_amount(one, other)


@given(DAYS, st.integers(1, 10_000), st.data())
def test_another_date_is_another_however_it_is_written(day, later, data):
    other = min(day, date(2990, 1, 1) - timedelta(later)) + timedelta(later)
    if day == other:
        return
    one, another = (
        only(f"It opened on {data.draw(st.sampled_from(written_dates(each)))}.")
        for each in (day, other)
    )
    assert other_amount(one, another)
    assert not same_amount(one, another)
    assert not says(one, another)


def written_times(minutes):
    hour, minute = divmod(minutes, 60)
    half, name = ("am", "a.m.") if hour < 12 else ("pm", "p.m.")
    twelve = hour % 12 or 12
    return (
        f"{hour}:{minute:02}",
        f"{hour:02}:{minute:02}",
        f"{hour}.{minute:02} Uhr",
        f"{hour}:{minute:02} Uhr",
        f"{twelve}:{minute:02} {half}",
        f"{twelve}.{minute:02}{half}",
        f"{twelve}:{minute:02} {name}",
        *([f"{twelve} {half}", f"{hour} Uhr", f"{hour}時"] if minute == 0 else ()),
    )


@given(st.integers(0, 1439), st.integers(0, 1439), st.data())
def test_a_clock_time_is_the_same_however_it_is_written_and_no_other(one, other, data):
    first, same, last = (
        only(f"It leaves at {data.draw(st.sampled_from(written_times(each)))} daily")
        for each in (one, one, other)
    )
    assert same_amount(first, same)
    assert other_amount(first, last) == (one != other)


def written_numbers(number):
    german = f"{number:,}".replace(",", ".")
    return (f"{number}", f"{number:,}", f"{number:,}".replace(",", " "), german)


MEASURES = (
    (("km", 1000), ("kilometres", 1000), ("m", 1), ("Meter", 1), ("metres", 1), ("cm", 0.01)),
    (("hours", 60), ("Stunden", 60), ("h", 60), ("minutes", 1), ("min", 1), ("Minuten", 1)),
    (("kg", 1000), ("kilograms", 1000), ("g", 1), ("Gramm", 1), ("tonnes", 1e6)),
    (("litres", 1), ("l", 1), ("ml", 0.001), ("Liter", 1)),
    (("GB", 1e9), ("MB", 1e6)),
    (("years", 12), ("months", 1), ("Jahre", 12)),
    (("weeks", 7), ("days", 1), ("Tage", 1)),
)


@given(st.sampled_from(MEASURES), st.integers(1, 99_999), st.integers(1, 9_999), st.data())
def test_a_measure_is_the_same_in_all_units_and_another_value_is_another(units, n, more, data):
    (unit, factor), (name, size) = (data.draw(st.sampled_from(units)) for _ in range(2))
    one = only(f"it has {data.draw(st.sampled_from(written_numbers(n)))} {unit} in all")
    converted = round(n * factor / size, 9)
    if converted >= 1e-3 and len(f"{converted:.10g}") < 9:
        assert same_amount(one, only(f"it has {converted:.10g} {name} in all"))
    another = only(f"it has {n + more} {unit} in all")
    assert other_amount(only(f"it has {n} {unit} in all"), another)


@given(st.integers(1, 9_999_999), st.integers(1, 999), st.booleans(), st.data())
def test_money_and_its_sign_are_read_in_all_forms(n, more, minus, data):
    def written(number):
        return (
            f"€{number}",
            f"{number} €",
            f"{number:,} euros",
            f"EUR {number}",
            f"{number} Euro",
            *([f"€ {number:,}.00", f"{number / 1e6:.6f} million euros"] if number > 999 else ()),
        )

    sign = data.draw(st.sampled_from("-\u2212\u2013")) if minus else ""
    one, other, larger, dollars = (
        only(f"the balance is {sign}{text} today")
        for text in (
            *(data.draw(st.sampled_from(written(n))) for _ in range(2)),
            data.draw(st.sampled_from(written(n + more))),
            f"{n} dollars",
        )
    )
    assert one.amounts == {("money:EUR", float(f"{-n if minus else n:.12g}"))}
    assert same_amount(one, other)
    assert other_amount(one, larger)
    assert not same_amount(one, dollars)
    if minus:
        assert other_amount(one, only(f"the balance is {n} euros today"))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("half past seven", "19:30"),
        ("quarter to eight", "7:45 am"),
        ("halb acht", "7:30 Uhr"),
        ("7 in the evening", "19 Uhr"),
        ("noon", "12:00"),
        ("midnight", "0:00"),
        ("one and a half hours", "90 minutes"),
        ("an hour and a half", "1 h 30 min"),
        ("anderthalb Stunden", "90 Minuten"),
        ("half an hour", "30 min"),
        ("8 minutes and 20 seconds", "500 s"),
        ("18 months", "1.5 years"),
        ("5 feet 9 inches", "175 cm"),
        ("26 miles", "42 km"),
        ("68 °F", "20 °C"),
        ("20 ℃", "20 degrees Celsius"),
        ("minus 20 degrees", "\u221220 °C"),
        ("20 degrees below zero", "-20 degrees"),
        ("75%", "75 percent"),
        ("75 Prozent", "75 per cent"),
        ("$5m", "5,000,000 dollars"),
        ("2,5 Millionen Euro", "€2.5 million"),
        ("US$9", "9 USD"),
        ("40 cents", "$0.40"),
        ("3 \u00d7 10⁸ m/s", "300000000 m/s"),
        ("½ cup", "1/2 cup"),
        ("1½ cups", "1.5 cups"),
        ("third floor", "3rd floor"),
        ("der dritte Stock", "third floor"),
        ("the second floor", "2nd floor"),
        ("zweihundertfünfzig Meter", "250 m"),
        ("einundzwanzig", "twenty-one"),
        ("zweitausendvierundzwanzig", "2024"),
        ("two dozen", "24"),
        ("12.500", "12500"),
        ("12.000 Einwohner", "12000"),
        ("1.234.567,89 €", "€1,234,567.89"),
        ("12 500", "12500"),
        ("montags", "Mondays"),
        ("300元", "300 yuan"),
        ("5公里", "5 km"),
        ("3万", "30000"),
    ],
)
def test_other_forms_of_a_quantity_are_the_same(one, other):
    assert same_amount(only(one), only(other))
    assert not other_amount(only(one), only(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3 March", "3 May"),
        ("March 2024", "May 2024"),
        ("in March", "in May"),
        ("March", "2023-05-01"),
        ("2023", "3 March 2024"),
        ("7 am", "7 pm"),
        ("20 °C", "-20 °C"),
        ("\u2212300", "300"),
        ("90 minutes", "90 hours"),
        ("5 million", "5 billion"),
        ("Monday", "dienstags"),
        ("third", "fourth"),
        ("5 km", "5.01 km"),
        ("50 cents", "0.40 dollars"),
        ("40 miles", "40 km"),
    ],
)
def test_another_value_of_the_same_kind_is_another(one, other):
    text = f"in {one}" if one == "March" else one
    assert other_amount(only(text), only(other))
    assert not says(only(text), only(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("5 km", "5 kg"), ("€9", "$9"), ("3 March", "7 pm"), ("3rd", "3"), ("in 2024", "3 March")],
)
def test_other_kinds_are_neither_the_same_nor_another_value(one, other):
    assert not same_amount(only(one), only(other))
    assert not other_amount(only(one), only(other))


def test_a_date_says_what_one_without_its_year_says_and_not_the_reverse():
    whole, day, year = map(only, ("3 March 2024", "March 3", "2024"))
    assert says(whole, day)
    assert says(whole, year)
    assert not says(day, whole)
    assert not says(year, whole)
    assert not other_amount(day, whole)
    assert not other_amount(year, whole)


def test_a_range_shares_its_unit_and_an_hyphen_is_no_sign():
    for text in ("5-10 km", "5 to 10 km", "5 km\u201310 km", "5 bis 10 km"):
        found = find_quantities(readable(text))
        assert [q.amounts for q in found] == [{("length", 5000.0)}, {("length", 10000.0)}]
    days = find_quantities(readable("3\u20135 March 2024"))
    assert [q.amounts for q in days] == [{("date", (2024, 3, 3))}, {("date", (2024, 3, 5))}]
    prices = find_quantities(readable("$5-10"))
    assert [q.amounts for q in prices] == [{("money:USD", 5.0)}, {("money:USD", 10.0)}]
    assert only("AB-12").amounts == {("count", 12.0)}


@pytest.mark.parametrize("text", ["In the 1980s.", "All may go.", "Version v2b.", "a second", "May I?", ""])  # fmt: skip
def test_what_is_no_quantity_is_none(text):
    assert find_quantities(readable(text)) == ()


def test_a_version_or_ratio_is_compared_part_by_part():
    assert same_amount(only("1.0.2"), only("1.0.2"))
    assert other_amount(only("1.0.2"), only("1.0.3"))
    assert other_amount(only("3:1"), only("4:1"))


def test_an_unclear_date_may_mean_either_day():
    either = only("3/4/2024")
    assert same_amount(either, only("3 April 2024"))
    assert same_amount(either, only("March 4, 2024"))
    assert other_amount(either, only("5 April 2024"))


@given(
    st.text(alphabet="0123456789.,:/-\u2212$€% °CmkMay年月日時uhrphalf \n") | st.text(max_size=40)
)
def test_any_text_is_read_and_places_hold_the_digits(text):
    prepared = readable(text)
    for quantity in find_quantities(prepared):
        assert 0 <= quantity.start < quantity.end <= len(prepared)
        assert quantity.amounts
        assert quantity.kinds


@pytest.mark.parametrize(
    "text", ["1" * 6_000, "1e9991e999", "1" * 6_000 + "\u00bd", "10^99999", "3/0", "99/99/2024"]
)
def test_hostile_numbers_are_read_or_left_out(text):
    assert len(find_quantities(readable(text))) <= 3


PIECES = (
    *("3", "12", "1990", "5.5", "-4", "minus 4", "3/4", "1,200", "$", "us$", "usd", "eur 5", "%"),
    *("km", "pm", "half", "halb 8", "march", "marches", "may", "mayor", "monday", "noon", "tag"),
    *("7:30", "2024-03-03", "10^5", "second", "forest", "a320", "the"),
)


@given(st.lists(st.sampled_from(PIECES), max_size=6), st.sampled_from(("", " ", ", ", "-")))
def test_the_short_search_for_numbers_finds_what_the_search_for_all_forms_does(pieces, between):
    text = readable(between.join(pieces))
    found = find_quantities.__wrapped__(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quantities, "_WORD", re.compile(""))  # as if any text had a month
        assert find_quantities.__wrapped__(text) == found

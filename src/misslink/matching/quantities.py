"""Quantities of texts: numbers, measures, money, dates and clock times, and what they amount to.

English and German words, and unit symbols everywhere. `readable` prepares a text and
`find_quantities` reads it; places are offsets in what `readable` returns.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

from misslink.text.normalization import (
    fold,
    number_words_to_digits,
    numbered,
    one_of,
)

# A date is (year, month, day) with None for what it does not say; a version has all its parts.
Value = float | tuple[int | None, ...]
Amount = tuple[str, Value]

_UNITS = """
time 1: s sec secs second seconds sekunde sekunden 秒 초
time 0.001: ms millisecond milliseconds millisekunde millisekunden
time 60: m min mins minute minutes minuten 分 分钟 分鐘 分間 분
time 3600: h hr hrs hour hours std stunde stunden 時間 小时 小時 시간
time 86400: day days tag tage tagen 天 日間 일
time 604800: week weeks woche wochen 週間 周 주
months 1: month months monat monate monaten 个月 か月 ヶ月 개월
months 12: year years jahr jahre jahren 年 年間 년
months 120: decade decades jahrzehnt jahrzehnte jahrzehnten
months 1200: century centuries jahrhundert jahrhunderte jahrhunderten
length 1: m meter meters metre metres metern 米 メートル
length 1000: km kilometer kilometers kilometre kilometres kilometern 公里 キロメートル
length 0.01: cm centimeter centimeters centimetre centimetres zentimeter zentimetern 厘米 センチ
length 0.001: mm millimeter millimeters millimetre millimetres millimetern 毫米
length 0.000001: μm micrometer micrometers micrometre micrometres
length 0.000000001: nm nanometer nanometers nanometre nanometres
mass 1: g gram grams gramm gramme grammes 克
mass 1000: kg kilo kilos kilogram kilograms kilogramm 公斤
mass 0.001: mg milligram milligrams milligramm
mass 0.000001: μg mcg microgram micrograms mikrogramm
mass 1000000: t ton tonne tons tonnes tonnen 吨
mass 500: pfund
volume 1: l liter liters litre litres litern 升
volume 0.1: dl
volume 0.01: cl
volume 0.001: ml milliliter milliliters millilitre millilitres 毫升
volume 1000: m3 m^3 cubic_meters cubic_metres kubikmeter kubikmetern
area 1: m2 m^2 sqm sq_m square_meters square_metres quadratmeter quadratmetern qm 平方米
area 1000000: km2 km^2 sq_km square_kilometers square_kilometres quadratkilometer quadratkilometern
area 10000: ha hectare hectares hektar
speed 1: m/s
speed 0.277777777777778: km/h kmh kph
data 1e3: kb kilobyte kilobytes
data 1e6: mb megabyte megabytes
data 1e9: gb gigabyte gigabytes
data 1e12: tb terabyte terabytes
power 1: w watt watts
power 1000: kw kilowatt kilowatts
power 1e6: mw megawatt megawatts
energy 1: kwh kilowatt_hours kilowattstunden
energy 1000: mwh
frequency 1: hz hertz
frequency 1e3: khz
frequency 1e6: mhz
frequency 1e9: ghz
percent 1: % percent per_cent pct prozent
celsius 1: °c °_c celsius degrees_celsius grad_celsius ° degrees grad
count 1000: k
count 1000000: m
EUR 1: € eur euro euros
USD 1: $ us$ usd dollar dollars
EUR,USD 0.01: cent cents ct
GBP 1: £ gbp pound pounds
GBP 0.01: pence penny
JPY 1: ¥ jpy yen 円
CNY 1: ¥ cny rmb yuan 元
KRW 1: ₩ krw 원
CHF 1: chf franken franc francs
INR 1: ₹ inr rs rupee rupees
RUB 1: ₽ rub ruble rubles rubel
PLN 1: pln zł zloty
SEK,NOK,DKK 1: kr
SEK,NOK,DKK,CZK 1: krone kroner kronor kronen crown crowns
"""
_IMPERIAL_UNITS = """
length 0.0254: inch inches zoll
length 0.3048: ft foot feet fuß
length 0.9144: yd yard yards
length 1609.344: mi mile miles meile meilen
mass 28.349523125: oz ounce ounces
mass 453.59237: lb lbs pound pounds
volume 3.785411784: gallon gallons
volume 0.473176473: pint pints
area 4046.8564224: acre acres
area 0.09290304: sq_ft square_feet ft2
speed 0.44704: mph
speed 0.514444444444444: knots
fahrenheit 1: °f °_f fahrenheit degrees_fahrenheit grad_fahrenheit ° degrees
"""
SCALES = {
    fold(name): factor
    for factor, names in {
        12: "dozen dutzend",
        1e3: "thousand tausend tsd 千",
        1e4: "万 萬 만",
        1e6: "million millions millionen mio",
        1e8: "亿 億 억",
        1e9: "billion billions bn mrd milliarde milliarden",
        1e12: "trillion trillions billionen",
    }.items()
    for name in names.split()
}


def _unit_readings(table: str) -> dict[str, list[tuple[str, float]]]:
    """By the folded name of a unit, the kinds that it may measure, with their factors."""
    readings = defaultdict[str, list[tuple[str, float]]](list)
    for line in table.strip().splitlines():
        head, names = line.split(": ")
        kinds, factor = head.split()
        for name, kind in product(names.split(), kinds.split(",")):
            measured = f"money:{kind}" if kind.isupper() else kind
            readings[fold(name).replace("_", " ")].append((measured, float(factor)))
    return readings


_READINGS = _unit_readings(_UNITS + _IMPERIAL_UNITS.lstrip())  # "m" has several
_IMPERIAL = frozenset(_unit_readings(_IMPERIAL_UNITS)) - {"\u00b0", "degrees"}
_ROUNDED = 0.01  # people round where they go from miles to metres,
_ROUNDED_DEGREES = 0.5  # or from Fahrenheit to Celsius


_MONTHS = numbered(
    "jan january januar janner|feb february februar|mar march marz|apr april|may mai|jun june juni"
    "|jul july juli|aug august|sep sept september|oct october okt oktober|nov november"
    "|dec december dez dezember",
    first=1,
)
_WEEKDAYS = numbered(
    "monday montag|tuesday dienstag|wednesday mittwoch|thursday donnerstag|friday freitag"
    "|saturday samstag sonnabend|sunday sonntag",
    first=0,
)
_DAYS = {name: range(day, day + 1) for name, day in _WEEKDAYS.items()}
_DAYS |= {"weekday": range(5), "weekend": range(5, 7), "wochenende": range(5, 7)}


# No word goes on before or behind a quantity, but for scripts that put no blanks between words.
_OTHER = "\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\u0e00-\u0e7f"
_START, _END = rf"(?<![^\W{_OTHER}])(?<!\d[.,:/])", rf"(?![^\W{_OTHER}])"
_SIGN = rf"(?:(?<![^\s(\[:=~,{_OTHER}])(?<!\d )-|\bminus )"  # elsewhere it is a hyphen or a range
_NUMBER = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![,\d])|\d{1,3}(?:[ ']\d{3})+(?:\.\d+)?(?![ ']?\d)"
    r"|\d{1,3}(?:\.\d{3})+,\d+|\d+ \d/\d|\d+/\d+|\d+(?:[.:]\d+)*"
)
_MONTH, _DAY, _YEAR = rf"(?:{one_of(_MONTHS)})\b\.?", r"(?:0?[1-9]|[12]\d|3[01])", r"[12]\d{3}"
_LONG_MONTHS = tuple(name for name in _MONTHS if len(name) > 4 and name != "march")
_WEEKDAY = one_of(_WEEKDAYS)
_CURRENCY = one_of(
    name
    for name, readings in _READINGS.items()
    if readings[0] == (readings[0][0], 1) and "money" in readings[0][0]
    if not name.isalpha() or len(name) <= 3
)
_PART = (
    r"(?: ?(?:(?P<am{0}>am\b(?! (?:\w+tag|abend|\d))|a\.m\.?|in the morning|morgens|vormittags)"
    r"|(?P<pm{0}>pm\b|p\.m\.?|in the (?:afternoon|evening)|nachmittags|abends)))"
)
_Y, _M, _D = (rf"(?:{one_of(map(fold, signs))})" for signs in ("年년", "月월", "日일"))
# What a group is named, but for its digits, says what it holds.
_FORMS = (
    # 2024-03-03, 03.03.2024, 3/3/2024
    rf"(?P<y1>{_YEAR})(?P<to1>[-/.]) ?(?P<m1>\d\d?)(?P=to1) ?(?P<d1>{_DAY})(?!\d)",
    rf"(?P<d2>\d\d?)(?P<by2>[-/.]) ?(?P<m2>\d\d?)(?P=by2) ?(?P<y2>{_YEAR})(?!\d)",
    # 2024年3月3日, 3月, 午後7時30分
    rf"(?P<y3>{_YEAR})\s?{_Y}(?:\s?(?P<m3>\d\d?){_M}(?:\s?(?P<d3>{_DAY}){_D})?)?",
    rf"(?P<m4>\d\d?){_M}(?:\s?(?P<d4>{_DAY}){_D})?",
    (rf"(?:(?P<am5>午前|上午|早上|{fold('오전')}) ?|(?P<pm5>午後|下午|晚上|{fold('오후')}) ?)?"
     rf"(?P<hour5>[01]?\d|2[0-4])(?:時(?!間)|时|点|點|{fold('시')}(?!{fold('간')}))"
     rf"(?:\s?(?P<minute5>[0-5]\d)(?:分|{fold('분')}))?"),
    # Sunday, 3 March 2024, the 3rd of March, 3. März
    (rf"(?:(?:{_WEEKDAY}),? (?:the |den |dem |on )*)?(?P<d5>{_DAY})(?:st|nd|rd|th|\.)? ?(?:of )?"
     rf"(?P<m5>{_MONTH})(?!(?<=may) (?:be|have|not|also|only|still|need|take|cost)\b)"
     rf"(?: ?,? (?:of )?(?P<y5>{_YEAR})\b)?"),
    # March 3, 2024, March 2024, in March
    (rf"(?:(?:{_WEEKDAY}),? )?(?P<m6>{_MONTH}) (?:the )?(?P<d6>{_DAY})(?:st|nd|rd|th)?\b(?![:.]\d)"
     rf"(?: ?,? (?P<y6>{_YEAR})\b)?"),
    rf"(?P<m7>{_MONTH}) ?,? (?:of )?(?P<y7>{_YEAR})\b",
    rf"(?:(?P<m8>{one_of(_LONG_MONTHS)})|(?<=\bin )(?P<m9>march|may|june|july)|(?<=\bim )(?P<m10>mai|juni|juli))\b",
    rf"(?P<weekday>{one_of(_DAYS)})s?\b",
    r"(?P<noon>(?:12 )?(?:noon|midday|midnight|mitternacht)\b)",
    # half past 7, halb 8, 19:00, 7.30 pm, 7 o'clock, 19 Uhr 30
    (r"(?P<past>halb|(?:half|quarter|viertel) (?:past|to|nach|vor)) (?P<hour1>1[0-2]|[1-9])\b"
     rf"(?: (?:uhr|o'clock))?{_PART.format(1)}?"),
    (r"(?P<hour2>[01]?\d|2[0-4]):(?P<minute2>[0-5]\d)(?::[0-5]\d)?(?![\d:])(?: (?:uhr|o'clock))?"
     rf"{_PART.format(2)}?"),
    (r"(?P<hour3>[01]?\d|2[0-4])(?:\.(?P<minute3>[0-5]\d))? ?(?P<oclock3>uhr|o'clock)"
     rf"(?: (?P<minute4>[0-5]\d)\b)?{_PART.format(3)}?"),
    rf"(?P<hour4>1[0-2]|0?[1-9])(?:\.(?P<minute6>[0-5]\d))?{_PART.format(4)}",
    # -20 °C, 1.2 million euros, $1,200, 3 x 10^8 m/s, 3rd
    (rf"(?P<minus1>{_SIGN})?(?:(?P<currency>{_CURRENCY}) ?(?=[-\d]))?(?(currency)(?P<minus2>-)?)"
     rf"(?P<number>(?>{_NUMBER}))(?:(?: ?[x\u00d7*·] ?10\^|e)(?P<power>-?\d\d?)(?!\d))?"
     rf"(?:[ -]?(?P<scale>{one_of(SCALES)}){_END})?"
     rf"(?:(?P<ordinal>st|nd|rd|th)\b|[ -]?(?<!\d(?=s\b))(?P<unit>{one_of(_READINGS)}))?"
     rf"(?![^\W{_OTHER}]|[°%])(?P<below> (?:below|unter) (?:0|null|freezing))?"),
)  # fmt: skip
# What a form without digits has one of.
_NAMES = ["noon", "midday", "midnight", "mitternacht", "halb", "half", "quarter", "viertel"]
_WORD = re.compile(rf"(?:{one_of((*_MONTHS, *_DAYS, *_NAMES))})s?\b")
_NUMERALS = "0123456789"
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+(?:[.:]\d+|,\d{3}(?!\d))*")
LONGEST_NUMBER = 60  # characters; a longer one amounts to nothing
_GERMAN_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_JOINT = re.compile(r" ?,? ?(?:and |und )?")  # between the parts of "8 minutes and 20 seconds"
_LEADING_NUMBER = re.compile(r"-?\d(?:[\d.,:/]*\d)?")
_LAST_NUMBER = re.compile(r"\d(?:[\d.,:/]*\d)?$")
_RANGE = re.compile(r" ?- ?| (?:to|bis) ")
_A_SCALE = re.compile(
    r"\b(?:an?|eine?) (?=(?:dozen|dutzend|million|milliarde|billion)\b"
    r"|(?:minute|hour|stunde|day|tag|week|woche|month|monat|year|jahr) (?:and|und) \d)"
)
_HALF_A = re.compile(r"\bhalf an? |\bein(?:e[rnm]?)? halbe[rnsm]? ")
_AND_A_HALF = re.compile(r"\ban? (\w+) and a half\b|\b(?:anderthalb|eineinhalb)\b")
_SECOND = re.compile(r"(?<!\d )(?<!\ba )(?<!\bper )(?<!\beach )(?<!\bevery )\bsecond\b")  # no time
_FRACTION = re.compile(r"(?:(?<!\d)(\d{1,6}) ?)?([\u00bc-\u00be\u2150-\u215e])")
_GERMAN_UNITS = numbered("ein|zwei|drei|vier|funf|sechs|sieben|acht|neun", first=1)
_GERMAN_TENS = numbered(
    "zwanzig|dreissig|vierzig|funfzig|sechzig|siebzig|achtzig|neunzig", first=20, step=10
)
_GERMAN_TEENS = "zehn|elf|zwolf|dreizehn|vierzehn|funfzehn|sechzehn|siebzehn|achtzehn|neunzehn"
_GERMAN_NUMBERS = {"": 0, "eins": 1, **_GERMAN_UNITS, **numbered(_GERMAN_TEENS, first=10)}
_GERMAN_NUMBERS |= _GERMAN_TENS | {
    f"{unit}und{ten}": _GERMAN_UNITS[unit] + _GERMAN_TENS[ten]
    for unit, ten in product(_GERMAN_UNITS, _GERMAN_TENS)
}
_BELOW_100 = f"(?:{one_of(filter(None, _GERMAN_NUMBERS))})"
_BELOW_1000 = rf"(?:{_BELOW_100}?hundert(?:und)?{_BELOW_100}?|{_BELOW_100})"
_GERMAN_NUMBER = re.compile(
    rf"(?<!\d )\b(?!eine?\b)(?:{_BELOW_1000}?tausend(?:und)?{_BELOW_1000}?|{_BELOW_1000})\b"
)
_GERMAN_ORDINALS = numbered("erst|zweit|dritt|viert|funft|sechst|siebt|acht|neunt|zehnt", first=1)
_GERMAN_ORDINAL = re.compile(rf"\b({one_of(_GERMAN_ORDINALS)})e[rnms]?\b")
_GERMAN_STARTS = tuple(
    {name[:4] for name in (*_GERMAN_NUMBERS, *_GERMAN_ORDINALS, "hundert", "tausend") if name}
)
_ORDINAL_ENDINGS = {1: "st", 2: "nd", 3: "rd"}


@lru_cache(maxsize=8_192)
def readable(text: str) -> str:
    """Return a text folded, with digits for number words of English and German."""
    if not text.isascii():
        text = _FRACTION.sub(lambda m: f"{int(m[1] or 0) + unicodedata.numeric(m[2]):.12g}", text)
    folded = number_words_to_digits(fold(text))
    if any(map(folded.__contains__, _GERMAN_STARTS)):
        folded = _GERMAN_ORDINAL.sub(_ordinal_digits, folded)
        folded = _GERMAN_NUMBER.sub(lambda m: str(_german_value(m[0])), folded)
    folded = _A_SCALE.sub("1 ", folded)
    if "hal" in folded:  # half, halb
        folded = _AND_A_HALF.sub(lambda m: f"1.5 {m[1] or ''}".strip(), folded)
        folded = _HALF_A.sub("0.5 ", folded)
    return _SECOND.sub("2nd", folded) if "second" in folded else folded


def _ordinal_digits(word: re.Match[str]) -> str:
    number = _GERMAN_ORDINALS[word[1]]
    return f"{number}{_ORDINAL_ENDINGS.get(number, 'th')}"


def _german_value(word: str) -> int:
    for name, size in (("tausend", 1_000), ("hundert", 100)):
        more, found, less = word.partition(name)
        if found:
            return (_german_value(more) or 1) * size + _german_value(less.removeprefix("und"))
    return _GERMAN_NUMBERS[word]


class Quantity(NamedTuple):
    """What a readable text counts, measures or dates: place, digits, unit, and the amounts it may mean."""

    start: int
    end: int
    digits: str
    unit: str  # empty for a mere number
    amounts: frozenset[Amount]

    @property
    def kinds(self) -> frozenset[str]:
        """'length', 'money:EUR', 'date', 'clock', 'count' and so on; "m" measures several."""
        return frozenset(kind for kind, _ in self.amounts)


def same_amount(one: Quantity, other: Quantity, rounding: float = 0.0) -> bool:
    """Whether two quantities amount to the same; in other units, up to a share that is rounded.

    People always round between miles and kilometres, or Fahrenheit and Celsius.
    """
    if not one.amounts.isdisjoint(other.amounts):
        return True
    if (one.unit in _IMPERIAL) != (other.unit in _IMPERIAL):
        rounding = max(rounding, _ROUNDED)
    return (
        rounding > 0
        and one.unit != other.unit
        and any(
            kind == other_kind and _is_near(kind, value, other_value, rounding)
            for (kind, value), (other_kind, other_value) in product(one.amounts, other.amounts)
        )
    )


def says(one: Quantity, other: Quantity) -> bool:
    """Whether `one` says all that `other` does: of two dates one may leave out its year."""
    return same_amount(one, other) or any(
        all(part in (None, own) for own, part in zip(*dates, strict=True))
        for dates in _dates(one, other)
    )


def other_amount(one: Quantity, other: Quantity) -> bool:
    """Whether two quantities are of the same kind, and no reading of them is the same."""
    if same_amount(one, other):
        return False
    dates = [
        [own == part for own, part in zip(*dates, strict=True) if None not in (own, part)]
        for dates in _dates(one, other)
    ]
    if any(each and all(each) for each in dates):
        return False
    return any(dates) or not (one.kinds & other.kinds) <= {"date"}


def _dates(one: Quantity, other: Quantity) -> Iterator[tuple[tuple[int | None, ...], ...]]:
    dates = ([v for kind, v in each.amounts if kind == "date"] for each in (one, other))
    return ((a, b) for a, b in product(*dates) if isinstance(a, tuple) and isinstance(b, tuple))


def _is_near(kind: str, value: Value, other: Value, rounding: float) -> bool:
    if isinstance(value, tuple) or isinstance(other, tuple):
        return False
    margin = _ROUNDED_DEGREES if kind == "temperature" else rounding * abs(value)
    return abs(value - other) <= margin


@lru_cache(maxsize=8_192)
def find_quantities(readable: str) -> tuple[Quantity, ...]:
    """Return the quantities of a text that is folded, with digits for number words, in order.

    "8 minutes and 20 seconds" is one, and of "5 to 10 minutes" both are minutes.
    """
    found: list[Quantity] = []
    if readable.isascii() and not (_DIGIT.search(readable) or _WORD.search(readable)):
        return ()
    for match in _form().finditer(readable):
        quantity = _read(match)
        if quantity is None:
            continue
        if found and _RANGE.fullmatch(readable, found[-1].end, quantity.start):
            found[-1], quantity = _share_unit(readable, found[-1], quantity)
        elif (
            found
            and _JOINT.fullmatch(readable, found[-1].end, quantity.start)
            and (sums := _sums(found[-1], quantity))
        ):
            start, _, digits, *_ = found.pop()
            digits = f"{digits} {quantity.digits}"
            quantity = quantity._replace(start=start, digits=digits, amounts=sums)
        found.append(quantity)
    return tuple(found)


@cache
def _form() -> re.Pattern[str]:
    return re.compile(rf"{_START}(?:{'|'.join(_FORMS)})")


def _share_unit(text: str, first: Quantity, last: Quantity) -> tuple[Quantity, Quantity]:
    """The ends of a range; one that is a mere number has the unit of the other."""
    words, others = text[first.start : first.end], text[last.start : last.end]
    if not first.unit and last.unit:
        whole = find_quantities(words + _LEADING_NUMBER.sub("", others, count=1))
        first = _only(whole, first)
    elif first.unit and not last.unit and not words[0].isdigit():
        last = _only(find_quantities(_LAST_NUMBER.sub("", words) + others), last)
    return first, last


def _only(found: Sequence[Quantity], bare: Quantity) -> Quantity:
    if len(found) != 1 or not found[0].unit:
        return bare
    return bare._replace(unit=found[0].unit, amounts=found[0].amounts)


def _sums(before: Quantity, after: Quantity) -> frozenset[Amount]:
    """What two quantities make together: the second is less than one unit of the first."""
    return frozenset(
        (kind, _round(more + less))
        for (kind, more), (other, less) in product(before.amounts, after.amounts)
        if kind == other and not isinstance(more, tuple) and not isinstance(less, tuple)
        for unit, factor in _READINGS.get(before.unit, ())
        if unit == kind and 0 < less < factor < more + factor
    )


def _read(match: re.Match[str]) -> Quantity | None:
    fields = {name.rstrip(_NUMERALS): v for name, v in match.groupdict().items() if v}
    if "number" in fields:
        unit, amounts = _measure(fields)
    elif "weekday" in fields:
        unit, amounts = "weekday", [("weekday", float(day)) for day in _DAYS[fields["weekday"]]]
    elif not fields.keys().isdisjoint("ymd"):
        unit, amounts = "date", _read_date(fields)
    else:
        unit, amounts = "clock", _read_clock(fields)
    digits = (d.replace(",", "").replace(":", ".") for d in _DIGITS.findall(match[0]))
    return Quantity(*match.span(), " ".join(digits), unit, frozenset(amounts)) if amounts else None


def _read_date(fields: Mapping[str, str]) -> list[Amount]:
    month = fields.get("m", "").rstrip(".")
    parts = (fields.get("y"), _MONTHS.get(month, month), fields.get("d"))
    year, number, day = (int(part) if part else None for part in parts)
    orders = [(number, day)]
    if fields.get("by", ".") != ".":  # 3/4/2024
        orders.append((day, number))
    return [
        ("date", (year, m, d)) for m, d in orders if 1 <= (m or 1) <= 12 and 1 <= (d or 1) <= 31
    ]


def _read_clock(fields: Mapping[str, str]) -> list[Amount]:
    if noon := fields.get("noon"):
        return [("clock", 0.0 if noon.startswith("mi") and "day" not in noon else 720.0)]
    hour, minute = int(fields["hour"]), int(fields.get("minute", 0))
    past = fields.get("past", "")
    if past:
        minute = 30 if past == "half past" else -30 if past.startswith("hal") else 15
        minute = -15 if past.endswith((" to", " vor")) else minute
    halves = [hour]
    if hour <= 12 and "am" in fields:
        halves = [hour % 12]
    elif hour <= 12 and "pm" in fields:
        halves = [hour % 12 + 12]
    elif hour <= 12 and (past or fields.get("oclock") == "o'clock"):
        halves = [hour % 12, hour % 12 + 12]
    return [("clock", float((60 * each + minute) % 1440)) for each in halves]


def _measure(fields: Mapping[str, str]) -> tuple[str, list[Amount]]:
    number = fields["number"]
    if len(number) > LONGEST_NUMBER:
        return "", []
    values = number_values(number)
    if not values:  # a version, or a ratio
        return "", [("parts", tuple(map(int, re.split(r"\D", number))))]
    sign = -1 if "minus" in fields or "below" in fields else 1
    size = sign * 10.0 ** int(fields.get("power", 0)) * SCALES.get(fields.get("scale", ""), 1)
    unit, currency = fields.get("unit", ""), fields.get("currency")
    readings = _READINGS.get(unit, [("count", 1.0)])
    if currency:
        size *= next((factor for kind, factor in readings if kind == "count"), 1)
        readings, unit = _READINGS[currency], currency
    elif "ordinal" in fields:
        readings, unit = [("ordinal", 1.0)], fields["ordinal"]
    amounts: list[Amount] = [
        ("temperature", _round((value * size - 32) / 1.8))
        if kind == "fahrenheit"
        else (kind.replace("celsius", "temperature"), _round(value * size * factor))
        for kind, factor in readings
        for value in values
    ]
    unit = unit or fields.get("scale", "")
    if not unit and re.fullmatch(_YEAR, number) and sign == 1:
        amounts.append(("date", (int(number), None, None)))
    return unit, amounts


def number_values(number: str) -> list[float]:
    """What a number may mean: 12.500 is more in German. None for one of several points or colons."""
    if number.isdecimal():
        return [float(number)]
    if "/" in number:
        whole, _, fraction = number.rpartition(" ")
        above, below = map(int, fraction.split("/"))
        return [int(whole or 0) + above / below] if below else []
    plain = number.replace(" ", "").replace("\u00a0", "").replace("'", "")
    if re.search(r"\..*,", plain):
        plain = plain.replace(".", "").replace(",", ".")
    plain = plain.replace(",", "")
    values = [float(plain.replace(".", ""))] if _GERMAN_THOUSANDS.fullmatch(plain) else []
    if plain.count(".") + plain.count(":") < 2 and ":" not in plain:
        values.append(float(plain))
    return values


def _round(value: float) -> float:
    return float(f"{value:.12g}")

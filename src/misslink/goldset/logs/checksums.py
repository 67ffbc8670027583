"""Checksums by which a number is told from an account, a card or a person's number."""

from __future__ import annotations

import datetime as dt
import string

__all__ = [
    "ahv",
    "card",
    "codice_fiscale",
    "cpf",
    "dni",
    "german_tax_id",
    "iban_length",
    "is_iban",
    "nir",
    "personnummer",
    "pesel",
    "ssn",
]

_LETTERS = string.ascii_uppercase
# Lengths of IBANs by country: SWIFT's IBAN registry, release 99.
_IBANS = """
AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28
CZ:24 DE:22 DJ:27 DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23
GL:18 GR:27 GT:28 HR:21 HU:28 IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32
LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18
NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 SC:31 SD:18 SE:24 SI:19
SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20
"""
_IBAN_LENGTHS = {pair[:2]: int(pair[3:]) for pair in _IBANS.split()}
# Of the card networks: first digits (from, to) and lengths. ISO/IEC 7812.
_CARDS = (
    ("4", "4", {13, 16, 19}),
    ("51", "55", {16}),
    ("2221", "2720", {16}),
    ("34", "34", {15}),
    ("37", "37", {15}),
    ("300", "305", {14}),
    ("36", "36", {14}),
    ("38", "39", {14}),
    ("3528", "3589", {16}),
    ("6011", "6011", {16, 19}),
    ("644", "659", {16, 19}),
    ("50", "50", {16}),
    ("56", "58", {16}),
    ("62", "63", {16, 17, 18, 19}),
    ("67", "67", {16, 17, 18, 19}),
)
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_ODD_VALUES = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21)  # of the digits and of A to J
_ODD_LETTERS = (2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)  # of K to Z
_ODD = dict(zip(string.digits + _LETTERS, (*_ODD_VALUES, *_ODD_VALUES, *_ODD_LETTERS), strict=True))


def iban_length(country: str) -> int | None:
    """Length of the IBANs of a country by its two letters; None where it has none."""
    return _IBAN_LENGTHS.get(country)


def is_iban(text: str) -> bool:
    """Whether capitals and digits without blanks are an IBAN (ISO 13616, ISO 7064 mod 97-10).

    >>> is_iban("DE89370400440532013000"), is_iban("DE89370400440532013001")
    (True, False)
    """
    if len(text) != iban_length(text[:2]):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


def _luhn(digits: str) -> bool:
    doubled = [int(digit) * (1 + number % 2) for number, digit in enumerate(reversed(digits))]
    return sum(each - 9 if each > 9 else each for each in doubled) % 10 == 0  # noqa: PLR2004 (digits)


def card(digits: str) -> bool:
    """Whether digits are a payment card's number: a network's first digits, its length and Luhn.

    >>> card("4111111111111111"), card("4111111111111112"), card("9111111111111119")
    (True, False, False)
    """
    known = any(
        len(digits) in lengths and low <= digits[: len(low)] <= high
        for low, high, lengths in _CARDS
    )
    return known and _luhn(digits)


def german_tax_id(digits: str) -> bool:
    """Whether 11 digits are a German Steueridentifikationsnummer (ISO 7064 mod 11, 10)."""
    first = digits[:10]
    most = max(first.count(digit) for digit in set(first))
    if digits[0] == "0" or most not in {2, 3} or len(set(first)) < 8:  # noqa: PLR2004
        return False
    carried = 10
    for digit in first:
        total = (int(digit) + carried) % 10 or 10
        carried = total * 2 % 11
    return (11 - carried) % 10 == int(digits[10])


def dni(text: str) -> bool:
    """Whether a text is a Spanish DNI or NIE: its letter is the number modulo 23."""
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return number.isdigit() and _DNI[int(number) % 23] == text[-1]


def codice_fiscale(text: str) -> bool:
    """Whether 16 signs are an Italian codice fiscale, by its last letter."""
    even = {sign: int(sign, 36) - (0 if sign.isdigit() else 10) for sign in _ODD}
    total = sum((even if at % 2 else _ODD)[sign] for at, sign in enumerate(text[:15]))
    return _LETTERS[total % 26] == text[15]


def pesel(digits: str) -> bool:
    """Whether 11 digits are a Polish PESEL: a date of birth and a check digit."""
    month = int(digits[2:4]) % 20
    if not _is_date(month, int(digits[4:6])):
        return False
    weighted = sum(int(d) * w for d, w in zip(digits, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3), strict=False))
    return (10 - weighted % 10) % 10 == int(digits[10])


def personnummer(digits: str) -> bool:
    """Whether 10 digits are a Swedish personnummer: month and day of birth, and Luhn."""
    day = int(digits[4:6])
    return _is_date(int(digits[2:4]), day - 60 if day > 60 else day) and _luhn(digits)  # noqa: PLR2004


def nir(digits: str) -> bool:
    """Whether 15 digits are a French social security number (97 less the number modulo 97)."""
    months = {*range(1, 13), *range(20, 43), *range(50, 100)}
    if digits[0] not in "12" or int(digits[3:5]) not in months:
        return False
    return 97 - int(digits[:13]) % 97 == int(digits[13:])


def ssn(digits: str) -> bool:
    """Whether 9 digits may be a US social security number: none of the parts that none has."""
    area = digits[:3]
    return (
        area not in {"000", "666"}
        and area[0] != "9"
        and digits[3:5] != "00"
        and digits[5:] != "0000"
    )


def ahv(digits: str) -> bool:
    """Whether 13 digits are a Swiss AHV number: 756 in front and the check digit of an EAN."""
    weighted = sum(int(digit) * (3 if at % 2 else 1) for at, digit in enumerate(digits[:12]))
    return digits[:3] == "756" and (10 - weighted % 10) % 10 == int(digits[12])


def cpf(digits: str) -> bool:
    """Whether 11 digits are a Brazilian CPF, by its two check digits."""
    if len(set(digits)) == 1:
        return False
    for length in (9, 10):
        weighted = sum(int(digits[at]) * (length + 1 - at) for at in range(length))
        if weighted * 10 % 11 % 10 != int(digits[length]):
            return False
    return True


def _is_date(month: int, day: int) -> bool:
    try:
        dt.date(2000, month, day)
    except ValueError:
        return False
    return True

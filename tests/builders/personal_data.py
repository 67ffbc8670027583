"""Texts with personal data planted in them, made by a script from a seed: no person is in it."""

import random

from stdnum.br import cpf
from stdnum.ch import ssn as ahv
from stdnum.de import idnr
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.us import ssn

from misslink.goldset.masking import is_card, is_iban

AROUND = [
    "please send the invoice to {} today",
    "my data is {} and it does not work",
    "{} cannot log in since Monday",
    "I wrote it down as {}, is that right?",
    "Can you check ({}) for me",
    "bitte an {} schicken, danke",
    "contact: {}",
    "first {} then nothing happened.",
]
# What looks like personal data and is none: order numbers, versions, prices, dates, code.
HARMLESS = [
    "Where is order 4920231234567 from 2026-05-06 12:30:45?",
    "Upgrade from v1.2.3.4 to version 10.4.0.1 fails",
    "The price is 1.000.000,00 EUR or 1,234,567.89",
    "std::vector<int> and ab::cd do not compile",
    "Is ISBN 978-3-16-148410-0 in stock on 01.02.2024 10:30?",
    "Ticket 12345678901 and invoice 2024-000123 are open",
    "How do I mention @channel or use a@b in regex?",
    "My password is wrong, the token is missing",
    "Error 0x80070005 at line 12:30:45:99",
    "Why are there 1000 0000 0000 0000 rows?",
    "What does RFC 2616 section 14.35 say of 206?",
    "Room 0815 is 030 metres from gate 12",
    "The hash is 9f86d081884c7d659a2feaa0c55ad015",
    "Does the 2026 model have 16 GB and 512 GB?",
    "Part DE12 and XX34 5678 9012 are missing",
    "Call the function on 100 to 200 rows",
]


def _digits(rng, n):
    return "".join(rng.choice("0123456789") for _ in range(n))


def _with_check(rng, form, holds):
    """Draw numbers of a form until one has a right checksum."""
    while True:
        text = "".join(_digits(rng, 1) if sign == "#" else sign for sign in form)
        if holds(text):
            return text


def _email(rng):
    name = rng.choice(["ann.lee", "j_doe", "m\u00fcller", "o'neil", "x+tag", "a"]) + _digits(rng, 2)
    host = rng.choice(["example.org", "mail.example.co.uk", "uni-example.de"])
    return rng.choice([f"{name}@{host}", f"{name} [at] {host.replace('.', ' [dot] ')}"])


def _phone(rng):
    n = _digits(rng, 7)
    return rng.choice(
        [
            f"+49 170 {n}", f"0170/{n}", f"030 {n[:3]} {n[3:]}", f"+1 (415) 55{n[:1]}-{n[1:5]}",
            f"(0221) {n}", f"0044 20 7946 {n[:4]}", f"415-55{n[:1]}-{n[1:5]}",
            f"+33.6.12.34.{n[:2]}.{n[2:4]}",
        ]
    )  # fmt: skip


def _iban(rng):
    country, bank = rng.choice([("DE", 18), ("NL", 14), ("FR", 23), ("GB", 18)])
    bank = (
        rng.choice(["ABNA", "INGB"]) + _digits(rng, 10) if country == "NL" else _digits(rng, bank)
    )
    for check in range(2, 99):
        found = f"{country}{check:02d}{bank}"
        if is_iban(found):
            four = " ".join(found[at : at + 4] for at in range(0, len(found), 4))
            return rng.choice([found, four, found.lower()])
    raise AssertionError


def _card(rng):
    found = _with_check(
        rng, rng.choice(["4###############", "52##############", "37#############"]), is_card
    )
    four = " ".join(found[at : at + 4] for at in range(0, len(found), 4))
    return rng.choice([found, four, four.replace(" ", "-")])


def _ip(rng):
    part = lambda: str(rng.randrange(1, 255))  # noqa: E731
    return rng.choice(
        [
            f"{part()}.{part()}.{part()}.{part()}",
            f"2001:db8:{_digits(rng, 4)}::8a2e:{_digits(rng, 3)}",
        ]
    )


def _secret(rng):
    rest = "".join(rng.choice("abcdefghijkmnpqrstuvwxyz0123456789ABCDEF") for _ in range(32))
    return rng.choice(
        [
            f"sk-{rest}",
            f"ghp_{rest}",
            f"AKIA{rest[:16].upper()}",
            f"eyJ{rest}.{rest}.{rest}",
            f"hf_{rest}",
        ]
    )


def _national_id(rng):
    forms = [
        ("## ### ### ###", idnr.is_valid), ("###########", pesel.is_valid),
        ("######-####", personnummer.is_valid), ("756.####.####.##", ahv.is_valid),
        ("###.###.###-##", cpf.is_valid), ("###-##-####", ssn.is_valid),
    ]  # fmt: skip
    if rng.random() < 0.2:
        number = _digits(rng, 8)
        return number + "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]
    return _with_check(rng, *rng.choice(forms))


KINDS = {
    "EMAIL": _email, "PHONE": _phone, "IBAN": _iban, "CARD": _card, "IP": _ip, "SECRET": _secret,
    "NATIONAL_ID": _national_id,
}  # fmt: skip


def planted(seed, each):
    """Yield (text, kind, value): `each` texts of every kind."""
    rng = random.Random(seed)
    for kind, make in KINDS.items():
        for _ in range(each):
            value = make(rng)
            yield rng.choice(AROUND).format(value), kind, value

"""Where personal data stand in a text: what has a form, and a checksum where there is one.

Every repetition has an upper bound and every look back a fixed width, so that the time taken grows
with the length of a text and no faster, whatever stands in it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from misslink.goldset.logs import checksums

__all__ = ["DETECTORS", "IN_IDS", "Detector", "Spot"]


class Spot(NamedTuple):
    """A stretch of a text: character offsets, and the value that makes two stretches the same."""

    start: int
    end: int
    value: str


Detector = Callable[[str], Iterator[Spot]]

_DIGIT = re.compile(r"\d")
_LEAST_DIGITS = 6  # of a number that is personal: a British insurance number's
_CREDENTIALS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,20}://([^\s/?#]{1,256})@")
_EMAIL = re.compile(
    r"[\w.%+'\-]{1,64}"
    r"(?:@|\s?[\[({]\s?(?:at|@)\s?[\])}]\s?|%40)"
    r"(?:[^\W_](?:[\w\-]{0,62})(?:\.|\s?[\[({]\s?(?:dot|\.)\s?[\])}]\s?)){1,6}[^\W\d_]{2,24}",
    re.IGNORECASE,
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}")
_CARD = re.compile(r"(?<![\w.,])\d(?:[ \-\u00a0]?\d){12,18}(?![\w])")
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{6,39}(?:\.\d{1,3}){0,3}(?![\w:])")
_VERSION = re.compile(r"(?:\bv|version|release|ver\.)\s{0,2}$", re.IGNORECASE)
_LEAST_GROUPS = 3  # of an IPv6 address; "ab::cd" is a name in a program

_PHONES = (
    # With the country's code; then a national number, apart somewhere; the American way; and
    # whatever stands behind a word for it.
    re.compile(r"(?<![\w+])(?:\+|00)[1-9](?:[ \u00a0()./\-]{0,3}\d){6,14}(?![\w])"),
    re.compile(
        r"(?<![\w./\-])(?:\(0[1-9]\d{0,4}\)|0[1-9]\d{0,4})[ \u00a0/\-]{1,3}\d"
        r"(?:[ \u00a0/.\-]{0,2}\d){4,9}(?![\w])"
    ),
    re.compile(r"(?<![\w./\-])0[1-9]\d{8,11}(?![\w.]\d|\w)"),
    re.compile(
        r"(?<![\w./\-])(?:\([2-9]\d{2}\)|[2-9]\d{2})[ .\-]{1,2}[2-9]\d{2}[ .\-]\d{4}(?![\w])"
    ),
    re.compile(
        r"(?:phone|telephone|tel|mobile|cell|call me (?:on|at)|whatsapp|fax|telefon|handy|rufnummer"
        r"|t\u00e9l\u00e9phone|tel\u00e9fono|m\u00f3vil)[^\d\n]{0,12}?"
        r"(\+?\d(?:[ \u00a0()./\-]{0,2}\d){5,14})(?![\w])",
        re.IGNORECASE,
    ),
)
_DATE = re.compile(r"\d{1,2}[./\-]\d{1,2}[./\-]\d{2,4}|\d{4}-\d{2}-\d{2}")

_SECRETS = (
    re.compile(
        r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^-]{0,8000}(?:-----END [A-Z ]{0,30}-----)?"
    ),
    re.compile(r"(?<![\w])eyJ[\w\-]{8,2000}\.[\w\-]{4,4000}(?:\.[\w\-]{0,2000})?"),  # JWT
    re.compile(
        r"(?<![A-Za-z0-9])(?:sk-|sk_live_|sk_test_|rk_live_|pk_live_|gh[pousr]_|github_pat_|glpat-|hf_"
        r"|xox[abeoprs]-|lsv2_[a-z]{2}_|[sp]k-lf-|npm_|pypi-|dop_v1_|SG\.|ya29\.|AIza|whsec_|shpat_)"
        r"[\w\-.]{12,300}"
    ),
    re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"),
    re.compile(r"\bBearer\s{1,3}([\w\-.~+/]{8,2000}={0,2})", re.IGNORECASE),
    re.compile(
        r"(?:api[_\- ]?key|access[_\- ]?key|access[_\- ]?token|auth[_\- ]?token|secret|token"
        r"|password|passwd|passwort|kennwort|pwd|passphrase|contrase\u00f1a|mot de passe)[\"']?"
        r"\s{0,3}(?:[=:]|\bis\b|\blautet\b|\bist\b)\s{0,3}[\"']?([^\s\"',;&<>]{4,300})",
        re.IGNORECASE,
    ),
)
# Behind "password is" stands a word as often as a password.
_WORDED = re.compile(r"[^\W\d_]+[.?!]?")

_ID_FORMS: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = (
    (re.compile(r"(?<![\w])\d{2} ?\d{3} ?\d{3} ?\d{3}(?![\w])"), checksums.german_tax_id),
    (re.compile(r"(?<![\w])\d{11}(?![\w])"), checksums.pesel),
    (
        re.compile(r"(?<![\w])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w])|(?<![\w])\d{11}(?![\w])"),
        checksums.cpf,
    ),
    (
        re.compile(r"(?<![\w])(?:\d{8}|[XYZxyz]-?\d{7})-?[A-HJ-NP-TV-Za-hj-np-tv-z](?![\w])"),
        checksums.dni,
    ),
    (
        re.compile(
            r"(?<![\w])[A-Za-z]{6}\d{2}[A-EHLMPR-Ta-ehlmpr-t]\d{2}[A-Za-z]\d{3}[A-Za-z](?![\w])"
        ),
        checksums.codice_fiscale,
    ),
    (re.compile(r"(?<![\w\-])\d{3}-\d{2}-\d{4}(?![\w\-])"), checksums.ssn),
    (
        re.compile(r"(?<![\w])[12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2}(?![\w])"),
        checksums.nir,
    ),
    (re.compile(r"(?<![\w])\d{6}[\-+]\d{4}(?![\w])"), checksums.personnummer),
    (re.compile(r"(?<![\w])756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}(?![\w])"), checksums.ahv),
    (
        re.compile(
            r"(?<![\w])(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2}"
            r" ?\d{2} ?[A-D](?![\w])"
        ),
        bool,  # the British national insurance number has a form and no check digit
    ),
)


def _credentials(text: str) -> Iterator[Spot]:
    for found in _CREDENTIALS.finditer(text):
        yield Spot(*found.span(1), found[1])


def _emails(text: str) -> Iterator[Spot]:
    for found in _EMAIL.finditer(text):
        yield Spot(*found.span(), "".join(found[0].split()).casefold())


def _ibans(text: str) -> Iterator[Spot]:
    for found in _IBAN.finditer(text):
        length = checksums.iban_length(found[0][:2].upper())
        if length is None:
            continue
        at, signs = found.start(), ""
        while at < len(text) and len(signs) < length:
            sign = text[at]
            if sign.isascii() and sign.isalnum():
                signs += sign.upper()
            elif sign not in " -\u00a0" or text[at - 1] in " -\u00a0":
                break
            at += 1
        if checksums.is_iban(signs) and not text[at : at + 1].isalnum():
            yield Spot(found.start(), at, signs)


def _cards(text: str) -> Iterator[Spot]:
    for found in _CARD.finditer(text):
        digits = _digits(found[0])
        if checksums.card(digits):
            yield Spot(*found.span(), digits)


def _addresses(text: str) -> Iterator[Spot]:
    for pattern in (_IPV4, _IPV6):
        for found in pattern.finditer(text):
            written = found[0].rstrip(":") if pattern is _IPV6 else found[0]
            groups = [group for group in written.split(":") if group]
            if pattern is _IPV6 and len(groups) < _LEAST_GROUPS:
                continue
            if _VERSION.search(text[max(0, found.start() - 12) : found.start()]):
                continue
            try:
                address = ipaddress.ip_address(written)
            except ValueError:
                continue
            yield Spot(found.start(), found.start() + len(written), str(address))


def _phones(text: str) -> Iterator[Spot]:
    for pattern in _PHONES:
        for found in pattern.finditer(text):
            group = 1 if pattern.groups else 0
            if not _DATE.match(found[group].lstrip("( ")):
                # The national and the international way of one number share their last digits.
                yield Spot(*found.span(group), _digits(found[group])[-8:])


def _secrets(text: str) -> Iterator[Spot]:
    for pattern in _SECRETS:
        for found in pattern.finditer(text):
            group = 1 if pattern.groups else 0
            worded = pattern is _SECRETS[-1] and not re.search("[=:]", found[0][: -len(found[1])])
            if not (worded and _WORDED.fullmatch(found[group])):
                yield Spot(*found.span(group), found[group])


def _national_ids(text: str) -> Iterator[Spot]:
    for pattern, holds in _ID_FORMS:
        for found in pattern.finditer(text):
            plain = "".join(filter(str.isalnum, found[0])).upper()
            if holds(plain):
                yield Spot(*found.span(), plain)


def _digits(text: str) -> str:
    return "".join(str(int(sign)) for sign in text if sign.isdecimal())


def _with_digits(detect: Detector) -> Detector:
    """A detector of what has six digits at least, which most texts have not."""
    return lambda text: detect(text) if len(_DIGIT.findall(text)) >= _LEAST_DIGITS else iter(())


# By kind, the surest first: where two overlap the first names the mask.
DETECTORS: dict[str, Detector] = {
    "SECRET": _secrets,
    "CREDENTIALS": _credentials,
    "EMAIL": _emails,
    "IBAN": _ibans,
    "CARD": _with_digits(_cards),
    "NATIONAL_ID": _with_digits(_national_ids),
    "IP": _addresses,
    "PHONE": _with_digits(_phones),
}
# An id that looks like a card or a telephone is an id: a passage is found by it.
IN_IDS = ("SECRET", "CREDENTIALS", "EMAIL", "IBAN")

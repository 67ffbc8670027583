"""Find personal data by form and checksum, and mask it before anything is stored.

Masks cannot be reversed. Every repetition is bounded and every look-behind has a fixed width, so
time is linear in the text.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stdnum import luhn
from stdnum.br import cpf
from stdnum.ch import ssn as ahv
from stdnum.de import idnr
from stdnum.es import nif
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.pl import pesel
from stdnum.se import personnummer
from stdnum.us import ssn

from misslink.errors import InputError
from misslink.io.jsonl import read_text


class MaskSpan(NamedTuple):
    """A stretch of a text: character offsets, and the value that identifies equal stretches."""

    start: int
    end: int
    value: str


Detector = Callable[[str], Iterator[MaskSpan]]

_DIGIT = re.compile(r"\d")
_MIN_DIGITS = 6  # of a number that is personal: a British insurance number's
_CREDENTIALS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]{1,20}://([^\s/?#]{1,256})@")
_EMAIL = re.compile(
    r"[\w.%+'\-]{1,64}"
    r"(?:@|\s?[\[({]\s?(?:at|@)\s?[\])}]\s?|%40)"
    r"(?:[^\W_](?:[\w\-]{0,62})(?:\.|\s?[\[({]\s?(?:dot|\.)\s?[\])}]\s?)){1,6}[^\W\d_]{2,24}",
    re.IGNORECASE,
)
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}\d{2}")
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
_CARD = re.compile(r"(?<![\w.,])\d(?:[ \-\u00a0]?\d){12,18}(?![\w])")
# First digits (from, to) and lengths of the card networks: ISO/IEC 7812.
_NETWORKS = (
    ("4", "4", {13, 16, 19}), ("51", "55", {16}), ("2221", "2720", {16}), ("34", "34", {15}),
    ("37", "37", {15}), ("300", "305", {14}), ("36", "36", {14}), ("38", "39", {14}),
    ("3528", "3589", {16}), ("6011", "6011", {16, 19}), ("644", "659", {16, 19}),
    ("50", "50", {16}), ("56", "58", {16}), ("62", "63", {16, 17, 18, 19}),
    ("67", "67", {16, 17, 18, 19}),
)  # fmt: skip
_IPV4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{6,39}(?:\.\d{1,3}){0,3}(?![\w:])")
_VERSION_PREFIX = re.compile(r"(?:\bv|version|release|ver\.)\s{0,2}$", re.IGNORECASE)
_MIN_GROUPS = 3  # of an IPv6 address; "ab::cd" is a name in a program

_PHONES = (
    # International; national with a separator; national without; American; and any number after
    # a word for a phone.
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
_PLAIN_WORD = re.compile(r"[^\W\d_]+[.?!]?")  # "password is wrong" names no password

_NATIONAL_IDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (r"\d{2} ?\d{3} ?\d{3} ?\d{3}(?![\w])", idnr.is_valid),
    (r"\d{11}(?![\w])", pesel.is_valid),
    (r"(?:\d{3}\.\d{3}\.\d{3}-\d{2}|\d{11})(?![\w])", cpf.is_valid),
    (r"(?:\d{8}|[XYZxyz]-?\d{7})-?[A-HJ-NP-TV-Za-hj-np-tv-z](?![\w])", nif.is_valid),
    (
        r"[A-Za-z]{6}\d{2}[A-EHLMPR-Ta-ehlmpr-t]\d{2}[A-Za-z]\d{3}[A-Za-z](?![\w])",
        codicefiscale.is_valid,
    ),
    (r"(?<!-)\d{3}-\d{2}-\d{4}(?![\w\-])", ssn.is_valid),
    (r"[12] ?\d{2} ?\d{2} ?\d{2} ?\d{3} ?\d{3} ?\d{2}(?![\w])", nir.is_valid),
    (r"\d{6}[\-+]\d{4}(?![\w])", personnummer.is_valid),
    (r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}(?![\w])", ahv.is_valid),
    (
        r"(?!BG|GB|KN|NK|NT|TN|ZZ)[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z](?: ?\d{2}){3} ?[A-D](?!\w)",
        bool,  # the British national insurance number has no check digit
    ),
)
_ID_PATTERNS = tuple((re.compile(rf"(?<!\w){form}"), is_valid) for form, is_valid in _NATIONAL_IDS)


def _find_pattern(pattern: re.Pattern[str], text: str, group: int = 0) -> Iterator[MaskSpan]:
    for match in pattern.finditer(text):
        if match[0]:
            yield MaskSpan(*match.span(group), match[group])


def _find_emails(text: str) -> Iterator[MaskSpan]:
    for match in _EMAIL.finditer(text):
        yield MaskSpan(*match.span(), "".join(match[0].split()).casefold())


def is_iban(text: str) -> bool:
    """Return whether capitals and digits are an IBAN (ISO 13616, ISO 7064 mod 97-10).

    >>> is_iban("DE89370400440532013000"), is_iban("DE89370400440532013001")
    (True, False)
    """
    if len(text) != _IBAN_LENGTHS.get(text[:2]):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


def _find_ibans(text: str) -> Iterator[MaskSpan]:
    for match in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get(match[0][:2].upper(), 0)
        end, signs = match.start(), ""
        while end < len(text) and len(signs) < length:
            sign = text[end]
            if sign.isascii() and sign.isalnum():
                signs += sign.upper()
            elif sign not in " -\u00a0" or text[end - 1] in " -\u00a0":
                break
            end += 1
        if is_iban(signs) and not text[end : end + 1].isalnum():
            yield MaskSpan(match.start(), end, signs)


def is_card(digits: str) -> bool:
    """Return whether digits are a payment card's: a network's prefix and length, and Luhn.

    >>> is_card("4111111111111111"), is_card("4111111111111112"), is_card("9111111111111119")
    (True, False, False)
    """
    return luhn.is_valid(digits) and any(
        len(digits) in lengths and low <= digits[: len(low)] <= high
        for low, high, lengths in _NETWORKS
    )


def _find_cards(text: str) -> Iterator[MaskSpan]:
    for match in _CARD.finditer(text):
        digits = _only_digits(match[0])
        if is_card(digits):
            yield MaskSpan(*match.span(), digits)


def _find_addresses(text: str) -> Iterator[MaskSpan]:
    for pattern in (_IPV4, _IPV6):
        for match in pattern.finditer(text):
            written = match[0].rstrip(":") if pattern is _IPV6 else match[0]
            groups = [group for group in written.split(":") if group]
            if pattern is _IPV6 and len(groups) < _MIN_GROUPS:
                continue
            if _VERSION_PREFIX.search(text[max(0, match.start() - 12) : match.start()]):
                continue
            try:
                address = ipaddress.ip_address(written)
            except ValueError:
                continue
            yield MaskSpan(match.start(), match.start() + len(written), str(address))


def _find_phones(text: str) -> Iterator[MaskSpan]:
    for pattern in _PHONES:
        for match in pattern.finditer(text):
            if not _DATE.match(match[pattern.groups].lstrip("( ")):
                # The national and the international form of a number share their last digits.
                digits = _only_digits(match[pattern.groups])[-8:]
                yield MaskSpan(*match.span(pattern.groups), digits)


def _find_secrets(text: str) -> Iterator[MaskSpan]:
    for pattern in _SECRETS:
        for match in pattern.finditer(text):
            secret = match[pattern.groups]
            is_sentence = pattern is _SECRETS[-1] and not re.search(
                "[=:]", match[0][: -len(secret)]
            )
            if not (is_sentence and _PLAIN_WORD.fullmatch(secret)):
                yield MaskSpan(*match.span(pattern.groups), secret)


def _find_national_ids(text: str) -> Iterator[MaskSpan]:
    for pattern, is_valid in _ID_PATTERNS:
        for match in pattern.finditer(text):
            if is_valid(match[0].upper()):
                value = "".join(filter(str.isalnum, match[0])).upper()
                yield MaskSpan(*match.span(), value)


def _only_digits(text: str) -> str:
    return "".join(str(int(sign)) for sign in text if sign.isdecimal())


def _if_digits(detect: Detector) -> Detector:
    """Skip a detector of numbers for texts with few digits, which most are."""
    return lambda text: detect(text) if len(_DIGIT.findall(text)) >= _MIN_DIGITS else iter(())


# By kind, the most certain first: where two overlap, the first names the mask.
DETECTORS: dict[str, Detector] = {
    "SECRET": _find_secrets,
    "CREDENTIALS": partial(_find_pattern, _CREDENTIALS, group=1),
    "EMAIL": _find_emails,
    "IBAN": _find_ibans,
    "CARD": _if_digits(_find_cards),
    "NATIONAL_ID": _if_digits(_find_national_ids),
    "IP": _find_addresses,
    "PHONE": _if_digits(_find_phones),
}
# An id that looks like a card or a phone number is an id: passages are found by it.
ID_KINDS = ("SECRET", "CREDENTIALS", "EMAIL", "IBAN")

_NUMBERED_MASK = re.compile(r"<([A-Z][A-Z0-9_]{0,40})_(\d{1,9})>")
_KIND_NAME = re.compile(r"[A-Z][A-Z0-9_]{0,40}")
_WORD = re.compile(r"[^\W_]+(?:['\u2019\-][^\W_]+){0,4}")
_NAME_KIND = "NAME"
_MAX_ROUNDS = 8  # a value that touches another is found once that is masked


class Masker:
    """Replace personal data by masks such as ``<EMAIL_1>``; equal values get equal masks.

    Values are stored only as keyed hashes, whose key lives as long as this object, so no map back
    exists in a file or in memory.

    Parameters
    ----------
    patterns : mapping of str to re.Pattern
        More kinds; see `parse_mask_patterns`.
    names : sequence of str
        People's names to mask as ``<NAME_1>``, as whole words in any case. Names are masked only
        by this list: no pattern tells a name from a word.

    Examples
    --------
    >>> masker = Masker()
    >>> masker.masked("ann@example.org or +49 170 1234567, then Ann@Example.org")
    '<EMAIL_1> or <PHONE_1>, then <EMAIL_1>'
    >>> dict(masker.counts)
    {'EMAIL': 2, 'PHONE': 1}
    """

    def __init__(
        self, patterns: Mapping[str, re.Pattern[str]] | None = None, names: Iterable[str] = ()
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._detectors: dict[str, Detector] = {
            kind: partial(_find_pattern, pattern) for kind, pattern in (patterns or {}).items()
        }
        if indexed := _index_names(names):
            self._detectors[_NAME_KIND] = partial(_find_names, indexed)
        self._detectors |= DETECTORS
        self._key = secrets.token_bytes(32)
        self._numbers: dict[tuple[str, bytes], int] = {}
        self._last: Counter[str] = Counter()

    def reserve(self, text: str) -> None:
        """Reserve the numbers of masks that a text already contains."""
        for match in _NUMBERED_MASK.finditer(text):
            self._last[match[1]] = max(self._last[match[1]], int(match[2]))

    def masked(self, text: str) -> str:
        """Return a text with its personal data masked; existing masks stay."""
        return self._replace(text, self._detectors)

    def masked_id(self, text: str) -> str:
        """Return an id with certain personal data masked: no number counts as a phone number."""
        kinds = [kind for kind in self._detectors if kind in ID_KINDS or kind not in DETECTORS]
        return self._replace(text, {kind: self._detectors[kind] for kind in kinds})

    def _replace(self, text: str, detectors: Mapping[str, Detector]) -> str:
        for _ in range(_MAX_ROUNDS if text else 0):
            spans = self._spans(text, detectors)
            if not spans:
                break
            pieces, end = [], 0
            for kind, span in spans:
                pieces += [text[end : span.start], self._mask(kind, span.value)]
                end = span.end
            text = "".join([*pieces, text[end:]])
        return text

    def _spans(self, text: str, detectors: Mapping[str, Detector]) -> list[tuple[str, MaskSpan]]:
        """What to mask, in order; overlapping stretches become their union."""
        masks = [match.span() for match in _NUMBERED_MASK.finditer(text)]
        ends = [end for _, end in masks]

        def overlaps_mask(span: MaskSpan) -> bool:
            index = bisect_right(ends, span.start)
            return index < len(masks) and masks[index][0] < span.end

        spans = [
            (span.start, order, kind, span)
            for order, (kind, detect) in enumerate(detectors.items())
            for span in detect(text)
            if not overlaps_mask(span)
        ]
        merged: list[tuple[int, str, MaskSpan]] = []
        for _, order, kind, span in sorted(spans, key=lambda row: row[:2]):
            if merged and span.start < merged[-1][2].end:
                before = merged[-1]
                first = before if before[0] <= order else (order, kind, span)
                end = max(before[2].end, span.end)
                merged[-1] = (*first[:2], MaskSpan(before[2].start, end, first[2].value))
            else:
                merged.append((order, kind, span))
        return [(kind, span) for _, kind, span in merged]

    def _mask(self, kind: str, value: str) -> str:
        digest = hashlib.blake2b(value.encode("utf-8", "replace"), key=self._key).digest()
        if (kind, digest) not in self._numbers:
            self._last[kind] += 1
            self._numbers[kind, digest] = self._last[kind]
        self.counts[kind] += 1
        return f"<{kind}_{self._numbers[kind, digest]}>"


def unnumber_masks(text: str) -> str:
    """Return a text whose masks show only their kind.

    >>> unnumber_masks("Where is the parcel of <EMAIL_7>?")
    'Where is the parcel of <EMAIL>?'
    """
    return _NUMBERED_MASK.sub(r"<\1>", text)


def parse_mask_patterns(options: Iterable[str]) -> dict[str, re.Pattern[str]]:
    """Parse ``--mask-pattern`` options such as ``CUSTOMER=K-[0-9]{6}``.

    Raises
    ------
    InputError
        An option has no name, is no regular expression, or matches the empty text.
    """
    patterns: dict[str, re.Pattern[str]] = {}
    for option in options:
        name, equals, regex = option.partition("=")
        kind = name.strip().upper()
        if not equals or not _KIND_NAME.fullmatch(kind):
            raise InputError(
                f"--mask-pattern {option!r} has no name. Write it as CUSTOMER=K-[0-9]{{6}}."
            )
        try:
            pattern = re.compile(regex)
        except re.error as problem:
            raise InputError(
                f"--mask-pattern {kind} is not a valid regular expression ({problem}). Correct it."
            ) from None
        if not regex or pattern.match(""):
            raise InputError(
                f"--mask-pattern {kind} matches the empty text. "
                "Make it require at least one character."
            )
        if kind in patterns or kind in DETECTORS or kind == _NAME_KIND:
            raise InputError(
                f"--mask-pattern {kind}: a mask named {kind} already exists. Use another name."
            )
        patterns[kind] = pattern
    return patterns


def read_names(path: Path) -> list[str]:
    """Read people's names, one a line; blank lines and text after a # are ignored.

    Raises
    ------
    InputError
        The file cannot be read or contains no name.
    """
    lines = (line.partition("#")[0].strip() for line in read_text(path).splitlines())
    names = [line for line in lines if line]
    if not names:
        raise InputError("The file contains no names. Write one name a line.", path=path)
    return names


def _index_names(names: Iterable[str]) -> dict[str, list[list[str]]]:
    """The words of each name, by the first of them, the longest name first."""
    index: dict[str, list[list[str]]] = {}
    for name in names:
        if words := [word.casefold() for word in _WORD.findall(name)]:
            index.setdefault(words[0], []).append(words)
    for several in index.values():
        several.sort(key=len, reverse=True)
    return index


def _find_names(index: Mapping[str, list[list[str]]], text: str) -> Iterator[MaskSpan]:
    matches = list(_WORD.finditer(text))
    words = [match[0].casefold() for match in matches]
    place = 0
    while place < len(words):
        step = 1
        for name in index.get(_without_possessive(words[place]), ()):
            window = words[place : place + len(name)]
            last = _without_possessive(window[-1])
            if [*window[:-1], last] == name:
                end = matches[place + len(name) - 1].end() - (len(window[-1]) - len(last))
                yield MaskSpan(matches[place].start(), end, " ".join(name))
                step = len(name)
                break
        place += step


def _without_possessive(word: str) -> str:
    return word.removesuffix("'s").removesuffix("\u2019s")

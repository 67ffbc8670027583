"""The names by which the page's scripts read its data are the fields of the views."""

import json
import re
from dataclasses import fields

import pytest

from example_run import example_run
from misslink.report.cases import (
    CaseBody,
    CaseRow,
    NamedText,
    NeedRow,
    SearchRow,
    VerdictRow,
)
from misslink.report.claims import ClaimPointer, ClaimRow, PassageRow, TextPiece
from misslink.report.explorer import build_blocks, build_case_list
from misslink.report.links import LinkedCases
from misslink.report.page import TEMPLATES
from proven_run import proven_run

# By the variable that holds it in a script, what it is.
VIEWS = {
    "row": CaseRow, "body": CaseBody, "stored": CaseBody, "claim": ClaimRow, "passage": PassageRow,
    "need": NeedRow, "call": SearchRow, "fix": LinkedCases, "raw": NamedText, "mode": NamedText,
    "message": NamedText, "standalone": NamedText, "mark": TextPiece, "verdict": VerdictRow,
    "pointer": ClaimPointer,
}  # fmt: skip
# What explorer.py or data.js adds to a view.
ADDED = {"body": {"raws_left_out", "shell", "unsafe"}, "passage": {"place"}}
ELEMENTS = {  # members of elements, and the selector mark.lit
    "classList", "codePointAt", "dataset", "element", "fill", "firstElementChild", "hidden", "lit",
    "querySelector", "replaceChildren",
}  # fmt: skip
READ = re.compile(rf"(?<![.\w])({'|'.join([*VIEWS, 'data'])})\??\.(\w+)")
# A piece begins where the one before it ends.
UNREAD = {TextPiece: {"start"}}


def names(view):
    return set(getattr(view, "_fields", None) or (field.name for field in fields(view)))


def reads():
    """The script, variable and name of everything that a script reads of a view."""
    for script in sorted(TEMPLATES.glob("*.js")):
        for variable, name in READ.findall(script.read_text(encoding="utf-8")):
            if name not in ELEMENTS:
                yield script.name, variable, name


def blocks():
    for run in (example_run(), proven_run()):
        for case_list in (build_case_list(run), build_case_list(run, most=2)):
            yield {block.id: json.loads(block.text) for block in build_blocks(case_list)}


def test_scripts_read_only_what_a_view_has():
    listed = set().union(*(found["case-list"] for found in blocks()))
    wrong = {
        f"{script} reads {variable}.{name}, which {VIEWS[variable].__name__} does not have"
        if variable in VIEWS
        else f"{script} reads data.{name}, which the list of cases does not have"
        for script, variable, name in reads()
        if name
        not in (names(VIEWS[variable]) if variable in VIEWS else listed)
        | ADDED.get(variable, set())
    }
    assert wrong == set()


@pytest.mark.parametrize("view", dict.fromkeys(VIEWS.values()))
def test_every_field_of_a_view_is_read_by_a_script(view):
    read = {name for _, variable, name in reads() if VIEWS.get(variable) is view}
    unread = names(view) - read - UNREAD.get(view, set())
    assert unread == set(), f"no script reads {view.__name__}.{sorted(unread)}"


def test_the_data_has_no_other_names():
    for found in blocks():
        for row in found["case-list"]["rows"]:
            assert set(row) <= names(CaseRow)
        for body in found["case-bodies-0"]:
            assert set(body) <= names(CaseBody) | ADDED["body"]
            for claim in body.get("claims", ()):
                assert set(claim) <= names(ClaimRow)
            for row in (*body.get("retrieved", ()), *body.get("missed", ())):
                assert set(row) <= names(PassageRow)
            for mark in body.get("marks", ()):
                assert set(mark) <= names(TextPiece)

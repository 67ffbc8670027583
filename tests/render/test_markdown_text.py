"""Whatever a text holds, in markdown it is that text: held against a parser of CommonMark."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from misslink.render.markdown import code_span, escape_markdown, markdown_table, single_line

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# Everything that means something to markdown, and a few that do not.
TEXTS = st.text("\\`*_[]<>()#+-.!|~&:@$^=;/?{}\"' \n\t1aGHhw\u2060é", max_size=30)
TEMPTING = (
    "[click](https://example.org)",
    "![x](https://example.org/leak.png)",
    "[x]: https://example.org",
    "<img src=x onerror=alert(1)>",
    "<!-- hidden",
    "<https://example.org>",
    "a | b \\| c",
    "\\",
    "`code` and ``more",
    "**bold** _it_ ~~no~~",
    "# heading",
    "1. list",
    "- list",
    "---",
    "&lt;b&gt; &amp;",
    "line\n\n> quote\n\n| a | b |\n| - | - |",
)


def texts_of(tokens):
    """The texts of an inline token, and whatever is no text, by its type."""
    text, others = "", []
    for token in tokens:
        if token.type in ("text", "text_special"):
            text += token.content
        else:
            others.append(token.type)
    return text, others


def cells_of(markdown):
    tokens = PARSER.parse(markdown)
    assert tokens[0].type == "table_open"
    assert tokens[-1].type == "table_close", "nothing stands behind the table"
    return [token.children for token in tokens if token.type == "inline"]


def whole(text):
    """A text as the reader sees it."""
    return single_line(text).replace("\u2060", "")


@pytest.mark.parametrize("before", ["", "- ", "1. ", "> ", "words "])
@given(text=TEXTS)
@example(text=TEMPTING[0])
@example(text=TEMPTING[10])
def test_a_text_stays_a_text_wherever_a_line_begins(before, text):
    tokens = PARSER.parse(before + escape_markdown(text))
    found = [token for token in tokens if token.type == "inline"]
    seen, others = texts_of(found[0].children) if found else ("", [])
    assert not others
    assert len(found) <= 1
    prose = before if before == "words " else ""
    assert seen.replace("\u2060", "").strip() == (prose + whole(text)).strip()
    kinds = {token.type for token in tokens} - {"paragraph_open", "paragraph_close", "inline"}
    assert all(kind.startswith(("bullet", "ordered", "list", "blockquote")) for kind in kinds)


@pytest.mark.parametrize("text", TEMPTING)
def test_what_tempts_a_parser_is_text(text):
    (found,) = [token for token in PARSER.parse(escape_markdown(text)) if token.type == "inline"]
    assert texts_of(found.children) == (whole(text).replace("://", ":\u2060//"), [])


@given(cells=st.lists(TEXTS, min_size=1, max_size=4))
@example(cells=["a|b", "\\|", "\\"])
def test_a_cell_ends_where_its_text_ends(cells):
    header = [f"h{place}" for place in range(len(cells))]
    found = cells_of(markdown_table(header, [[escape_markdown(cell) for cell in cells]]))
    assert len(found) == 2 * len(cells)
    for children, cell in zip(found[len(cells) :], cells, strict=True):
        seen, others = texts_of(children)
        assert (seen.replace("\u2060", ""), others) == (whole(cell), [])


@given(text=TEXTS)
@example(text="a\\|b")
@example(text="`")
@example(text="a ``` b `")
def test_code_holds_its_text_in_a_line_and_in_a_cell(text):
    written = code_span(text)
    if not single_line(text):
        assert written == ""
        return
    in_prose = PARSER.parse(f"x {written}")[1].children[1:]
    for children in (in_prose, cells_of(markdown_table("h", [[written]]))[1]):
        if "|" not in text:
            assert [(one.type, one.content) for one in children] == [
                ("code_inline", single_line(text))
            ]
            continue
        seen, others = texts_of(children)
        tags = [one.content for one in children if one.type == "html_inline"]
        assert (others, tags) == (["html_inline"] * 2, ["<code>", "</code>"])
        assert seen.replace("\u2060", "") == whole(text)


@given(text=st.text("@#:/w.gGhH-1a \u2060", max_size=30))
def test_no_platform_finds_a_mention_an_issue_or_an_address(text):
    assert not re.search(r"@\w|#[0-9]|gh-[0-9]|://|www\.", escape_markdown(text), re.IGNORECASE)


def test_a_table_without_rows_is_nothing():
    assert markdown_table(("a", "b"), []) == ""


def test_numbers_are_set_to_the_right():
    assert (
        markdown_table(("a", "n"), [("x", "1")], (1,)) == "| a | n |\n| --- | ---: |\n| x | 1 |\n"
    )


def test_characters_that_turn_or_hide_text_are_left_out():
    assert escape_markdown("a\u202egnp.exe\u202c\x00\x1b[31mb") == "agnp.exe\\[31mb"

"""Templates are compiled once, and a compiled one is never other than its template."""

import sys

import jinja2
import pytest

from misslink.render import html


@pytest.fixture
def render(tmp_path, monkeypatch):
    """Renders a template of its own as a new process would; counts how often one is compiled."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    original, calls = jinja2.Environment.compile, []
    monkeypatch.setattr(
        jinja2.Environment, "compile", lambda *a, **k: calls.append(1) or original(*a, **k)
    )

    def again(source=None):
        if source is not None:
            (tmp_path / "page.jinja").write_text(source, encoding="utf-8")
        html._environment.cache_clear()
        return html.render_template(tmp_path / "page.jinja", {"n": 1000})

    again.compiled, again.folder = calls, tmp_path / "__pycache__"
    yield again
    html._environment.cache_clear()


def test_a_template_is_compiled_once_and_again_where_it_or_a_filter_changes(render, monkeypatch):
    assert render("{{ page.n|thousands }}") == "1,000"
    assert render() == "1,000"
    assert len(render.compiled) == 1
    assert render("{{ page.n|thousands }}!") == "1,000!"
    assert len(render.compiled) == 2
    monkeypatch.setattr(jinja2, "__version__", "another")
    render()
    assert len(render.compiled) == 3


@pytest.mark.parametrize("content", [b"", b"x" * 99, None])
def test_a_damaged_compiled_template_is_compiled_again(render, content):
    render("{{ page.n|thousands }}")
    (compiled,) = render.folder.iterdir()
    compiled.write_bytes(compiled.read_bytes()[:40] if content is None else content)
    assert render() == "1,000"
    assert len(render.compiled) == 2


def test_a_folder_that_cannot_be_written_costs_only_the_time_to_compile(render):
    render.folder.write_text("in the way")
    assert render("{{ page.n|thousands }}") == "1,000"
    assert render() == "1,000"
    assert len(render.compiled) == 2

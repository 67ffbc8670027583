"""What a notebook shows of a run: a short repr, a small table, one row per case."""

from misslink.types import Case, Link, Run, Verdict

HOSTILE = '<img src="x">'


def run(**summary):
    cases = tuple(Case(id=name, question="When?") for name in "abc")
    links = tuple(
        Link(case_id=name, retrieval="hit", answer="faithful", failure=failure, reason="r")
        for name, failure in (("a", "passed"), ("b", "passed"), ("c", "fabricated"))
    )
    verdict = Verdict(
        case_id="c", metric="faithfulness", status="scored", value=0.25, label=False, judge="exact"
    )
    return Run(
        manifest={}, cases=cases, traces=(), verdicts=(verdict,), links=links,
        summary={"judge": "exact", **summary},
    )  # fmt: skip


def test_the_repr_is_one_line_with_the_failure_modes():
    assert repr(run()) == str(run()) == "Run(3 cases, judge exact; passed 2, fabricated 1)"


def test_a_notebook_shows_modes_owners_the_first_step_and_a_link_and_no_markup_of_others():
    html = run(run=HOSTILE, judge=HOSTILE)._repr_html_()
    assert "<td>Fabricated</td><td>generator</td><td>1</td>" in html
    assert "<td>Passed</td><td></td><td>2</td>" in html
    assert "First step: " in html
    assert "report.html" in html
    assert HOSTILE not in html
    assert "href" not in run()._repr_html_()


def test_the_link_of_a_notebook_is_below_its_folder(tmp_path, monkeypatch):
    """A browser opens no absolute path of the disk."""
    monkeypatch.chdir(tmp_path)
    assert 'href="reports/a/report.html"' in run(run=str(tmp_path / "reports/a"))._repr_html_()


def test_a_frame_has_one_row_per_case_with_missing_verdicts_missing():
    frame = run().to_pandas()
    assert list(frame.case_id) == ["a", "b", "c"]
    assert frame.failure[2] == "fabricated"
    assert frame.faithfulness.isna().tolist() == [True, True, False]

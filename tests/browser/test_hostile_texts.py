"""Every text of a run as an attack, kind by kind: a page of them is a page of words and no more."""

import pytest
from markupsafe import escape

from attacks import ATTACKS
from hostile_run import BENIGN, VARIANTS, hostile_run
from misslink.render.html import read_assets
from misslink.report import page as html
from misslink.report.page import write_html
from watch import Watch

# Fields whose text must be seen on the page: were they not, attacks in them would prove nothing.
SHOWN = {
    *("Case.id", "Case.question", "Case.references", "Case.category", "Case.tags"),
    *("Case.tags.value", "Passage.id", "Passage.text", "Trace.answer", "Trace.error"),
    *("Trace.notes", "Claim.text", "Claim.note", "Verdict.metric", "Verdict.reason"),
    *(
        "Verdict.raw",
        "Verdict.judge",
        "Link.reasons.value",
        "RetrievalMiss.passage_id",
        "RetrievalMiss.reason",
    ),
    *(
        "RetrievalMiss.text",
        "CompetingPassage.passage_id",
        "CompetingPassage.duplicate_of",
        "ClaimLink.by",
    ),
    *("manifest.app", "manifest.judge", "manifest.command"),
}
# Each page takes the browser seconds: these kinds are tried every time, all of them in CI. The first two
# have together fewer attacks than there are cases, so that each stands in every field of one page.
_EVERY_TIME = (("script", "handler"),)
_ALSO_NOTICED = ("handler", "link", "svg", "mutation", "closing")


def _marker(number):
    return f"[Case.id] {number - 1}"


@pytest.fixture(scope="module")
def harmless(browser, tmp_path_factory):
    """The same page with a harmless word for every attack: what it is made of is allowed."""
    report = write_html(hostile_run(BENIGN), tmp_path_factory.mktemp("harmless") / "report.html")
    watch = Watch(browser, report, VARIANTS)
    watch.open_each(_marker)
    yield watch
    watch.page.close()


@pytest.mark.parametrize(
    "kinds",
    [
        *_EVERY_TIME,
        *(
            pytest.param((k,), marks=pytest.mark.slow)
            for k in ATTACKS
            if k not in sum(_EVERY_TIME, ())
        ),
    ],
    ids="-".join,
)
def test_attacks_stay_words_on_every_part_of_the_page(browser, harmless, tmp_path, kinds):
    attacks = ATTACKS[kinds[0]] if len(kinds) == 1 else sum((ATTACKS[k] for k in kinds), ())
    assert len(attacks) <= VARIANTS
    report = write_html(hostile_run(attacks), tmp_path / "report.html")
    watch = Watch(browser, report, VARIANTS)
    watch.open_each(_marker)

    assert watch.faults(harmless) == {}
    watch.page.close()


def test_every_field_that_people_read_is_among_those_attacked(harmless):
    seen = "\n".join(harmless.texts)

    assert {name for name in SHOWN if f"[{name}]" not in seen} == set()


@pytest.mark.parametrize(
    "kind",
    ["script", *(pytest.param(k, marks=pytest.mark.slow) for k in _ALSO_NOTICED)],
)
def test_one_field_left_unescaped_is_noticed(browser, harmless, tmp_path, kind):
    report = write_html(hostile_run(ATTACKS[kind]), tmp_path / "report.html")
    page = report.read_text(encoding="utf-8")
    for attack in (one for one in ATTACKS[kind] if "<" in one):  # the others name signs, not tags
        broken = page.replace(str(escape(attack)), attack)
        assert broken != page, f"nothing on the page says {attack}"
        report.write_text(broken, encoding="utf-8")
        watch = Watch(browser, report, VARIANTS)

        assert watch.faults(harmless) != {}
        watch.page.close()


@pytest.mark.slow
def test_a_script_that_parses_texts_as_markup_is_noticed(browser, harmless, tmp_path, monkeypatch):
    def careless(*names):
        text = read_assets(*names)
        return text.replace("made.append(...children", "made.innerHTML = [...children", 1).replace(
            "child === 0));", "child === 0)].map((one) => one.outerHTML ?? one).join('');", 1
        )

    script = (html.TEMPLATES, "report.js")
    assert careless(*script) != read_assets(*script)
    monkeypatch.setattr(html, "read_assets", careless)
    report = write_html(hostile_run(ATTACKS["handler"]), tmp_path / "report.html")
    watch = Watch(browser, report, VARIANTS)
    watch.page.evaluate("location.hash = 'case=1'")
    watch.page.wait_for_selector("#pane article")
    watch.look()

    assert "became elements" in watch.faults(harmless)
    watch.page.close()


def test_a_category_named_as_a_part_of_javascript_is_offered_by_its_name(tabs, tmp_path):
    run = hostile_run(ATTACKS["name"])
    page = tabs()
    page.goto(write_html(run, tmp_path / "report.html").as_uri())
    options = page.evaluate(
        "[...document.querySelectorAll('#by-category option')].map((one) => [one.value, one.text])"
    )

    offered = {value: words.rpartition(" (")[0] for value, words in options if value}
    assert offered == {case.category: case.category for case in run.cases}

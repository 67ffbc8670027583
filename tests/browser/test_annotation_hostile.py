"""Attacks in every text of a run that is labelled: a page of them is a page of words."""

import pytest

from annotation_desk import Served, write_run
from attacks import ATTACKS
from hostile_run import BENIGN, VARIANTS, hostile_run
from misslink.annotation.session import AnnotationSession
from watch import listening

# What a page of attacks may be made of, and which attributes mean something to a browser.
SEEN = """() => {
  const shapes = new Set(), wrong = [];
  for (const element of document.querySelectorAll("*")) {
    const names = element.getAttributeNames().sort();
    shapes.add(`${element.namespaceURI.split("/").pop()} ${element.localName}[${names}]`);
    for (const name of names) {
      const value = element.getAttribute(name);
      const means = {
        id: /^[a-z-]+$/, class: /^[a-z -]*$/,
        href: /^(#desk|data:,|\\/page\\/annotate.css|\\/api\\/export\\?format=[a-z]+&token=[a-z-]+)$/,
        src: /^\\/page\\/annotate.js$/, type: /^(button|text|submit|module)$/, role: /^[a-z]+$/,
      }[name];
      if (name.startsWith("on") || name === "style" || (means && !means.test(value))) {
        wrong.push(`${element.localName} ${name}=${value.slice(0, 80)}`);
      }
    }
  }
  const text = document.body.textContent;
  return { shapes: [...shapes], wrong, pwned: window.pwned ?? null, text };
}"""
SHOWN = {
    *("Case.id", "Case.question", "Case.references", "Passage.id", "Passage.text", "Trace.answer"),
    *("Claim.text", "Verdict.reason", "comment", "metric"),
}


class Tour:
    """A walk through a run: every case is labelled, commented on, and its judge looked at."""

    def __init__(self, browser, folder, kind, cases=4):
        metrics = ("faithfulness", _whole(f"{kind[0]} [metric]"))
        run = _first(hostile_run(tuple(map(_whole, kind))), cases, metrics)
        self.comment = f"{kind[0]} [comment]"
        self.run, self.metrics = write_run(folder, run), metrics
        self.page = listening(browser.new_page(reduced_motion="reduce"))
        self.shapes, self.wrong, self.texts, self.dialogs, self.pwned = set(), set(), [], [], None
        self.page.on(
            "dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss())
        )

    def walk(self):
        """See every case once, before and after it is labelled."""
        server = Served(self.run, metrics=self.metrics)
        try:
            with AnnotationSession(self.run, metrics=self.metrics) as desk:
                total = len(desk.tasks)
            self.page.goto(f"{server.address}#annotator=anna&case=1")
            for place in range(1, total + 1):
                self.page.locator(".meta", has_text=f"Case {place} of {total}").wait_for()
                self._case(place)
                self.page.keyboard.press("n")
            self.page.locator(".command").wait_for()
            self.look()
            self.address = f"{server.origin}/"
        finally:
            server.stop()
        self.page.close()
        return self

    def _case(self, place):
        self.look()
        self.page.keyboard.press("c")
        self.page.locator("#comment").fill(self.comment)
        self.page.keyboard.press("Enter")
        for _ in range(self.page.locator(".question").count()):
            self.page.keyboard.press("2")
        self.page.locator("#done", has_text=f"{place} of ").wait_for()
        self.page.keyboard.press("o")
        self.page.keyboard.press("e")
        self.page.locator("#judge:visible").wait_for()
        self.look()

    def look(self):
        """Note what the page is made of now."""
        seen = self.page.evaluate(SEEN)
        self.shapes |= set(seen["shapes"])
        self.wrong |= set(seen["wrong"])
        self.texts.append(seen["text"])
        self.pwned = self.pwned or seen["pwned"]

    def faults(self, harmless):
        """What gives an attack away, in words; nothing where every text stayed text."""
        strange = [url for url in self.page.asked if not url.startswith(self.address)]
        found = {
            "ran": self.pwned,
            "asked the reader": self.dialogs,
            "said on the console": self.page.said,
            "asked of the network": strange,
            "became elements": sorted(self.shapes - harmless.shapes),
            "became attributes": sorted(self.wrong),
        }
        return {name: what for name, what in found.items() if what}


def _whole(text):
    """As a run folder holds it, in which half a surrogate pair cannot stand."""
    return text.encode("utf-8", "replace").decode()


def _first(run, cases, metrics):
    """The first cases of a run, its verdicts of metrics of its own as of the one that is asked."""
    ids = {case.id for case in run.cases[:cases]}
    said = [one for one in run.verdicts if one.case_id in ids]
    renamed = [
        one.model_copy(update={"metric": metrics[1]})
        for one in said
        if one.metric not in {"faithfulness", "correctness"}
    ]
    return run.model_copy(
        update={
            "cases": run.cases[:cases],
            "verdicts": (*said, *renamed),
            "traces": tuple(one for one in run.traces if one.case_id in ids),
            "links": tuple(one for one in run.links if one.case_id in ids),
            "summary": {},  # its counts are of another run
        }
    )


@pytest.fixture(scope="module")
def harmless(browser, tmp_path_factory):
    """The same walk with a harmless word for every attack: what it is made of is allowed."""
    return Tour(browser, tmp_path_factory.mktemp("harmless") / "run", BENIGN).walk()


@pytest.mark.slow
def test_every_field_that_people_read_is_among_those_attacked(harmless):
    seen = "\n".join(harmless.texts)

    assert {name for name in SHOWN if f"[{name}]" not in seen} == set()
    assert harmless.faults(harmless) == {}


@pytest.mark.slow
def test_attacks_of_all_kinds_stay_words(browser, harmless, tmp_path):
    mixed = tuple(attack for kind in ATTACKS.values() for attack in kind[:2])
    tour = Tour(browser, tmp_path / "run", mixed).walk()

    assert tour.faults(harmless) == {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ATTACKS)
def test_attacks_of_one_kind_stay_words_in_every_field(browser, harmless, tmp_path, kind):
    tour = Tour(browser, tmp_path / "run", ATTACKS[kind], VARIANTS).walk()

    assert tour.faults(harmless) == {}


@pytest.mark.slow
def test_a_script_that_parses_texts_as_markup_would_be_noticed(browser, harmless, tmp_path):
    tour = Tour(browser, tmp_path / "run", ATTACKS["handler"])

    def careless(route):
        text = route.fetch().text()
        broken = text.replace("made.append(...children", "made.innerHTML = [...children", 1)
        broken = broken.replace(
            "child === 0));", "child === 0)].map((one) => one.outerHTML ?? one).join('');", 1
        )
        assert broken != text
        route.fulfill(body=broken, content_type="text/javascript")

    tour.page.route("**/page/dom.js", careless)
    server = Served(tour.run, metrics=tour.metrics)
    try:
        tour.page.goto(f"{server.address}#annotator=anna&case=1")
        tour.page.locator("article").wait_for()
        tour.look()
        tour.address = f"{server.origin}/"
    finally:
        server.stop()
        tour.page.close()

    assert "became elements" in tour.faults(harmless)

"""What a hostile page is watched for: what runs, what leaves, what its texts turn into."""

from misslink.report import links as places

# Text stays text if a page of attacks is built of the same elements and attributes as one of
# harmless words, and if none of them reaches an attribute that means something to a browser.
_SEEN = """() => {
  const shapes = new Set(), wrong = [];
  for (const element of document.querySelectorAll("*")) {
    const names = element.getAttributeNames().sort();
    shapes.add(`${element.namespaceURI.split("/").pop()} ${element.localName}[${names}]`);
    for (const name of names) {
      const value = element.getAttribute(name);
      const means = {
        id: /^[a-z][a-z0-9_-]*$/, class: /^[a-z0-9_ -]*$/, name: /^[a-z-]+$/, for: /^[a-z0-9 -]+$/,
        href: /^#[A-Za-z0-9_.!~*'()%=&,-]*$/, type: /^[a-z/+-]+$/, role: /^[a-z]+$/,
        style: /^((top|height): [0-9.]+px;)?$/,
      }[name];
      if (name.startsWith("on") || (means && !means.test(value))) {
        wrong.push(`${element.localName} ${name}=${value.slice(0, 80)}`);
      }
    }
  }
  const closed = document.querySelectorAll(".view.closed");
  for (const view of closed) view.classList.remove("closed"); // what is not open is read as well
  const seen = {
    shapes: [...shapes], wrong,
    pwned: window.pwned ?? null,
    heading: document.querySelector("h1")?.checkVisibility() ?? false,
    shown: document.getElementById("shown")?.textContent ?? "",
    text: document.body.innerText,
    attributes: [...document.querySelectorAll("[title], [aria-label], option")]
      .map((one) => `${one.title} ${one.ariaLabel} ${one.value}`).join("\\n"),
  };
  for (const view of closed) view.classList.add("closed");
  return seen;
}"""
# An answer is markdown, whose marks make these.
_MARKDOWN = {
    f"xhtml {tag}[]"
    for tag in ("blockquote", "code", "em", "li", "ol", "p", "span", "strong", "ul")
}


def listening(page):
    """Note what a page says on its console and asks of the network, before it is opened."""
    page.said, page.asked = [], []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    return page


class Watch:
    """A page that is watched while each of its cases is opened once.

    Parameters
    ----------
    browser : Browser
    report : Path
    cases : int
        How many it has.
    """

    def __init__(self, browser, report, cases):
        self.page = listening(browser.new_page(reduced_motion="reduce"))
        self.dialogs, self.lost, self.texts, self.shapes, self.wrong = [], [], [], set(), set()
        self.seen = {"pwned": None, "heading": False, "shown": ""}
        self.page.on(
            "dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss())
        )
        self.report, self.cases = report, cases
        self.page.goto(report.as_uri())
        self.look()

    def look(self):
        """Note what the page is made of now."""
        from playwright.sync_api import Error

        try:
            seen = self.page.evaluate(_SEEN)
        except Error as problem:  # it is going elsewhere, or is no page any more
            self.lost.append(problem.message)
            return
        self.shapes |= set(seen["shapes"])
        self.wrong |= set(seen["wrong"])
        self.texts += [seen["text"], seen["attributes"]]
        self.seen = seen

    def open_each(self, marker):
        """Open every case by its address; `marker` is a text that its pane holds, by number."""
        for number in range(1, self.cases + 1):
            self.page.evaluate("(hash) => { location.hash = hash }", places.case_fragment(number))
            self.page.wait_for_function(
                "(marker) => document.getElementById('pane').textContent.includes(marker)",
                arg=marker(number),
            )
            for summary in self.page.locator("#pane summary").all():
                summary.evaluate("(at) => { at.parentElement.open = true }")
            self.look()

    def faults(self, harmless):
        """What gives an attack away, in words; nothing where every text stayed text."""
        strange = sorted(self.shapes - harmless.shapes - _MARKDOWN)
        asked = [address for address in self.page.asked if address != self.report.as_uri()]
        return {
            name: found
            for name, found in {
                "ran": self.seen["pwned"],
                "could not be looked at": self.lost,
                "asked the reader": self.dialogs,
                "said on the console": self.page.said,
                "asked of the network": asked,
                "became elements": strange,
                "became attributes": sorted(self.wrong),
                "left the page": self.page.url.split("#")[0] != self.report.as_uri(),
                "hid the heading": not self.seen["heading"],
                "lost cases": f"{self.cases} of {self.cases}" not in self.seen["shown"],
            }.items()
            if found
        }

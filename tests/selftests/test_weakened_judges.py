"""Each weakness of a judge shows in its kind, in a world that the rules were not written for."""

from importlib.util import find_spec

import pytest

from faults.facts import FERRIES, PUMPS
from selftest import WEAKNESSES, detect

pytestmark = pytest.mark.skipif(not find_spec("chromadb"), reason="needs misslink[langchain]")

# What these judges say is refused by the checks of quotes.
RESCUED = {
    "does not compare names",
    "supports what no passage says",
    "does not see that another question is answered",
    "does not compare numbers",
    "does not see denials",
}
NO_PLACE = {"does not see who did what"}


@pytest.mark.slow
@pytest.mark.source
def test_two_weaknesses_are_seen():
    names = ("does not see what is left out", "flags citation marks")
    intact, *rows = detect(FERRIES, {name: WEAKNESSES[name] for name in names}, 2)
    assert intact[2].startswith("100%")
    assert [row[-1] for row in rows] == ["detected", "detected"]


@pytest.mark.source
@pytest.mark.slow
def test_ten_weaknesses_are_seen_with_200_mutants():
    """A judge that does not read the references agrees with every answer, whatever else it sees."""
    unread = "does not read the references"
    others = {name: kinds for name, kinds in WEAKNESSES.items() if name != unread}
    intact, *rows = detect(PUMPS, others, 9, together=True)
    rows += detect(PUMPS, {unread: WEAKNESSES[unread]}, 9)[1:]
    assert intact[2].startswith("100%")
    assert int(intact[-1].split()[0]) <= 200
    seen = {row[0] for row in rows if row[-1] == "detected"}
    assert seen == WEAKNESSES.keys() - RESCUED - NO_PLACE
    assert len(seen) == 10
    assert {row[0] for row in rows if row[-1] == "no effect"} == RESCUED

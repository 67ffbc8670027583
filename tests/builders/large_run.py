"""A run of more cases than the page lists."""

from misslink.types import Case, Claim, Link, Passage, Run, Trace, Verdict

CASES = 900
HOSTILE = "it's \"<b>\" & '); drop"


def large_run():
    """A third of its cases are misses, the rest fine but for a few; text that no SQL may run."""
    cases, traces, verdicts, links = [], [], [], []
    for number in range(1, CASES + 1):
        one = f"case-{number}"
        miss, odd = number % 3 == 0, number > CASES - 20
        cases.append(
            Case(id=one, question=f"What of word{number}?", relevant={"p": 1},
                 category=HOSTILE if odd else "plain", tags={"topic": str(number % 7)})
        )  # fmt: skip
        traces.append(
            Trace(case_id=one, answer=f"An answer{number}.", prompted=("p",),
                  retrieved=(Passage(id="p", text="A passage.", rank=1),))
        )  # fmt: skip
        claim = Claim(text=f"An answer{number}.", start=0, end=9, support="unsupported")
        verdicts.append(
            Verdict(case_id=one, metric="faithfulness", status="scored", judge="j",
                    value=0.0 if miss else 1.0, label=not miss, claims=(claim,) if miss else ())
        )  # fmt: skip
        links.append(
            Link(case_id=one, retrieval="miss" if miss else "hit", reason="-",
                 answer="unfaithful" if miss else "faithful",
                 failure="retrieval_miss" if miss else "passed")
        )  # fmt: skip
    return Run(
        manifest={"app": "app:chain"}, summary={}, cases=cases, traces=traces,
        verdicts=verdicts, links=links,
    )  # fmt: skip

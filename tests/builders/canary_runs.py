"""Canary runs written down by hand, for tests of what is made of them."""

from misslink.canary.results import CanaryResult, Fingerprint, FinishedRun

HOUR = 3600.0
SETTINGS = {
    "app": "app.py:chain",
    "canary_set": "canaries.jsonl",
    "k": 5,
    "judge": "none",
    "relevance": "cosine",
}


def result(name, healthy=True, **more):  # noqa: FBT002 (the word stands in the test)
    reason = "the first expected passage is at rank 1" if healthy else "no expected passage"
    given = {
        "owner": None,
        "status": "answered",
        "reason": reason,
        "rank": 1 if healthy else None,
        "coverage": float(bool(healthy)),
        "score": 0.6 if healthy else None,
        "latency_s": 0.5,
    }
    return CanaryResult(canary=name, healthy=healthy, **{**given, **more})


def hung(name):
    return CanaryResult(name, None, "hung", None, "the app did not answer within 30 seconds")


def finished(number, ill=(), *, count=10, documents=None, **more):
    """Run `number` of ten canaries c0, c1, ..., of which those numbered in `ill` are ill."""
    results = tuple(result(f"c{n}", n not in ill, owner=f"team {n % 2}") for n in range(count))
    given = {
        "name": "main",
        "at": number * HOUR,
        "key": "same",
        "settings": SETTINGS,
        "results": results,
        "fingerprint": Fingerprint(documents or {"d1": "x"}, "model a"),
        "learn": 10,
    }
    return FinishedRun(**{**given, **more})

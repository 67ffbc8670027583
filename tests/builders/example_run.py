"""A run written by hand: every failure mode, and every text that a hostile or careless app could write."""

from __future__ import annotations

from misslink.types import (
    Case,
    Claim,
    ClaimLink,
    Evidence,
    Link,
    Need,
    Passage,
    PromptRef,
    RetrievalMiss,
    Run,
    Trace,
    Verdict,
)

# Each would leave the text it stands in if any field were not escaped: for its own kind of place.
HOSTILE = (
    "<script>window.pwned = 1</script>",
    "</script><script>window.pwned = 2</script>",
    "</style><style>body { display: none }</style>",
    '"><img src=x onerror="window.pwned = 3">',
    "' onmouseover='window.pwned = 4",
    "javascript:window.pwned=5",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- -->]]></title></textarea></pre></svg>",
    "\u202egnp.exe\u202c \u2028 \u2029 \x00 \x0b",
    "<a href='https://example.org/leak'>click</a><link rel=stylesheet href=//example.org>",
)
JUDGE = "heuristic"
PROMPT = PromptRef(name="examination", version=1, sha256="ab" * 32)
WITH = (
    "The execution of the with statement calls the context manager's __exit__() method when the "
    "suite ends. If the suite was exited due to an exception, its type, value and traceback are "
    "passed to it."
)
TRY = (
    "If a finally clause executes a return, break or continue statement, the saved exception is "
    "discarded."
)
LAMBDA = (
    "Lambda expressions are used to create anonymous functions. They cannot contain statements."
)
SLOTS = "The action of __slots__ is limited to the class where it is defined."
NOISE = "The pass statement is a null operation: when it is executed, nothing happens."


def claim(
    answer: str, text: str, support: str, passage: str = "", quote: str = "", **more
) -> Claim:
    """A claim located in `answer` (unless it is not there), with one quote if one is given."""
    start = answer.find(text)
    found = (Evidence(passage_id=passage, quote=quote, **_spot(passage, quote)),) if quote else ()
    return Claim(
        text=text,
        start=start if start >= 0 else None,
        end=start + len(text) if start >= 0 else None,
        support=support,
        evidence=found,
        probability={"supported": 0.91, "unsupported": 0.18, "contradicted": 0.07}[support],
        **more,
    )


def _spot(passage: str, quote: str) -> dict[str, int]:
    text = TEXTS.get(passage, "")
    start = text.find(quote)
    return {"start": start, "end": start + len(quote)} if start >= 0 else {}


TEXTS = {"with#1": WITH, "try#4": TRY, "lambda#0": LAMBDA, "slots#2": SLOTS, "pass#0": NOISE}


def passages(*ids: str) -> tuple[Passage, ...]:
    """The passages of `ids` in that order."""
    return tuple(
        Passage(id=one, text=TEXTS.get(one, f"Text of {one}."), rank=i, score=0.9 - 0.1 * i)
        for i, one in enumerate(ids, 1)
    )


def verdict(case_id: str, metric: str, value: float | None, **more) -> Verdict:
    """A verdict; without a value it failed."""
    more.setdefault("status", "scored" if value is not None else "failed")
    if value is not None and metric == "faithfulness":
        more.setdefault("label", value == 1)
    return Verdict(case_id=case_id, metric=metric, value=value, judge=JUDGE, prompt=PROMPT, **more)


def estimate(value: float, low: float, high: float, n: int = 14, method: str = "wilson") -> dict:
    """An Estimate as the summary holds it."""
    return {"value": value, "low": low, "high": high, "n": n, "method": method, "reason": None}


def missing(reason: str) -> dict:
    """An Estimate that could not be computed."""
    return {"value": None, "low": None, "high": None, "n": 0, "method": "none", "reason": reason}


def _miss() -> tuple:
    answer = (
        "The with statement swallows every exception [1]. It calls __exit__() at the end. "
        "Since Python 2.2 it also closes sockets."
    )
    claims = (
        claim(answer, "The with statement swallows every exception", "contradicted", correct=False),
        claim(answer, "It calls __exit__() at the end.", "supported", "pass#0", "nothing happens"),
        claim(answer, "Since Python 2.2 it also closes sockets.", "unsupported"),
        claim(
            answer,
            "Sockets are closed by the interpreter.",
            "unsupported",
            note="The judge's quote is in no passage.",
        ),
    )
    missed = (
        RetrievalMiss(
            passage_id="with#1",
            grade=2,
            true_rank=17,
            miss_type="ranked_low",
            depth=100,
            text=WITH,
            evidence="calls the context manager's __exit__() method",
        ),
        RetrievalMiss(
            passage_id="with#1",
            grade=1,
            true_rank=17,
            miss_type="ranked_low",
            depth=100,
            text=WITH,
            evidence="when the suite ends",
        ),
        RetrievalMiss(
            passage_id="evidence-2", grade=1, depth=100, evidence="An evidence nobody found."
        ),
    )
    links = (
        ClaimLink(
            index=0,
            passage_id="with#1",
            relation="would_contradict",
            true_rank=17,
            quote="its type, value and traceback are passed to it",
        ),
        ClaimLink(index=2, passage_id="with#1", relation="unrelated", true_rank=17),
        ClaimLink(index=3, passage_id="evidence-2", relation="unrelated"),
    )
    return (
        Case(
            id="with-exit",
            question="What does a with statement do when its suite raises?",
            relevant={"with#1": 2},
            references=(
                "It calls __exit__() with the exception.",
                "The context manager's __exit__() gets it.",
            ),
            category="procedural",
            tags={"topic": "context managers"},
        ),
        Trace(
            case_id="with-exit",
            retrieved=passages("pass#0", "try#4", "lambda#0"),
            prompted=("pass#0", "try#4"),
            prompt=f"Answer from this:\n{TEXTS['pass#0']}\n{TEXTS['try#4']}",
            answer=answer,
            latency_s=2.34,
            depth=100,
        ),
        (
            verdict(
                "with-exit",
                "faithfulness",
                0.25,
                claims=claims,
                probability=0.07,
                reason="1 of 4 claims is supported",
                raw='{"claims": ["…"]}',
            ),
            verdict("with-exit", "answer_relevance", 0.8, raw='{"claims": ["…"]}'),
            verdict(
                "with-exit",
                "correctness",
                0.33,
                parts={"precision": 0.25, "recall": 0.5},
                claims=(claim(answer, "It calls __exit__() at the end.", "supported"),),
            ),
        ),
        Link(
            case_id="with-exit",
            retrieval="miss",
            answer="unfaithful",
            correct=False,
            failure="retrieval_miss",
            also=("fabricated",),
            missed=missed,
            claims=links,
            needs=(
                Need(
                    text="It calls __exit__() with the exception.",
                    source="reference",
                    lost_at="rank",
                    stated="contradicts",
                    passage_id="with#1",
                    true_rank=17,
                    by="label",
                ),
                Need(text="It is called when the suite ends.", source="label", lost_at="unknown"),
            ),
            reason="None of the 2 needed passages reached the prompt, and 3 of 4 claims are not "
            "supported.",
        ),
    )


def _hostile() -> tuple:
    answer = "Beginning " + " ".join(HOSTILE) + " end."
    claims = (
        claim(answer, HOSTILE[0], "unsupported"),
        claim(answer, HOSTILE[3], "supported", "evil", HOSTILE[1], note=HOSTILE[0]),
        claim(answer, HOSTILE[2], "contradicted"),
        Claim(text=HOSTILE[5], start=5, end=10**6, support="unsupported"),
        Claim(text=HOSTILE[0][:20], start=12, end=200, support="supported"),  # lies over the others
    )
    evil_id = HOSTILE[3]
    return (
        Case(
            id=HOSTILE[0],
            question=" ".join(HOSTILE),
            relevant={evil_id: 1},
            references=(HOSTILE[1],),
            category=HOSTILE[3],
            tags={HOSTILE[4]: HOSTILE[0]},
        ),
        Trace(
            case_id=HOSTILE[0],
            retrieved=(
                Passage(id="evil", text="\n".join(HOSTILE), rank=1),
                Passage(id=HOSTILE[5], text=HOSTILE[9], rank=2),
            ),
            prompted=("evil",),
            answer=answer,
            notes=HOSTILE,
            error=None,
            deeper=(Passage(id=evil_id, text=HOSTILE[1], rank=9),),
            depth=20,
        ),
        (
            verdict(
                HOSTILE[0], "faithfulness", 0.4, claims=claims, reason=HOSTILE[3], raw=HOSTILE[1]
            ),
            verdict(HOSTILE[0], HOSTILE[3], None, reason=HOSTILE[2]),
        ),
        Link(
            case_id=HOSTILE[0],
            retrieval="miss",
            answer="unfaithful",
            failure="retrieval_miss",
            needs=(
                Need(
                    text=" ".join(HOSTILE),
                    source="label",
                    lost_at="prompt",
                    passage_id=evil_id,
                    by="judge",
                ),
            ),
            reason=HOSTILE[3],
            missed=(
                RetrievalMiss(passage_id=evil_id, true_rank=9, depth=20, miss_type="below_cutoff"),
            ),
            claims=(
                ClaimLink(
                    index=0,
                    passage_id=evil_id,
                    relation="would_support",
                    true_rank=9,
                    quote="window.pwned = 2",
                    by=HOSTILE[0],
                ),
            ),
        ),
    )


def _long() -> tuple:
    answer = "A very long answer about nothing in particular. " * 120 + "x" * 900
    return (
        Case(
            id="long",
            question="Why is " + "a very long question " * 20 + "long?",
            relevant={"try#4": 1},
            category="complex_factual",
            tags={"topic": "exceptions"},
        ),
        Trace(
            case_id="long",
            retrieved=passages("try#4", "pass#0"),
            prompted=None,
            answer=answer,
            notes=("The prompt was not seen: no model call was reported.",),
        ),
        (
            verdict(
                "long",
                "faithfulness",
                0.5,
                claims=(
                    claim(answer, "A very long answer about nothing in particular.", "unsupported"),
                ),
            ),
        ),
        Link(
            case_id="long",
            retrieval="hit",
            answer="unfaithful",
            correct=None,
            failure="fabricated",
            needs=(Need(text=TRY, source="label", lost_at="answer", stated="omits", by="label"),),
            reason="A claim is supported by nothing.",
            basis="replayed",
        ),
    )


def _right_to_left() -> tuple:
    answer = "تعبيرات لامدا تنشئ دوال مجهولة. 匿名函数 🐍 naïve café."
    return (
        Case(
            id="rtl",
            question="ما هي تعبيرات لامدا؟",
            relevant={"lambda#0": 1},
            references=("دوال مجهولة",),
            category="entity_centric",
            tags={"topic": "لامدا"},
        ),
        Trace(
            case_id="rtl",
            retrieved=passages("lambda#0", "pass#0"),
            prompted=("lambda#0",),
            answer=answer,
            latency_s=0.2,
        ),
        (
            verdict(
                "rtl",
                "faithfulness",
                1.0,
                claims=(
                    claim(
                        answer,
                        "تعبيرات لامدا تنشئ دوال مجهولة.",
                        "supported",
                        "lambda#0",
                        "Lambda expressions are used to create anonymous functions.",
                    ),
                ),
            ),
            verdict("rtl", "correctness", 1.0),
        ),
        Link(
            case_id="rtl",
            retrieval="hit",
            answer="faithful",
            correct=True,
            failure="passed",
            needs=(
                Need(
                    text="دوال مجهولة", source="reference", stated="states", passage_id="lambda#0"
                ),
            ),
            reason="Nothing is wrong.",
        ),
    )


def _plain(
    case_id: str,
    question: str,
    retrieval: str,
    answer_outcome: str,
    failure: str,
    reason: str,
    *,
    answer: str | None = "Lambda expressions create anonymous functions.",
    correct=None,
    value: float | None = 1.0,
    category: str = "simple_factual",
    topic: str = "functions",
    error: str | None = None,
    gold: str = "lambda#0",
) -> tuple:
    found = passages("lambda#0", "pass#0") if retrieval != "miss" else passages("pass#0", "try#4")
    claims = ()
    if answer and value is not None:
        support = "supported" if value == 1 else "unsupported"
        claims = (
            claim(
                answer,
                answer,
                support,
                *(
                    ("lambda#0", "create anonymous functions")
                    if value == 1 and retrieval != "miss"
                    else ()
                ),
            ),
        )
    missed = (RetrievalMiss(passage_id=gold, depth=100),) if retrieval == "miss" else ()
    return (
        Case(
            id=case_id,
            question=question,
            relevant={} if retrieval == "not_needed" else {gold: 1},
            answerable=retrieval != "not_needed",
            category=category,
            tags={"topic": topic},
        ),
        Trace(
            case_id=case_id,
            retrieved=found,
            prompted=tuple(p.id for p in found),
            answer=answer,
            latency_s=1.0,
            error=error,
            depth=100,
        ),
        (
            verdict(
                case_id,
                "faithfulness",
                value,
                claims=claims,
                reason=None if value is not None else "the reply was not JSON",
                raw=None if value is not None else "I think it is fine!",
            ),
        ),
        Link(
            case_id=case_id,
            retrieval=retrieval,
            answer=answer_outcome,
            correct=correct,
            failure=failure,
            reason=reason,
            missed=missed,
        ),
    )


def example_run() -> Run:
    """Fourteen cases: every failure mode at least once, four of them written to break the page."""
    parts = [
        _right_to_left(),
        _plain("lambda", "What is a lambda expression for?", "hit", "faithful", "passed",
               "Nothing is wrong.", correct=True),
        _plain("negative-1", "Who maintains the Rust borrow checker?", "not_needed", "unfaithful",
               "should_have_abstained", "The corpus holds no answer, and the app gave one.",
               answer="It is maintained by the Python Software Foundation.", value=0.0,
               category="negative", correct=False),
        _hostile(),
        _plain("refused", "Can a lambda contain a statement?", "hit", "declined", "over_refused",
               "The needed passage was in the prompt, and the app declined.",
               answer="I don't know.", value=None),
        _plain("distracted", "What does pass do inside a lambda?", "hit", "unfaithful",
               "distracted", "A wrong claim rests on pass#0, which is not relevant.",
               answer="It runs the null operation inside the lambda.", value=0.0, correct=False,
               category="comparative"),
        _long(),
        _plain("ignored", "Are lambdas anonymous?", "partial", "faithful", "ignored_context",
               "The answer is wrong and uses no relevant passage.", correct=False,
               category="comparative"),
        _plain("hole", "What creates a function without a name?", "miss", "faithful", "missing_label",
               "try#4 holds the answer, but the gold set does not list it.", correct=True),
        _plain("memory", "Are lambdas allowed in a class body?", "miss", "faithful",
               "answered_from_memory", "Correct, although the needed passage was missing.",
               correct=True, category="complex_factual"),
        _plain("inconclusive", "What is a suite?", "hit", "unknown", "inconclusive",
               "The verdict on faithfulness failed: the reply was not JSON.", value=None),
        _plain("crashed", "What happens on a crash?", "miss", "unknown", "inconclusive",
               "The app raised an error.", answer=None, value=None,
               error="TimeoutError: the model did not answer within 30 s"),
        _plain("negative-2", "Which Python was the first on the moon?", "not_needed", "declined",
               "passed", "The app rightly declined.", answer="The passages do not say.",
               category="negative"),
        _miss(),
    ]  # fmt: skip
    return Run(
        manifest=_manifest(),
        cases=tuple(case for case, *_ in parts),
        traces=tuple(trace for _, trace, *_ in parts),
        verdicts=tuple(one for _, _, verdicts, _ in parts for one in verdicts),
        links=tuple(link for *_, link in parts),
        summary=_summary(),
    )


def _manifest() -> dict:
    return {
        "misslink": "0.0.1",
        "created": "2026-11-21T22:48:00+00:00",
        "app": "examples/python_reference/app.py:chain",
        "traces": None,
        "goldset": "examples/python_reference/goldset.jsonl",
        "judge": JUDGE,
        "judge_note": "heuristic; of 10 answers it flags, 4 to 5 are unfaithful; it finds 57% "
        "(574 RAGTruth QA answers not used for fitting)",
        "k": 5,
        "depth": 100,
        "seed": 0,
        "prompts": [{"name": "examination", "version": 1, "sha256": "ab" * 32}],
        "command": "misslink evaluate examples/python_reference/app.py:chain --goldset "
        "examples/python_reference/goldset.jsonl --judge heuristic --out reports/today",
        "versions": {"python": "3.11.2", "langchain-core": "1.7.0"},
    }


def _summary() -> dict:
    link = {
        "exposure": "labels",
        "table": {"none": {"bad": 2, "good": 2}, "some": {"bad": 1, "good": 0},
                  "all": {"bad": 1, "good": 3}, "left_out": 5},
        "risk_given_none": estimate(0.5, 0.15, 0.85, 4),
        "risk_given_some": estimate(1.0, 0.21, 1.0, 1),
        "risk_given_all": estimate(0.25, 0.05, 0.7, 4),
        "risk_difference": estimate(0.1, -0.42, 0.57, 9, "newcombe"),
        "risk_ratio": missing("it could be anything"),
        "attributable_fraction": estimate(0.38, -0.08, 0.61, 9, "bootstrap"),
        "failures": {"retrieval_miss": 2, "passed": 3},
    }  # fmt: skip
    wrong = {
        "table": {"none": {"bad": 1, "good": 2}, "some": {"bad": 0, "good": 0},
                  "all": {"bad": 2, "good": 2}, "left_out": 7},
        "risk_given_none": estimate(0.33, 0.06, 0.79, 3),
        "risk_given_some": missing("no case has some of its relevant passages in the prompt"),
        "risk_given_all": estimate(0.5, 0.15, 0.85, 4),
        "risk_difference": estimate(-0.17, -0.62, 0.41, 7, "newcombe"),
        "risk_ratio": missing("it could be anything"),
        "attributable_fraction": missing("too few wrong answers"),
        "trend": {"p": None, "method": "cochran-armitage", "reason": "too few cases"},
    }  # fmt: skip
    return {
        "run": "reports/today", "cases": 14, "judge": JUDGE, "k": 5,
        "retrieval": {
            "hit@5": estimate(0.58, 0.32, 0.81, 12),
            "mrr": estimate(0.51, 0.27, 0.75, 12, "bootstrap"),
            "recall@5": estimate(0.54, 0.29, 0.78, 12, "bootstrap"),
            "precision@5": estimate(0.12, 0.06, 0.17, 12, "bootstrap"),
            "ndcg@5": estimate(0.53, 0.28, 0.77, 12, "bootstrap"),
        },
        "generation": {
            "faithfulness": estimate(0.56, 0.33, 0.78, 11, "bootstrap"),
            "fully_faithful": estimate(0.55, 0.28, 0.79, 11),
            "answer_relevance": estimate(0.8, 0.21, 0.98, 1, "wilson on the mean"),
            "context_utilization": missing("no case has a supported claim and a needed passage"),
            "noise_sensitivity": estimate(0.1, 0.02, 0.4, 7, "bootstrap"),
        },
        "answer": {
            "correctness": estimate(0.57, 0.25, 0.84, 7, "bootstrap"),
            "abstention": estimate(0.004, 0.0, 0.31, 9),
        },
        "link": link,
        "link_correctness": wrong,
        "lower_is_better": ["noise_sensitivity"],
        "coverage": {"faithfulness": {"scored": 11, "skipped": 0, "failed": 3},
                     "answer_relevance": {"scored": 1, "skipped": 0, "failed": 0},
                     "correctness": {"scored": 2, "skipped": 12, "failed": 0}},
        "usage": {"calls": 14, "from_cache": 0, "prompt_tokens": None, "completion_tokens": None,
                  "cost": None},
        "slices": {
            "category": {
                "simple_factual": _group(24, 0.91, 0.88, 0.8),
                "negative": {"n": 12, "metrics": {
                    "recall@5": missing("no case has a relevant passage"),
                    "fully_faithful": estimate(0.5, 0.1, 0.9, 2), "correctness": missing("no gold")}},
                "comparative": _group(11, 0.62, 0.55, 0.41),
                HOSTILE[3]: _group(1, 0.0, 0.0, 0.2),
            },
            "topic": {"functions": _group(30, 0.8, 0.7, 0.6), "لامدا": _group(3, 1.0, 1.0, 1.0)},
        },
    }  # fmt: skip


def _group(n: int, recall: float, faithful: float, correctness: float) -> dict:
    def wide(value: float) -> dict:
        return estimate(value, max(0.0, value - 0.2), min(1.0, value + 0.2), n)

    return {
        "n": n,
        "metrics": {
            "recall@5": wide(recall), "fully_faithful": wide(faithful), "correctness": wide(correctness)
        },
    }  # fmt: skip

"""Each request gets its variant's answer, or control's; what fails in between nobody notices."""

import asyncio
import sqlite3
from collections import Counter

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import (
    RunnableLambda,
)

from live_apps import ALL_B, EVEN, Two, chain, every_way, of, raises
from misslink.errors import InputError
from misslink.live import (
    Experiment,
    LiveLog,
    RequestOptions,
    Router,
    ShadowOptions,
    read_live,
)
from misslink.live.assignment import unit_hash


def test_a_unit_gets_the_same_variant_by_every_face(path):
    router = Router({"A": chain("from A"), "B": chain("from B")}, EVEN, log=path)
    for number in range(6):
        expected = f"from {EVEN.assign(f'u{number}').variant}"
        assert every_way(router, "question?", of(f"u{number}")) == [expected] * 6
    router.close()
    live = read_live(path)
    assert len(live.exposures) == 36
    for exposure in live.exposures:
        assert exposure.variant == exposure.served
        assert (exposure.mode, exposure.outcome) == ("assigned", "ok")
        assert exposure.retrieved == ("d1", "d2")
        assert exposure.question is exposure.answer is None
        assert exposure.latency_s > 0
    assert {exposure.unit for exposure in live.exposures} == {
        unit_hash(f"u{number}", "test") for number in range(6)
    }


@pytest.mark.slow
def test_hundreds_of_requests_at_once_are_all_logged_and_not_mixed(path):
    def answers(name):
        def ask(question):
            return f"{name} {question} {[d.id for d in Two().invoke(question)]}"

        return RunnableLambda(ask)

    router = Router(
        {"A": answers("A"), "B": answers("B")},
        EVEN,
        log=path,
        requests=RequestOptions(keep_texts=True),
    )
    units = [f"u{number}" for number in range(300)]

    async def at_once():
        return await asyncio.gather(*(router.ainvoke(f"q-{unit}", of(unit)) for unit in units))

    said = asyncio.run(at_once())
    said += router.batch([f"q-{u}" for u in units], [of(u) for u in units])
    for unit, answer in zip(units * 2, said, strict=True):
        assert answer.startswith(f"{EVEN.assign(unit).variant} q-{unit} ")
    router.close()
    logged = Counter((e.unit, e.variant, e.question, e.answer) for e in read_live(path).exposures)
    for unit, answer in zip(units, said, strict=False):
        variant = EVEN.assign(unit).variant
        assert logged[unit_hash(unit, "test"), variant, f"q-{unit}", answer] == 2


def test_an_input_whose_question_cannot_be_read_is_assigned_all_the_same(path):
    class NoTruth:
        def __bool__(self):
            raise ValueError

    router = Router({"A": lambda _: "a", "B": lambda _: "b"}, ALL_B, log=path)
    assert router.invoke({"question": NoTruth()}, of("u")) == "b"
    router.close()
    (exposure,) = read_live(path).exposures
    assert (exposure.mode, exposure.question_hash) == ("assigned", None)
    assert router.health["troubles"] == {"the question of a request could not be read": 1}


def test_a_request_without_a_unit_gets_control_and_a_tester_chooses(path, caplog):
    router = Router({"A": str.lower, "B": str.upper}, ALL_B, log=path)
    assert router.invoke("Hi") == "hi"
    assert router.invoke("Hi", of("")) == "hi"
    assert router.invoke("Hi", of("u", misslink_variant="A")) == "hi"
    assert router.invoke("Hi", {"configurable": {"misslink_variant": "B"}}) == "HI"
    assert router.invoke("Hi", of("u", misslink_variant=["no such"])) == "HI"
    router.close()
    modes = [exposure.mode for exposure in read_live(path).exposures]
    assert modes == ["no_unit", "no_unit", "override", "override", "assigned"]
    assert caplog.text.count("without a unit") == 1


def test_the_users_own_functions_may_fail(path):
    def unit(asked, config):
        raise KeyError("no header")

    def cost(usage):
        raise ZeroDivisionError

    said = GenericFakeChatModel(
        messages=iter(
            AIMessage(
                "x", usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
            )
            for _ in range(2)
        )
    )
    router = Router(
        {"A": said, "B": said}, ALL_B, log=path, requests=RequestOptions(unit=unit, cost=cost)
    )
    assert router.invoke("q").content == "x"
    by_tokens = RequestOptions(cost=lambda usage: usage.prompt_tokens / 10)
    priced = Router({"A": said, "B": said}, ALL_B, log=path, requests=by_tokens)
    assert priced.invoke("q", of("u")).content == "x"
    router.close()
    priced.close()
    first, second = read_live(path).exposures
    assert (first.mode, first.prompt_tokens, first.completion_tokens) == ("no_unit", 3, 2)
    assert (first.cost, second.cost) == (None, 0.3)
    assert sum(router.health["troubles"].values()) == 2


def test_the_unit_may_come_from_a_function_of_the_input(path):
    router = Router(
        {"A": lambda _: "a", "B": lambda _: "b"},
        EVEN,
        log=path,
        requests=RequestOptions(unit=lambda asked, _: asked["session"]),
    )
    for number in range(20):
        unit = f"u{number}"
        expected = EVEN.assign(unit).variant.lower()
        assert router.invoke({"question": "q", "session": unit}) == expected
    router.close()


def test_a_log_that_fails_never_reaches_the_user(path, monkeypatch, caplog):
    log = LiveLog(path)
    router = Router({"A": str.lower, "B": str.upper}, ALL_B, log=log)

    def no_room(*_):
        raise MemoryError

    monkeypatch.setattr(log, "exposure", no_room)
    assert every_way(router, "Hi", of("u")) == ["HI"] * 6
    assert router.health["troubles"] == {"a request could not be logged": 6}
    assert caplog.text.count("could not be logged") == 1


def test_requests_are_answered_while_the_log_is_locked(path):
    router = Router({"A": str.lower, "B": str.upper}, ALL_B, log=path)
    held = sqlite3.connect(path, isolation_level=None)
    held.execute("BEGIN IMMEDIATE")
    assert every_way(router, "Hi", of("u")) == ["HI"] * 6
    held.close()
    router.close()
    assert len(read_live(path).exposures) == 6


def test_a_shadow_is_asked_and_answers_nobody(path):
    heard = []

    class Screen(BaseCallbackHandler):
        def on_chain_end(self, outputs, **kwargs):
            heard.append(outputs)

    experiment = Experiment("beside", {"A": 1}, shadow={"B": 1, "C": 1, "D": 1})
    variants = {"A": str.lower, "B": chain("from B"), "C": raises, "D": lambda _: None}
    router = Router(variants, experiment, log=path)
    config = {**of("u", misslink_exposure="request-1"), "callbacks": [Screen()]}
    assert router.invoke("Hi", config) == "hi"
    router.close()
    live = read_live(path)
    (served,) = [e for e in live.exposures if e.mode == "assigned"]
    beside = {e.variant: e for e in live.exposures if e.mode == "shadow"}
    assert served.id == "request-1"
    assert {name: e.outcome for name, e in beside.items()} == {
        "B": "ok",
        "C": "failed",
        "D": "failed",
    }
    assert all(
        (e.of, e.served, e.unit) == ("request-1", None, served.unit) for e in beside.values()
    )
    assert beside["B"].retrieved == ("d1", "d2")
    assert heard == ["hi"]


def test_a_shadow_that_hangs_delays_nobody_and_the_rest_is_dropped_and_counted(path, hangs):
    experiment = Experiment("beside", {"A": 1}, shadow={"B": 1})
    router = Router(
        {"A": str.lower, "B": hangs},
        experiment,
        log=path,
        shadows=ShadowOptions(concurrency=1, waiting=2),
    )
    for _ in range(20):
        assert router.invoke("Hi", of("u")) == "hi"
    assert router.health["shadows_dropped"] >= 17
    hangs.let_go.set()
    router.close()
    outcomes = Counter(e.outcome for e in read_live(path).exposures if e.mode == "shadow")
    assert outcomes["dropped"] + outcomes["failed"] == 20
    assert outcomes["dropped"] == router.health["shadows_dropped"]


def test_a_shadow_that_only_knows_ainvoke_is_asked_in_a_loop_of_its_own(path):
    async def answers(question):
        await asyncio.sleep(0)
        return question.upper()

    experiment = Experiment("beside", {"A": 1}, shadow={"B": 1})
    router = Router(
        {"A": str.lower, "B": RunnableLambda(answers)},
        experiment,
        log=path,
        shadows=ShadowOptions(by_ainvoke=True),
        requests=RequestOptions(keep_texts=True),
    )
    assert router.invoke("Hi", of("u")) == "hi"
    router.close()
    assert [(e.mode, e.outcome, e.answer) for e in read_live(path).exposures] == [
        ("assigned", "ok", "hi"),
        ("shadow", "ok", "HI"),
    ]


def test_a_question_asked_again_in_other_words_is_feedback_on_the_answer_before(path):
    router = Router(
        {"A": str.lower, "B": str.upper},
        ALL_B,
        log=path,
        requests=RequestOptions(reformulation_min=5),
    )
    router.invoke("How do I reset my password?", of("u", misslink_exposure="first"))
    router.invoke("password reset how", of("u"))
    router.invoke("What is a decorator?", of("u"))
    router.close()
    (one,) = read_live(path).feedback
    assert (one.kind, one.exposure, one.unit) == ("reformulation", "first", unit_hash("u", "test"))


def test_feedback_is_checked_and_kept(path):
    router = Router(
        {"A": str.lower, "B": str.upper}, ALL_B, log=path, requests=RequestOptions(salt="s")
    )
    router.feedback("thumbs", True, exposure="request-1")  # noqa: FBT003 - as a web form gives it
    router.feedback("my own kind", -3.5, unit="ann")
    with pytest.raises(InputError, match=r"1 \(good\)"):
        router.feedback("thumbs", -1, exposure="request-1")
    with pytest.raises(InputError, match="a request or a unit"):
        router.feedback("thumbs", 1)
    router.invoke("q", of("ann"))
    router.close()
    first, second = read_live(path).feedback
    assert (first.exposure, first.value, first.unit) == ("request-1", 1.0, None)
    assert (second.unit, second.value) == (unit_hash("ann", "test", "s"), -3.5)


def test_no_text_of_the_user_is_in_the_file_unless_asked_for(path):
    def fails(_):
        raise ValueError("about zanzibar")

    variants = {"A": lambda asked: f"answer on {asked}", "B": fails}
    router = Router(variants, ALL_B, log=path)
    router.invoke("zanzibar", of("ann-zanzibar"))
    router.close()
    kept = b"".join(one.read_bytes() for one in path.parent.iterdir())
    assert b"zanzibar" not in kept


def test_a_router_is_a_step_of_a_chain_and_marks_the_trace(path):
    seen = []

    class Traced(BaseCallbackHandler):
        def on_chain_start(self, serialized, inputs, *, metadata=None, **kwargs):
            seen.append((metadata or {}).get("misslink_variant"))

    router = Router({"A": RunnableLambda(str.lower), "B": RunnableLambda(str.upper)}, ALL_B)
    app = RunnableLambda(str.strip) | router | RunnableLambda(lambda said: said + "!")
    assert app.invoke(" hi ", {**of("u"), "callbacks": [Traced()]}) == "HI!"
    assert "B" in seen
    inside = RunnableLambda(lambda said: router.invoke(said.strip()))  # config by context alone
    assert inside.invoke("hi", of("u")) == "HI"


def test_a_request_that_passes_two_experiments_has_its_id_in_both(path):
    log = LiveLog(path)
    inner = Router({"A": str.lower, "B": str.upper}, Experiment("inner", {"A": 0, "B": 1}), log=log)
    outer = Router({"A": str.strip, "B": RunnableLambda(str.strip) | inner}, ALL_B, log=log)
    assert outer.invoke(" hi ", of("u", misslink_exposure="request-1")) == "HI"
    outer.feedback("thumbs", 1, exposure="request-1")
    log.close()
    for name, said in (("inner", []), ("test", [("request-1", unit_hash("u", "test"))])):
        live = read_live(path, name)
        assert [exposure.id for exposure in live.exposures] == ["request-1"]
        assert [(one.exposure, one.unit) for one in live.feedback] == said


def test_variants_and_experiment_must_fit(path):
    with pytest.raises(InputError, match="no app is given for variant 'B'"):
        Router({"A": str.lower}, EVEN)
    with pytest.raises(InputError, match="no variant 'C'"):
        Router({"A": str.lower, "B": str.lower, "C": str.lower}, EVEN)
    both = {"A": str.lower, "B": str.lower}
    for wrong, said in [
        ({"timeout_s": 0}, "more than 0"),
        ({"timeout_s": "3"}, "more than 0"),
        ({"log": 3}, "a path or a LiveLog"),
    ]:
        with pytest.raises(InputError, match=said):
            Router(both, EVEN, **wrong)
    for wrong, said in [({"unit": None}, "a key or a function"), ({"cost": 3}, "cost is 3")]:
        with pytest.raises(InputError, match=said):
            RequestOptions(**wrong)
    with pytest.raises(InputError, match="app of variant 'B' is of type int"):
        Router({"A": str.lower, "B": 3}, EVEN)
    with pytest.raises(InputError, match="it must be an Experiment"):
        Router(both, "test")
    with pytest.raises(InputError, match="variants have names"):
        Router([str.lower, str.lower], EVEN)

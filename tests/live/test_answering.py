"""A variant that fails, hangs or gives no answer: control answers, and nobody notices."""

import asyncio
import threading
from collections import Counter

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.runnables import RunnableGenerator, RunnableLambda

from live_apps import ALL_B, every_way, of, raises
from misslink.live import RequestOptions, Router, read_live
from misslink.live.answering import NoAnswerError, StreamHead, copy_containers, join_chunks


def exits(_):
    raise SystemExit(1)


def test_a_variant_that_exits_does_not_end_the_program():
    router = Router({"A": str.lower, "B": exits}, ALL_B)
    assert router.invoke("HELLO", of("u")) == "hello"
    assert list(router.stream("HELLO", of("u"))) == ["hello"]
    assert router.batch(["HELLO"] * 3, of("u")) == ["hello"] * 3


@pytest.mark.parametrize("broken", [raises, lambda _: None])
def test_a_variant_that_fails_never_reaches_the_user(path, broken):
    router = Router({"A": str.lower, "B": broken}, ALL_B, log=path)
    assert every_way(router, "HELLO", of("u")) == ["hello"] * 6
    router.close()
    exposures = read_live(path).exposures
    assert Counter((e.variant, e.served, e.outcome) for e in exposures) == {
        ("B", "A", "fell_back"): 6
    }
    assert {e.error for e in exposures} in ({"B: ValueError"}, {"B: NoAnswerError"})


@pytest.mark.slow
def test_a_variant_that_hangs_is_left_and_then_not_asked(path, hangs):
    router = Router({"A": str.lower, "B": hangs}, ALL_B, log=path, timeout_s=0.01)
    assert every_way(router, "HELLO", of("u")) == ["hello"] * 6
    for _ in range(40):
        assert router.invoke("HELLO", of("u")) == "hello"
    router.close()
    errors = Counter(exposure.error for exposure in read_live(path).exposures)
    assert set(errors) == {"B: TookTooLongError", "B: HangsError"}
    assert router.health["hung"] == 32


def test_none_is_no_answer(path):
    router = Router(
        {"A": str.lower, "B": lambda _: None},
        ALL_B,
        log=path,
        requests=RequestOptions(keep_texts=True),
    )
    assert router.invoke("HELLO", of("u")) == "hello"
    router.close()
    (exposure,) = read_live(path).exposures
    assert exposure.error == "B: NoAnswerError: NoneType is no answer"


def test_an_error_of_control_is_the_apps_own(path):
    router = Router(
        {"A": raises, "B": raises}, ALL_B, log=path, requests=RequestOptions(keep_texts=True)
    )
    with pytest.raises(ValueError, match="secret words"):
        router.invoke("q", of("u"))
    router.close()
    (exposure,) = read_live(path).exposures
    assert (exposure.served, exposure.outcome) == (None, "failed")
    assert exposure.error == "B: ValueError: secret words; A: ValueError: secret words"


def test_a_plain_function_that_hangs_holds_nobody_up_in_an_event_loop(path):
    let_go = threading.Event()

    def hangs(_):
        let_go.wait(30)

    def plain(said):  # control too needs a thread of the loop
        return said.lower()

    router = Router({"A": plain, "B": hangs}, ALL_B, log=path, timeout_s=0.05)

    async def at_once():
        said = await asyncio.gather(*(router.ainvoke("HELLO", of(f"u{n}")) for n in range(100)))
        return [*said, *[chunk async for chunk in router.astream("HELLO", of("u"))]]

    try:
        assert asyncio.run(at_once()) == ["hello"] * 101
        assert not let_go.is_set()
    finally:
        let_go.set()
    router.close()
    assert {exposure.served for exposure in read_live(path).exposures} == {"A"}


@pytest.mark.parametrize("timeout_s", [None, 30])
def test_a_variant_that_cancels_itself_has_failed(timeout_s):
    async def cancels_itself(_):
        raise asyncio.CancelledError

    variant = RunnableLambda(raises, afunc=cancels_itself)
    router = Router({"A": str.lower, "B": variant}, ALL_B, timeout_s=timeout_s)
    assert every_way(router, "HELLO", of("u")) == ["hello"] * 6


def test_control_gets_the_input_as_it_came():
    def spoils(asked):
        asked["messages"].append("B was here")
        asked.pop("question")
        raise ValueError

    router = Router({"A": repr, "B": spoils}, ALL_B)
    asked = {"question": "q", "messages": ["m"]}
    assert every_way(router, asked, of("u")) == ["{'question': 'q', 'messages': ['m']}"] * 6
    assert asked == {"question": "q", "messages": ["m"]}


def silent_then_broken(chunks):
    for _ in chunks:
        yield ""
        raise ValueError("before a word")


async def asilent_then_broken(chunks):
    async for _ in chunks:
        yield ""
        raise ValueError("before a word")


def test_a_stream_that_fails_before_it_says_a_thing_never_reaches_the_user(path):
    variant = RunnableGenerator(silent_then_broken, asilent_then_broken)
    router = Router({"A": str.lower, "B": variant}, ALL_B, log=path)
    assert every_way(router, "HELLO", of("u")) == ["hello"] * 6
    router.close()
    assert Counter(e.outcome for e in read_live(path).exposures) == {"fell_back": 6}


def test_a_stream_that_never_says_a_thing_is_passed_on():
    def silent(chunks):
        for _ in chunks:
            yield ""

    variants = {"A": str.lower, "B": RunnableGenerator(silent)}
    assert list(Router(variants, ALL_B).stream("HELLO", of("u"))) == [""]


def broken_stream(chunks):
    for _ in chunks:
        yield "one "
        yield "two "
        raise ValueError("midway")


def whole_stream(chunks):
    for _ in chunks:
        yield "from "
        yield "A"


async def abroken_stream(chunks):
    async for _ in chunks:
        yield "one "
        raise ValueError("midway")


def test_a_stream_that_fails_midway_is_an_error(path):
    variants = {
        "A": RunnableGenerator(whole_stream),
        "B": RunnableGenerator(broken_stream, abroken_stream),
    }
    passed = Router(variants, ALL_B, log=path)
    got = []
    with pytest.raises(ValueError, match="midway"):
        got.extend(passed.stream("q", of("u")))

    async def by_loop():
        stream = passed.astream("q", of("u"))
        got.append(await anext(stream))
        with pytest.raises(ValueError, match="midway"):
            await anext(stream)

    asyncio.run(by_loop())
    assert got == ["one ", "two ", "one "]
    passed.close()
    assert Counter(e.outcome for e in read_live(path).exposures) == {"failed": 2}


def test_a_reader_who_leaves_a_stream_is_no_failure(path):
    router = Router({"A": str.lower, "B": RunnableGenerator(whole_stream)}, ALL_B, log=path)
    stream = router.stream("q", of("u"))
    assert next(stream) == "from "
    stream.close()

    async def leaves():
        waiting = asyncio.create_task(slow.ainvoke("q", of("u")))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    begun = asyncio.Event()

    async def never(_):
        begun.set()
        await asyncio.Event().wait()

    slow = Router({"A": str.lower, "B": RunnableLambda(raises, afunc=never)}, ALL_B, log=path)
    asyncio.run(leaves())
    router.close()
    slow.close()
    exposures = read_live(path).exposures
    assert [(e.outcome, e.error) for e in exposures] == [("left", None)] * 2


@pytest.mark.parametrize("silent", ["", None, AIMessageChunk("")])
def test_chunks_that_say_nothing_are_held_and_then_all_go_out(silent):
    opening = StreamHead()
    assert opening.take(silent) == []
    assert not opening.is_over
    assert opening.take("word") == [silent, "word"]
    assert opening.is_over
    assert opening.take(silent) == [silent]
    assert opening.remaining_chunks() == []


@pytest.mark.parametrize(
    "said",
    [
        "a",
        {},
        0,
        [],
        AIMessageChunk("", additional_kwargs={"reasoning_content": "hm"}),
        AIMessageChunk(
            "",
            tool_call_chunks=[
                {"name": "f", "args": "", "id": "1", "index": 0, "type": "tool_call_chunk"}
            ],
        ),
    ],
)
def test_what_somebody_may_read_is_not_held(said):
    assert StreamHead().take(said) == [said]


def test_not_more_than_a_hundred_are_held():
    opening = StreamHead()
    gone = [opening.take("") for _ in range(101)]
    assert [len(chunks) for chunks in gone[-3:]] == [0, 100, 1]


def test_a_stream_that_said_nothing_is_judged_as_a_whole():
    with pytest.raises(NoAnswerError, match="nothing"):
        StreamHead().remaining_chunks()
    opening = StreamHead()
    opening.take("")
    assert opening.remaining_chunks() == [""]


def test_chunks_add_up_or_the_last_stands_for_all():
    assert join_chunks([]) is None
    assert join_chunks(["a", "b"]) == "ab"
    assert join_chunks([{"a": 1}, {"b": 2}]) == {"b": 2}


def test_containers_are_copied_at_every_depth_and_what_they_hold_is_shared():
    message = object()
    asked = {"messages": [message], "more": {"deep": [[message]]}}
    own = copy_containers(asked)
    own["messages"].append(1)
    own["more"]["deep"][0].clear()
    assert asked == {"messages": [message], "more": {"deep": [[message]]}}
    assert own["messages"][0] is message
    assert copy_containers("text") == "text"

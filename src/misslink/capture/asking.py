"""How an app wants to be asked, and the asking."""

from __future__ import annotations

import inspect
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from misslink.errors import InputError

__all__ = ["asker", "input_for"]

_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "prompt")
_HISTORY = re.compile(r"history|messages|memory|scratchpad")


def asker(app: Any, input_key: str | None = None) -> Callable[[str], Awaitable[Any]]:
    """A coroutine function that asks `app` one question and returns what it returns.

    Parameters
    ----------
    app : Runnable or callable
        Sync callables run in a thread that inherits the context.
    input_key : str or None
        Ask with ``{input_key: question}``, whatever the app's schema says.

    Raises
    ------
    InputError
        The app's input has several fields and none of them is recognised as the question's.
    """
    from langchain_core.runnables import Runnable, run_in_executor

    shape = input_for(app, input_key)
    if isinstance(app, Runnable):

        async def invoke(question: str) -> Any:
            return await app.ainvoke(shape(question), config=_own_conversation(app))

        return invoke
    called = app if inspect.isfunction(app) or inspect.ismethod(app) else type(app).__call__
    if inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(app):

        async def call(question: str) -> Any:
            return await app(shape(question))

        return call

    async def call_in_thread(question: str) -> Any:
        came_back = await run_in_executor(None, app, shape(question))
        # A partial or a lambda around a coroutine function only shows itself when called.
        return await came_back if inspect.isawaitable(came_back) else came_back

    return call_in_thread


def input_for(app: Any, input_key: str | None = None) -> Callable[[str], Any]:
    """What turns a question into the input that `app` expects.

    A graph or agent whose state has ``messages`` gets a user message; one that takes an object
    gets the question under its only field, or else under question, query, input, user_input,
    user_query or prompt, and an empty list for a chat history; everything else gets the question.
    """
    if input_key is not None:
        return lambda question: {input_key: question}
    fields = _input_fields(app)
    if not fields:
        return lambda question: question
    is_chat = "messages" in fields
    key = _question_key(app, fields, is_needed=not is_chat)
    histories = [name for name in (*fields, *_prompt_variables(app)) if _HISTORY.search(name)]
    empty: dict[str, Any] = {name: [] for name in histories if name != key}

    def shaped(question: str) -> dict[str, Any]:
        asked = dict(empty)
        if is_chat:
            asked = {"messages": [{"role": "user", "content": question}]}
        return asked if key is None else {**asked, key: question}

    return shaped


def _question_key(app: Any, fields: list[str], *, is_needed: bool) -> str | None:
    if fields == ["root"]:  # LangChain's word for an object of which it knows no field
        fields = _prompt_variables(app)
        others = []
    else:
        others = [name for name in fields if not _HISTORY.search(name)]
    key = next((name for name in _QUESTION_KEYS if name in fields), None)
    if key is not None or not is_needed:
        return key
    if len(others) == 1:
        return others[0]
    which = f"the app takes {', '.join(others)}" if others else "the app takes an object"
    raise InputError(
        f"{which}, and it cannot be told which field is the question; name it with --input-key "
        "(input_key=... in Python)"
    )


def _input_fields(app: Any) -> list[str]:
    """Names of the fields of the app's input; none where it takes something else."""
    builder = getattr(app, "builder", None)
    schemas = getattr(builder, "schemas", None)
    if isinstance(schemas, dict) and getattr(builder, "input_schema", None) in schemas:
        # A compiled graph: its own word, since pydantic refuses some TypedDicts.
        return list(schemas[builder.input_schema])  # type: ignore[union-attr]
    describe = getattr(app, "get_input_jsonschema", None)
    if describe is None:
        return []
    try:
        schema = describe()
    except Exception:  # noqa: BLE001 - a schema nobody can draw up says nothing about the input
        return []
    properties = schema.get("properties") if schema.get("type") == "object" else None
    required = schema.get("required") or []
    if not properties:
        return []
    return [*required, *(name for name in properties if name not in required)]


def _prompt_variables(app: Any) -> list[str]:
    """Variables of every prompt in a chain; a history among them is often in no schema."""
    find = getattr(app, "get_prompts", None)
    try:
        prompts = find() if find else []
    except Exception:  # noqa: BLE001 - only asked so as to offer an empty history
        return []
    return [name for prompt in prompts for name in prompt.input_variables]


def _own_conversation(app: Any) -> Any:
    """A config in which each case is a conversation of its own, where the app remembers any."""
    names = {"thread_id"} if getattr(app, "checkpointer", None) else set()
    specs = getattr(app, "config_specs", ())
    names |= {spec.id for spec in specs if spec.id in ("session_id", "conversation_id")}
    return {"configurable": {name: uuid.uuid4().hex for name in names}} if names else None

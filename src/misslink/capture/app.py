"""Load an app, call it with a question, and read what it returns."""

from __future__ import annotations

import dataclasses
import inspect
import re
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from misslink.capture.http_app import HttpApp, read_http_app
from misslink.capture.injection import suspend_injection
from misslink.capture.passages import document_list
from misslink.case_fields import Message
from misslink.errors import InputError
from misslink.io.config_files import read_config_file
from misslink.text.normalization import valid_text
from misslink.user_code import call_factory, import_target, resolve_attribute, with_article


def load_app(spec: str, folder: Path | None = None) -> Any:
    """Import an app.

    Parameters
    ----------
    spec : str
        ``package.module:attribute`` or ``path/to/file.py:attribute``; of an app behind HTTP its
        address, or a TOML file that describes it (`misslink.capture.http_app`).
    folder : Path or None
        Where paths start and modules are found, as a script finds those beside it; the working
        folder if None.

    Returns
    -------
    Any
        A LangChain Runnable (chain, retriever, agent, compiled graph), a query engine, chat engine
        or retriever of LlamaIndex, a Haystack pipeline, or a callable that takes the question. A
        function without parameters is called, and the app is what it returns.

    Raises
    ------
    InputError
        The spec names nothing that imports, or something that is no app.
    """
    home = (folder or Path.cwd()).resolve()
    if spec.startswith(("http://", "https://")):
        return HttpApp(spec)
    if spec.endswith(".toml"):
        return read_http_app(home / spec)
    target, colon, attribute = spec.rpartition(":")
    if not colon or not target or not attribute:
        raise InputError(
            f"'{spec}' does not name an app; write  package.module:attribute  "
            "or  path/to/file.py:attribute"
        )
    app = resolve_attribute(import_target(target, home), attribute, target)
    if inspect.isfunction(app) and not inspect.signature(app).parameters:
        app = call_factory(app, spec)
    check_app(app, spec)
    return app


def read_app_config(source: str | Path | Mapping[str, Any] | None) -> dict[str, object]:
    """Read an app's call-time settings: YAML, JSON or TOML, or an object given in Python.

    Raises
    ------
    InputError
        The file cannot be read, or holds no object.
    """
    if source is None or isinstance(source, Mapping):
        return dict(source or {})
    path = Path(source)
    data = read_config_file(path).data
    if not isinstance(data, dict):
        raise InputError("This must be an object, such as  tenant: acme", path=path)
    return data


def framework_caller(app: Any) -> Callable[..., Any] | None:
    """A function of the question that asks an app of LlamaIndex or Haystack; None for other apps."""
    frameworks = {base.__module__.partition(".")[0] for base in type(app).__mro__}
    if "haystack" in frameworks and hasattr(app, "add_component"):
        return _pipeline_caller(app)
    if "llama_index" not in frameworks:
        return None
    if hasattr(app, "achat"):
        from llama_index.core.llms import ChatMessage

        async def chat(
            question: str, history: Sequence[Mapping[str, str]] = ()
        ) -> dict[str, object]:
            app.reset()  # of other cases; an empty history alone does not replace what it remembers
            earlier = [ChatMessage(**message) for message in history]
            return _answer_and_sources(await app.achat(question, chat_history=earlier))

        return chat
    if hasattr(app, "aquery"):

        async def query(question: str) -> dict[str, object]:
            return _answer_and_sources(await app.aquery(question))

        return query
    if hasattr(app, "aretrieve"):
        retrieve: Callable[[str], Any] = app.aretrieve
        return retrieve
    return None


def _answer_and_sources(response: Any) -> dict[str, object]:
    return {"answer": str(response), "source_nodes": getattr(response, "source_nodes", None)}


def _pipeline_caller(pipeline: Any) -> Callable[[str], Any]:
    """Ask a Haystack pipeline: the question is every input without which it cannot run."""

    def call(question: str) -> Any:
        inputs = {
            component: {
                name: question for name, socket in sockets.items() if socket["is_mandatory"]
            }
            for component, sockets in pipeline.inputs().items()
        }
        outputs = pipeline.run({name: values for name, values in inputs.items() if values})
        last = list(outputs.values())[-1] if outputs else {}
        replies = last.get("replies") or last.get("answers")
        if not replies:
            return last.get("documents", last)
        texts = (getattr(replies[0], name, None) for name in ("text", "data"))
        return next((text for text in texts if isinstance(text, str)), str(replies[0]))

    return call


def check_app(app: Any, name: str = "the app") -> None:
    """Raise InputError, saying what to name instead, where `app` cannot be asked a question."""
    problem = _app_problem(app)
    if problem:
        raise InputError(f"{name} {problem}")


def _app_problem(app: Any) -> str | None:
    hint = "name a Runnable, a retriever, a compiled graph or a function of the question"
    if inspect.ismodule(app):
        return f"is a module, not an app; {hint} in it"
    if inspect.isclass(app):
        return f"is a class, not an app; name an instance of it, say  app = {app.__name__}(...)"
    if (hasattr(app, "invoke") and hasattr(app, "ainvoke")) or framework_caller(app):
        return None
    if hasattr(app, "compile") and hasattr(app, "add_node"):
        return "is a graph that was not compiled; name what its .compile() returns"
    if not callable(app):
        return f"is {with_article(type(app).__name__)}, not an app; {hint}"
    try:
        signature = inspect.signature(app)
        place = history_place(app)
        earlier = {place: ()} if place and place != _first_parameter(app) else {}
        signature.bind("a question", **earlier)
    except TypeError:
        return (
            "cannot be called with one question; if it builds the app, give it no parameters, or "
            "call it in your file and name the result, say  app = build()"
        )
    except ValueError:  # a builtin without a signature: the call itself will tell
        return None
    return None


_QUESTION_KEYS = ("question", "query", "input", "user_input", "user_query", "prompt")
_HISTORY = re.compile(r"history|messages|memory|scratchpad")
_SCRATCHPAD = "scratchpad"  # an agent's own notes, which are empty when a turn begins
_HISTORY_PARAMETERS = ("history", "chat_history", "messages")
_SESSIONS = ("thread_id", "session_id", "conversation_id")

History = Sequence[Message]


def history_place(app: Any, input_key: str | None = None) -> str | None:
    """Where an app takes earlier messages: a field or parameter, or the id of a session.

    A session receives the earlier questions one after another. None: the app takes a question alone.
    """
    app = framework_caller(app) or app
    if isinstance(app, HttpApp):
        return "history" if app.takes_history else None
    if not hasattr(app, "ainvoke"):
        names = _parameters(app)
        return next((name for name in (*_HISTORY_PARAMETERS, *_SESSIONS) if name in names), None)
    fields = _input_fields(app)
    histories = _history_fields(app, fields, input_key)
    sessions = _session_ids(app)
    if _is_chat_model(app):
        return "messages"
    if sessions and not (getattr(app, "checkpointer", None) and "messages" in fields):
        return min(sessions)
    return next((name for name in histories if _SCRATCHPAD not in name), None)


def create_caller(
    app: Any, input_key: str | None = None, settings: Mapping[str, Any] | None = None
) -> Callable[[str, History, _Run], Coroutine[Any, Any, Any]]:
    """A coroutine function that asks `app` one question, after a history, and returns its output.

    Its third argument runs each call of the app, the earlier ones of a session among them, say with
    a time limit.

    Parameters
    ----------
    app : Runnable or callable
        Sync callables run in a thread that inherits the context. Pieces that a generator yields are
        joined.
    input_key : str or None
        Ask with ``{input_key: question}``, whatever the app's schema says.
    settings : mapping or None
        For every call: the config of a Runnable, and under ``inputs`` further fields of its input;
        keyword arguments of a callable.

    Raises
    ------
    InputError
        The app's input has several fields and none of them is recognised as the question's, or the
        app does not take the settings.
    """
    from langchain_core.runnables import Runnable

    from misslink.capture.recorder import CURRENT_RECORDER

    app = framework_caller(app) or app
    make = _runnable_caller if isinstance(app, Runnable) else _function_caller
    ask = make(app, input_key, dict(settings or {}))
    replays = history_place(app, input_key) in _SESSIONS

    async def ask_after(question: str, history: History, run: _Run) -> Any:
        session = uuid.uuid4().hex
        if not replays:
            return await run(partial(ask, question, history, session))
        recorder = CURRENT_RECORDER.set(None)  # earlier turns are cases of their own
        try:
            with suspend_injection():
                for message in history:
                    if message.role == "user":
                        await run(partial(ask, message.content, (), session))
        finally:
            CURRENT_RECORDER.reset(recorder)
        return await run(partial(ask, question, (), session))

    return ask_after


_Run = Callable[[Callable[[], Coroutine[Any, Any, Any]]], Coroutine[Any, Any, Any]]
_Ask = Callable[[str, History, str], Coroutine[Any, Any, Any]]  # question, history, session


def _runnable_caller(app: Any, input_key: str | None, settings: dict[str, Any]) -> _Ask:
    shape = input_builder(app, input_key)
    inputs: Mapping[str, Any] = settings.pop("inputs", {})
    _check_settings(settings, inputs, shape("a question"))
    sessions = _session_ids(app)

    async def ask(question: str, history: History, session: str) -> Any:
        asked = shape(question, history)
        configurable = {**dict.fromkeys(sessions, session), **settings.get("configurable", {})}
        config: Any = {**settings, **({"configurable": configurable} if configurable else {})}
        return await app.ainvoke({**asked, **inputs} if inputs else asked, config=config)

    return ask


def _function_caller(app: Any, input_key: str | None, settings: dict[str, Any]) -> _Ask:
    from langchain_core.runnables import run_in_executor

    shape, place = input_builder(app, input_key), history_place(app)
    if settings:
        try:
            inspect.signature(app).bind_partial("a question", **settings)
        except TypeError as problem:
            raise InputError(f"the app does not take these settings: {problem}") from None
    called = app if inspect.isfunction(app) or inspect.ismethod(app) else type(app).__call__
    is_async = inspect.iscoroutinefunction(called) or inspect.iscoroutinefunction(app)

    async def ask(question: str, history: History, session: str) -> Any:
        more: dict[str, Any] = {}
        if place in _SESSIONS:
            more = {place: session}
        elif place and place != _first_parameter(app):
            more = {place: _as_dicts(history)}

        def start() -> Any:
            value = app(shape(question, history), **{**more, **settings})
            return join_pieces(value) if isinstance(value, Iterator) else value

        value = start() if is_async else await run_in_executor(None, start)
        # A partial or a lambda around a coroutine function only shows itself when called.
        value = await value if inspect.isawaitable(value) else value
        if isinstance(value, AsyncIterator):
            value = iter([piece async for piece in value])
        return join_pieces(value) if isinstance(value, Iterator) else value

    return ask


def _parameters(app: Any) -> list[str]:
    try:
        return list(inspect.signature(app).parameters)
    except (TypeError, ValueError):  # a builtin without a signature
        return []


def _first_parameter(app: Any) -> str | None:
    return next(iter(_parameters(app)), None)


def _as_dicts(history: History) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in history]


def _is_chat_model(app: Any) -> bool:
    """Whether an app begins with a model, which takes messages as well as a text."""
    from langchain_core.language_models import BaseChatModel

    app = getattr(app, "bound", app)
    return isinstance(getattr(app, "first", app), BaseChatModel)


_CONFIG_KEYS = (
    *("configurable", "inputs", "metadata", "tags", "run_name", "recursion_limit"),
    "max_concurrency",
)


def _check_settings(settings: Mapping[str, Any], inputs: Any, asked: Any) -> None:
    if unknown := settings.keys() - set(_CONFIG_KEYS):
        name = min(unknown)
        raise InputError(
            f"the app's settings have '{name}', which is none of {', '.join(_CONFIG_KEYS)}; write "
            f"it under 'configurable', or under 'inputs' if it is a field of the app's input"
        )
    if not all(isinstance(part, Mapping) for part in (inputs, settings.get("configurable", {}))):
        raise InputError("'inputs' and 'configurable' of the app's settings must be objects")
    if inputs and not isinstance(asked, Mapping):
        raise InputError(
            "the app takes the question alone, so that its settings cannot have 'inputs'; name "
            "the field of the question with --input-key (input_key=... in Python)"
        )


def join_pieces(pieces: Iterator[Any]) -> Any:
    """Join what an app yields: texts in a row; of objects, texts and lists under each key.

    Where each text begins with the one before it, the last is the whole.

    >>> join_pieces(iter(["Twelve ", "crowns."]))
    'Twelve crowns.'
    >>> join_pieces(iter([{"retrieved": ["p1"]}, {"answer": "Twelve "}, {"answer": "crowns."}]))
    {'retrieved': ['p1'], 'answer': 'Twelve crowns.'}
    >>> join_pieces(iter([{"answer": "Twelve "}, {"answer": "Twelve crowns."}]))
    {'answer': 'Twelve crowns.'}
    """
    fields: dict[str, list[Any]] = {}
    others, is_object = [], False
    for piece in pieces:
        content = getattr(piece, "content", piece)  # of a message's chunk
        if isinstance(piece, Mapping):
            is_object = True
        elif isinstance(piece, list) and (found := document_list(piece)):
            others += found
            continue
        elif isinstance(content, str | list) or content is None:
            piece = {"answer": message_text(content)}  # noqa: PLW2901
        else:
            others.append(piece)
            continue
        for key, value in piece.items():
            fields.setdefault(key, []).append(value)
    joined = {key: _join_values(values) for key, values in fields.items()}
    if others:  # documents, or nothing that can be joined
        return {"retrieved": others, **joined} if joined else others
    return joined if is_object else joined.get("answer", "")


def _join_values(values: list[Any]) -> Any:
    last = values[-1]
    parts = [value for value in values if type(value) is type(last) and value]
    if isinstance(last, list):
        return list(chain(*parts))
    if not isinstance(last, str):
        return last
    grows = all(later.startswith(earlier) for earlier, later in pairwise(parts))
    return parts[-1] if parts and grows else "".join(parts)


def input_builder(app: Any, input_key: str | None = None) -> Callable[..., Any]:
    """What turns a question, and the messages before it, into the input that `app` expects.

    A graph or agent whose state has ``messages`` gets them all, the question as the user's last; one
    that takes an object gets the question under its only field, or else under question, query,
    input, user_input, user_query or prompt, and the history under the fields for it, empty without
    one; everything else gets the question.
    """
    fields = _input_fields(app)
    is_plain = not fields or (fields == ["root"] and not _assigns_fields(app))
    if is_plain and input_key is None:
        takes_all = _first_parameter(app) == "messages" and not hasattr(app, "ainvoke")
        is_model = hasattr(app, "ainvoke") and _is_chat_model(app)

        def plain(question: str, history: History = ()) -> Any:
            is_list = takes_all or (is_model and history)
            return _with_question(history, question) if is_list else question

        return plain
    is_chat = "messages" in fields and input_key is None
    key = input_key or _question_key(app, fields, is_needed=not is_chat)
    histories = _history_fields(app, fields, key)
    texts = _prompt_variables(app, as_text=True)

    def shaped(question: str, history: History = ()) -> dict[str, object]:
        inputs: dict[str, Any] = {}
        for name in histories if history or input_key is None else ():
            messages = () if _SCRATCHPAD in name else history
            inputs[name] = _as_messages(messages, as_text=name in texts)
        if is_chat:
            inputs = {"messages": _with_question(history, question)}
        return inputs if key is None else {**inputs, key: question}

    return shaped


def _with_question(history: History, question: str) -> list[dict[str, str]]:
    return [*_as_dicts(history), {"role": "user", "content": question}]


def _as_messages(history: History, *, as_text: bool) -> Any:
    """LangChain messages, or their text for a prompt that has a variable in a text."""
    from langchain_core.messages import convert_to_messages, get_buffer_string

    messages = convert_to_messages(_as_dicts(history))
    return get_buffer_string(messages) if as_text else messages


def _history_fields(app: Any, fields: list[str], key: str | None) -> list[str]:
    names = dict.fromkeys((*fields, *_prompt_variables(app)))
    return [name for name in names if _HISTORY.search(name) and name != key]


def _question_key(app: Any, fields: list[str], *, is_needed: bool) -> str | None:
    if fields == ["root"]:  # LangChain's word for an object of which it knows no field
        fields = _prompt_variables(app)
        candidates = []
    else:
        candidates = [name for name in fields if not _HISTORY.search(name)]
    key = next((name for name in _QUESTION_KEYS if name in fields), None)
    if key is not None or not is_needed:
        return key
    if len(candidates) == 1:
        return candidates[0]
    which = f"the app takes {', '.join(candidates)}" if candidates else "the app takes an object"
    raise InputError(
        f"{which}, and misslink cannot tell which field is the question; name it with --input-key "
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


def _assigns_fields(app: Any) -> bool:
    """Whether a chain begins by adding fields to an object; a map of functions takes anything."""
    from langchain_core.runnables import RunnableAssign, RunnableParallel

    app = getattr(app, "bound", app)
    if isinstance(app, RunnableParallel):
        return any(map(_assigns_fields, app.steps__.values()))
    first = getattr(app, "first", None)
    return isinstance(app, RunnableAssign) or (first is not None and _assigns_fields(first))


def _prompt_variables(app: Any, *, as_text: bool = False) -> list[str]:
    """Variables of every prompt in a chain; a history among them is often in no schema.

    `as_text` leaves out those that stand for a list of messages.
    """
    find = getattr(app, "get_prompts", None)
    try:
        prompts = find() if find else []
    except Exception:  # noqa: BLE001 - only asked so as to offer a history
        return []
    lists = {name for prompt in prompts for name in prompt.input_types} if as_text else set()
    return [name for prompt in prompts for name in prompt.input_variables if name not in lists]


def _session_ids(app: Any) -> set[str]:
    """The settings that name a stored conversation, if the app stores conversations."""
    names = {"thread_id"} if getattr(app, "checkpointer", None) else set()
    return names | {spec.id for spec in getattr(app, "config_specs", ())} & set(_SESSIONS)


_ANSWER_KEYS = (
    *("answer", "output", "result", "response", "text", "output_text", "final_answer"),
    "generation",
)
# Under these keys a list of strings holds passages: texts if any has a blank, else ids.
_STRING_KEYS = ("retrieved", "retrieved_contexts", "contexts", "passages", "documents")
_PASSAGE_KEYS = (
    *_STRING_KEYS,
    *("context", "source_documents", "source_nodes", "docs", "sources"),
)


_TYPO_SIMILARITY = 0.8  # "anwser" and "answer"


@dataclass(frozen=True)
class AppOutput:
    """What was found in the value an app returned.

    Parameters
    ----------
    answer : str or None
    documents : list or None
        Documents, mappings or texts, best first. None: it shows none; an empty list: it shows
        that nothing was retrieved.
    prompted : tuple of str or None
        Ids that the app itself says it put into its prompt.
    problem : str or None
        Why there is no answer in it.
    """

    answer: str | None = None
    documents: list[Any] | None = None
    prompted: tuple[str, ...] | None = None
    problem: str | None = None


def parse_app_output(value: Any) -> AppOutput:
    """Find the answer in what an app returned.

    A text is the answer; so is a message's text. In a mapping, a dataclass or a pydantic model it
    stands under answer, output, result, response, text, output_text, final_answer, generation, or
    it is the last of ``messages``. A list of documents or of pairs with a score, or chromadb's query
    result, is what a retriever returns: no answer and no problem.
    """
    if isinstance(value, str):
        return AppOutput(answer=valid_text(value))
    if hasattr(value, "content") and not isinstance(value, Mapping):
        return AppOutput(answer=message_text(value.content))
    if (retrieved := document_list(value)) is not None:
        return AppOutput(documents=retrieved)
    fields = _output_fields(value)
    if fields is None:
        if callable(value):  # whose text would be its address
            return AppOutput(problem=f"the app returned a function; {_FACTORY_HINT}")
        shown = f"{type(value).__name__}: {valid_text(str(value))[:80]!r}"
        shown = "None" if value is None else shown
        return AppOutput(problem=f"the app returned {shown}; {_OUTPUT_HINT}")
    found = (document_list(fields.get(k), strings=k in _STRING_KEYS) for k in _PASSAGE_KEYS)
    listed = [one for one in found if one is not None]
    documents = next(filter(None, listed), listed[0] if listed else None)
    prompted = fields.get("prompted")
    answer = _answer(fields)
    if answer is None and (hint := _answer_hint(fields)):
        return AppOutput(documents=documents, problem=f"the app returned no answer; {hint}")
    if answer is None and documents is None:
        named = valid_text(", ".join(map(str, fields))) or "nothing"
        return AppOutput(problem=f"the app returned {named}, and no answer; {_OUTPUT_HINT}")
    return AppOutput(
        answer=answer,
        documents=documents,
        prompted=(
            tuple(dict.fromkeys(valid_text(str(name)) for name in prompted))
            if isinstance(prompted, list | tuple)
            else None
        ),
    )


_FACTORY_HINT = "if it builds the app, call its parameter `retriever`"
_OUTPUT_HINT = "return a text, a message, or a dict with 'answer' (and 'retrieved', if you like)"


def message_text(content: Any) -> str:
    """The text of a message's content: itself, or its text blocks joined."""
    if isinstance(content, str):
        return valid_text(content)
    if not isinstance(content, list):
        return "" if content is None else valid_text(str(content))
    texts = [block.get("text") if isinstance(block, Mapping) else block for block in content]
    return valid_text("".join(text for text in texts if isinstance(text, str)))


def _output_fields(value: Any) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    names = getattr(type(value), "model_fields", None)
    return {name: getattr(value, name) for name in names} if isinstance(names, dict) else None


def _answer(fields: Mapping[str, Any]) -> str | None:
    for key in _ANSWER_KEYS:
        value = fields.get(key)
        if isinstance(value, str):
            return valid_text(value)
        if hasattr(value, "content"):
            return message_text(getattr(value, "content", None))
        inner = None if value is None or isinstance(value, list) else _output_fields(value)
        if inner is not None and (inner_answer := _answer(inner)) is not None:
            return inner_answer
    messages = fields.get("messages")
    if isinstance(messages, list) and messages:
        last = messages[-1]
        is_dict = isinstance(last, Mapping)
        return message_text(last.get("content") if is_dict else getattr(last, "content", last))
    return None


def _answer_hint(fields: Mapping[str, Any]) -> str:
    """What is wrong with a mapping that seems to have an answer and has none; "" where none seems."""
    empty = next((key for key in _ANSWER_KEYS if key in fields and fields[key] is None), None)
    if empty is not None:
        return f"'{empty}' is None"
    for key, value in fields.items():
        near = get_close_matches(str(key), _ANSWER_KEYS, 1, _TYPO_SIMILARITY)
        if near and isinstance(value, str):
            return f"it has '{valid_text(str(key))}': did you mean '{near[0]}'?"
    return ""

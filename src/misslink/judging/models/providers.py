"""LangChain's chat models by provider and name, and what their classes can do."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from misslink.errors import InputError, MissingExtraError, known_names
from misslink.judging.models.dialect import Structure
from misslink.judging.models.reading import EXCERPT

if TYPE_CHECKING:
    import openai
    from langchain_core.language_models import BaseChatModel

__all__ = ["best_structure", "chat_model", "structured"]

_METHODS = {"json_schema": ("json_schema", "function_calling"), "json_object": ("json_mode",)}


def chat_model(
    provider: str, name: str, options: Mapping[str, Any]
) -> tuple[BaseChatModel, openai.DefaultAsyncHttpxClient | None]:
    """Make a chat model that tries each call once and remembers nothing.

    Parameters
    ----------
    provider, name : str
    options : mapping
        Handed to the provider's class.

    Returns
    -------
    model : BaseChatModel
    connections : openai.DefaultAsyncHttpxClient or None
        To be closed with it. langchain-openai would share its connections between all models of
        the process, whichever event loop they were opened in; None where a class has no such way.

    Raises
    ------
    InputError
        There is no such provider, its package is missing, or its class refuses the options.
    MissingExtraError
        langchain is not installed.
    """
    try:
        from langchain.chat_models import init_chat_model
    except ImportError:
        raise MissingExtraError("langchain", "langchain") from None
    spec = f"langchain:{provider}:{name}"
    options = {
        **options,
        "max_retries": 0,  # what is worth trying again is, around this
        "cache": False,  # the ledger keeps replies; a second cache would make repeats equal
    }
    try:
        model: BaseChatModel = init_chat_model(name, model_provider=provider, **options)
        if not any(each.__name__ == "BaseChatOpenAI" for each in type(model).__mro__):
            return model, None
        import openai

        connections = openai.DefaultAsyncHttpxClient()
        options["http_async_client"] = connections
        return init_chat_model(name, model_provider=provider, **options), connections
    except ImportError as missing:
        package = (missing.name or "").partition(".")[0].replace("_", "-")
        package = package or f"langchain-{provider.replace('_', '-')}"
        raise InputError(
            f"the judge {spec} needs the package {package}: run  pip install {package}"
        ) from None
    except Exception as problem:  # noqa: BLE001 (every provider raises its own)
        known = _providers()
        if known and provider.replace("-", "_").lower() not in known:
            told = known_names(provider, known)
            raise InputError(f"langchain knows no provider '{provider}'; {told}") from None
        first = str(problem).strip().partition("\n")[0][:EXCERPT]
        raise InputError(f"the judge {spec} cannot be opened: {first}") from None


def structured(model: BaseChatModel, structure: str, schema: dict[str, Any]) -> Any:
    """The model with its own means of giving this structure; no call is made.

    Raises
    ------
    NotImplementedError
        Its class has none; the message is one that `Dialect.named` understands.
    """
    takes_strict = "strict" in inspect.signature(model.with_structured_output).parameters
    for method in _METHODS[structure]:
        strict = {"strict": True} if takes_strict and method != "json_mode" else {}
        with contextlib.suppress(NotImplementedError, TypeError, ValueError):
            return model.with_structured_output(schema, method=method, include_raw=True, **strict)
    raise NotImplementedError(f"its class has no structured_output by {structure}")


def best_structure(model: BaseChatModel) -> Structure:
    """The best structure that the model's class knows; what its server takes shows later."""
    empty = {"title": "answer", "description": "", "type": "object", "properties": {}}
    known: tuple[Structure, ...] = ("json_schema", "json_object")
    for structure in known:
        with contextlib.suppress(NotImplementedError):
            structured(model, structure, empty)
            return structure
    return "plain"


def _providers() -> list[str]:
    """The providers that this version of langchain lists; empty where it does not tell."""
    from langchain.chat_models import base

    return sorted(getattr(base, "_BUILTIN_PROVIDERS", ()))

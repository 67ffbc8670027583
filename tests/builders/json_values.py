"""What a function returns as the JSON values that a file has, for tests of these."""

from __future__ import annotations

import functools

from pydantic_core import to_jsonable_python


def as_json(function):
    """The function whose documents come as JSON values."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        return to_jsonable_python(function(*args, **kwargs))

    return called


def as_fields(function):
    """The function whose document comes as its values by name."""

    @functools.wraps(function)
    def called(*args, **kwargs):
        return dict(function(*args, **kwargs))

    return called

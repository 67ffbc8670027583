"""The options on how a judge is asked: one place for all commands, and what they say arrives."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from misslink.cli.options import (
    CASE_OPTIONS,
    JSON_OPTION,
    JUDGE_FIELDS,
    REPEATS_OF_RUN,
    JudgeOptions,
    with_judge_options,
)
from misslink.errors import InputError
from misslink.judge.config import JudgeConfig

DEFAULTS = {one.name: one.default for one in fields(JudgeConfig)}
ALL = tuple(name for name in JUDGE_FIELDS if name not in CASE_OPTIONS)


def told(*line, names=CASE_OPTIONS, **own):
    """What a command is given for this command line."""
    got = []

    @with_judge_options(*names, **own)
    def ask(
        judge: str = typer.Argument(...),
        *,
        given: JudgeOptions,
        as_json: bool = JSON_OPTION,
    ) -> None:
        got.append((judge, dict(given), as_json))

    app = typer.Typer()
    app.command()(ask)
    result = CliRunner().invoke(app, ["me", *map(str, line)])
    return got[0] if got else result


def test_every_field_of_the_settings_but_the_key_can_be_given():
    assert set(JUDGE_FIELDS) == set(DEFAULTS) - {"api_key"}  # everybody sees a command line


def test_with_nothing_said_the_settings_are_those_of_python():
    judge, given, as_json = told()
    assert (judge, as_json) == ("me", False)
    assert given == {name: DEFAULTS[name] for name in CASE_OPTIONS}
    assert JudgeConfig(**given) == JudgeConfig()


SAID = {
    "base_url": "http://127.0.0.1:1/v1",
    "prompts": "de",
    **dict.fromkeys(("temperature", "cascade_check", "batch_price"), 0.25),
    **dict.fromkeys(("timeout", "deadline", "price_in", "price_out", "max_cost"), 1.5),
    **dict.fromkeys(("max_tokens", "context_length", "repeats", "retries"), 7),
    **dict.fromkeys(("rpm", "tpm", "max_calls"), 9),
    "retry_refused": True,
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("dash", ["-", "_"])
def test_a_judge_option_arrives_under_its_name_and_in_its_type(name, dash):
    text = f"{name.replace('_', dash)}={str(SAID[name]).lower()}"
    _, given, _ = told("--judge-option", text)
    assert given == {**{one: DEFAULTS[one] for one in CASE_OPTIONS}, name: SAID[name]}
    assert type(given[name]) is type(SAID[name])


@pytest.mark.parametrize("name", CASE_OPTIONS)
def test_an_option_of_its_own_arrives_too(name):
    _, given, _ = told("--" + name.replace("_", "-"), SAID[name], "--judge-option", "rpm=9")
    assert given == {**{n: DEFAULTS[n] for n in CASE_OPTIONS}, name: SAID[name], "rpm": 9}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("rmp=3", "there is no judge setting 'rmp'; did you mean 'rpm'"),
        ("api-key=x", "there is no judge setting 'api-key'"),
        ("rpm", "write NAME=VALUE"),
        ("rpm=many", "'many' is not a whole number"),
        ("timeout=soon", "'soon' is not a number"),
        ("retry-refused=perhaps", "'perhaps' is not true or false"),
    ],
)
def test_a_judge_option_that_is_wrong_is_refused(text, problem):
    error = told("--judge-option", text).exception
    assert isinstance(error, InputError)
    assert problem in str(error)


def test_options_replace_settings_one_by_one():
    @with_judge_options("base_url")
    def ask(*, given: JudgeOptions) -> None:
        typer.echo(dict(given))

    app = typer.Typer()
    app.command()(ask)
    settings = {"judge_option": ["rpm=3", "max-calls=7"]}
    done = CliRunner().invoke(app, ["--judge-option", "rpm=5"], default_map=settings)
    assert done.stdout == "{'base_url': None, 'rpm': 5, 'max_calls': 7}\n"


def test_a_command_may_have_its_own_in_place_of_the_usual_one():
    _, given, _ = told(repeats=REPEATS_OF_RUN)
    assert given["repeats"] is None
    assert told("--repeats", 0, repeats=REPEATS_OF_RUN).exit_code == 2


def test_the_options_stand_where_the_parameter_stood_in_the_order_of_their_names():
    @with_judge_options("prompts", "base_url")
    def ask(judge: str, *, given: JudgeOptions, as_json: bool = False) -> None:
        """Ask."""

    assert [*inspect.signature(ask).parameters] == [
        *("judge", "prompts", "base_url", "judge_option", "as_json")
    ]
    assert ask.__doc__ == "Ask."


def test_a_name_that_is_no_option_is_refused_when_the_program_is_written():
    with pytest.raises(KeyError, match="base_uri"):
        with_judge_options("base_uri")
    with pytest.raises(KeyError, match="repeats"):
        with_judge_options("base_url", repeats=REPEATS_OF_RUN)


def test_a_command_that_takes_no_terms_is_refused():
    def ask(judge: str) -> None:
        """Ask."""

    with pytest.raises(TypeError, match="ask has no parameter given"):
        with_judge_options("base_url")(ask)

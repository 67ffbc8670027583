"""The options on how a judge is asked: one place for all commands, and what they say arrives."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
import typer
from typer.testing import CliRunner

from misslink.cli.options import (
    CAP_OPTIONS,
    CASE_OPTIONS,
    JSON_OPTION,
    MODEL_OPTIONS,
    PACE_OPTIONS,
    PRICE_OPTIONS,
    REPEATS_OF_RUN,
    JudgeOptions,
    with_judge_options,
)
from misslink.judge.config import JudgeConfig

ALL = tuple(
    dict.fromkeys(
        [
            *(*MODEL_OPTIONS, *CASE_OPTIONS, *PACE_OPTIONS, *PRICE_OPTIONS, *CAP_OPTIONS),
            *("batch_price", "retry_refused"),
        ]
    )
)
DEFAULTS = {one.name: one.default for one in fields(JudgeConfig)}


def told(*line, names=ALL, **own):
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


def test_every_field_of_terms_but_the_key_is_an_option_of_its_name_and_type():
    assert set(ALL) == set(DEFAULTS) - {"api_key"}  # a key on a command line is seen by everybody


def test_with_nothing_said_the_terms_are_those_of_python():
    judge, given, as_json = told()
    assert (judge, as_json) == ("me", False)
    assert given == {name: DEFAULTS[name] for name in ALL}
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
def test_what_is_said_arrives_under_its_name_and_nothing_else_changes(name):
    values = () if SAID[name] is True else (SAID[name],)
    _, given, _ = told("--" + name.replace("_", "-"), *values)
    assert given == {**{one: DEFAULTS[one] for one in ALL}, name: SAID[name]}
    assert type(given[name]) is type(SAID[name])


def test_a_command_has_the_options_that_it_names_and_no_other():
    _, given, as_json = told("--max-calls", 3, "--json", names=("base_url", *CAP_OPTIONS))
    assert given == {"base_url": None, "max_calls": 3, "max_cost": None}
    assert as_json
    assert told("--rpm", 3, names=CAP_OPTIONS).exit_code == 2


def test_a_command_may_have_its_own_in_place_of_the_usual_one():
    _, given, _ = told(names=CASE_OPTIONS, repeats=REPEATS_OF_RUN)
    assert given["repeats"] is None
    assert told("--repeats", 0, names=CASE_OPTIONS, repeats=REPEATS_OF_RUN).exit_code == 2


def test_the_options_stand_where_the_parameter_stood_in_the_order_of_their_names():
    @with_judge_options("price_in", "base_url")
    def ask(judge: str, *, given: JudgeOptions, as_json: bool = False) -> None:
        """Ask."""

    assert [*inspect.signature(ask).parameters] == ["judge", "price_in", "base_url", "as_json"]
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

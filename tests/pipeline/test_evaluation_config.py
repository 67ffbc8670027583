"""The options of an evaluation are the same for Python and for the command line."""

import inspect
import re
from dataclasses import fields

import pytest
import typer

from misslink import evaluate, evaluate_async
from misslink.cli.main import app
from misslink.errors import InputError
from misslink.pipeline.config import EvaluationConfig, EvaluationOptions

FIELDS = {field.name: field for field in fields(EvaluationConfig)}


def test_evaluate_has_the_fields_of_its_config_with_their_types_and_defaults():
    parameters = inspect.signature(evaluate).parameters
    assert {name: (one.annotation, one.default) for name, one in parameters.items()} == {
        name: (field.type, field.default) for name, field in FIELDS.items()
    }


def test_evaluate_async_takes_the_same_options_with_the_same_types():
    parameters = inspect.signature(evaluate_async).parameters
    positional = {name: parameters[name].annotation for name in ("app", "goldset")}
    named = {name: one.__forward_arg__ for name, one in EvaluationOptions.__annotations__.items()}
    assert parameters["options"].annotation == "Unpack[EvaluationOptions]"
    assert positional | named == {name: field.type for name, field in FIELDS.items()}


def test_evaluate_documents_each_option():
    documented = re.findall(r"^(\w+) : ", inspect.getdoc(evaluate) or "", re.MULTILINE)
    assert set(documented) == set(FIELDS)


def test_the_command_has_an_option_for_each_field_with_a_help_text():
    command = typer.main.get_command(app).commands["evaluate"]
    options = {option.name: option for option in command.params}
    helped = {name: field.metadata["help"] for name, field in FIELDS.items() if field.metadata}
    assert {name: options[name].help for name in helped} == helped
    assert set(FIELDS) - set(helped) == {"app", "judge_config", "progress", "command"}


@pytest.mark.parametrize("option", ["out", "cache", "calibration"])
def test_what_is_no_path_is_refused_at_once(option):
    with pytest.raises(InputError, match=f"{option} is 5; give a path"):
        evaluate("app.py:app", goldset="gold.jsonl", **{option: 5})


@pytest.mark.parametrize("ks", ["1,0", "1,five", [1, -5]])
def test_what_is_no_cutoff_is_refused_at_once(ks):
    with pytest.raises(
        InputError, match=r"--ks has '(0|five|-5)'; give whole numbers of 1 or more"
    ):
        evaluate("app.py:app", goldset="gold.jsonl", ks=ks)

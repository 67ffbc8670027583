import asyncio

import pytest

from honest_judge import small_ask
from misslink.errors import InputError
from misslink.judge.backends.custom import load_custom_judge
from misslink.judge.config import is_custom_judge
from misslink.judge.protocol import judge_info
from misslink.registry import judges

JUDGE = """
from misslink.judge import JudgeInfo, Reply

class Mine:
    name = "mine"
    info = JudgeInfo(note="says what it likes")

    def __init__(self, temperature=0.0):
        self.identity = {"judge": "mine", "temperature": temperature}

    async def ask(self, ask):
        answer = {"claims": [], "passages": [], "response": "answers"}
        return Reply(ask.schema.model_validate(answer), "{}")

    async def close(self):
        pass

class Late(Mine):
    def ask(self, ask):
        return None

class Vague(Mine):
    def __init__(self):
        self.identity = {"lock": object()}

def make():
    return Mine()

def fails():
    raise RuntimeError("no weights")

mine = Mine()
number = 7
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch, imports_forgotten):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_judge.py").write_text(JUDGE, encoding="utf-8")


@pytest.mark.parametrize("spec", ["my_judge.py:mine", "my_judge.py:Mine", "my_judge.py:make"])
def test_an_object_a_class_and_a_function_give_a_judge(spec):
    judge = load_custom_judge(spec)
    reply = asyncio.run(judge.ask(small_ask(1)))
    assert reply.parsed.response == "answers"
    assert (judge.name, judge_info(judge).note) == ("mine", "says what it likes")
    asyncio.run(judge.close())


def test_a_module_is_found_by_its_dotted_name(tmp_path):
    package = tmp_path / "a_package_of_judges"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "strict.py").write_text(JUDGE, encoding="utf-8")
    assert load_custom_judge("a_package_of_judges.strict:mine").name == "mine"


def test_other_code_is_another_judge(tmp_path):
    before = load_custom_judge("my_judge.py:mine").identity
    assert load_custom_judge("my_judge.py:mine").identity == before
    assert before["judge"] == "mine"
    with (tmp_path / "my_judge.py").open("a", encoding="utf-8") as file:
        file.write("# stricter\n")
    assert load_custom_judge("my_judge.py:mine").identity != before


def test_options_reach_what_makes_the_judge_and_nothing_else():
    judge = load_custom_judge("my_judge.py:Mine", {"temperature": 0.5})
    assert judge.identity["temperature"] == 0.5
    for spec, option in (("make", "temperature"), ("mine", "temperature"), ("Mine", "base_url")):
        with pytest.raises(InputError, match=f"has no {option}"):
            load_custom_judge(f"my_judge.py:{spec}", {option: 1})


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("my_juge.py:mine", "there is no file my_juge.py.*did you mean 'my_judge.py'"),
        ("my_judge.py:mines", "has no 'mines'; did you mean 'mine'"),
        ("my_judge.py:number", "is an int and not a judge: it lacks name, identity, ask, close"),
        ("my_judge.py:fails", "RuntimeError: no weights"),
        ("my_judge.py:Late", "its ask must be a function declared with  async def"),
        ("my_judge.py:Vague", "its identity must be a mapping of JSON values"),
        ("my_judge.py", "write  path/to/judge.py:name"),
        ("my_judge.py:", "write  path/to/judge.py:name"),
        ("no_such.module:judge", "there is no module 'no_such'"),
        ("broken.py:judge", "importing broken.py failed: ZeroDivisionError"),
        ("half.py:judge", "importing half.py failed: SyntaxError"),
        ("leaves.py:judge", "importing leaves.py failed: SystemExit"),
    ],
)
def test_a_mistake_is_one_sentence(spec, said, tmp_path):
    (tmp_path / "broken.py").write_text("a = 1\nb = a / 0\n", encoding="utf-8")
    (tmp_path / "half.py").write_text("def judge(:\n", encoding="utf-8")
    (tmp_path / "leaves.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    with pytest.raises(InputError, match=said) as caught:
        load_custom_judge(spec)
    assert "\n" not in str(caught.value)
    if spec.startswith("broken"):
        assert str(caught.value).startswith(f"{tmp_path / 'broken.py'}, line 2")


@pytest.mark.parametrize(
    ("spec", "own"),
    [
        ("judge.py:mine", True),
        ("path/to/judge.py:mine", True),
        (r"C:\here\judge.py:mine", True),
        ("judge.py", True),
        ("package.module:mine", True),
        ("openai:gpt-4.1", False),
        ("openai:org/model.py-tuned:free", False),
        ("llamacpp:/models/a.b.gguf", False),
        ("langchain:openai:gpt-4.1", False),
        ("cascade:heuristic,openai:gpt-4.1", False),
        ("heuristic", False),
        ("none", False),
    ],
)
def test_which_specs_name_a_file_or_module(spec, own):
    assert is_custom_judge(spec) is own


def test_no_registered_name_reads_like_a_file_or_module():
    assert not any(is_custom_judge(f"{name}:x") for name in judges.names())

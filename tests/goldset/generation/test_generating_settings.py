"""A settings file changes what it names and nothing else; what is wrong in it is told by name."""

import pytest

from misslink.errors import InputError
from misslink.goldset.generation.settings import GenerationSettings, read_generation_settings


def read(tmp_path, text):
    path = tmp_path / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return read_generation_settings(path)


def test_nothing_given_is_the_usual(tmp_path):
    assert read_generation_settings(None) == read(tmp_path, "") == GenerationSettings()
    passages = {name: one.passages for name, one in GenerationSettings().categories.items()}
    assert passages == {
        "simple_factual": (1, 1), "complex_factual": (2, 3), "procedural": (1, 2),
        "entity_centric": (1, 2), "comparative": (2, 2), "temporal": (1, 2), "negative": (0, 0),
    }  # fmt: skip


def test_a_file_changes_fields_takes_out_and_adds(tmp_path):
    found = read(
        tmp_path,
        "attempts: 5\n"
        "categories:\n"
        "  simple_factual: {share: 3}\n"
        "  negative: null\n"
        "  legal: {share: 1, passages: 5-10, asks: A question of law.}\n"
        "personas: {expert: null}\n",
    )
    usual = GenerationSettings()
    assert found.attempts == 5
    assert found.categories["simple_factual"].share == 3
    assert found.categories["simple_factual"].asks == usual.categories["simple_factual"].asks
    assert "negative" not in found.categories
    assert found.categories["legal"].passages == (5, 10)
    assert set(found.personas) == set(usual.personas) - {"expert"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("attempt: 5", "did you mean 'attempts'"),
        ("categories: {simple_factual: {passages: 3-2}}", "passages"),
        ("categories: {simple_factual: {passages: 0-2}}", "passages"),
        ("categories: {simple_factual: {passages: many}}", "passages"),
        ("categories: {simple_factual: {share: -1}}", "share"),
        ("categories: {simple_factual: 3}", "simple_factual': This is not a mapping"),
        ("categories: [a]", "categories': This is not a mapping"),
        ("categories: {legal: {share: 1, passages: 1}}", "asks"),
        ("shared_words: .nan", "shared_words"),
        ("- a", "not a mapping"),
        ("a: [", "line 1"),
        ("a: &x [*x]", "config.yaml"),
        ("attempts: !!python/object:os.system {}", "YAML tags"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(tmp_path, text, said):
    with pytest.raises(InputError, match=r"config\.yaml") as told:
        read(tmp_path, text)
    assert said in str(told.value)


def test_all_shares_at_nothing_are_refused(tmp_path):
    none = "".join(f"  {name}: {{share: 0}}\n" for name in GenerationSettings().categories)
    with pytest.raises(InputError, match="share above 0"):
        read(tmp_path, f"categories:\n{none}")


def test_categories_are_picked_by_name():
    assert list(GenerationSettings().only([" negative", "temporal"]).categories) == [
        "negative",
        "temporal",
    ]
    with pytest.raises(InputError, match="did you mean 'negative'"):
        GenerationSettings().only(["negativ"])
    with pytest.raises(InputError, match="--categories is empty"):
        GenerationSettings().only([""])

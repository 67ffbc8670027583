import textwrap

import pytest
from langchain_core.documents import Document

from misslink.errors import InputError
from misslink.goldset.generation.corpus import (
    POOR_PASSAGE_REASONS,
    poor_passage_reason,
    read_source_corpus,
)
from misslink.goldset.generation.settings import GenerationSettings
from misslink.goldset.wording import find_verbatim, measure_copying, rewordable_stems
from misslink.types import Passage
from question_writer import TOWNS, passage

PROSE = [passage(town, n) for n, town in enumerate(TOWNS[:4])]
CONTENTS = "Contents of the whole book\n1 Harbours .......... 3\n2 Ferries and piers ..... 17\n" * 3
LINKS = "Home\nAbout us\nFerries\nTimetable\nPrices\nContact\nLogin\nImprint\nHelp\nMore\n" * 2
TABLE = "ferry pier harbour seat crossing town isles chapel bell saint merchant wool slate " + (
    "1904 | 2210 | 33.5 | 88% | 12:40 | " * 12
)


def sources(*texts, **settings):
    documents = [Document(page_content=text) for text in texts]
    return read_source_corpus(documents, GenerationSettings(**settings))


@pytest.mark.parametrize(
    ("text", "why"),
    [(PROSE[0], None), ("A ferry.", "too_short"), (CONTENTS, "contents"), (LINKS, "navigation"),
     (TABLE, "no_prose"), ("", "too_short")],
)  # fmt: skip
def test_what_carries_no_question_is_told_by_counting(text, why):
    assert poor_passage_reason(text, least_words=15) == why


def test_steps_of_a_list_are_no_navigation():
    steps = "\n".join(f"{n}. Turn the {word} valve" for n, word in enumerate(TOWNS[:12], 1))
    assert poor_passage_reason(steps, least_words=15) is None


def test_poor_passages_are_counted_and_stay_in_the_corpus():
    found = sources(PROSE[0], PROSE[0] + " ", CONTENTS, LINKS, "Short.", PROSE[1])
    assert found.usable == (0, 5)
    assert found.skipped == {"too_short": 1, "contents": 1, "navigation": 1, "repeated": 1}
    assert set(found.skipped) <= set(POOR_PASSAGE_REASONS)
    assert len(found.passages) == 6


def test_a_corpus_without_prose_is_refused_with_the_counts():
    with pytest.raises(InputError, match=r"1 because it is a list of links.*least_words"):
        sources(LINKS)


def test_long_documents_are_cut_into_parts_with_numbers_and_verbatim_text():
    long = "\n\n".join(PROSE)
    documents = [Document(id="isles", page_content=long), Document(id="one", page_content=PROSE[0])]
    found = read_source_corpus(documents, GenerationSettings(passage_characters=350))
    names = [one.id for one in found.passages]
    assert names[:2] == ["isles#1", "isles#2"]
    assert names[-1] == "one"
    assert all(one.text in long for one in found.passages)
    assert all(len(one.text) <= 350 for one in found.passages)
    assert set(found.documents) == {"isles", "one"}
    assert found.cut == 1


def test_a_part_never_takes_the_name_of_another_document():
    documents = [
        Document(id="a", page_content=" ".join(PROSE)),
        Document(id="a#1", page_content=PROSE[0]),
    ]
    with pytest.raises(InputError, match="'a#1'"):
        read_source_corpus(documents, GenerationSettings(passage_characters=400))


LOADER = f"""
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

TEXTS = {PROSE!r}

class Loader(BaseLoader):
    def lazy_load(self):
        for text in TEXTS:
            yield Document(page_content=text, metadata={{"source": "isles.txt"}})

loader = Loader()
documents = [Document(page_content=text) for text in TEXTS]
number = 3

def make():
    return loader

def broken():
    raise ValueError("the disk is away")
"""


@pytest.fixture
def module(tmp_path, monkeypatch, imports_forgotten):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loading.py").write_text(textwrap.dedent(LOADER), encoding="utf-8")


@pytest.mark.parametrize("name", ["loader", "Loader", "make"])
@pytest.mark.parametrize("target", ["loading", "loading.py"])
def test_a_loader_is_imported_by_its_name(module, target, name):
    found = read_source_corpus(f"{target}:{name}", GenerationSettings())
    assert [one.text for one in found.passages] == PROSE
    assert [one.id for one in found.passages] == [f"isles.txt#{n}" for n in range(1, 5)]
    assert set(found.documents) == {"isles.txt"}


def test_a_list_of_documents_without_ids_is_named_by_its_texts(module):
    found = read_source_corpus("loading:documents", GenerationSettings())
    assert all(one.id.startswith("text-") for one in found.passages)


@pytest.mark.parametrize(
    ("name", "said"),
    [("lodaer", "did you mean 'loader'"), ("number", "has the type int"),
     ("broken", "the disk is away")],
)  # fmt: skip
def test_what_is_no_loader_is_told_in_a_sentence(module, name, said):
    with pytest.raises(InputError, match=said):
        read_source_corpus(f"loading:{name}", GenerationSettings())


def test_the_fingerprint_knows_no_order_and_every_change():
    one = [Passage(id=str(n), text=text, rank=n + 1) for n, text in enumerate(PROSE)]
    other = [*reversed(one)]
    changed = [one[0].model_copy(update={"text": one[0].text + " Now."}), *one[1:]]
    prints = [
        read_source_corpus(each, GenerationSettings()).fingerprint for each in (one, other, changed)
    ]
    assert prints[0] == prints[1] != prints[2]


@pytest.mark.parametrize(
    "given", [{"a": 1}, 3, ["text"], [], [Document(id="a", page_content="x")] * 2]
)
def test_what_is_no_corpus_is_refused(given):
    with pytest.raises(InputError):
        read_source_corpus(given, GenerationSettings())


PASSAGE = "The ferry to Oban leaves the old pier at seven.\n\nIt carries  thirty cars <b>daily</b>."


@pytest.mark.parametrize(
    ("question", "run"),
    [
        ("When does a ship sail?", 0),
        ("When is it that the ferry to Oban leaves?", 5),
        ("THE FERRY TO OBAN LEAVES THE OLD PIER AT SEVEN?", 10),
        ("Does a ferryman leave?", 0),  # whole words alone
        ("", 0),
    ],
)
def test_the_longest_run_of_common_words(question, run):
    assert measure_copying(question, [PASSAGE]).run == run


def test_a_run_never_spans_two_passages():
    assert measure_copying("the old pier", ["the old", "pier"]).run == 2


def test_the_share_leaves_names_and_numbers_out():
    found = measure_copying(
        "Which ferry leaves Oban with thirty cars at 7 from some pier?", [PASSAGE]
    )
    assert rewordable_stems("Which ferry leaves Oban with 30 cars?") == rewordable_stems(
        "ferry leaves cars"
    )
    assert found.share == 1.0
    assert (
        measure_copying("Which boat departs with many vehicles from some harbour?", [PASSAGE]).share
        == 0
    )


def test_of_few_words_no_share_is_said():
    assert measure_copying("When does the ferry leave?", [PASSAGE]).share is None


def test_a_script_without_blanks_is_counted_in_pairs_of_characters():
    assert measure_copying("渡し船は七時に出ますか", ["渡し船は七時に出ます。"]).run == 5


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("leaves the old pier at seven", "leaves the old pier at seven"),
        ("at seven. It carries thirty cars", "at seven.\n\nIt carries  thirty cars"),
        ('"The ferry to Oban"', "The ferry to Oban"),
        ("cars \uff1cb>daily", "cars <b>daily"),  # as the fence shows it
        ("the ferry to Oban", None),  # another capital is another text
        ("leaves the old pie", None),  # cut within a word
        ("carries forty cars", None),
        ("...", None),
        ("", None),
    ],
)
def test_a_quote_is_verbatim_but_for_its_blanks(quote, found):
    at = find_verbatim(quote, PASSAGE)
    assert (None if at is None else PASSAGE[slice(*at)]) == found

import json

import pytest

from misslink.errors import InputError
from misslink.linking.whatif.triplets import make_triplets, texts_overlap, write_triplets
from misslink.types import RetrievalMiss, Run, Trace
from town import case, link, passage, ranked, scored

LOST = "The ferry to Holm leaves at seven from the old harbour, and it returns at nine."


def run_with(retrieved, *, missed=None, verdicts=(), **of_case):
    lost = missed or [RetrievalMiss(passage_id="p1", text=LOST)]
    linked = link(1, "miss").model_copy(update={"missed": tuple(lost)})
    return Run(
        manifest={},
        cases=[case(1, **of_case)],
        traces=[Trace(case_id="c1", retrieved=retrieved)],
        verdicts=verdicts,
        links=[linked],
        summary={"k": 3},
    )


def test_the_negative_is_the_best_ranked_passage_that_is_not_relevant():
    found, left_out = make_triplets(run_with(ranked([4, 5, 6])))
    assert found == [
        {
            "query": case(1).question,
            "positive": LOST,
            "negative": passage(4).text,
            "case_id": "c1",
        }
    ]
    assert left_out == {}


def test_a_relevant_passage_is_no_negative():
    found, _ = make_triplets(run_with(ranked([4, 5]), relevant={"p1": 1, "p4": 1}))
    assert found[0]["negative"] == passage(5).text


def test_a_passage_that_carries_the_evidence_is_no_negative():
    other = passage(9, text=f"Elsewhere: {LOST}")
    found, _ = make_triplets(run_with((other, passage(5, rank=2)), evidence=[LOST]))
    assert found[0]["negative"] == passage(5).text


def test_a_part_of_the_evidence_is_no_negative():
    half = passage(9, text=f"Timetable. {LOST[:45]}")
    found, _ = make_triplets(run_with((half, passage(5, rank=2)), evidence=[LOST]))
    assert found[0]["negative"] == passage(5).text


@pytest.mark.parametrize(
    "near", [LOST.replace("nine", "ten"), LOST[:50], f"Wardens met. {LOST[20:]} More was said."]
)
def test_what_repeats_the_missed_passage_is_no_negative(near):
    found, _ = make_triplets(run_with((passage(9, text=near), passage(5, rank=2))))
    assert found[0]["negative"] == passage(5).text


def test_what_a_judge_found_relevant_is_no_negative():
    verdict = scored("c1", passages={"p4": 1.0, "p5": 0.0})
    found, _ = make_triplets(run_with(ranked([4, 5]), verdicts=[verdict]))
    assert found[0]["negative"] == passage(5).text


def test_a_missed_passage_without_text_or_without_a_negative_is_counted():
    textless = RetrievalMiss(passage_id="p1")
    assert make_triplets(run_with(ranked([4]), missed=[textless])) == (
        [],
        {"the text of the missed passage is not known": 1},
    )
    assert make_triplets(run_with(())) == ([], {"no retrieved passage is surely irrelevant": 1})


def test_two_passages_on_one_topic_do_not_repeat_each_other():
    assert not texts_overlap(LOST, "The ferry to Holm costs four crowns, children travel free.")
    assert texts_overlap(LOST, LOST.upper())


def test_triplets_are_written_whole_and_read_back(tmp_path):
    rows = [{"query": "Où ?\u2028", "positive": "a", "negative": "b", "case_id": "c"}]
    write_triplets(tmp_path / "t.jsonl", rows)
    (line,) = (tmp_path / "t.jsonl").read_text(encoding="utf-8").rstrip("\n").split("\n")
    assert json.loads(line) == rows[0]
    assert [one.name for one in tmp_path.iterdir()] == ["t.jsonl"]


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match=r"t\.jsonl: it cannot be written"):
        write_triplets(tmp_path / "file" / "t.jsonl", [])

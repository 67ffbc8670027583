import asyncio
import json

import numpy as np
import pytest

from honest_judge import fenced
from made_pools import HOSTILE, goldset, grade_all, pool_of, put_pool, truth
from misslink.errors import InputError
from misslink.goldset.pooling.grades import (
    JudgeGrade,
    annotator_agreement,
    ask_grade,
    judge_agreement,
    merge_pool_grades,
    prelabel_pool,
    read_prelabels,
    resolve_grades,
    weighted_kappa,
    write_prelabels,
)
from misslink.io.labels import ADJUDICATED
from misslink.judge.config import JudgeConfig
from misslink.judge.prompts import BUILT_IN
from misslink.judge.session import open_judge


def people(count=60, seed=0):
    generator = np.random.default_rng(seed)
    true = generator.integers(0, 3, count)
    noisy = np.clip(true + generator.integers(-1, 2, count), 0, 2)
    return ({f"i{n}": int(grade) for n, grade in enumerate(of)} for of in (true, noisy))


def test_kappa_is_that_of_scikit_learn_with_quadratic_weights():
    from sklearn.metrics import cohen_kappa_score

    ada, bob = people()
    want = cohen_kappa_score(list(ada.values()), list(bob.values()), weights="quadratic")
    assert weighted_kappa(ada, bob).value == pytest.approx(want)


def test_a_grade_that_nobody_gave_keeps_its_distance():
    from sklearn.metrics import cohen_kappa_score

    ada, bob = {"a": 0, "b": 2, "c": 0, "d": 2}, {"a": 0, "b": 2, "c": 2, "d": 2}
    want = cohen_kappa_score(list(ada.values()), list(bob.values()), labels=[0, 1, 2],
                             weights="quadratic")  # fmt: skip
    assert weighted_kappa(ada, bob).value == pytest.approx(want)


def ordinal_alpha(rows):
    """Krippendorff (2011), by his own double sums over ranks."""
    values = sorted({grade for row in rows for grade in row if grade is not None})
    coincidences = {(a, b): 0.0 for a in values for b in values}
    for row in rows:
        said = [grade for grade in row if grade is not None]
        for i, a in enumerate(said):
            for j, b in enumerate(said):
                if i != j:
                    coincidences[a, b] += 1 / (len(said) - 1)
    totals = {a: sum(coincidences[a, b] for b in values) for a in values}
    n = sum(totals.values())

    def distance(a, b):
        low, high = min(a, b), max(a, b)
        between = sum(totals[c] for c in values if low <= c <= high)
        return (between - (totals[a] + totals[b]) / 2) ** 2

    observed = sum(count * distance(a, b) for (a, b), count in coincidences.items())
    expected = sum(totals[a] * totals[b] * distance(a, b) for a in values for b in values)
    return 1 - (n - 1) * observed / expected


def test_alpha_is_krippendorffs_ordinal_one_also_where_some_have_not_graded():
    ada, bob = people()
    cyd = dict(list(ada.items())[:20]) | {"i30": None}
    found = annotator_agreement({"ada": ada, "bob": bob, "cyd": cyd}, 60)
    rows = [[ada[i], bob[i], cyd.get(i)] for i in ada]
    assert found["alpha"].value == pytest.approx(ordinal_alpha(rows))
    assert found["each"]["cyd"] == {"labelled": 20, "skipped": 1, "missing": 39}
    assert [pair["kappa"].n for pair in found["pairs"]] == [60, 20, 20]
    assert "see the pairs" in found["kappa"].reason


def test_one_person_alone_agrees_with_nobody():
    found = annotator_agreement({"ada": {"a": 1}, ADJUDICATED: {"a": 2}}, 3)
    assert (found["annotators"], found["alpha"].value, found["kappa"].value) == (1, None, None)


@pytest.mark.parametrize(
    ("said", "grade", "queued"),
    [
        ({"ada": 2}, 2, None),
        ({"ada": 1, "bob": 1}, 1, None),
        ({"ada": 1, "bob": 2}, None, False),
        ({"ada": 1, "bob": 1, "cyd": 0}, 1, True),
        ({"ada": 0, "bob": 1, "cyd": 2}, None, False),
        ({"ada": 1, "bob": 2, ADJUDICATED: 0}, 0, None),
        ({"ada": 1, "bob": None}, 1, None),
        ({"ada": None}, None, None),
        ({ADJUDICATED: 2}, 2, None),
    ],
)
def test_a_grade_is_the_adjudicated_one_else_that_of_more_than_half(said, grade, queued):
    found, queue = resolve_grades({name: {"i": one} for name, one in said.items()})
    assert found == ({} if grade is None else {"i": grade})
    assert [one["settled"] for one in queue] == ([] if queued is None else [queued])


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "pool"


def test_grades_stand_in_the_gold_set_and_0_is_kept_as_judged(folder):
    pool = put_pool(folder)
    grade_all(folder, "ada")
    found = merge_pool_grades(folder)
    want = {(item.case_id, item.passage_id) for item in pool.items}
    got = {(case.id, name): grade for case in found[0] for name, grade in case.relevant.items()}
    assert set(got) == want
    assert all(grade == truth(*key) for key, grade in got.items())
    assert 0 in got.values()
    assert found[1]["merged"] == len(pool.items)
    json.dumps(found[1], allow_nan=False)


def test_a_grade_that_the_gold_set_had_otherwise_is_counted_and_the_rest_of_a_case_stays(folder):
    gold = goldset(1, relevant={"d0": 2, "d59": 1}, reference="It opens.", tags={"a": "b"})
    put_pool(folder, gold=gold, rejudge=True, random=0, stratified=0)
    grade_all(folder, "ada")
    found = merge_pool_grades(folder)
    (case,) = found[0]
    assert (case.relevant["d0"], case.relevant["d59"]) == (1, 1)
    assert (case.references, case.tags) == (("It opens.",), {"a": "b"})
    assert found[1]["changed"] == 1


def test_ties_are_left_out_and_queued_until_they_are_adjudicated(folder):
    pool = put_pool(folder)
    first = pool.items[0].item
    grade_all(folder, "ada")
    grade_all(folder, "bob", lambda item: (truth(item.case_id, item.passage_id) + 1) % 3
              if item.item == first else truth(item.case_id, item.passage_id))  # fmt: skip
    document = merge_pool_grades(folder)[1]
    assert (document["open"], document["merged"]) == (1, len(pool.items) - 1)
    assert [(one["item"], one["settled"]) for one in document["queue"]] == [(first, False)]
    assert document["agreement"]["kappa"]["n"] == len(pool.items)
    grade_all(folder, "", lambda _: 2, adjudicate=True)
    found = merge_pool_grades(folder)
    assert found[1]["queue"] == []
    assert {c.id: c for c in found[0]}[pool.items[0].case_id].relevant[
        pool.items[0].passage_id
    ] == 2


def test_what_stands_beside_the_grades_is_said(folder):
    gold = goldset(2, relevant={"gone": 1, "d1": 0}, relevant_any=[["d0", "away"]],
                   evidence="The harbour of passage 0.")  # fmt: skip
    pool = put_pool(folder, gold=gold)
    grade_all(folder, "ada", upto=1)
    write_prelabels(folder, [JudgeGrade(item.item, 0, "openai:m") for item in pool.items])
    told = merge_pool_grades(folder, accept_prelabels=True)[1]["notes"]
    for what, count in (
        ("evidence texts", 2), ("relevant_any", 2), ("are not in the corpus", 4),
        ("grades of the judge", len(pool.items) - 1),
    ):  # fmt: skip
        assert any(what in note and f"{count} " in note for note in told), what
    assert not any("grades of the judge" in note for note in merge_pool_grades(folder)[1]["notes"])


def test_who_has_not_graded_what_is_told(folder):
    pool = put_pool(folder)
    grade_all(folder, "ada")
    grade_all(folder, "bob", lambda _: None, upto=2)
    each = merge_pool_grades(folder)[1]["agreement"]["each"]
    assert each["bob"] == {"labelled": 0, "skipped": 2, "missing": len(pool.items) - 2}
    assert each["ada"]["missing"] == 0


def test_a_pool_that_nobody_labelled_is_told(folder):
    put_pool(folder)
    with pytest.raises(InputError, match="No annotator has labelled this pool"):
        merge_pool_grades(folder)


def test_a_judges_grades_are_merged_only_on_request_and_only_where_people_measured_it(folder):
    pool = put_pool(folder)
    with pytest.raises(InputError, match="No annotator has labelled"):
        merge_pool_grades(folder, accept_prelabels=True)
    grade_all(folder, "ada", upto=6)
    with pytest.raises(InputError, match="No judge has graded"):
        merge_pool_grades(folder, accept_prelabels=True)
    write_prelabels(folder, [JudgeGrade(item.item, 0, "openai:m") for item in pool.items[6:]])
    with pytest.raises(InputError, match="agreement is unknown"):
        merge_pool_grades(folder, accept_prelabels=True)
    write_prelabels(folder, [JudgeGrade(item.item, 0, "openai:m") for item in pool.items])
    kept = merge_pool_grades(folder)[1]
    assert (kept["merged"], kept["prelabels"]["n"]) == (6, 6)
    taken = merge_pool_grades(folder, accept_prelabels=True)
    assert taken[1]["merged"] == len(pool.items)
    assert taken[1]["accepted_prelabels"] == len(pool.items) - 6
    by_case = {case.id: case.relevant for case in taken[0]}
    for at, item in enumerate(pool.items):  # a person's word goes before the judge's
        want = truth(item.case_id, item.passage_id) if at < 6 else 0
        assert by_case[item.case_id][item.passage_id] == want


LEVELS = ("not_relevant", "relevant", "highly_relevant")


def grader(body):
    """Says of a passage whose topic is asked that it is relevant, whatever its grade."""
    texts = dict(fenced(body))
    topic = texts["question"].rstrip("?").split()[-1]
    said = LEVELS[1 if topic in texts["passage"] else 0]
    return {"grade": said}


def asked(pool, server, cache=None, prompts=BUILT_IN):
    async def ask():
        terms = JudgeConfig(base_url=server.url, api_key="k")
        judge = open_judge("openai:test-judge", cache=cache, concurrency=4, terms=terms)
        try:
            return await prelabel_pool(pool, judge, prompts=prompts)
        finally:
            await judge.close()

    return asyncio.run(ask())


def test_every_item_is_asked_about_alone_and_blind(judge_server):
    judge_server.script = grader
    pool = pool_of(random=1000, passages=27)
    given = asked(pool, judge_server)
    assert [one.item for one in given] == [item.item for item in pool.items]
    for one, item in zip(given, pool.items, strict=True):
        assert one.grade == min(1, truth(item.case_id, item.passage_id))
    sent = [json.dumps(call.body["messages"]) for call in judge_server.calls]
    assert not [text for text in sent if "pooled" in text or "stratum" in text]
    hostile = next(item for item in pool.items if HOSTILE in item.text)
    system, user = ask_grade(hostile).messages
    assert HOSTILE not in system["content"]
    assert HOSTILE.replace("\u2028", "") in user["content"].replace("\u2028", "")


def test_what_was_paid_for_is_not_paid_again(judge_server, tmp_path):
    judge_server.script = grader
    pool = pool_of()
    first = asked(pool, judge_server, tmp_path / "cache.sqlite")
    paid = judge_server.answered
    assert asked(pool, judge_server, tmp_path / "cache.sqlite") == first
    assert judge_server.answered == paid


def test_a_reply_that_cannot_be_read_is_no_grade_and_never_0(judge_server):
    def unsure(body):
        if "passage 1." in dict(fenced(body))["passage"]:
            return "I would rather not say."
        return grader(body)

    judge_server.script = unsure
    pool = pool_of(random=1000, passages=27)
    lost = [one for one in asked(pool, judge_server) if one.grade is None]
    assert {one.item for one in lost} == {i.item for i in pool.items if i.passage_id == "d1"}
    assert all(one.reason for one in lost)


def test_a_judge_that_grades_nothing_is_told(judge_server):
    judge_server.script = lambda _: "no"
    with pytest.raises(InputError, match="gave no grade"):
        asked(pool_of(), judge_server)


def test_agreement_with_people_is_that_of_scikit_learn(judge_server):
    from sklearn.metrics import cohen_kappa_score, confusion_matrix

    judge_server.script = grader
    pool = pool_of(random=1000, passages=27)
    given = {one.item: one for one in asked(pool, judge_server)}
    people = {item.item: truth(item.case_id, item.passage_id) for item in pool.items[::2]}
    found = judge_agreement(given, people)
    said = [given[item].grade for item in people]
    theirs = list(people.values())
    assert found["n"] == len(people)
    assert found["kappa"].value == pytest.approx(
        cohen_kappa_score(theirs, said, labels=[0, 1, 2], weights="quadratic")
    )
    assert found["confusion"] == confusion_matrix(theirs, said, labels=[0, 1, 2]).tolist()
    assert found["grades"]["highly relevant"]["recall"].value == 0
    assert found["grades"]["highly relevant"]["precision"].value is None


def test_prelabels_are_read_back_and_a_damaged_file_is_told(judge_server, tmp_path):
    judge_server.script = grader
    pool = put_pool(tmp_path / "pool")
    given = asked(pool, judge_server)
    path = write_prelabels(tmp_path / "pool", given)
    assert list(read_prelabels(tmp_path / "pool", pool).values()) == given
    path.write_text('{"item": "x", "grade": 7, "judge": "j"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"prelabels\.jsonl, line 1, field 'grade'"):
        read_prelabels(tmp_path / "pool", pool)
    path.write_text('{"item": "x"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"prelabels\.jsonl, line 1"):
        read_prelabels(tmp_path / "pool", pool)

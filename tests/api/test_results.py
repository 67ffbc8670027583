"""The functions of misslink over a small run: the numbers of the commands, as typed results."""

import dataclasses
import json

import pytest

import misslink
from misslink.errors import InputError
from misslink.examples import load_example
from misslink.judge.judged_metric import Finding, parsed_examination
from misslink.registry import judged_metrics, rank_metrics
from misslink.testing import ScriptedJudge, small_run


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two run folders: two passages in the prompt, and one."""
    root = tmp_path_factory.mktemp("runs")
    for name, k in (("a", 2), ("b", 1)):
        small_run(out=root / name, k=k)
    return root


@pytest.fixture(autouse=True)
def working_folder(tmp_path, monkeypatch):
    """That of the command, too: outputs name files from there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def run(folders):
    return misslink.Run.read(folders / "a")


def test_a_run_has_the_metrics_of_its_summary_and_any_other(run):
    levels = [run.summary[level] for level in ("retrieval", "generation", "answer")]
    written = {name: estimate for level in levels for name, estimate in level.items()}
    assert set(run.metrics) == set(written)
    assert {name: run.metrics[name].model_dump() for name in written} == written
    assert isinstance(run.metrics["recall@1"], misslink.Estimate)
    assert run.metrics["link.owners.retriever"].n == len(run.cases)
    assert "recal@2" not in run.metrics
    with pytest.raises(KeyError, match="did you mean 'recall@2'"):
        run.metrics["recal@2"]
    assert "<td>recall@2</td>" in run.metrics._repr_html_()
    assert len(run.to_pandas()) == len(run.cases)


def test_compare_gives_the_document_of_the_command(folders, misslink_cli):
    compared = misslink.compare(folders / "a", folders / "b", names=["two", "one"])
    printed = misslink_cli(
        "compare", folders / "a", folders / "b", "--name", "two", "--name", "one", "--json"
    )
    assert compared.document() == printed
    wrong = compared.metrics["faithfulness"]
    assert wrong.difference.model_dump() == printed["metrics"]["faithfulness"]["difference"]
    assert (compared.paired, compared.names) == (6, ("two", "one"))
    assert compared.same_judge
    assert "<th>two</th>" in compared._repr_html_()


def test_compare_takes_runs_in_memory_and_writes_its_page(run, folders, tmp_path):
    other = misslink.Run.read(folders / "b")
    compared = misslink.compare(
        run, other, metrics=["mrr"], cases=[case.id for case in run.cases[:3]]
    )
    assert list(compared.metrics) == ["mrr"]
    assert compared.paired == 3
    assert compared.html(tmp_path / "ab.html").read_text(encoding="utf-8").startswith("<!doctype")
    page = compared.markdown(tmp_path / "ab.md", page=tmp_path / "ab.html").read_text("utf-8")
    assert "ab.html" in page
    with pytest.raises(InputError, match="same one"):
        misslink.compare(run, run)
    with pytest.raises(InputError, match="at least two"):
        misslink.compare(run)


def test_gate_decides_as_the_command(folders, run, tmp_path, misslink_cli):
    criteria = tmp_path / "ship.yaml"
    criteria.write_text("gates:\n  - {name: mrr, threshold: 0.99}\n", encoding="utf-8")
    decision = misslink.gate(folders / "a", criteria)
    printed = misslink_cli("gate", folders / "a", "--criteria", criteria, "--json", code=1)
    assert decision.document() == printed
    assert not decision.passed
    assert "<td>failed</td><td>mrr</td>" in decision._repr_html_()
    criteria.write_text("gates:\n  - {name: mrr, regression_max: 0.9}\n", encoding="utf-8")
    assert misslink.gate(run, criteria, misslink.Run.read(folders / "b")).passed
    with pytest.raises(InputError, match="needs a baseline"):
        misslink.gate(run, criteria)


def test_calibrate_of_a_folder_is_saved_and_of_a_run_is_not(folders, run, tmp_path, misslink_cli):
    good = {
        verdict.case_id: verdict.label
        for verdict in run.verdicts
        if verdict.metric == "faithfulness"
    }
    labels = [
        {"case_id": name, "metric": "faithfulness", "label": int(bool(label)), "annotator": "ann"}
        for name, label in good.items()
    ]
    checked = misslink.calibrate(run, labels)
    assert checked.agreement["kappa"].value == 1
    assert checked.verdict in {"trust", "caution", "do not use", "not enough labels"}
    assert f"faithfulness: {checked.verdict}" in checked._repr_html_()
    assert not (folders / "a" / "calibration.json").exists()
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(map(json.dumps, labels)), encoding="utf-8")
    saved = misslink.calibrate(folders / "a", path).document()
    assert json.loads((folders / "a" / "calibration.json").read_text("utf-8")) == saved
    printed = misslink_cli("calibrate", folders / "a", "--labels", path, "--json")
    assert {**printed, "created": ""} == {**saved, "created": ""}
    with pytest.raises(InputError, match="no labels"):
        misslink.calibrate(run)


def test_whatif_forecasts_as_the_command_and_saves_in_a_folder(folders, run, misslink_cli):
    corpus = load_example()["corpus"]
    tried = misslink.whatif(run, corpus=corpus, options=["bm25", "k"], passages=[3])
    assert {option.name for option in tried.options} >= {"bm25"}
    assert not (folders / "b" / "whatif.json").exists()
    assert f"<th>recall@{tried.k}</th>" in tried._repr_html_()
    saved = misslink.whatif(folders / "b", corpus=corpus, options=["bm25"]).document()
    assert misslink.Run.read(folders / "b").whatif == saved
    printed = misslink_cli(
        "whatif", folders / "b", "--corpus", corpus, "--options", "bm25", "--json"
    )
    assert printed == saved


def test_rejudge_takes_a_scripted_judge(run):
    judge = ScriptedJudge(unsupported=["lost", "fares"])
    again = misslink.rejudge(run, judge=judge, cache=None)
    assert {ask.name for ask in judge.asked} >= {"examination"}
    assert again.summary["judge"] == "scripted"
    assert again.metrics["faithfulness"].n > 0


def test_replay_needs_an_app(run):
    with pytest.raises(InputError, match="this run has traces and no app"):
        misslink.replay(run)


def test_a_metric_of_ones_own_is_registered_for_a_rank_and_for_a_judge(run):
    @misslink.register_metric("charm@{k}")
    def charm(hits, k):
        return hits.sums(hits.satisfied, k) > 0

    @misslink.register_metric("charmed")
    @dataclasses.dataclass(frozen=True)
    class Charmed(misslink.JudgedMetric):
        least: int = 1

        def read(self, subject, reply):
            claims = len(parsed_examination(reply).claims)
            return Finding("scored", value=float(claims >= self.least), label=claims >= self.least)

    misslink.register_metric("twice_charmed")(Charmed(least=99))

    try:
        assert run.metrics["charm@2"].value == run.metrics["hit@2"].value
        judged = small_run(judge=ScriptedJudge())
        assert judged.metrics["charmed"].value == 1
        assert judged.metrics["twice_charmed"].value == 0
    finally:
        rank_metrics._entries.pop("charm@{k}")
        for name in ("charmed", "twice_charmed"):
            judged_metrics._entries.pop(name, None)

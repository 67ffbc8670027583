"""Traces as MLflow's own client records and writes them."""

import json
import logging

import pytest

from misslink.io.trace_formats import read_recording

FERRY, DOGS = "The ferry leaves at seven.", "Dogs may travel on a lead."


@pytest.fixture(scope="module")
def traces(tmp_path_factory):
    """Three traces: one answered, one without a passage, one in which the model raised."""
    mlflow = pytest.importorskip("mlflow")
    for name in ("alembic", "mlflow"):
        logging.getLogger(name).setLevel(logging.WARNING)
    patch = pytest.MonkeyPatch()
    patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    folder = tmp_path_factory.mktemp("traces")
    patch.chdir(folder)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment("app")

    @mlflow.trace(span_type="RETRIEVER")
    def search(query):
        found = {"When?": {"times": FERRY, "dogs": DOGS}, "Dogs?": {}, "Broken?": {"times": FERRY}}
        return [
            mlflow.entities.Document(page_content=text, id=name)
            for name, text in found[query].items()
        ]

    @mlflow.trace(span_type="CHAT_MODEL")
    def model(messages):
        if "Broken?" in messages[0]["content"]:
            raise ValueError("the model is gone")
        return {"choices": [{"message": {"role": "assistant", "content": "At seven."}}]}

    @mlflow.trace(span_type="CHAIN")
    def app(question):
        texts = [document.page_content for document in search(question)[:1]]
        messages = [{"role": "user", "content": "\n".join([*texts, question])}]
        return model(messages)["choices"][0]["message"]["content"]

    app("When?")
    app("Dogs?")
    with pytest.raises(ValueError, match="gone"):
        app("Broken?")
    mlflow.flush_trace_async_logging()
    yield mlflow.search_traces(return_type="list"), mlflow.search_traces()
    mlflow.set_tracking_uri(before)
    patch.undo()


@pytest.mark.slow
@pytest.mark.parametrize("form", ["traces", "table"])
def test_question_passages_prompt_and_answer_are_read(traces, tmp_path, form):
    listed, table = traces
    path = tmp_path / "traces.jsonl"
    if form == "traces":
        path.write_text("".join(f"{trace.to_json()}\n" for trace in listed))
    else:
        path = tmp_path / "traces.json"
        table.drop(columns=["trace", "assessments"]).to_json(path, orient="records")
    recording = read_recording(path)
    ids = {case.question: case.id for case in recording.cases.values()}
    found = recording.traces
    assert set(ids) == {"When?", "Dogs?", "Broken?"}
    assert set(ids.values()) == {trace.info.trace_id for trace in listed}
    when, dogs, broken = (found[ids[question]] for question in ("When?", "Dogs?", "Broken?"))
    assert [(p.id, p.text) for p in when.retrieved] == [("times", FERRY), ("dogs", DOGS)]
    assert (when.prompted, when.answer) == (("times",), "At seven.")
    assert (list(dogs.retrieved), dogs.answer) == ([], "At seven.")
    assert (broken.answer, "gone" in broken.error) == (None, True)
    assert json.dumps(when.model_dump(mode="json"))

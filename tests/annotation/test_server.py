"""The page's addresses, over a real connection."""

import json

import pytest

from labelled_runs import HOSTILE, ask, put, run_of, served
from misslink.annotation import AnnotationSession
from misslink.annotation.server import bind_localhost
from misslink.errors import InputError
from misslink.io.labels import read_labels


@pytest.fixture
def folder(tmp_path):
    return put(tmp_path / "run", run_of([0.2, 0.4, 0.8]))


@pytest.fixture
def port(folder):
    with AnnotationSession(folder) as desk, served(desk) as port:
        yield port


def get(port, path):
    status, _, body = ask(port, path)
    return status, json.loads(body)


def post(port, name, **content):
    status, _, body = ask(port, f"/api/{name}", {"annotator": "ada", **content})
    return status, json.loads(body)


def test_a_label_is_on_disk_when_it_is_answered(port, folder):
    status, item = post(port, "label", at=0, metric="faithfulness", claim=None, label=0,
                        comment=HOSTILE)  # fmt: skip
    assert (status, item["done"], item["total"], item["at"]) == (200, 1, 3, 0)
    (label,) = read_labels(folder / "labels").items
    assert (label.value, label.annotator, label.weight, label.comment) == (0, "ada", 3, HOSTILE)


def test_session_item_reveal_and_undo_answer_what_the_page_reads(port):
    assert get(port, "/api/session?annotator=ada")[1]["open"] == 0
    assert get(port, "/api/item?annotator=ada&at=2")[1]["at"] == 2
    assert post(port, "reveal", at=2)[1]["judge_shown"] is True
    assert post(port, "undo") == (409, {"error": "you have no label to undo"})
    post(port, "label", at=2, metric="faithfulness", label=1)
    status, undone = post(port, "undo")
    assert (status, undone["at"], undone["undone"]["metric"]) == (200, 2, "faithfulness")


def test_two_people_label_at_once(port, folder):
    for who, label in (("ada", 1), ("bob", 0)):
        post(port, "label", annotator=who, at=0, metric="faithfulness", label=label)
    assert get(port, "/api/item?annotator=ada&at=0")[1]["labels"][0]["label"] == 1
    assert {(one.annotator, one.value) for one in read_labels(folder / "labels").items} == {
        ("ada", 1.0), ("bob", 0.0),
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"label": 2}, "'label' must be"),
        ({"label": True}, "'label' must be"),
        ({"label": "1"}, "'label' must be"),
        ({"label": 0.5}, "'label' must be"),
        ({"label": [1]}, "'label' must be"),
        ({}, "'label' must be"),
        ({"label": 1, "at": "0"}, "'at' must be"),
        ({"label": 1, "at": True}, "'at' must be"),
        ({"label": 1, "at": 10**30}, "there is no case"),
        ({"label": 1, "claim": "0"}, "'claim' must be"),
        ({"label": 1, "claim": 7}, "there is no claim 7"),
        ({"label": 1, "comment": 5}, "'comment' must be a text"),
        ({"label": 1, "metric": "x\x00"}, "labelled for faithfulness only"),
        ({"label": 1, "annotator": "../x"}, "a name is 1 to 40"),
        ({"label": 1, "annotator": ""}, "a name is 1 to 40"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(port, folder, content, told):
    given = {"at": 0, "metric": "faithfulness", **content}
    status, answer = post(port, "label", **given)
    assert status == 400
    assert told in answer["error"]
    assert not [path for path in (folder / "labels").glob("*.jsonl") if path.stat().st_size]


@pytest.mark.slow
@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b"\xff", b'{"a":' * 20_000])
def test_what_is_no_json_object_is_told(port, raw):
    status, _, body = ask(port, "/api/label", raw=raw)
    assert status in {400, 413}
    assert "error" in json.loads(body)


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    ["/page/desk.py", "/page/../desk.py", "/page/%2e%2e/desk.py", "/page/..%2fdesk.py",
     "/page/index.html", "/page/", "/page//etc/passwd", "/api/other", "/docs"],
)  # fmt: skip
def test_nothing_but_the_page_is_served(port, path):
    status, _, body = ask(port, path)
    assert status == 404
    assert "error" in json.loads(body)


def test_the_page_and_its_files_are_served_by_their_kind(port):
    for path, kind in (("/", "text/html"), ("/page/annotate.css", "text/css"),
                       ("/page/annotate.js", "text/javascript")):  # fmt: skip
        status, headers, body = ask(port, path)
        assert (status, headers["content-type"].partition(";")[0]) == (200, kind)
        assert body


@pytest.mark.slow
@pytest.mark.parametrize("at", ["", "-1", "1.0", "x", "9" * 40, "\u0661"])
def test_a_place_that_is_none_is_told(port, at):
    from urllib.parse import quote

    assert get(port, f"/api/item?annotator=ada&at={quote(at)}")[0] == 400


def test_everybodys_labels_are_exported_and_read_again(port, tmp_path, folder):
    assert get(port, "/api/export?format=csv")[0] == 400, "nobody has labelled"
    for at in range(3):
        post(port, "label", at=at, metric="faithfulness", label=at % 2, comment='a "q",\nb')
    for form in ("csv", "jsonl"):
        status, headers, body = ask(port, f"/api/export?format={form}")
        assert (status, headers["content-disposition"]) == (
            200, f'attachment; filename="labels.{form}"'
        )  # fmt: skip
        path = tmp_path / f"all.{form}"
        path.write_text(body, encoding="utf-8", newline="")
        key = [(o.case_id, o.value, o.weight, o.comment) for o in read_labels(path).items]
        assert key == [
            (o.case_id, o.value, o.weight, o.comment) for o in read_labels(folder / "labels").items
        ]
    assert get(port, "/api/export?format=xlsx")[0] == 400


def test_a_full_disk_is_told_as_something_to_try_again(folder, monkeypatch):
    from misslink.annotation.label_writer import LabelWriter, UnsavedError

    def full(*_):
        raise UnsavedError("your label could not be saved (No space left on device)")

    monkeypatch.setattr(LabelWriter, "save", full)
    with AnnotationSession(folder) as desk, served(desk) as port:
        status, answer = post(port, "label", at=0, metric="faithfulness", label=1)
    assert (status, "could not be saved" in answer["error"]) == (507, True)


def test_it_listens_on_this_machine_alone_and_tells_a_taken_port():
    with bind_localhost(0) as listening:
        address, port = listening.getsockname()
        assert address == "127.0.0.1"
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 is not available"):
            bind_localhost(port)

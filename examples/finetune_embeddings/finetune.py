"""Fine-tune MiniLM on what a retriever missed, and measure it on questions not trained on.

python finetune.py triplets.jsonl --goldset gold.jsonl --corpus corpus.jsonl --out model
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from app import MiniLM, weights

from misslink.embedding import Embedder
from misslink.io import read_goldset
from misslink.linking.whatif.search import DenseSearch
from misslink.retrieval import score_cases
from misslink.stats import mean, paired_difference
from misslink.types import Case, Estimate, Passage, Trace

LEARNING_RATE = 2e-5  # what sentence-transformers' own examples fine-tune small models with
BATCH = 32  # every other positive of a batch is one more negative, so larger is better
TOKENS = 256  # of a passage; MiniLM was trained with no more


def main() -> None:
    """Split the questions, train on the one half's triplets, measure on the other half."""
    asked = arguments()
    cases = read_goldset(asked.goldset).cases
    corpus = read_passages(asked.corpus)
    shuffled = sorted(cases, key=lambda case: case.id)
    random.Random(asked.seed).shuffle(shuffled)
    held_out = shuffled[: round(asked.held_out * len(shuffled))]
    unseen = {case.id for case in held_out}
    rows = [json.loads(line) for line in Path(asked.triplets).read_text("utf-8").splitlines()]
    learnt = [row for row in rows if row["case_id"] not in unseen]
    # The same question twice under two ids would be trained on and then asked.
    questions = {case.question for case in held_out}
    learnt = [row for row in learnt if row["query"] not in questions]
    if not learnt or not held_out:
        raise SystemExit("finetune: no triplet of a question to train on, or none held out")
    trained_on = len({row["case_id"] for row in learnt})
    print(f"{len(learnt)} triplets of {trained_on} questions; {len(held_out)} questions held out")

    model = MiniLM(weights())
    metrics = ["recall@5", "hit@5", "ndcg@5", "mrr"]
    before = measured(model, held_out, corpus, metrics)
    train(model.model, learnt, epochs=asked.epochs, seed=asked.seed)
    after = measured(model, held_out, corpus, metrics)
    model.model.save(str(asked.out))
    for metric in metrics:
        a, b = list(before[metric].values()), list(after[metric].values())
        found = paired_difference(a, b, seed=asked.seed)
        print(
            f"{metric}: {shown(average(a, asked.seed))} before,"
            f" {shown(average(b, asked.seed))} after;"
            f" difference {shown(found.difference)}, p = {found.p:.2g}, n = {found.difference.n}"
        )


def train(model: Any, rows: Sequence[dict[str, str]], *, epochs: int, seed: int) -> None:
    """Train with MultipleNegativesRankingLoss: each negative, and the positives of the others."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.sentence_transformer.training_args import BatchSamplers

    columns = ("query", "positive", "negative")
    model.max_seq_length = TOKENS
    SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=".finetune",
            num_train_epochs=epochs,
            per_device_train_batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            warmup_steps=0.1,
            # No question twice in a batch: its other passage would be held to be wrong.
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            seed=seed,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({name: [row[name] for row in rows] for name in columns}),
        loss=MultipleNegativesRankingLoss(model),
    ).train()


def measured(
    model: MiniLM, cases: Sequence[Case], corpus: Sequence[Passage], metrics: Sequence[str]
) -> dict[str, dict[str, float | None]]:
    """Rank metrics, case by case, of the model's nearest 100 passages."""
    dense = DenseSearch([passage.text for passage in corpus], Embedder(model))
    ranked = asyncio.run(dense.rank([case.question for case in cases], 100))
    traces = [
        Trace(case_id=case.id, retrieved=numbered(corpus[place] for place in places))
        for case, places in zip(cases, ranked, strict=True)
    ]
    return score_cases(cases, traces, metrics)


def numbered(passages: Iterable[Passage]) -> tuple[Passage, ...]:
    """The passages with their ranks."""
    return tuple(one.model_copy(update={"rank": rank}) for rank, one in enumerate(passages, 1))


def read_passages(path: Path) -> list[Passage]:
    """The corpus, by misslink's own reader."""
    from misslink.io.corpus import read_corpus

    return list(read_corpus(path))


def average(values: Iterable[float | None], seed: int) -> Estimate:
    """The mean over the cases that have a value."""
    return mean([value for value in values if value is not None], seed=seed)


def shown(estimate: Estimate) -> str:
    """An estimate with its interval."""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def arguments() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("triplets", type=Path, help="of  misslink whatif RUN --triplets")
    parser.add_argument("--goldset", required=True, help="the gold set of that run")
    parser.add_argument("--corpus", type=Path, required=True, help="what the app searches")
    parser.add_argument("--out", type=Path, default=Path("model"), help="where the model goes")
    parser.add_argument("--held-out", type=float, default=0.4, help="share of questions to test on")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


if __name__ == "__main__":
    main()

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
from misslink.linking.corpus_search import DenseSearch
from misslink.retrieval import score_cases
from misslink.stats import mean, paired_difference
from misslink.types import Case, Estimate, Passage, Trace

LEARNING_RATE = 2e-5  # what sentence-transformers' own examples fine-tune small models with
BATCH = 32  # every other positive of a batch is one more negative, so larger is better
SCALE = 20.0  # of cosines, as in sentence-transformers' MultipleNegativesRankingLoss
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
    """Train with a ranking loss: against each negative, and the other passages of its batch."""
    import torch

    draw = random.Random(seed)
    model.max_seq_length = TOKENS
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    steps = epochs * len(batches(rows, draw))
    warm_up = max(1, steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, max(0.0, 1 - step / steps))
    )
    for _ in range(epochs):
        for batch in batches(rows, draw):
            query, *passages = (
                torch.nn.functional.normalize(embedded(model, [row[name] for row in batch]), dim=1)
                for name in ("query", "positive", "negative")
            )
            scores = SCALE * query @ torch.cat(passages).T
            loss = torch.nn.functional.cross_entropy(scores, torch.arange(len(batch)))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    model.eval()


def embedded(model: Any, texts: Sequence[str]) -> Any:
    """Vectors through which the loss can be followed back."""
    return model(model.preprocess(list(texts)))["sentence_embedding"]


def batches(rows: Sequence[dict[str, str]], draw: random.Random) -> list[list[dict[str, str]]]:
    """Shuffled rows in batches that have no question twice: its other passage would count as wrong."""
    waiting, made = draw.sample(list(rows), len(rows)), []
    while waiting:
        by_question: dict[str, dict[str, str]] = {}
        for row in waiting:
            if len(by_question) < BATCH:
                by_question.setdefault(row["query"], row)
        batch = list(by_question.values())
        made.append(batch)
        waiting = [row for row in waiting if not any(row is one for one in batch)]
    return made


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

"""Group requests that ask the same, and cluster questions by words or by embedding."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from misslink.errors import MissingExtraError
from misslink.goldset.logs.masking import unnumber_masks
from misslink.text.fuzzy_matching import invariant_tokens
from misslink.text.normalization import fold, stems

MIN_SIMILARITY = 90.0  # indel ratio of two questions that differ by a typo, in per cent
# Two questions are compared if they share one of their rarest words. Where all but two words are
# equal, the rarest shared word is among the three rarest of both.
_RAREST_WORDS = 3
_MAX_COMPARED = 400  # questions with such a word, the most frequent first
_SCORE_DECIMALS = 9  # so that a tie is not decided by rounding

QuestionKey = tuple[str, tuple[str, ...]]


@dataclass(frozen=True)
class QuestionGroup:
    """Questions that ask the same.

    Parameters
    ----------
    wording : str
        The most frequent wording, the first of equally frequent ones.
    members : sequence of int
        Indices of the requests, in the log's order.
    stems : sequence of str
        The stems of the wording.
    """

    wording: str
    members: tuple[int, ...]
    stems: tuple[str, ...]


def question_key(question: str) -> QuestionKey:
    """Return what two wordings of one question share: stems in any order, and their facts.

    Masks count by their kind alone.
    """
    plain = fold(unnumber_masks(question))
    fact_parts = tuple(part for parts in invariant_tokens(plain) for part in parts)
    return " ".join(sorted(stems(plain))) or plain.strip(" .,;:!?"), fact_parts


def group_questions(questions: Sequence[str]) -> list[QuestionGroup]:
    """Group questions by what they ask, the largest group first.

    Two wordings belong to one group if they have the same stems, or differ in at most a tenth of
    characters. Their numbers, signs and negations are always equal. Ties keep the order of the log.
    """
    by_key: dict[QuestionKey, list[int]] = {}
    for index, question in enumerate(questions):
        by_key.setdefault(question_key(question), []).append(index)
    groups = []
    for members in _merge_typos(by_key):
        wordings = Counter(" ".join(questions[index].split()) for index in members)
        wording = wordings.most_common(1)[0][0]
        groups.append(QuestionGroup(wording, tuple(members), stems(fold(unnumber_masks(wording)))))
    return sorted(groups, key=lambda group: (-len(group.members), group.members[0]))


def _merge_typos(by_key: dict[QuestionKey, list[int]]) -> list[list[int]]:
    """Join each key's members to the most frequent key that differs from it only by typos."""
    from rapidfuzz import fuzz, process

    keys = sorted(by_key, key=lambda key: (-len(by_key[key]), by_key[key][0]))
    frequency = Counter(word for text, _ in keys for word in set(text.split()))
    leaders: dict[QuestionKey, list[str]] = {}
    merged: dict[QuestionKey, list[int]] = {}
    for text, fact_parts in keys:
        words = sorted(set(text.split()), key=lambda word: (frequency[word], word))[:_RAREST_WORDS]
        near = [leader for word in words for leader in leaders.get((word, fact_parts), ())]
        match = process.extractOne(text, near, scorer=fuzz.ratio, score_cutoff=MIN_SIMILARITY)
        if match is not None:
            merged[match[0], fact_parts] += by_key[text, fact_parts]
            continue
        merged[text, fact_parts] = list(by_key[text, fact_parts])
        for word in words:
            compared = leaders.setdefault((word, fact_parts), [])
            if len(compared) < _MAX_COMPARED:
                compared.append(text)
    return [sorted(members) for members in merged.values()]


def tf_idf_vectors(documents: Sequence[Sequence[str]]) -> Any:
    """Return sparse unit vectors of documents, each given as its words; None without any word."""
    if not any(documents):
        return None
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        raise MissingExtraError("scikit-learn, which clusters questions,", "goldset") from None
    return TfidfVectorizer(analyzer=list, sublinear_tf=True).fit_transform(documents)


def representatives(vectors: Any, k: int, seed: int) -> list[int]:
    """Return the rows nearest to the centers of k-means clusters, the largest cluster first.

    Parameters
    ----------
    vectors : array or sparse array of shape (n, d), or None
        Rows of length 1, or 0. None: every row is alike.
    k : int
        Number of rows to return, from 1 to n.
    seed : int

    Returns
    -------
    list of int
        `k` different rows. Where fewer than `k` rows differ, the first of the others follow.
    """
    import numpy as np

    if vectors is None or k >= vectors.shape[0]:
        return list(range(k))
    try:
        from sklearn.cluster import KMeans
        from sklearn.exceptions import ConvergenceWarning
    except ImportError:
        raise MissingExtraError("scikit-learn, which clusters questions,", "goldset") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # equal rows make fewer clusters
        model = KMeans(k, n_init=4, random_state=seed).fit(vectors)
    labels = model.labels_
    distances = model.transform(vectors)[np.arange(len(labels)), labels].round(_SCORE_DECIMALS)
    sizes = Counter(labels.tolist())
    nearest: dict[int, int] = {}
    for row in np.argsort(distances, kind="stable").tolist():
        nearest.setdefault(int(labels[row]), row)
    chosen = sorted(nearest.values(), key=lambda row: (-sizes[int(labels[row])], row))
    return [*chosen, *(row for row in range(len(labels)) if row not in set(chosen))][:k]

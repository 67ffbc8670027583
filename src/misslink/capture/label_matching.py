"""Match the ids of retrieved passages to the ids that the gold set labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from misslink.capture.passages import find_id_key, id_spellings, ids_by_key, plain_id
from misslink.capture.watcher import Watcher
from misslink.errors import InputError
from misslink.io import GoldSet
from misslink.parts import LazyMapping
from misslink.text.normalization import fold
from misslink.types import Case, Passage, Reason, Trace

_TELLING_ID = 3  # characters: shorter ids are near to many
_MOST_UNKNOWN = 0.5  # of the relevant ids; those of documents that are not indexed are few


def labelled_ids(cases: Iterable[Case]) -> dict[str, str]:
    """Passage ids that decide relevance, each with the first case that labels it.

    Where a case gives evidence, its ids do not count.
    """
    ids: dict[str, str] = {}
    for case in cases:
        groups = (case.relevant, *case.relevant_any) if not case.evidence else ()
        for passage_id in (passage_id for group in groups for passage_id in group):
            ids.setdefault(passage_id, case.id)
    return ids


async def check_gold_ids(watcher: Watcher, gold: GoldSet, trace: Trace) -> bool | None:
    """Refuse relevant ids if the app's own store lacks most of them.

    Parameters
    ----------
    watcher : Watcher
        Which has watched at least one case, and so has seen the store.
    gold : GoldSet
    trace : Trace
        Of the case that was watched.

    Returns
    -------
    bool or None
        Whether the store holds every labelled id; False where it cannot tell. None: this case
        retrieved nothing, so that the store was not seen.

    Raises
    ------
    InputError
        The store lacks most ids, or no retrieved passage has the key of ``--id-key``.
    """
    if not trace.retrieved:
        return None
    _check_id_key(trace.retrieved, watcher.id_key)
    labels = labelled_ids(gold.cases)
    seen = {passage.id for passage in trace.retrieved}
    spellings = {label: id_spellings(label) for label in labels}
    stored = await watcher.fetch(seen.union(*spellings.values())) if labels else None
    if stored is None or not seen <= stored.keys():
        return False
    unknown = sorted(label for label in labels if stored.keys().isdisjoint(spellings[label]))
    key, _ = find_id_key(stored.values(), frozenset(unknown)) if unknown else (None, False)
    if key or len(unknown) > _MOST_UNKNOWN * len(labels):  # the ids are of another kind
        more = f" (and {len(unknown) - 1} more ids)" if len(unknown) > 1 else ""
        hint = (
            f"the metadata key '{key}' holds ids of the gold set: give --id-key {key}"
            if key
            else "correct the id, name the metadata key that holds ids with --id-key, or give "
            "evidence texts"
        )
        raise gold.error(
            labels[unknown[0]],
            "relevant",
            f"the app's own corpus holds no passage '{unknown[0]}'{more}; {hint}",
        )
    return not unknown


def match_labels(
    gold: GoldSet,
    traces: Mapping[str, Trace],
    corpus: Sequence[Passage] | None = None,
    *,
    id_key: str | None = None,
    verified: bool = False,
) -> tuple[Mapping[str, Trace], tuple[Passage, ...] | None, list[Reason]]:
    """Give passages the ids of the gold set, or say why level 1 cannot be measured.

    A passage whose own id is not labelled is matched by its id after Unicode normalization and
    trimming, else by the text of a passage of the corpus. If still no passage of the run has a
    labelled id, a metadata key is looked for that holds them.

    Parameters
    ----------
    gold : GoldSet
    traces : mapping of str to Trace
        By case id.
    corpus : sequence of Passage or None
        The passages of the index, where they are known.
    id_key : str or None
        The metadata key of the id, for recorded traces. Passages of a watched app have it already.
    verified : bool
        Whether the app's own store is known to hold every labelled id.

    Returns
    -------
    traces : mapping of str to Trace
        With ``unmatched`` if no passage of the run matches, unless the corpus or the store shows
        that all labelled passages were really missed.
    corpus : tuple of Passage or None
    warnings : list of Reason

    Raises
    ------
    InputError
        No passage has the key `id_key`, or the corpus holds no labelled id.
    """
    labels, warnings = labelled_ids(gold.cases), list[Reason]()
    retrieved = {p.id: p for trace in traces.values() for p in (*trace.deeper, *trace.retrieved)}
    _check_id_key(retrieved.values(), id_key)
    indexed = {passage.id: passage for passage in corpus or ()}
    everything = {**indexed, **retrieved}
    names = ids_by_key(everything.values(), id_key) if id_key else {}
    called = {names.get(name, name): name for name in everything}
    _check_spelling(gold, labels, called)
    names |= _respelled(labels, called, warnings)
    strangers = [
        passage
        for name, passage in retrieved.items()
        if names.get(name, name) not in labels and name not in indexed and passage.text
    ]
    if strangers and indexed:
        by_text = {fold(passage.text): names.get(name, name) for name, passage in indexed.items()}
        by_text |= {fold(indexed[name].text): name for name in labels.keys() & indexed.keys()}
        for passage in strangers:
            if name_by_text := by_text.get(fold(passage.text)):
                names[passage.id] = name_by_text
    matched = {names.get(name, name) for name in retrieved}
    stored = {names.get(name, name) for name in indexed}
    unmatched: Reason | None = None
    if retrieved and labels and matched.isdisjoint(labels) and not verified:
        key, is_unique = find_id_key(retrieved.values(), labels)
        if key and is_unique:
            names = ids_by_key(everything.values(), key)
            warnings.append(Reason(code="id_key_used", key=key))
        elif stored.isdisjoint(labels) and stored and not any(c.evidence for c in gold.cases):
            label = min(labels)
            problem = (
                f"the corpus holds neither passage '{label}' nor any other relevant id; its ids "
                f"are like '{min(stored)}'. Correct the ids, or give evidence texts"
            )
            raise gold.error(labels[label], "relevant", problem)
        elif stored.isdisjoint(matched):
            unmatched = Reason(
                code="ids_unmatched", passage=min(matched), label=min(labels), key=key
            )
            warnings.append(unmatched)
    if unmatched is None and not verified:
        warnings += _doubtful_labels(labels, matched, stored)
    by_id = {case.id: case for case in gold.cases if not case.evidence}
    typos = _misspelled(labels, {*matched, *stored})
    if typos:
        label = min(typos)
        warnings.append(
            Reason(code="labels_misspelled", n=len(typos), label=label, passage=typos[label])
        )

    def unlocated(case_id: str) -> Reason | None:
        listed = labelled_ids([by_id[case_id]] if case_id in by_id else [])
        label = min(listed.keys() & typos.keys(), default=None)
        if label is not None:
            return Reason(code="label_misspelled", label=label, passage=typos[label])
        return unmatched if listed else None

    renamed_traces = LazyMapping(
        {name: name for name in traces},
        lambda name: _rename(traces[name], names, indexed, unlocated(name)),
    )
    named = {names.get(passage.id, passage.id): passage for passage in corpus or ()}
    renamed = tuple(p.model_copy(update={"id": name}) for name, p in named.items())
    return renamed_traces, None if corpus is None else renamed, warnings


_FEW_LABELS, _LOW_SHARE = 10, 0.1


def _doubtful_labels(
    labels: Mapping[str, str], matched: set[str], stored: Collection[str]
) -> Iterator[Reason]:
    """Labels that may be wrong although others match: they count as missed passages."""
    absent = sorted(label for label in labels if label not in matched and label not in stored)
    if not absent or len(absent) == len(labels):
        return
    if stored:
        yield Reason(code="labels_not_in_corpus", n=len(absent), of=len(labels), label=absent[0])
    elif len(labels) >= _FEW_LABELS and len(labels) - len(absent) < _LOW_SHARE * len(labels):
        n = len(labels) - len(absent)
        seen = min(matched - labels.keys(), default=min(matched))
        yield Reason(code="few_labels_match", n=n, of=len(labels), label=absent[0], passage=seen)


def _misspelled(labels: Collection[str], known: Collection[str]) -> dict[str, str]:
    """Labels that no passage has, each with the one unlabelled passage that it differs from in a letter.

    Digits are never a typo: "doc-12" is not "doc-13".
    """
    absent = [label for label in labels if label not in known]
    if not absent:
        return {}
    near: dict[str, set[str]] = {}
    for name in known:
        if name not in labels:
            for form in _lacking_a_letter(name):
                near.setdefault(form, set()).add(name)
    meant = {
        label: {name for form in _lacking_a_letter(label) for name in near.get(form, ())}
        for label in absent
    }
    return {
        label: next(iter(names))
        for label, names in meant.items()
        if len(names) == 1 and _digits(label) == _digits(next(iter(names)))
    }


def _lacking_a_letter(name: str) -> set[str]:
    """An id, and all that it is without one of its letters; of a short one nothing."""
    if len(name) < _TELLING_ID:
        return set()
    return {name, *(name[:at] + name[at + 1 :] for at, each in enumerate(name) if each.isalpha())}


def _digits(name: str) -> str:
    return "".join(filter(str.isdigit, name))


def _check_id_key(passages: Collection[Passage], key: str | None) -> None:
    """Refuse a metadata key that no passage has."""
    known = {name for passage in passages for name in passage.metadata}
    if key is not None and key not in known and passages:
        has = f"its keys are {', '.join(sorted(known))}" if known else "no passage has metadata"
        raise InputError(f"--id-key is '{key}', and no retrieved passage has it: {has}")


def _check_spelling(gold: GoldSet, labels: Mapping[str, str], passages: Collection[str]) -> None:
    """Refuse two labels that look alike, unless both are ids of passages: one would be a miss."""
    spelled: dict[str, str] = {}
    for label in labels:
        other = spelled.setdefault(plain_id(label), label)
        if other != label and not (other in passages and label in passages):
            raise gold.error(
                labels[label],
                "relevant",
                f"{label!r} and {other!r} of case '{labels[other]}' differ only in invisible "
                "characters, './', or blanks at their ends. Write the id alike",
            )


def _respelled(
    labels: Iterable[str], passages: Mapping[str, str], warnings: list[Reason]
) -> dict[str, str]:
    """Names of passages that equal a label but for `plain_id` and the case of letters."""
    spelled: dict[str, str | None] = {}
    for label in labels:
        # Of two labels that differ only in this, neither is meant.
        key = plain_id(label).casefold()
        spelled[key] = None if key in spelled else label
    names: dict[str, str] = {}
    for name in sorted(passages.keys() - set(labels)):
        meant = spelled.get(plain_id(name).casefold())
        if meant is not None and meant not in passages:
            names[passages[name]] = meant
    if names:
        warnings.append(Reason(code="ids_respelled", n=len(names), label=min(names.values())))
    return names


def _rename(
    trace: Trace, names: Mapping[str, str], indexed: Mapping[str, Passage], unmatched: Reason | None
) -> Trace:
    """Give passages their new ids, unless another of the trace has it, and texts that they lack."""
    new = {passage.id: passage.id for passage in (*trace.retrieved, *trace.deeper)}
    for name in [name for name in new if name in names]:
        if names[name] not in new.values():
            new[name] = names[name]

    def passages(ranked: Iterable[Passage]) -> tuple[Passage, ...]:
        return tuple(
            passage.model_copy(update={"id": new[passage.id], "text": text(passage)})
            for passage in ranked
        )

    def text(passage: Passage) -> str:
        known = passage if passage.text.strip() else indexed.get(passage.id, passage)
        return known.text

    def ids(named: Iterable[str]) -> tuple[str, ...]:
        return tuple(new.get(name, name) for name in named)

    calls = (c.model_copy(update={"passages": ids(c.passages)}) for c in trace.calls)
    changes = {
        "retrieved": passages(trace.retrieved),
        "deeper": passages(trace.deeper),
        "prompted": None if trace.prompted is None else ids(trace.prompted),
        "graded": ids(trace.graded),
        "shown": {new.get(name, name): part for name, part in trace.shown.items()},
        "deeper_calls": {new.get(name, name): n for name, n in trace.deeper_calls.items()},
        "calls": tuple(calls),
    }
    is_same = all(name == own for own, name in new.items()) and all(
        passage.text.strip() for passage in (*trace.retrieved, *trace.deeper)
    )
    return trace.model_copy(update={**({} if is_same else changes), "unmatched": unmatched})

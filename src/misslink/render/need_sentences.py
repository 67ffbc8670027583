"""The sentences about one needed fact: where it was lost, and how that is known."""

from __future__ import annotations

from misslink.types import Need, Trace

# In the order of the pipeline, with who owns what is lost there.
STAGE_OWNERS = {
    "index": "index",
    "search": "prompt",
    "filter": "retriever",
    "rank": "retriever",
    "prompt": "prompt",
    "answer": "generator",
    "data": "gold_set",
    "unknown": "unknown",
}
STAGES = tuple(STAGE_OWNERS)[:6]  # where a fact can be lost on its way from the index to the answer
ARRIVED = "arrived"
_SOURCES = {"reference": "from the reference", "label": "labelled evidence", "question": "question"}
_BY = {"judge": "by the judge", "matcher": "by comparing words", "label": "by the labels"}
_IN_ANSWER = {
    "contradicts": "the prompt has it, and the answer says otherwise",
    "omits": "the prompt has it, and the answer leaves it out",
}


def describe_source(need: Need) -> str:
    """Return where a need comes from and who located it.

    >>> describe_source(Need(text="It is 3.", source="reference", by="label"))
    'from the reference; located by the labels'
    """
    located = f"; located {_BY[need.by]}" if need.by else ""
    return f"{_SOURCES[need.source]}{located}"


def describe_need(need: Need, trace: Trace | None, k: int) -> tuple[str, str]:
    """Return what happened to a need and how that is known.

    >>> describe_need(Need(text="", source="label", lost_at="rank", true_rank=5), None, 3)
    ('Lost at rank', 'rank 5, cutoff 3')
    """
    stage = need.lost_at
    if stage is None:
        rank = _prompt_rank(need, trace)
        where = f"rank {rank}, in the prompt" if rank else "it was in the prompt"
        return "Arrived", f"{where}, and the answer states it"
    if stage == "unknown":
        return "Not located", "nothing shows where it is, so no stage is blamed"
    rival = _prompt_rank(need, trace)
    how = {
        "index": f"the text that the index holds, at rank {rival:,}, does not say it"
        if rival
        else "it was not found in the listed index",
        "search": "no search asked for it, or the query lost what it needs",
        "filter": "within the cutoff by the store's own ranking, not returned",
        "rank": f"rank {need.true_rank:,}, cutoff {k:,}"
        if need.true_rank
        else "the search did not rank it high enough to be returned",
        "prompt": _lost_in_prompt(need, trace),
        "answer": _IN_ANSWER.get(
            need.stated or "", "the prompt has it, and the answer does not state it"
        ),
        "data": f"the passage at rank {rival:,} disagrees with the reference"
        if rival
        else "the shown passage and the reference disagree",
    }[stage]
    also = "; the answer states it all the same" if need.stated == "states" else ""
    return f"Lost at {stage}", how + also


def _prompt_rank(need: Need, trace: Trace | None) -> int | None:
    ranks = (p.rank for p in (trace.retrieved if trace else ()) if p.id == need.passage_id)
    return next(ranks, None)


def _lost_in_prompt(need: Need, trace: Trace | None) -> str:
    rank = _prompt_rank(need, trace)
    found = f"retrieved at rank {rank:,}" if rank else "retrieved"
    if trace is not None and need.passage_id in trace.shown:
        return f"{found}, then cut or altered in the prompt"
    return f"{found}, and not in the prompt"

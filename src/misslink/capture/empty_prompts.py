"""Find the cases whose answer no model wrote, by what the run shows of the app's model elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from misslink.matching import declines
from misslink.parts import LazyMapping
from misslink.text.normalization import fold
from misslink.text.prompt_matching import ModelCall, match_prompts
from misslink.types import Trace

PROMPT_UNSEEN = "so misslink takes the first k passages as the prompt"
_NO_MODEL_ANSWERED = "no model call gave this answer, so no passage was in a prompt"


def settle_prompts(traces: Mapping[str, Trace]) -> Mapping[str, Trace]:
    """Return the traces; of an answer that the app gave without its model the prompt was empty.

    Where the run shows the model that answers other cases, that is an answer to a case without any
    model call, or a refusal that no call gave and that several cases have. Where no model is seen
    to answer, and all answers are one such refusal or copied from passages, no model is at work:
    what the answers themselves hold was shown.
    """
    by_app = {name: trace for name, trace in traces.items() if _is_fixed_reply(trace)}
    replies = Counter(fold(trace.answer or "") for trace in by_app.values())
    fixed = {reply for reply, count in replies.items() if count > 1 and declines(reply)}
    if any(trace.prompt is not None for trace in traces.values()):
        settled = {
            name
            for name, trace in by_app.items()
            if not trace.model_calls or fold(trace.answer or "") in fixed
        }
    else:
        answered = [trace for trace in traces.values() if trace.answer is not None]
        composed = {fold(trace.answer or "") for trace in answered if not _is_copied(trace)}
        without_model = composed == fixed and len(fixed) == 1 and len(by_app) == len(answered)
        settled = {*by_app} if without_model else set()
    return LazyMapping(
        {name: name for name in traces},
        lambda name: _show_answer(traces[name]) if name in settled else traces[name],
    )


def _is_fixed_reply(trace: Trace) -> bool:
    """Whether no model call that was seen gave the answer, after a search that was."""
    is_watched = trace.model_calls is not None and bool(trace.calls)
    return is_watched and trace.answer is not None and trace.prompt is None


def _is_copied(trace: Trace) -> bool:
    answer = fold(trace.answer or "")
    return any(answer in text or text in answer for text in (fold(p.text) for p in trace.retrieved))


def _show_answer(trace: Trace) -> Trace:
    """The trace, with only those parts of the passages as shown that are in the answer."""
    reply = trace.answer or ""
    match = match_prompts(trace.retrieved, [ModelCall(reply, reply)], reply)
    fields = match.trace_fields(trace.retrieved)
    graded = tuple(dict.fromkeys((*trace.graded, *(trace.prompted or ()))))
    notes = tuple(note for note in trace.notes if not note.endswith(PROMPT_UNSEEN))
    return trace.model_copy(
        update={**fields, "prompt": "", "graded": graded, "notes": (*notes, _NO_MODEL_ANSWERED)}
    )

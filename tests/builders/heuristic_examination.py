"""What the heuristic judge says of a small case, for the tests beside this file."""

import asyncio

from misslink.judge.backends.heuristic import open_heuristic
from misslink.judge.examination import examine
from misslink.matching import load_fit

TOWER = "The Eiffel Tower is 330 metres tall. It was completed in 1889 by Gustave Eiffel's company."
BREAD = "Paris is the capital of France. Bread is not sold on Sundays."
PASSAGES = (TOWER, BREAD)
QUESTION = "How tall is the Eiffel Tower?"
CUT = load_fit().cut


def examined(answer, question=QUESTION, passages=PASSAGES, references=()):
    return asyncio.run(
        open_heuristic().ask(examine(question, tuple(passages), answer, tuple(references)))
    )


def only_claim(answer, **options):
    reply = examined(answer, **options)
    (claim,) = reply.parsed.claims
    return claim, reply.chance("claims.0.support", "supported")

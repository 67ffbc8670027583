"""Whether UMAP and MiniLM are installed must decide no test: where a test does not name them, none is used.

Each process would take 12 s to compile the one and 5 s to load the other.
"""

import math
from importlib import import_module

ABSENT = {
    "misslink.linking.embedding_map._UMAP_MIN_POINTS": math.inf,
    "misslink.goldset.generation.corpus.MINILM_PACKAGES": ("not_installed",),
}


def leave_out(put=setattr):
    """Leave both out in this process; `put` sets an attribute of a module."""
    for place, value in ABSENT.items():
        module, _, name = place.rpartition(".")
        put(import_module(module), name, value)

"""What a text says about a claim: quotes, coverage, support and references, by rules and fits."""

from __future__ import annotations

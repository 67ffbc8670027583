"""Ask a judge through its provider's batch API, which is cheaper and slower."""

from __future__ import annotations

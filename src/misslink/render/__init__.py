"""Turn numbers and reason codes into text for terminal, markdown and HTML."""

from __future__ import annotations

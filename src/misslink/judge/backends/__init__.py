"""Judges that call language models."""

from __future__ import annotations

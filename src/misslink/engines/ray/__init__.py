"""Run the app and the judge's calls on Ray workers; cache, limits and results stay in this process."""

from __future__ import annotations

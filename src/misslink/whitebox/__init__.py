"""What a model looks at while it answers, for models whose weights lie on this machine."""

from __future__ import annotations

from misslink.whitebox.attention import context_attention, even_attention
from misslink.whitebox.weights import Attended, attend, load

__all__ = ["Attended", "attend", "context_attention", "even_attention", "load"]

"""Label a run's answers in the browser."""

from __future__ import annotations

from misslink.annotation.label_writer import export_labels
from misslink.annotation.session import AnnotationSession

__all__ = ["AnnotationSession", "export_labels"]

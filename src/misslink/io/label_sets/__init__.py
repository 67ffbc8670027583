"""Importers of published label sets.

Each set is one module with one `@importers.register` line. Other packages add sets through the
entry-point group `misslink.importers`.
"""

from __future__ import annotations

from misslink.io.label_sets.importer import ImportedLabelSet, ImportOptions, write_label_set

__all__ = ["ImportOptions", "ImportedLabelSet", "write_label_set"]

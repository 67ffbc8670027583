"""Import and export gold sets of other tools.

A format is one file with one ``@formats.register`` line, here or in another package (entry point
``misslink.goldset_formats``).
"""

from __future__ import annotations

from misslink.goldset.formats.base import (
    FormatOptions,
    GoldSetFormat,
    ImportedGoldSet,
    detect_format,
    export_goldset,
    formats,
    import_goldset,
)

__all__ = [
    "FormatOptions",
    "GoldSetFormat",
    "ImportedGoldSet",
    "detect_format",
    "export_goldset",
    "formats",
    "import_goldset",
]

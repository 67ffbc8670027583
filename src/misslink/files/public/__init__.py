"""Label sets that people published, made gold sets, traces, verdicts and labels of misslink's.

One file a set, with one ``@importers.register`` line; another package adds one by the entry-point
group ``misslink.importers``.
"""

from misslink.files.public.imported import Imported, Importer, Wanted
from misslink.files.public.writing import write_imported

__all__ = ["Imported", "Importer", "Wanted", "write_imported"]

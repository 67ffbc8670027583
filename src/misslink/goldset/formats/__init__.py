"""Gold sets of other tools, brought and taken out.

A format is one file with one ``@formats.register`` line, here or in a package of one's own (entry
point ``misslink.goldset_formats``).
"""

from misslink.goldset.formats.bringing import bring, guess, take_out
from misslink.goldset.formats.format import Brought, Format, Options, formats

__all__ = ["Brought", "Format", "Options", "bring", "formats", "guess", "take_out"]

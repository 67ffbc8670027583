"""How the problem of a reply begins that ended otherwise than by its own words.

Whoever reads a server's reply writes these, and who decides whether to ask again looks for them;
a judge of your own may use them too.
"""

from __future__ import annotations

__all__ = ["CUT_OFF", "DECLINED", "WITHHELD"]

CUT_OFF = "the reply was cut off"
DECLINED = "the judge declined to answer"
WITHHELD = "the judge's provider withheld the reply"

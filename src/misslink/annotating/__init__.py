"""People's labels of a run: which answers to ask about, in what order, and the page that asks."""

from misslink.annotating.desk import Desk
from misslink.annotating.exporting import export

__all__ = ["Desk", "export"]

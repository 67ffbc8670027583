"""People's labels of a run or a pool: what to ask about, in what order, and the page that asks."""

from misslink.annotating.desk import Desk
from misslink.annotating.exporting import export
from misslink.annotating.pooled import PoolDesk

__all__ = ["Desk", "PoolDesk", "export"]

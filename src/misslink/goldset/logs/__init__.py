"""Gold sets from the logs of a live app."""

from misslink.goldset.logs.choosing import Shares
from misslink.goldset.logs.columns import own_columns
from misslink.goldset.logs.masking import Masker, own_patterns, read_names
from misslink.goldset.logs.picking import Picked, pick
from misslink.goldset.logs.reading import read_logs
from misslink.goldset.logs.request import Log, Request

__all__ = [
    "Log",
    "Masker",
    "Picked",
    "Request",
    "Shares",
    "own_columns",
    "own_patterns",
    "pick",
    "read_logs",
    "read_names",
]

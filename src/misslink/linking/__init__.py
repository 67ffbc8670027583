"""Why a case failed, and how often it goes with a retrieval miss."""

from misslink.linking.link import link_case
from misslink.linking.risk import summarise

__all__ = ["link_case", "summarise"]

"""Replay: the app generates again from other passages, and is judged again."""

from misslink.linking.replay.replaying import Replayed, replay
from misslink.linking.replay.rerun import JUDGED_BY, Rerunner, rerunner
from misslink.linking.replay.terms import identity_of_run

__all__ = ["JUDGED_BY", "Replayed", "Rerunner", "identity_of_run", "replay", "rerunner"]

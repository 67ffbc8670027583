"""Replay: the app generates again from other passages, and is judged again."""

from misslink.linking.replay.replaying import Replayed, replay
from misslink.linking.replay.rerun import Rerunner, rerunner

__all__ = ["Replayed", "Rerunner", "replay", "rerunner"]

"""What one variant does to an input no other one sees."""

from __future__ import annotations

from misslink.live.answering import copy_containers


def test_containers_are_copied_at_every_depth_and_what_they_hold_is_shared():
    message = object()
    asked = {"messages": [message], "more": {"deep": [[message]]}}
    own = copy_containers(asked)
    own["messages"].append(1)
    own["more"]["deep"][0].clear()
    assert asked == {"messages": [message], "more": {"deep": [[message]]}}
    assert own["messages"][0] is message
    assert copy_containers("text") == "text"

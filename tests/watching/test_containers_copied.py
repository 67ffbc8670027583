"""What one variant does to an input no other one sees."""

from __future__ import annotations

from misslink.watching.live.copying import containers_copied


def test_containers_are_copied_at_every_depth_and_what_they_hold_is_shared():
    message = object()
    asked = {"messages": [message], "more": {"deep": [[message]]}}
    own = containers_copied(asked)
    own["messages"].append(1)
    own["more"]["deep"][0].clear()
    assert asked == {"messages": [message], "more": {"deep": [[message]]}}
    assert own["messages"][0] is message
    assert containers_copied("text") == "text"

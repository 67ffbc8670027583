"""Methods are put back whatever happens while they are wrapped."""

import pytest

from misslink.capture.vectorstore_hooks import MethodPatch


class Root:
    def find(self):
        return "found"


class Other(Root):
    def find(self):
        return "other"


def test_what_was_wrapped_before_wrapping_failed_is_put_back():
    mine, theirs = vars(Root)["find"], vars(Other)["find"]

    def wrap(original, name):
        if original is theirs:
            raise RuntimeError(name)
        return lambda _: "wrapped"

    wrapping = MethodPatch(Root, ("find",), wrap)
    with pytest.raises(RuntimeError, match="find"), wrapping.in_place():
        pytest.fail("nothing is wrapped")
    assert vars(Root)["find"] is mine
    assert vars(Other)["find"] is theirs

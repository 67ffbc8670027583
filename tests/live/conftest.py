"""What the tests of live traffic share."""

import pytest

from live_apps import Hangs


@pytest.fixture
def path(tmp_path):
    """The place of a live log that is not there yet."""
    return tmp_path / "deep" / "live.sqlite"


@pytest.fixture
def hangs():
    one = Hangs()
    yield one
    one.let_go.set()

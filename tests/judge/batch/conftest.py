import pytest

from batch_server import BatchServer


@pytest.fixture
def server():
    """A running judge server with a batch service."""
    with BatchServer() as running:
        yield running

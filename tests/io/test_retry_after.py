from __future__ import annotations

import pytest

from misslink.io.retry_after import retry_after_seconds

NOON = "Sun, 01 Mar 2026 12:00:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 GMT", "date": NOON}, 30.0),
        ({"retry-after": "Sun, 01 Mar 2026 11:00:00 GMT", "date": NOON}, 0.0),
        ({"retry-after": NOON}, 0.0),  # long ago, by our own clock
        ({"retry-after": "Sun, 01 Mar 2026 12:00:30 -0000", "date": NOON}, 30.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
    ],
)
def test_how_long_a_server_asks_to_wait(headers, seconds):
    assert retry_after_seconds(headers) == seconds

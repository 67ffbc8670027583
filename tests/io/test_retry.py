import random

import pytest

from misslink.io.retry import Backoff, retry_after_seconds

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


def test_waits_grow_up_to_a_limit():
    backoff = Backoff(first_s=1, longest_s=10, factor=1.5)

    assert [backoff.wait_s(tries) for tries in (1, 2, 3, 6, 10_000)] == [1, 1.5, 2.25, 7.59375, 10]


def test_jitter_draws_from_the_whole_wait():
    backoff, jitter = Backoff(first_s=1, longest_s=4), random.Random(0)

    waits = [backoff.wait_s(3, jitter) for _ in range(1000)]

    assert 0 <= min(waits) < 0.1
    assert 3.9 < max(waits) <= 4

"""Pool passages of several retrievers and a random sample for annotators to grade."""

from __future__ import annotations

from misslink.goldset.pooling.pool import (
    GradingPool,
    PoolItem,
    is_pool,
    make_pool,
    read_pool,
    write_pool,
)

__all__ = ["GradingPool", "PoolItem", "is_pool", "make_pool", "read_pool", "write_pool"]

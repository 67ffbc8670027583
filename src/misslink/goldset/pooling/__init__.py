"""A pool of what several retrievers bring and a sample of the rest, to be graded by people."""

from misslink.goldset.pooling.folder import Pool, PoolItem, is_pool, read_pool, write_pool
from misslink.goldset.pooling.pooling import make_pool

__all__ = ["Pool", "PoolItem", "is_pool", "make_pool", "read_pool", "write_pool"]

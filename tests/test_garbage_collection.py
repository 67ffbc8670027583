import gc

from misslink.garbage_collection import reduced_gc


def test_thresholds_of_the_garbage_collector_are_restored_after_overlapping_runs():
    before = gc.get_threshold()
    first, second = reduced_gc(), reduced_gc()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold()[0] >= 50_000
    second.__exit__(None, None, None)
    assert gc.get_threshold() == before

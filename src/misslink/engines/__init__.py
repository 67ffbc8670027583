"""Who carries the work of a stage: one event loop here, a cluster elsewhere."""

"""The line's work on a Ray cluster: the app and the judge's calls on workers, all else here.

The straight line, its ledger, throttle, budget and circuit stay in this process, which is Ray's
driver, and are those of the local engine. So limits hold for the whole cluster, a reply is in the
ledger before it is used whatever becomes of a worker, and results are the local engine's.
"""

"""Measurements that print ratios of one run; kept, with machine and date, in docs/performance.md.

``make bench`` runs them all, ``python -m benchmarks reclock_batch`` one of them.
"""

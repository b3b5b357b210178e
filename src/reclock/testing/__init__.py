"""The test kit, shipped with reclock and used by its own tests.

A manual clock (``reclock.ManualClock``), a scripted source with crash markers, in-memory
stores, failpoints, conformance suites for every protocol, and hypothesis strategies
(extra ``testing``). Nothing here needs Spark.
"""

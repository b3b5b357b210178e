"""The running state: worlds, ticks, the background loop; one owner, one lock.

``write_log``, ``arrangements`` and ``timeline`` are what one timeline keeps: frozen values whose
changes are appends to the durable store. ``world`` is all of it at one moment; ``core`` owns it,
and replaces it whole after one durable append, or not at all. ``tick``, ``catalog_change`` and
``write`` are the three ways to make such an append; ``read`` answers from a world without
stopping them. ``history``, ``merging`` and ``expirations`` keep what is stored small.

``engine`` is the seam to what computes, Spark or a model in tests; ``parts`` is the seam to
``ingest`` and ``export``, which are above and run in threads of their own.

Tests: tests/engine.
"""

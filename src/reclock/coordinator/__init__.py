"""Layer 7: catalog, statements, sessions, ticks; the only owner of threads.

``item`` and ``catalog`` say which objects exist. ``wal``, ``arrangements`` and ``timeline``
are what one timeline keeps: frozen values whose changes are appends to the durable store.
``world`` is all of it at one moment; ``core`` owns it, and replaces it whole after one
durable append, or not at all. ``tick``, ``change`` and ``write`` are the three ways to make
such an append; ``read`` answers from a world without stopping them. ``sequence`` has one
file per statement, ``database`` is what users hold.

``engine`` is the seam to Spark: everything else here runs and is tested without it.
"""

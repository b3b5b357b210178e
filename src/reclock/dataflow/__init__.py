"""Layer 6: from the changes of inputs to the changes of views, one tick at a time.

``delta`` is what flows between steps, ``keying`` how it is laid out by a key, ``trace`` the
state a step may look into, ``grouping`` how equal keys are brought together. ``operators``
holds the incremental rules, one file each, as pure functions on Arrow: deltas and traces
in, deltas out. They run on the driver and inside Spark tasks alike and import no Spark.
"""

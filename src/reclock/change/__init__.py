"""Layer 2: collections that change, in plain Python: the model everything else is tested on.

A collection is a set of updates ``(data, time, diff)``; its contents at t are the sums of
the diffs at times ≤ t. Start with ``value`` (when are two rows the same row?), then
``update`` and ``consolidate``. ``model`` holds the relational operators, each written as
the batch computation it must agree with at every time; ``cdcv2`` carries collections over
transports that duplicate and reorder.

Nothing here is fast on purpose, and nothing here does input or output.
"""

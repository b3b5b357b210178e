"""Layer 2: collections that change, as values.

A collection is a set of updates ``(data, time, diff)``; its contents at t are the sums of
the diffs at times ≤ t. Start with ``value`` (when are two rows the same row?), then
``update``; ``transactions`` says which updates belong together, ``cdcv2`` carries collections over
transports that duplicate and reorder. Nothing here does input or output.

The relational operators in plain Python, which all others must agree with at every time, are in
tests/support/model.
"""

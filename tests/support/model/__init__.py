"""The relational operators, written as the answers they must agree with (P3).

Principle. A batch operator is a pure function from the contents of its inputs at one time
to the contents of its output. ``incremental.incrementalise`` makes of it a function on
changing collections, by computing the batch answer from scratch at every time and taking
differences. It is slow and obviously right; the fast operators are tested against it::

    out[t] = operator(in₁[t], in₂[t], …)        for every t

Linear operators (``linear``) work on the updates themselves, because the sum of the images
is the image of the sum. ``temporal`` and ``upsert`` look at times and offsets, so they are
functions of updates too, each with its batch reading in its header.

Negative counts. Contents may hold a row a negative number of times, in the middle of a
plan (a − b) or because a source retracts what it never said. Rules, by what is sound:

    linear operators, inner join             exact: they are linear in every input
    threshold, distinct, EXCEPT, INTERSECT   clamped: such a row counts as absent
    reduce, top-k, the looked-up side of     ``NegativeCount``: there is no multiset of
    semi, anti and outer joins               which the answer would be an answer

Checked against SQLite at every time: tests/change/test_model_sql.py; linearity and the
incremental rules: tests/change/test_model.py.
"""

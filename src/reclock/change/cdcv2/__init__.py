"""CDCv2: a changing collection as messages that may be duplicated, reordered, re-sent.

Every message is an irrevocable statement about the consolidated collection:

    Updates(array)                    these (data, time, diff) are in the collection
    Progress(lower, upper, counts)    for each time in [lower, upper) there are exactly
                                      as many of them as counts says, none if it says none

A consolidated collection has each (data, time) once, so an update that comes twice is the
same statement twice. A time is *closed* when statements of progress cover every time up to
and including it, and all its counted updates are here; nothing about it can change then,
and everything about it may be forgotten. No order, no transactions and no deduplication
is asked of the transport, only that each statement arrives at least once.

``message`` holds the values, ``coverage`` what is stated of which times. Times are totally ordered
``Timestamp``s. ``connectors.cdcv2`` reads the JSON of statements, ``sinks.encode.cdcv2`` writes it;
tests compare both with a codec and a reader in plain Python (tests/support/model/cdcv2_reader.py).
"""

"""SUBSCRIBE: following how a table, a view or a query changes.

Definition. A subscription as of a gives, in the order of their times, all updates of what it
follows::

    the snapshot            every row at a, with its multiplicity, at time a
    the changes             every update (row, t, diff) with t > a, consolidated per t

``SNAPSHOT = false`` leaves the first line out; ``UP TO u`` ends before time u. A time is given
whole, and only when it is complete. A *progress* row p (``PROGRESS``) says: everything at
times ≤ p has been given. The first one is a itself, after the snapshot; then one follows
whenever time moves. So for every progress row p

    what was given so far, added up   =   SELECT … AS OF p
    SUBSCRIBE … WITH (SNAPSHOT = false) AS OF p   goes on with neither gap nor repeat.

Parts: ``target`` (what a statement follows), ``changes`` (reading it from the runs), ``envelope``
(changes by key), ``past`` (a query as of a time before it was followed), ``subscription`` (the
handle that users have), ``subscribers`` (all of them: who is woken when, and the views that are
kept for subscribed queries).

Nothing here runs inside a tick: a subscriber reads the runs that ticks have published, in
bounded steps, at its own pace, and a hold keeps them until it has.

Tests: tests/subscribe/test_subscribe.py, test_subscribe_properties.py.
"""

"""Remove the segments that nothing names any more.

A segment is *named* by a manifest, or by a reader that opened a shard and is not done. It
is *in flight* when a task may still write it and its manifest is not published. Everything
else is garbage: merged away, dropped, or left by a crash.

Why nothing named is removed. The files are listed first, then the stems in flight are
asked for, then the names. A file on the list that gets published meanwhile was in flight
when listed; either its stem is still in flight when asked, or it left because its manifest
was published, and then it is among the names, which are asked for last. This needs of the
caller: a stem is put in flight before anything is written under it, and taken out after
its manifest is published, or when nothing will ever be written under it again.

Half-written files of crashed tasks carry their stem too, and go by the same rule.

Tests: tests/arrangement/test_gc.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.arrangement.segment import stem_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from reclock.arrangement.store import Store


def collect(
    store: Store,
    in_flight: Callable[[], Collection[str]],
    named: Callable[[], Collection[str]],
) -> list[str]:
    """Remove all garbage from ``store`` and return the names removed.

    ``in_flight`` gives stems, ``named`` gives names of segments; both are asked once, in
    this order, after the store was listed.
    """
    present = store.names()
    busy = set(in_flight())
    kept = set(named())
    removed = [name for name in present if name not in kept and stem_of(name) not in busy]
    for name in removed:
        store.remove(name)
    return removed

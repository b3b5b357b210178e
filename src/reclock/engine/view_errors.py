"""The errors that a view holds in the place of rows, at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from reclock.arrangement.layout import diff_of
from reclock.dataflow.graph import errors_of

if TYPE_CHECKING:
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.time.timestamp import Timestamp


def view_errors(state: TimelineState, view: ObjectId, as_of: Timestamp) -> Counter[tuple[str, str]]:
    """Return the errors that a view holds at a time, and how many rows have each."""
    arrangement = state.shape.graph.arrangements[errors_of(view)]
    found: Counter[tuple[str, str]] = Counter()
    for batch in state.traces[arrangement.id].snapshot(as_of):
        codes, messages = (c.to_pylist() for c in arrangement.keying.columns(batch))
        for code, message, diff in zip(codes, messages, diff_of(batch).tolist(), strict=True):
            found[code, message] += diff
    return +found

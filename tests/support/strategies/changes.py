"""Rows, updates and ticks as changing collections have them at their worst.

Few distinct rows and times, so that diffs meet and cancel; NULLs and repeated rows; values
on which Python and SQL disagree (NaN, −0.0, nested ones); ticks with no update and ticks
with many times.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from hypothesis import strategies as st

from reclock.change.update import Update
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.change.value import Row

Log = list[Update[Any, Timestamp]]

LAST = 9
"""The last time that ``times`` draws."""

ALL_TIMES = tuple(Timestamp(t) for t in range(LAST + 2))
"""Every time that ``times`` draws, and one after: where to compare contents."""

times = st.integers(0, LAST).map(Timestamp)
"""Few times, so that updates share them."""

diffs = st.sampled_from([-2, -1, -1, 1, 1, 2])
"""As many retractions as insertions, so that sums are often zero."""

small_ints = st.integers(0, 3) | st.none()
"""A column of few integers and NULL: keys that meet."""

small_texts = st.sampled_from(["", "a", "b"]) | st.none()
"""A column of few texts and NULL."""

scalars = st.one_of(
    small_ints,
    small_texts,
    st.sampled_from([0.0, -0.0, 0.1, float("inf"), float("nan"), -float("nan")]),
    st.sampled_from([Decimal("1.10"), Decimal("1.1"), Decimal("NaN"), Decimal("-0")]),
    st.sampled_from([b"", b"\x00", bytearray(b"\x00")]),
    st.sampled_from(
        [
            datetime(2020, 1, 1),  # noqa: DTZ001 - SQL's timestamp without time zone
            datetime(2020, 1, 1, tzinfo=UTC),
            datetime(2020, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))),
        ]
    ),
)
"""One value of any SQL type, those included whose equality Python sees otherwise."""

values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2)
    ),
    max_leaves=4,
)
"""Scalars, and arrays and structs of them."""

json_objects = st.dictionaries(
    st.sampled_from(["id", "name", "tags"]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(0, 1)
        | st.text(max_size=2)
        | st.decimals(0, 1, places=1),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=1), inner),
        max_leaves=3,
    ),
    max_size=2,
)
"""Data of a CDCv2 message: what JSON can hold, ``true`` beside ``1``."""


def rows(*columns: st.SearchStrategy[Any]) -> st.SearchStrategy[Row]:
    """Return rows with these columns; by default an integer and a text, both with NULLs."""
    return st.tuples(*(columns or (small_ints, small_texts)))


@st.composite
def update_logs(
    draw: st.DrawFn, data: st.SearchStrategy[Any] | None = None, max_size: int = 12
) -> Log:
    """Draw updates in any order whose sums may be negative, and often are zero.

    Some are said twice, some are taken back at their own time, some at another one.
    """
    updates = st.builds(Update, rows() if data is None else data, times, diffs)
    log = draw(st.lists(updates, max_size=max_size))
    if log:
        for again in draw(st.lists(st.sampled_from(log), max_size=max_size // 3)):
            time = draw(st.just(again.time) | times)
            log.append(again._replace(time=time, diff=draw(st.sampled_from([-1, 1])) * again.diff))
    return draw(st.permutations(log))


@st.composite
def multiset_logs(
    draw: st.DrawFn, data: st.SearchStrategy[Any] | None = None, max_size: int = 12
) -> Log:
    """Draw updates that accumulate to no negative count at any time, in any order.

    Every retraction takes back an insertion drawn before it, at its time or later.
    """
    log: Log = []
    for inserted in draw(st.lists(rows() if data is None else data, max_size=max_size)):
        start, end = sorted(draw(st.tuples(times, times)))
        count = draw(st.integers(1, 2))
        log.append(Update(inserted, start, count))
        if draw(st.booleans()):
            log.append(Update(inserted, end, -count))
    return draw(st.permutations(log))


class Tick(NamedTuple):
    """The updates of one step of time, ``[lower, upper)``."""

    lower: Antichain[Timestamp]
    upper: Antichain[Timestamp]
    updates: Log


@st.composite
def ticks(draw: st.DrawFn, log: st.SearchStrategy[Log] | None = None) -> list[Tick]:
    """Draw a log cut into consecutive ticks from time 0: some empty, some of many times.

    The last tick ends after the last time, or closes the collection.
    """
    updates = draw(update_logs() if log is None else log)
    cuts = sorted(draw(st.sets(st.integers(1, LAST))))
    bounds = [Antichain.of(Timestamp(t)) for t in (0, *cuts)]
    bounds.append(draw(st.sampled_from([Antichain.of(Timestamp(LAST + 1)), Antichain()])))
    return [
        Tick(
            lower,
            upper,
            [u for u in updates if lower.less_equal(u.time) and not upper.less_equal(u.time)],
        )
        for lower, upper in pairwise(bounds)
    ]

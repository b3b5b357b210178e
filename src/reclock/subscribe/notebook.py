"""A subscription in a notebook: the rows that are there, as a table that changes by itself.

``Shown`` is what one sees, a function of the updates so far: the rows that are there with their
counts, if the subscription began with a snapshot and has no envelope; else the last changes. A
thread reads the subscription and replaces what is shown until it ends; the cell that showed it is
done at once. Memory: the rows that are there, or ``LAST`` changes.

Tests: tests/subscribe/test_notebook.py.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from html import escape
from typing import TYPE_CHECKING, Any, Final, Protocol

from reclock.change.value import sort_key
from reclock.errors import Error
from reclock.rows.moment import with_moment
from reclock.rows.result import SHOWN_ROWS, html_table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.change.value import SortKey
    from reclock.engine.update import Update
    from reclock.time.timestamp import Timestamp

LAST: Final = 20
_PAUSE_SECONDS: Final = 0.2


class Followed(Protocol):
    """A subscription, as much as is needed to show it."""

    @property
    def closed(self) -> bool:
        """Whether it has ended."""
        ...

    def fetch(self, timeout: float) -> list[Update]:
        """Return the updates that are available."""
        ...

    def values(self, update: Update) -> tuple[Any, ...]:
        """Return an update as the row that SQL gives."""
        ...


class Handle(Protocol):
    """What ``IPython.display.display(…, display_id=True)`` returns."""

    def update(self, shown: object) -> None:
        """Show something else in the same place."""


class Shown:
    """What is seen of a subscription; ``accumulated`` or as changes."""

    def __init__(self, columns: tuple[str, ...], *, accumulated: bool) -> None:
        self._columns = columns
        self._accumulated = accumulated
        self._rows: dict[tuple[SortKey, ...], tuple[Any, ...]] = {}
        self._counts: Counter[tuple[SortKey, ...]] = Counter()
        self._changes: deque[tuple[Any, ...]] = deque(maxlen=LAST)
        self._count = 0
        self._time: Timestamp | None = None
        self._end = ""

    def add(self, updates: Iterable[tuple[Update, tuple[Any, ...]]]) -> None:
        """Take in updates, each with its values as SQL gives them."""
        for update, values in updates:
            self._time = update.timestamp
            if update.row is None:
                continue
            self._count += 1
            if update.diff is None or not self._accumulated:
                self._changes.append(values)
            else:
                self._change(update.row, update.diff)

    def _change(self, row: tuple[Any, ...], diff: int) -> None:
        key = tuple(map(sort_key, row))  # lists and objects have no hash
        self._rows[key] = row
        self._counts[key] += diff
        if not self._counts[key]:
            del self._rows[key], self._counts[key]

    def end(self, why: str) -> None:
        """Say why nothing more comes."""
        self._end = why

    def _repr_html_(self) -> str:
        rows = list(self._changes)
        what = f"{self._count} changes"
        if self._accumulated:
            rows = [self._rows[key] for key in sorted(self._counts.elements())]
            some = f", the first {SHOWN_ROWS} shown" if len(rows) > SHOWN_ROWS else ""
            what = f"{len(rows)} rows{some}, {what}"
        at = "" if self._time is None else f" at {with_moment(int(self._time))}"
        end = escape(f"; {self._end}") if self._end else ""
        return f"{html_table(self._columns, rows[:SHOWN_ROWS])}<p>{what}{at}{end}</p>"


def show(subscription: Followed, shown: Shown) -> threading.Thread:
    """Show a subscription in the cell that runs, and go on until it ends."""
    from IPython.display import display  # type: ignore[import-not-found] # noqa: PLC0415 - a notebook has it

    handle = display(shown, display_id=True)
    thread = threading.Thread(
        target=_follow, args=(subscription, shown, handle), name="reclock-notebook", daemon=True
    )
    thread.start()
    return thread


def _follow(subscription: Followed, shown: Shown, handle: Handle) -> None:
    why = "ended"
    try:
        while not subscription.closed:
            found = subscription.fetch(_PAUSE_SECONDS)
            if found:
                shown.add((update, subscription.values(update)) for update in found)
                handle.update(shown)
    except Error as error:
        why = f"ERROR {error.code}: {error.message}"
    shown.end(why)
    handle.update(shown)

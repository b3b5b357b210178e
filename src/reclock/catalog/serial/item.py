"""A sequence as an object of the catalog, and where one is in it.

Definition. The values of a sequence are ``start``, ``start + increment``, …, between ``minimum``
and ``maximum``; with ``cycle`` they begin again at the other end. A ``Position`` is the last value
that was given, or, before that, the one that comes first.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from reclock.catalog.item import SERIAL, Item
from reclock.errors import StatementError
from reclock.sql.names import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence as Values

    from reclock.durable.keyed import Json
    from reclock.ids import ObjectId


class Position(NamedTuple):
    """The last value, if ``called``; else the next."""

    last: int
    called: bool


class OwnedBy(NamedTuple):
    """The column that a sequence is dropped with, by its number."""

    table: ObjectId
    column: int


@dataclass(frozen=True)
class Sequence(Item):
    """A sequence; ``begun`` is where it was when it was made, by a transaction that had used it."""

    kind: ClassVar[str] = "sequence"
    keeps_state: ClassVar[bool] = False

    type: str = field(kw_only=True, default="bigint")
    increment: int = field(kw_only=True, default=1)
    minimum: int = field(kw_only=True, default=1)
    maximum: int = field(kw_only=True, default=(1 << 63) - 1)
    start: int = field(kw_only=True, default=1)
    cache: int = field(kw_only=True, default=1)
    cycle: bool = field(kw_only=True, default=False)
    owned_by: OwnedBy | None = field(kw_only=True, default=None)
    begun: Position | None = field(kw_only=True, default=None)

    @property
    def first(self) -> Position:
        """Where it is before its first value."""
        return self.begun or Position(self.start, called=False)

    def record(self) -> Json:
        """Return what the catalog stores."""
        made = super().record() | {"v": SERIAL}
        if self.owned_by is not None:
            made["owned_by"] = list(self.owned_by)
        if self.begun is not None:
            made["begun"] = list(self.begun)
        return made

    def taken(self, at: Position, count: int) -> tuple[Values[int], Position]:
        """Return the next ``count`` values, and where one is after them; refuse to go too far.

        >>> from reclock.ids import ObjectId
        >>> s = Sequence(ObjectId("u1"), "s", "", None, maximum=5, increment=2)
        >>> values, after = s.taken(s.first, 2)
        >>> list(values), after
        ([1, 3], Position(last=3, called=True))
        >>> s.taken(after, 2)
        Traceback (most recent call last):
        reclock.errors.StatementError: nextval: reached maximum value of sequence "s" (5)
        hint: ALTER SEQUENCE s RESTART
        """
        room = self.room(at)
        if count <= room:
            begin = at.last + self.increment if at.called else at.last
            values = range(begin, begin + count * self.increment, self.increment)
            return values, Position(values[-1], called=True) if count else at
        if not self.cycle:
            up = self.increment > 0
            which, bound = ("maximum", self.maximum) if up else ("minimum", self.minimum)
            message = f'nextval: reached {which} value of sequence "{self.name}" ({bound})'
            raise StatementError(message, code="2200H", hint=f"ALTER SEQUENCE {self.name} RESTART")
        found: list[int] = []
        while len(found) < count:
            some, at = self.taken(at, min(room, count - len(found)))
            found += some
            if len(found) < count:
                at = Position(self.minimum if self.increment > 0 else self.maximum, called=False)
                room = self.room(at)
        return found, at

    def room(self, at: Position) -> int:
        """Return how many values there are before the end."""
        begin = at.last + self.increment if at.called else at.last
        if self.increment > 0:
            return max(0, (self.maximum - begin) // self.increment + 1)
        return max(0, (begin - self.minimum) // -self.increment + 1)

    @property
    def text(self) -> str:
        """The statement that makes it."""
        parts = [
            f"CREATE SEQUENCE {quoted(self.name)} AS {self.type}",
            f"INCREMENT BY {self.increment} MINVALUE {self.minimum} MAXVALUE {self.maximum}",
            f"START WITH {self.start} CACHE {self.cache}",
        ]
        return " ".join(parts) + (" CYCLE" if self.cycle else "")

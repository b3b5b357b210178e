"""The numbers of sequences that a session and its transaction have drawn.

Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from reclock.catalog.serial.item import Position, Sequence
from reclock.catalog.serial.values import check_position
from reclock.errors import StatementError

if TYPE_CHECKING:
    from collections.abc import Sequence as Values

    from reclock.session.transaction.draft import Draft


class LocalValues:
    """Where the sequences are that a transaction has made, by their names."""

    def __init__(self) -> None:
        self._positions: dict[str, Position] = {}

    def take(self, sequence: Sequence, count: int) -> Values[int]:
        """Return the next numbers of a sequence."""
        values, after = sequence.taken(self.position(sequence), count)
        self._positions[sequence.name] = after
        return values

    def set(self, sequence: Sequence, position: Position) -> None:
        """Have a sequence go on from somewhere else."""
        check_position(sequence, position)
        self._positions[sequence.name] = position

    def position(self, sequence: Sequence) -> Position:
        """Return where a sequence is."""
        return self._positions.get(sequence.name, sequence.first)

    def applied(self, draft: Draft) -> Draft:
        """Return a draft whose new sequences are where they are."""
        if not self._positions:
            return draft
        items = {
            name: replace(item, begun=self._positions[item.name])
            if isinstance(item, Sequence) and name in draft.made and item.name in self._positions
            else item
            for name, item in draft.catalog.items.items()
        }
        return replace(draft, catalog=replace(draft.catalog, items=items))


class SessionNumbers:
    """The last number of each sequence that a session was given."""

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        self._latest: str | None = None

    def note(self, key: str, value: int) -> None:
        """Remember a number."""
        self._last[key] = value
        self._latest = key

    def current(self, sequence: Sequence, keys: tuple[str, ...]) -> int:
        """Return ``currval``."""
        for key in keys:
            if key in self._last:
                return self._last[key]
        message = f'currval of sequence "{sequence.name}" is not yet defined in this session'
        hint = f"ask nextval('{sequence.name}') before"
        raise StatementError(message, code="55000", hint=hint)

    def last(self) -> int:
        """Return ``lastval``."""
        if self._latest is None:
            message = "lastval is not yet defined in this session"
            raise StatementError(message, code="55000", hint="ask nextval before")
        return self._last[self._latest]

    def clear(self) -> None:
        """Forget all: DISCARD SEQUENCES."""
        self._last, self._latest = {}, None

"""The numbers of sequences: none is given twice, whatever happens; some may be given never.

A number is given when it is asked for, whether or not a transaction commits. ``AHEAD`` numbers are
*reserved* by one append, before the first of them is given, so a crash loses those that were not: a
gap. ``close`` gives them back. A sequence that a transaction has made is its own until COMMIT, and
so is where it is; the append that publishes the sequence has it (``Sequence.begun``).

Cost: an append per ``AHEAD`` numbers, or per statement that takes more.
Tests: tests/session/test_sequences.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Final

from reclock.catalog.serial.item import Position, Sequence
from reclock.durable.sequence_store import SequenceStore
from reclock.errors import StatementError
from reclock.failpoints import hit

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Sequence as Values

    from reclock.durable.store import Store
    from reclock.ids import ObjectId

AHEAD: Final = 32
"""So many numbers are reserved beyond those that are asked for."""


@dataclass(slots=True)
class _Known:
    """Where a sequence is, and how many more numbers are reserved."""

    position: Position
    left: int = 0


class SequenceValues:
    """Where all sequences are; any thread may take numbers."""

    def __init__(self, store: Store) -> None:
        self._store = SequenceStore(store)
        self._lock = Lock()
        self._known: dict[ObjectId, _Known] = {}
        self._stored: dict[ObjectId, Position] | None = None

    def take(self, sequence: Sequence, count: int) -> Values[int]:
        """Return the next numbers of a sequence."""
        with self._lock:
            known = self._of(sequence)
            values, after = sequence.taken(known.position, count)
            if count > known.left:
                ahead = AHEAD if sequence.cycle else min(AHEAD, sequence.room(after))
                _, reserved = sequence.taken(after, ahead)
                self._keep(sequence, reserved)
                known.left = count + ahead
            known.position, known.left = after, known.left - count
            return values

    def set(self, sequence: Sequence, position: Position) -> None:
        """Have a sequence go on from somewhere else."""
        check_position(sequence, position)
        with self._lock:
            known = self._of(sequence)
            self._keep(sequence, position)
            known.position, known.left = position, 0

    def position(self, sequence: Sequence) -> Position:
        """Return where a sequence is."""
        with self._lock:
            return self._of(sequence).position

    def forget(self, sequences: Iterable[ObjectId]) -> None:
        """Forget sequences that are gone; what is stored of them goes when it is next open."""
        with self._lock:
            for item in sequences:
                self._known.pop(item, None)

    def clean(self, there: Iterable[ObjectId]) -> None:
        """Remove what is stored of sequences that are gone."""
        with self._lock:
            gone = self._all().keys() - set(there)
            if gone:
                self._store.change(dict.fromkeys(gone))
                self._stored = None

    def close(self) -> None:
        """Give back the numbers that were reserved and not given."""
        with self._lock:
            given = {item: known for item, known in self._known.items() if known.left}
            if given:
                self._store.change({i: _record(known.position) for i, known in given.items()})
            self._known = {}
            self._stored = None

    def _of(self, sequence: Sequence) -> _Known:
        found = self._known.get(sequence.id)
        if found is None:
            position = self._all().get(sequence.id, sequence.first)
            found = self._known[sequence.id] = _Known(position)
        return found

    def _all(self) -> dict[ObjectId, Position]:
        """Return what is stored, and forget what is known if that is not clear."""
        if self._stored is None:
            stored = self._store.load()
            self._stored = {
                i: Position(int(r["last"]), bool(r["called"])) for i, r in stored.items()
            }
            self._known = {}
        return self._stored

    def _keep(self, sequence: Sequence, position: Position) -> None:
        hit("sequence.reserve.before")
        try:
            self._store.change({sequence.id: _record(position)})
        except BaseException:
            self._stored, self._known = None, {}
            raise
        self._all()[sequence.id] = position
        hit("sequence.reserve.after")


def check_position(sequence: Sequence, position: Position) -> None:
    """Refuse a value that is none of a sequence's."""
    if not sequence.minimum <= position.last <= sequence.maximum:
        message = f'setval: value {position.last} is out of bounds for sequence "{sequence.name}" '
        message += f"({sequence.minimum}..{sequence.maximum})"
        raise StatementError(message, code="22003", hint="give a value between them")


def _record(position: Position) -> dict[str, object]:
    return {"v": 1, "last": position.last, "called": position.called}

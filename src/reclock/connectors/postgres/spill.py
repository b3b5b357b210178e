"""A transaction that does not fit the memory: its messages in a file, until its commit comes.

A ``Spill`` takes in messages as they come, in order, and gives them again, decoded one at a time.
What a subtransaction did that was rolled back is left out then; what it said of tables is not,
because the server says that once only.

The file has no name: it goes with the process, and a transaction of which a commit was not bound
is sent again. It is where ``TMPDIR`` says. Cost: one pass to write, one to read; no memory.

Tests: tests/connectors/postgres/test_spill.py.
"""

from __future__ import annotations

from struct import Struct
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.connectors.postgres.pgoutput import UNCHANGED, Change, Truncate, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.connectors.postgres.pgoutput import Message

_HEAD: Final = Struct("!II")


class Survey(NamedTuple):
    """The last message that truncates each table; the tables with values that are left out."""

    cuts: dict[int, int]
    partial: frozenset[int]


class Spill:
    """The messages of one transaction; ``is_streamed``: each has the xid of its part."""

    def __init__(self, *, is_streamed: bool) -> None:
        self._is_streamed = is_streamed
        self._file = TemporaryFile(buffering=1 << 20)  # noqa: SIM115 - until its commit
        self._undone: set[int] = set()
        self._kinds: set[bytes] = set()
        self.size = 0

    def add(self, xid: int, data: bytes) -> None:
        """Take in a message of a subtransaction."""
        self._file.write(_HEAD.pack(xid, len(data)))
        self._file.write(data)
        self._kinds.add(data[:1])
        self.size += _HEAD.size + len(data)

    def undo(self, xid: int) -> None:
        """Note that a subtransaction was rolled back."""
        self._undone.add(xid)

    def messages(self) -> Iterator[Message]:
        """Yield what happened."""
        self._file.flush()
        self._file.seek(0)
        while head := self._file.read(_HEAD.size):
            xid, size = _HEAD.unpack(head)
            data = self._file.read(size)
            if xid in self._undone and data[:1] != b"R":
                continue
            message = decode(data, streamed=self._is_streamed)
            if message is not None:
                yield message

    def survey(self) -> Survey:
        """Return what must be known of a transaction before its rows can be made."""
        cuts: dict[int, int] = {}
        partial: set[int] = set()
        if self._kinds & {b"U", b"T"}:
            for place, message in enumerate(self.messages()):
                if isinstance(message, Truncate):
                    cuts |= dict.fromkeys(message.relations, place)
                elif isinstance(message, Change) and UNCHANGED in (message.new or ()):
                    partial.add(message.relation)
        return Survey(cuts, frozenset(partial))

    def close(self) -> None:
        """Forget it."""
        self._file.close()

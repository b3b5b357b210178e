"""Transactions whose commit has not come yet, in files: those that are streamed, and large ones.

``take`` is given every message of a stream. It keeps those that belong to a transaction in a file,
and gives the others back to be taken in at once. When a commit comes, it gives the whole
transaction: its messages, as if they came only now, or if it is large (``SPILL_BYTES``) a
``Large``, which is written piece by piece.

The server streams transactions that outgrow its memory (``logical_decoding_work_mem``). One that it
does not stream is found to be large while it is read: then it is ``spilled`` when it is read again.

Tests: tests/ingest/postgres/test_large.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.connectors.postgres.pgoutput import (
    Begin,
    Change,
    Commit,
    StreamAbort,
    StreamCommit,
    Streamed,
    StreamStart,
    StreamStop,
)
from reclock.connectors.postgres.spill import Spill
from reclock.ingest.postgres.large import Large

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from reclock.connectors.postgres.pgoutput import Message
    from reclock.ingest.postgres.assembly import Relations

SPILL_BYTES: Final = 64 << 20
"""How much a transaction may have before it is kept in a file, and written piece by piece."""


class Unfinished:
    """The transactions of one session whose commits are still to come."""

    def __init__(self, relations: Relations, spilled: int | None) -> None:
        self._relations = relations
        self._streamed: dict[int, Spill] = {}
        self._block: int | None = None
        self._spilled = spilled
        self._whole: Spill | None = None
        self._xid = 0

    @property
    def is_reading(self) -> bool:
        """Whether a transaction is read into a file, and nothing of another can come before."""
        return self._whole is not None

    def take(self, message: Message, data: bytes) -> Iterable[Message] | Large:
        """Return what is to be taken in now; ``data`` is the message as it came."""
        if self._whole is not None:
            return self._take_whole(self._whole, message, data)
        match message:
            case Change():
                return (message,)
            case Begin(final, _, xid) if final == self._spilled:
                self._whole, self._xid = Spill(is_streamed=False), xid
            case StreamStart(xid):
                self._block = xid
                if xid not in self._streamed:
                    self._streamed[xid] = Spill(is_streamed=True)
            case StreamStop():
                self._block = None
            case Streamed(xid):
                assert self._block is not None
                self._streamed[self._block].add(xid, data)
            case StreamAbort():
                self._undo(message)
            case StreamCommit():
                return self._complete(message)
            case _:
                return (message,)
        return ()

    def _take_whole(self, spill: Spill, message: Message, data: bytes) -> Iterable[Message] | Large:
        if not isinstance(message, Commit):
            spill.add(0, data)
            return ()
        self._whole = None
        return Large(spill, message, self._relations, self._xid)

    def _undo(self, abort: StreamAbort) -> None:
        spill = self._streamed.get(abort.xid)
        if spill is not None and abort.xid == abort.sub_xid:
            self._streamed.pop(abort.xid).close()
        elif spill is not None:
            spill.undo(abort.sub_xid)

    def _complete(self, message: StreamCommit) -> Iterable[Message] | Large:
        xid, lsn, end, micros = message
        spill, commit = self._streamed.pop(xid), Commit(lsn, end, micros)
        if spill.size >= SPILL_BYTES:
            return Large(spill, commit, self._relations, xid)
        return _messages(spill, Begin(lsn, micros, xid), commit)

    def close(self) -> None:
        """Forget them: they are sent again."""
        for spill in self._streamed.values():
            spill.close()
        if self._whole is not None:
            self._whole.close()


def _messages(spill: Spill, begin: Begin, commit: Commit) -> Iterator[Message]:
    yield begin
    yield from spill.messages()
    yield commit
    spill.close()

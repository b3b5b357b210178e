"""The messages of pgoutput, PostgreSQL's logical replication plugin, protocol versions 1 and 2.

Definition. A message is a letter and fields, big-endian; texts end with a zero byte::

    B  begin      final LSN, commit time, xid
    C  commit     flags, LSN of the commit record, LSN after it, commit time
    R  relation   id, schema, name, replica identity, columns (flags, name, type, modifier)
    I  insert     relation, N tuple
    U  update     relation, [K key tuple | O old tuple], N tuple
    D  delete     relation, K key tuple | O old tuple
    T  truncate   relations, options
    S E c A       start, stop, commit and abort of a streamed transaction (version 2)
    O Y M         origin, type, message: not needed here

A tuple has for each column its text, NULL, or *unchanged*: a value out of line that the update
left alone, and that is not sent. In a streamed transaction R, I, U, D and T have the xid of their
subtransaction before the other fields.

``decode`` makes a value of one message; it reads no socket and keeps nothing. A message that does
not follow the protocol is ``Corrupt``. Cost: one pass over its bytes.

Tests: tests/connectors/postgres/test_pgoutput.py.
"""

from __future__ import annotations

from struct import Struct, error
from typing import TYPE_CHECKING, Final, NamedTuple

from reclock.errors import Corrupt

if TYPE_CHECKING:
    from collections.abc import Callable

UNCHANGED: Final = False
"""In a tuple: the value was not sent, because it is the one that was there."""

Tuple = tuple[bytes | bool | None, ...]
"""The texts of the columns; None is NULL."""

_TIME: Final = Struct("!QQ")
_BEGIN: Final = Struct("!QqI")
_COMMIT: Final = Struct("!BQQq")
_STREAM_COMMIT: Final = Struct("!IBQQq")
_UINT: Final = Struct("!I")
_SHORT: Final = Struct("!H")
_INT: Final = Struct("!i")
_PAIR: Final = Struct("!II")
_EPOCH_MICROS: Final = 946_684_800_000_000
"""2000-01-01, where PostgreSQL's times begin, in microseconds since 1970."""

_NULL, _UNCHANGED, _TEXT, _BINARY, _NEW, _KEY, _OLD = b"nutbNKO"


class Begin(NamedTuple):
    """A transaction begins; ``final`` is where its commit record is."""

    final: int
    micros: int
    xid: int


class Commit(NamedTuple):
    """A transaction is complete: its commit record is at ``lsn`` and ends before ``end``."""

    lsn: int
    end: int
    micros: int


class RelationColumn(NamedTuple):
    """A column of a relation as it is at this point of the log."""

    name: str
    type: int
    modifier: int
    is_key: bool


class Relation(NamedTuple):
    """What the columns of the changes that follow are; ``identity`` is d, n, f or i."""

    id: int
    schema: str
    name: str
    identity: str
    columns: tuple[RelationColumn, ...]


class Change(NamedTuple):
    """A row that comes (``new``), goes (``old``), or becomes another (both).

    ``old`` of an update is None if the identity of the row is the same; ``is_key`` says that
    only the columns of the identity are in it.
    """

    relation: int
    kind: str
    old: Tuple | None
    new: Tuple | None
    is_key: bool = False
    xid: int = 0


class Truncate(NamedTuple):
    """All rows of some relations go."""

    relations: tuple[int, ...]
    xid: int = 0


class StreamStart(NamedTuple):
    """What follows is a part of a transaction that is not complete yet."""

    xid: int
    is_first: bool


class StreamStop(NamedTuple):
    """The part ends."""


class StreamCommit(NamedTuple):
    """A streamed transaction is complete."""

    xid: int
    lsn: int
    end: int
    micros: int


class StreamAbort(NamedTuple):
    """A subtransaction of a streamed transaction, or all of it, never happened."""

    xid: int
    sub_xid: int


class Streamed(NamedTuple):
    """A message of a streamed transaction as it came, of the subtransaction ``xid``."""

    xid: int
    data: bytes


Message = (
    Begin | Commit | Relation | Change | Truncate
    | StreamStart | StreamStop | StreamCommit | StreamAbort | Streamed
)  # fmt: skip


def decode(data: bytes, *, streamed: bool = False) -> Message | None:
    r"""Return what a message says; None of those that say nothing about rows.

    ``streamed``: it is between a start and a stop of a streamed transaction.

    >>> decode(b"C\0" + bytes(7) + b"\5" + bytes(7) + b"\x09" + bytes(8))
    Commit(lsn=5, end=9, micros=946684800000000)
    """
    try:
        within = _WITHIN.get(data[0])
        if within is not None:
            if not streamed:
                return within(data, 1, 0)
            return within(data, 5, _UINT.unpack_from(data, 1)[0])
        read = _READERS.get(data[0])
        if read is not None:
            return read(data)
    except (error, IndexError, UnicodeDecodeError, ValueError) as reason:
        raise _wrong(data) from reason
    if data[0] in _IGNORED:
        return None
    raise _wrong(data)


def streamed(data: bytes) -> Streamed | None:
    r"""Return a message between a start and a stop, undecoded; None if it says nothing of rows.

    >>> streamed(b"I\0\0\0\7 and so on").xid
    7
    """
    if not data or data[0] not in _WITHIN:
        if data and data[0] in _IGNORED:
            return None
        raise _wrong(data)
    return Streamed(_UINT.unpack_from(data, 1)[0], data)


def _wrong(data: bytes) -> Corrupt:
    message = "a message of logical replication does not follow the protocol"
    return Corrupt(message, detail=f"it begins with {data[:40]!r}")


def _begin(data: bytes) -> Begin:
    final, micros, xid = _BEGIN.unpack_from(data, 1)
    return Begin(final, micros + _EPOCH_MICROS, xid)


def _commit(data: bytes) -> Commit:
    _, lsn, end, micros = _COMMIT.unpack_from(data, 1)
    return Commit(lsn, end, micros + _EPOCH_MICROS)


def _relation(data: bytes, at: int, _: int) -> Relation:
    (number,) = _UINT.unpack_from(data, at)
    schema, at = _string(data, at + 4)
    name, at = _string(data, at)
    identity = chr(data[at])
    (count,) = _SHORT.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _each in range(count):
        flags = data[at]
        column, at = _string(data, at + 1)
        (kind,), (modifier,) = _UINT.unpack_from(data, at), _INT.unpack_from(data, at + 4)
        at += 8
        columns.append(RelationColumn(column, kind, modifier, bool(flags & 1)))
    return Relation(number, schema or "pg_catalog", name, identity, tuple(columns))


def _string(data: bytes, at: int) -> tuple[str, int]:
    end = data.index(b"\0", at)
    return data[at:end].decode(), end + 1


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    (count,) = _SHORT.unpack_from(data, at)
    at += 2
    made: list[bytes | bool | None] = []
    append, size_at, whole = made.append, _UINT.unpack_from, len(data)
    for _ in range(count):
        kind = data[at]
        if kind == _TEXT:
            begin = at + 5
            at = begin + size_at(data, at + 1)[0]
            if at > whole:
                raise IndexError
            append(data[begin:at])
        elif kind == _NULL:
            append(None)
            at += 1
        elif kind == _UNCHANGED:
            append(UNCHANGED)
            at += 1
        else:
            raise _wrong(data)
    return tuple(made), at


def _insert(data: bytes, at: int, xid: int) -> Change:
    (relation,) = _UINT.unpack_from(data, at)
    if data[at + 4] != _NEW:
        raise _wrong(data)
    new, _ = _tuple(data, at + 5)
    return Change(relation, "I", None, new, xid=xid)


def _update(data: bytes, at: int, xid: int) -> Change:
    (relation,) = _UINT.unpack_from(data, at)
    kind = data[at + 4]
    old = None
    at += 5
    is_key = kind == _KEY
    if kind in (_KEY, _OLD):
        old, at = _tuple(data, at)
        kind = data[at]
        at += 1
    if kind != _NEW:
        raise _wrong(data)
    new, _ = _tuple(data, at)
    return Change(relation, "U", old, new, is_key, xid)


def _delete(data: bytes, at: int, xid: int) -> Change:
    (relation,) = _UINT.unpack_from(data, at)
    kind = data[at + 4]
    if kind not in (_KEY, _OLD):
        raise _wrong(data)
    old, _ = _tuple(data, at + 5)
    return Change(relation, "D", old, None, kind == _KEY, xid)


def _truncate(data: bytes, at: int, xid: int) -> Truncate:
    (count,) = _UINT.unpack_from(data, at)
    found = [_UINT.unpack_from(data, at + 5 + 4 * n)[0] for n in range(count)]
    return Truncate(tuple(found), xid)


def _stream_start(data: bytes) -> StreamStart:
    return StreamStart(_UINT.unpack_from(data, 1)[0], data[5] == 1)


def _stream_commit(data: bytes) -> StreamCommit:
    xid, _, lsn, end, micros = _STREAM_COMMIT.unpack_from(data, 1)
    return StreamCommit(xid, lsn, end, micros + _EPOCH_MICROS)


_READERS: Final[dict[int, Callable[[bytes], Message]]] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("S"): _stream_start,
    ord("E"): lambda _: StreamStop(),
    ord("c"): _stream_commit,
    ord("A"): lambda data: StreamAbort(*_PAIR.unpack_from(data, 1)),
}
_WITHIN: Final[dict[int, Callable[[bytes, int, int], Message]]] = {
    ord("R"): _relation,
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
}
_IGNORED: Final = frozenset(b"OYM")

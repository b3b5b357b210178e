"""The records of the consistency topic, which tell how far a sink has come.

Two kinds, in the same transaction as the data they speak of::

    key   {"sink": "u9"}
    value {"frontier": [t], "positions": {…}, "version": 1, "writer": "…", "sources": {…}}
          all times before t are written, no other; [] if all are. ``positions`` has for each
          source where it stood at t, and ``sources`` what it is and where it begins, so that
          another machine can go on; ``writer`` is the database that wrote, so that an older
          one does not.

    key   {"id": "t", "status": "BEGIN" | "END"}
    value {"status": "END", "id": "t", "event_count": n,
           "data_collections": [{"data_collection": "topic", "event_count": n}]}
          time t has n messages in the topic; with BEGIN both counts are null.

Compaction keeps the last frontier of each sink, so years of idling add nothing, and every
BEGIN and END, since their keys differ. The second kind is Debezium's transaction metadata.

``read`` is the inverse of both. Keys of another form belong to other programs: None. A key of ours
whose value is not what it should be is a ``MalformedMessage``: loud, because a sink that overlooks
its own progress would write everything twice (P4).

Tests: tests/sinks/test_consistency.py.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from reclock.errors import InvalidValue, MalformedMessage, NewerFormat
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reclock.time.frontier import Frontier

VERSION: Final = 1


class Record(NamedTuple):
    """A record of the consistency topic as bytes."""

    key: bytes
    value: bytes


class FrontierRecord(NamedTuple):
    """Sink ``sink`` has written all times before ``frontier``, and no other.

    ``positions`` and ``sources`` have for each source where it stood, and what it is.
    ``writer`` is whose work this is.
    """

    sink: str
    frontier: Frontier
    positions: Mapping[str, Any]
    writer: str = ""
    sources: Mapping[str, Any] = MappingProxyType({})


class TransactionRecord(NamedTuple):
    """Time ``time`` begins, or ends with so many messages in each topic."""

    time: Timestamp
    status: str
    counts: Mapping[str, int]


def frontier_record(
    sink: str,
    frontier: Frontier,
    positions: Mapping[str, Any],
    writer: str = "",
    sources: Mapping[str, Any] | None = None,
) -> Record:
    """Return the record that says how far a sink has come.

    >>> from reclock.time.frontier import at
    >>> frontier_record("u9", at(7), {"u1": {"0": 12}}).value
    b'{"frontier": [7], "positions": {"u1": {"0": 12}}, "version": 1}'
    """
    value = {"frontier": [*frontier], "positions": dict(positions), "version": VERSION}
    if writer:
        value["writer"] = writer
    if sources:
        value["sources"] = dict(sources)
    return Record(_json({"sink": sink}), _json(value))


def transaction_records(time: int, topic: str, count: int) -> tuple[Record, Record]:
    """Return BEGIN and END of a time that has ``count`` messages in ``topic``."""
    begin = {"status": "BEGIN", "id": str(time), "event_count": None, "data_collections": None}
    counts = [{"data_collection": topic, "event_count": count}]
    end = {"status": "END", "id": str(time), "event_count": count, "data_collections": counts}
    return (
        Record(_json({"id": str(time), "status": "BEGIN"}), _json(begin)),
        Record(_json({"id": str(time), "status": "END"}), _json(end)),
    )


def read(
    key: bytes | None, value: bytes | None, where: str
) -> FrontierRecord | TransactionRecord | None:
    """Return what a record says; ``where`` names it in errors.

    >>> read(*frontier_record("u9", Antichain.closed(), {}), "here")[:3]
    ('u9', {}, {})
    >>> read(b"other", b"", "here") is None
    True
    """
    identity = _parsed(key)
    match identity:
        case {"sink": str(sink), **rest} if not rest:
            return _frontier(sink, _parsed(value), where)
        case {"id": str(time), "status": str(status), **rest} if not rest:
            return _transaction(time, status, _parsed(value), where)
    return None


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _parsed(text: bytes | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return None


def _frontier(sink: str, value: Any, where: str) -> FrontierRecord:
    match value:
        case {"version": int(version)} if version > VERSION:
            message = f'the progress of sink "{sink}" was written by a later version of reclock'
            raise NewerFormat(message, detail=f"{where} has version {version}")
        case {"frontier": list(times), "positions": dict(positions), "version": 1} if (
            len(times) <= 1
        ):
            frontier = Antichain(_time(time, where) for time in times)
            writer, sources = value.get("writer", ""), value.get("sources", {})
            if isinstance(writer, str) and isinstance(sources, dict):
                return FrontierRecord(sink, frontier, positions, writer, sources)
    raise _malformed(where, f'the progress of sink "{sink}"')


def _transaction(time: str, status: str, value: Any, where: str) -> TransactionRecord:
    known = _time(int(time) if time.isdecimal() else None, where)
    match value:
        case {"status": "BEGIN", "id": id} if status == "BEGIN" and id == time:
            return TransactionRecord(known, status, {})
        case {"status": "END", "id": id, "data_collections": list(collections)} if (
            status == "END" and id == time
        ):
            counts = dict(_count(entry, where) for entry in collections)
            return TransactionRecord(known, status, counts)
    raise _malformed(where, f"what transaction {time} is")


def _count(entry: Any, where: str) -> tuple[str, int]:
    match entry:
        case {"data_collection": str(topic), "event_count": int(count)}:
            return topic, count
    raise _malformed(where, "how many messages a transaction has")


def _time(value: Any, where: str) -> Timestamp:
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return Timestamp(value)
    except InvalidValue:
        pass
    raise _malformed(where, "a time")


def _malformed(where: str, what: str) -> MalformedMessage:
    message = "a record of a consistency topic is malformed"
    hint = "only reclock may write to a consistency topic"
    return MalformedMessage(message, detail=f"{where} does not say {what}", hint=hint)

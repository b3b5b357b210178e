"""Turns the errors of a source into dead letters: ALTER SOURCE … SET (on_error = 'skip').

Definition. At the time of the statement the source has no error any more of records that do not
decode, and a letter for each, of that time. Records are what takes an error back, through the same
envelope that made it::

    none                the record with the diff −1
    upsert, debezium    a deletion of the key that has the error; the key has no row until
                        its next record. Without a key: the record with the diff −1

so views over the source lose the error in the same append. Other errors, such as those of changes
that contradict each other, stay.

The contents of the records are read again, without the lock; what the source no longer has, or does
not give within ``PATIENCE`` seconds, is NULL in the letter.

Cost: the errors. Tests: tests/ingest/test_letters.py, test_skip_walk.py.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.connectors import letters
from reclock.dataflow import delta as deltas
from reclock.dataflow.envelope import NONE, envelope_fields
from reclock.dataflow.graph import faults_of, letters_of
from reclock.dataflow.types import arrow_types
from reclock.engine.dead_letters import recorded
from reclock.engine.view_errors import view_errors
from reclock.errors import Error
from reclock.ingest.connect import connect
from reclock.remap.batch import Range
from reclock.sql.statement.source import FileConnection
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from reclock.catalog.item import Source
    from reclock.connectors.letters import Place
    from reclock.engine.timeline import TimelineState
    from reclock.ids import ObjectId
    from reclock.ingest.connect import Clusters, Connected

PATIENCE: Final = 10.0
"""Seconds to read again what records were made of."""

Payload = tuple[bytes | None, bytes | None]


@dataclass(frozen=True)
class Fault:
    """An error of a record that does not decode: how often a source has it, and where it was."""

    code: str
    message: str
    count: int
    place: Place


def _whose(source: Source) -> str:
    """Return what the messages of faults of a source begin with."""
    files = isinstance(source.statement.connection, FileConnection)
    return f'source "{source.name}", {"file" if files else "partition"}'


def place_key(fault: Fault) -> tuple[str, int]:
    """Return where the record of a fault is."""
    return fault.place.part, fault.place.offset


def faults_at(state: TimelineState, source: Source) -> list[Fault]:
    """Return the errors that a source has now of records that do not decode, in their order."""
    whose = _whose(source)
    found = [
        Fault(code, message, count, place)
        for (code, message), count in view_errors(state, source.id, state.upper.back()).items()
        if (place := letters.place_of(message, whose)) is not None
    ]
    return sorted(found, key=lambda fault: (fault.place.part, fault.place.offset, fault.message))


def read_again(
    source: Source,
    clusters: Clusters,
    faults: Iterable[Fault],
    known: Container[tuple[str, int]],
) -> Mapping[tuple[str, int], Payload]:
    """Return key and value of records that are not known, by their places; NULL if not there."""
    wanted = [place for place in map(place_key, faults) if place not in known]
    found: dict[tuple[str, int], Payload] = dict.fromkeys(wanted, (None, None))
    if not wanted:
        return found
    connected = connect(source, clusters)
    deadline = monotonic() + PATIENCE
    with suppress(Error, OSError):  # what cannot be read again is not there
        connected.source.verify()
        for part, offset in wanted:
            if monotonic() > deadline:
                break
            found |= _record(connected, part, offset)
    return found


def _record(
    connected: Connected, part: str, offset: int
) -> Iterator[tuple[tuple[str, int], Payload]]:
    """Yield what the record at one place was made of, if it is still there."""
    name = part if connected.parts_have_names else int(part)
    span = Range(name, offset, offset + 1, Timestamp(0))
    for batch in connected.source.reader.read([span]):
        columns = [
            batch.column(n).to_pylist() if n in batch.schema.names else [None] * batch.num_rows
            for n in ("key", "value")
        ]
        for at, *payload in zip(batch.column(1).to_pylist(), *columns, strict=True):
            if at == offset:
                cut = [None if p is None else bytes(p[: letters.MOST_BYTES]) for p in payload]
                yield (part, offset), (cut[0], cut[1])


def unblocked(
    state: TimelineState,
    time: Timestamp,
    source: Source,
    faults: list[Fault],
    payloads: Mapping[tuple[str, int], Payload],
) -> dict[ObjectId, pa.RecordBatch]:
    """Return the changes, at a time, that make letters of the errors of a source."""
    if not faults:
        return {}
    records = [*_taken_back(state, source, faults)]
    return {
        source.id: _records(source, records, time),
        letters_of(source.id): recorded(state, source.id, _letters(faults, payloads, time)),
    }


def _taken_back(
    state: TimelineState, source: Source, faults: list[Fault]
) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield records, by name of column, and their diffs: what takes each error back."""
    keyed = dict(_keys(state, source))
    for fault in faults:
        keys = keyed.get((fault.code, fault.message), [])
        said = {"code": fault.code, "message": fault.message}
        if fault.count > len(keys):
            yield said, len(keys) - fault.count
        for key in keys:
            yield {**key, "tombstone": True, "op": "d"}, 1


def _keys(
    state: TimelineState, source: Source
) -> Iterator[tuple[tuple[str, str], list[Mapping[str, Any]]]]:
    """Yield for every error the keys whose last record has it."""
    arrangement = state.shape.graph.arrangements.get(faults_of(source.id))
    if arrangement is None:
        return
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    names = [f"c{at}" for at in source.primary_key]
    for batch in state.traces[arrangement.id].snapshot(state.upper.back()):
        columns = (column.to_pylist() for column in arrangement.keying.columns(batch))
        for *key, code, message in zip(*columns, strict=True):
            found.setdefault((code, message), []).append(dict(zip(names, key, strict=True)))
    yield from found.items()


def _records(
    source: Source, records: list[tuple[Mapping[str, Any], int]], time: Timestamp
) -> pa.RecordBatch:
    """Return records as input of the envelope of a source."""
    row = arrow_types(source.schema)
    envelope = envelope_fields(source.envelope, row)
    kinds = {f"c{at}": kind for at, kind in enumerate(row)} | {f.name: f.type for f in envelope}
    default = {"order": 0, "tombstone": False, "has_before": False, "has_after": False}
    columns = [
        pa.array([given.get(name, default.get(name)) for given, _ in records], kind)
        for name, kind in kinds.items()
    ]
    diffs = np.array([diff for _, diff in records], np.int64)
    return deltas.build(columns, np.full(len(records), time, np.int64), diffs)


def _letters(
    faults: list[Fault], payloads: Mapping[tuple[str, int], Payload], time: Timestamp
) -> pa.RecordBatch:
    rows = [
        (place.part, place.offset, *payloads.get(place_key(fault), (None, None)),
         fault.code, place.reason)
        for fault in faults
        for place in [fault.place] * fault.count
    ]  # fmt: skip
    columns = [
        pa.array(values, kind)
        for values, kind in zip(zip(*rows, strict=True), letters.SCHEMA.types, strict=True)
    ]
    size = len(rows)
    return deltas.build(columns, np.full(size, time, np.int64), np.ones(size, np.int64))


def keys_without_rows(state: TimelineState, source: Source, faults: Iterable[Fault]) -> int:
    """Return how many keys have no row when their errors are taken back."""
    if source.envelope == NONE:
        return 0
    known = {(fault.code, fault.message) for fault in faults}
    return sum(len(keys) for error, keys in _keys(state, source) if error in known)

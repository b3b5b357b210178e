"""The durable part of oracles: per timeline, how far reads and writes have gone (P7).

Both numbers of a timeline only ever advance, which is what an upper does: each is the
upper of a collection without updates, ``oracle/read/<timeline>`` and
``oracle/write/<timeline>``. So nothing accumulates however often they move, a number that
would go back is refused by the store itself, and ``appends`` lets an oracle advance in the
same transaction as the data it is about.

The rules of an oracle are in ``time.oracle``; this module only remembers.

Checked by tests/durable/test_oracle_store.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.durable.store import Append
from reclock.errors import Corrupt, InvalidValue
from reclock.ids import CollectionId
from reclock.time.antichain import Antichain
from reclock.time.timeline import Timeline, parse_timeline

if TYPE_CHECKING:
    from reclock.durable.store import Store
    from reclock.time.timestamp import Timestamp

VERSION: Final = 1

_ORACLE: Final = "oracle/"
_READ: Final = "oracle/read/"
_WRITE: Final = "oracle/write/"


@dataclass(frozen=True, slots=True)
class OracleRecord:
    """How far reads and writes of a timeline have gone."""

    timeline: Timeline
    read_ts: Timestamp
    write_ts: Timestamp


class OracleStore:
    """The records of all timelines, kept in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._opened: set[CollectionId] = set()

    def load_all(self) -> dict[Timeline, OracleRecord]:
        """Return the record of every timeline that was ever advanced, all of one moment."""
        uppers = {str(s.collection): s.upper for s in self._store.collections(_ORACLE)}
        records: dict[Timeline, OracleRecord] = {}
        for collection, upper in uppers.items():
            if not collection.startswith(_READ):
                continue
            name = collection.removeprefix(_READ)
            try:
                timeline = parse_timeline(name)
                read, write = upper.element(), uppers[_WRITE + name].element()
            except (InvalidValue, KeyError) as error:
                message = f'the oracle of timeline "{name}" is not readable'
                raise Corrupt(message, hint="restore a backup") from error
            records[timeline] = OracleRecord(timeline, read, write)
        return records

    def appends(
        self, record: OracleRecord, known: OracleRecord | None = None
    ) -> tuple[Append, ...]:
        """Return the appends that advance a timeline, to publish with others.

        A timeline seen for the first time begins at 0. ``known`` is what the caller holds to
        be durable: it saves reading that; if it is not, the append is refused.
        """
        before = (None, None) if known is None else (known.write_ts, known.read_ts)
        return tuple(
            Append(collection, (), self._upper(collection, held), Antichain.of(ts))
            for collection, ts, held in (
                # The write side comes first: load_all finds a timeline by its read side.
                (CollectionId(f"{_WRITE}{record.timeline}"), record.write_ts, before[0]),
                (CollectionId(f"{_READ}{record.timeline}"), record.read_ts, before[1]),
            )
        )

    def advance(self, record: OracleRecord) -> None:
        """Remember ``record`` durably; refuse it whole if a number would go back."""
        while self._store.append(self.appends(record)) is not None:
            pass  # another thread advanced it meanwhile; look again

    def _upper(self, collection: CollectionId, held: Timestamp | None) -> Antichain[Timestamp]:
        if collection in self._opened:
            return self._store.state(collection).upper if held is None else Antichain.of(held)
        upper = self._store.open(collection, VERSION).upper
        self._opened.add(collection)
        return upper

"""The tables of a durable store, the same in SQLite and PostgreSQL.

``reclock_store``       one row: format version, who wrote it, who owns the state now.
``reclock_collection``  one row per collection; a frontier is its time, NULL is ``{}``.
``reclock_update``      one row per (collection, data, time) with a diff that is not zero.

Times at or before since are *read* as since; the stored ``time`` of such an update stays
as it was until something is summed with it, so that advancing since rewrites only what is
folded. Invariant: of each data at most one row has a time ≤ since.

``digest`` (blake2b, 128 bits, of the data) stands for the data in the key: it finds the
rows of equal data without an index over long texts, and tells readers a text that was
altered behind the store's back. The key serves look-ups by data, the
index on (collection, time) serves ranges of time.

These definitions are the newest format; ``migrate`` makes every older one into it, and
tests/durable/test_migrate.py checks that both agree.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, MetaData, Table, Text

from reclock.durable.store import CollectionState, StoredUpdate
from reclock.errors import Corrupt, InvalidValue
from reclock.ids import CollectionId
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.durable.rules import Sums

Row = dict[str, object]
"""A row to insert, by the names of its columns."""

metadata: Final = MetaData()

store: Final = Table(
    "reclock_store",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("format", Integer, nullable=False),
    Column("written_by", Text, nullable=False),
    Column("epoch", BigInteger, nullable=False),
    Column("owner", Text, nullable=False),
)

collection: Final = Table(
    "reclock_collection",
    metadata,
    Column("id", Text, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("since", BigInteger),
    Column("upper", BigInteger),
)

update: Final = Table(
    "reclock_update",
    metadata,
    Column("collection", Text, primary_key=True),
    Column("digest", LargeBinary, primary_key=True),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("data", Text, nullable=False),
    Column("diff", BigInteger, nullable=False),
    Index("reclock_update_time", "collection", "time"),
)


def digest(data: str) -> bytes:
    """Return what stands for ``data`` in keys."""
    return blake2b(data.encode(), digest_size=16).digest()


def update_rows(collection: str, sums: Sums) -> list[Row]:
    """Return updates as they are stored."""
    return [
        {
            "collection": collection,
            "digest": digest(data),
            "time": int(time),
            "data": data,
            "diff": diff,
        }
        for (time, data), diff in sums.items()
    ]


def column(frontier: Antichain[Timestamp]) -> int | None:
    """Return a frontier as it is stored."""
    return None if frontier.is_closed else int(frontier.element())


def frontier(value: int | None) -> Antichain[Timestamp]:
    """Return a stored frontier."""
    return Antichain.closed() if value is None else Antichain.of(Timestamp(value))


def read_state(row: Sequence[Any]) -> CollectionState:
    """Return the state in a row that begins (id, version, since, upper)."""
    name, version, since, upper = row[:4]
    if not isinstance(version, int):
        message = f'state of collection "{name}" is not readable'
        raise Corrupt(message, detail=f"record version {version!r}")
    try:
        state = CollectionState(CollectionId(name), version, frontier(since), frontier(upper))
    except (InvalidValue, TypeError) as error:
        message = f'state of collection "{name}" is not readable'
        raise Corrupt(message, detail=f"since {since!r}, upper {upper!r}") from error
    if not state.since.precedes(state.upper):
        message = f'state of collection "{name}" contradicts itself'
        raise Corrupt(message, detail=f"since {since!r} is beyond upper {upper!r}")
    return state


class UpdateReader:
    """Reads the stored updates of a collection as readers see them: at times beyond since."""

    def __init__(self, state: CollectionState) -> None:
        self._collection = state.collection
        self._since = column(state.since)
        self._upper = column(state.upper)
        # Data and times repeat: what comes goes again, and many come at once.
        self._digests: dict[str, bytes] = {}
        self._times: dict[int, Timestamp] = {}

    def read(self, key: bytes, data: str, time: int, diff: int) -> StoredUpdate:
        """Return one update; what cannot have been written so is ``Corrupt``."""
        try:
            if data not in self._digests:
                self._digests[data] = digest(data)
            whole = diff != 0 and self._digests[data] == bytes(key)
            late = self._upper is not None and time >= self._upper
            if time not in self._times:
                at = time if self._since is None else max(time, self._since)
                self._times[time] = Timestamp(at)
            update = StoredUpdate(data, self._times[time], diff)
        except (InvalidValue, TypeError) as error:
            message = f'an update of collection "{self._collection}" is not readable'
            raise Corrupt(message, detail=f"time {time!r}, diff {diff!r}, data {data!r}") from error
        if not whole:
            message = f'an update of collection "{self._collection}" was altered'
            raise Corrupt(message, detail=f"time {time}, diff {diff}, data {data!r}")
        if late:
            message = f'an update of collection "{self._collection}" is beyond its upper'
            raise Corrupt(message, detail=f"time {time}, upper {self._upper}")
        if time < 0:
            message = f'an update of collection "{self._collection}" is not readable'
            raise Corrupt(message, detail=f"time {time}, diff {diff}, data {data!r}")
        return update

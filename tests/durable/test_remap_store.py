"""Durable remaps over every store, and some that somebody broke."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from conformance.remap import CASES
from reclock.durable.remap_store import RemapStore
from reclock.durable.schema import digest
from reclock.durable.sqlite import DATABASE_FILE, open_sqlite
from reclock.errors import Corrupt, NewerFormat
from reclock.ids import CollectionId, ObjectId
from reclock.remap.codec import KAFKA, VERSION
from reclock.time.antichain import Antichain
from reclock.time.position import KafkaPosition
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conformance.remap import Case
    from reclock.durable.store import Store

SOURCE = ObjectId("u1")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_every_durable_remap(case: Case, reopen: Callable[[], Store]) -> None:
    case(lambda: RemapStore(reopen(), SOURCE, KAFKA))


def element(partition: int, offset: int) -> str:
    return KAFKA.encode(KafkaPosition.exact(partition, offset))


def insert(state: Path, data: str, time: int, diff: int = 1) -> None:
    """Write a row as the store does, whole, but wrong."""
    connection = sqlite3.connect(state / DATABASE_FILE, isolation_level=None)
    row = ("remap/u1", digest(data), time, data, diff)
    connection.execute(
        "INSERT OR REPLACE INTO reclock_update (collection, digest, time, data, diff)"
        " VALUES (?, ?, ?, ?, ?)", row)  # fmt: skip
    connection.close()


def bound(state: Path, *frontiers: Antichain[KafkaPosition]) -> None:
    with open_sqlite(state) as store:
        handle = RemapStore(store, SOURCE, KAFKA)
        for n, frontier in enumerate(frontiers, 1):
            remap, time = handle.load(), Timestamp(n * 1_000)
            upper = Antichain.of(time.step())
            store.append([handle.as_append(remap.changes(time, frontier), remap.upper, upper)])


@pytest.mark.parametrize(
    ("data", "time", "diff"),
    [
        ("gibberish", 1_000, 1),
        ('{"partition":0,"offset":-1}', 1_000, 1),
        (element(0, 5), 1_000, 2),
        (element(0, 5), 1_000, -1),
        (element(0, 4), 2_000, 1),
    ],
    ids=["not a position", "negative offset", "twice", "missing", "two offsets"],
)
def test_records_that_are_no_remap_are_corrupt(
    tmp_path: Path, data: str, time: int, diff: int
) -> None:
    bound(tmp_path, KafkaPosition.frontier({0: 5}), KafkaPosition.frontier({0: 7}))
    insert(tmp_path, data, time, diff)
    with open_sqlite(tmp_path) as store, pytest.raises(Corrupt):
        RemapStore(store, SOURCE, KAFKA).load()


def test_bindings_that_go_back_are_corrupt_when_stored(tmp_path: Path) -> None:
    bound(tmp_path, KafkaPosition.frontier({0: 5}), KafkaPosition.frontier({0: 5}))
    insert(tmp_path, element(0, 5), 1_500, -1)
    insert(tmp_path, element(0, 4), 1_500, 1)
    with open_sqlite(tmp_path) as store, pytest.raises(Corrupt, match="not monotone"):
        RemapStore(store, SOURCE, KAFKA).load()


def test_bindings_that_were_lost_are_not_taken_for_a_complete_source(tmp_path: Path) -> None:
    bound(tmp_path, KafkaPosition.frontier({0: 5}), KafkaPosition.frontier({0: 7}))
    connection = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
    connection.execute("DELETE FROM reclock_update")
    connection.close()
    with open_sqlite(tmp_path) as store, pytest.raises(Corrupt, match="must have a binding"):
        RemapStore(store, SOURCE, KAFKA).load()


def test_newer_bindings_are_refused(store: Store) -> None:
    store.open(CollectionId("remap/u1"), VERSION + 1)
    with pytest.raises(NewerFormat):
        RemapStore(store, SOURCE, KAFKA)

"""Cases about collections as such: opening, versions, listing, dropping, closing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.store.kit import append, at, fresh, refused, up
from reclock.durable.store import BEGINNING
from reclock.errors import InvalidValue, NewerFormat, StorageError
from reclock.ids import CollectionId

if TYPE_CHECKING:
    from conformance.store.kit import Case, Reopen


def a_new_collection_is_empty_at_the_beginning(reopen: Reopen) -> None:
    """Check that it has since = upper = {0}, and that opening it again changes nothing."""
    store = reopen()
    (c,) = fresh(store, "c")
    assert store.state(c).since == store.state(c).upper == BEGINNING
    assert store.snapshot(c).updates == ()
    assert append(store, c, [up("a", 3)], at(0), at(5)) is None
    assert store.open(c, 1).upper == at(5)
    assert len(store.snapshot(c).updates) == 1


def a_collection_that_was_not_opened_is_refused(reopen: Reopen) -> None:
    """Check that no call creates a collection by accident."""
    store = reopen()
    nowhere = CollectionId("nowhere")
    for call in (
        lambda: store.state(nowhere),
        lambda: store.snapshot(nowhere),
        lambda: store.updates(nowhere, at(1)),
        lambda: append(store, nowhere, [], at(0), at(1)),
        lambda: store.compact(nowhere, at(0)),
    ):
        assert refused(InvalidValue, call).code == "42704"
    assert store.collections("nowhere") == ()


def newer_records_are_refused(reopen: Reopen) -> None:
    """Check that version 1 refuses version 2, for good, and 2 reads what 1 wrote."""
    store = reopen()
    (c,) = fresh(store, "c")
    append(store, c, [up("old", 0)], at(0), at(1))
    assert store.open(c, 2).version == 2
    error = refused(NewerFormat, store.open, c, 1)
    assert "version 2" in (error.detail or "")
    assert error.hint
    store = reopen()
    refused(NewerFormat, store.open, c, 1)
    assert store.open(c, 2).upper == at(1)
    assert store.snapshot(c).updates == (up("old", 0),)
    refused(InvalidValue, store.open, c, 0)


def collections_are_listed_by_prefix(reopen: Reopen) -> None:
    """Check that a prefix is taken letter by letter: no wildcards, no folding of case."""
    store = reopen()
    made = fresh(store, "b", "B", "a%", "a_x", "ab")
    stem = made[0].removesuffix("b")
    assert [s.collection for s in store.collections(stem)] == sorted(made)
    assert [s.collection for s in store.collections(stem + "b")] == [stem + "b"]
    assert [s.collection for s in store.collections(stem + "a_")] == [stem + "a_x"]
    assert [s.collection for s in store.collections(stem + "a%")] == [stem + "a%"]
    assert {s.collection for s in store.collections()} >= set(made)


def a_dropped_collection_is_gone_whole(reopen: Reopen) -> None:
    """Check that others stay, dropping may be repeated, and a new one begins at {0}."""
    store = reopen()
    c, other = fresh(store, "c", "other")
    for collection in (c, other):
        append(store, collection, [up("a", 0)], at(0), at(1))
    store.drop(c)
    store.drop(c)
    refused(InvalidValue, store.state, c)
    assert store.snapshot(other).updates == (up("a", 0),)
    store = reopen()
    assert store.open(c, 1).upper == BEGINNING
    assert store.snapshot(c).updates == ()


def a_closed_store_serves_nobody(reopen: Reopen) -> None:
    """Check that after close every call fails, and closing twice is no error."""
    store = reopen()
    (c,) = fresh(store, "c")
    store.close()
    store.close()
    for call in (
        lambda: store.open(c, 1),
        lambda: store.state(c),
        lambda: store.snapshot(c),
        store.collections,
        lambda: append(store, c, [], at(0), at(1)),
        lambda: store.compact(c, at(0)),
        lambda: store.drop(c),
    ):
        refused(StorageError, call)
    with reopen() as again:
        assert again.state(c).upper == at(0)
    refused(StorageError, again.state, c)


CASES: Final[tuple[Case, ...]] = (
    a_new_collection_is_empty_at_the_beginning,
    a_collection_that_was_not_opened_is_refused,
    newer_records_are_refused,
    collections_are_listed_by_prefix,
    a_dropped_collection_is_gone_whole,
    a_closed_store_serves_nobody,
)

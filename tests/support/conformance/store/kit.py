"""Short words for the cases: frontiers, updates, fresh collections, expected refusals."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from reclock.durable.store import Append, StoredUpdate
from reclock.ids import CollectionId
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reclock.durable.store import Store, UpperMismatch
    from reclock.errors import Error

    Reopen: TypeAlias = Callable[[], Store]
    Case: TypeAlias = Callable[[Reopen], None]

CLOSED: Final[Antichain[Timestamp]] = Antichain.closed()

_numbers = count()


def at(time: int) -> Antichain[Timestamp]:
    """Return the frontier of one time."""
    return Antichain.of(Timestamp(time))


def up(data: str, time: int, diff: int = 1) -> StoredUpdate:
    """Return an update."""
    return StoredUpdate(data, Timestamp(time), diff)


def fresh(store: Store, *names: str) -> tuple[CollectionId, ...]:
    """Open new collections, at version 1."""
    number = next(_numbers)
    made = tuple(CollectionId(f"case{number}/{name}") for name in names)
    for collection in made:
        store.open(collection, 1)
    return made


def then_reopened(store: Store, reopen: Reopen) -> Iterator[Store]:
    """Give the store as it is, then what a new process finds."""
    yield store
    yield reopen()


def append(
    store: Store,
    collection: CollectionId,
    updates: Iterable[StoredUpdate],
    expected: Antichain[Timestamp],
    new: Antichain[Timestamp],
) -> UpperMismatch | None:
    """Append to one collection."""
    return store.append([Append(collection, tuple(updates), expected, new)])


def refused(error: type[Error], call: Callable[..., object], *arguments: Any) -> Error:
    """Assert that ``call(*arguments)`` raises ``error``, and return it."""
    try:
        call(*arguments)
    except error as raised:
        return raised
    message = f"{error.__name__} was not raised"
    raise AssertionError(message)

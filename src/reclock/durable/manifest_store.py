"""Manifests: which runs make up a collection, and how far it is complete.

The collection ``manifest/<object id>`` holds one record per run: its name, and a JSON
description that the arrangement reads and this module does not. Its upper *is* that of the
object: publishing a tick moves uppers and adds runs of many objects in one transaction, so a
tick is visible whole or not at all; an idle tick writes no record. A merge swaps runs
together with the next tick. Only the present runs are kept: from when on the object can be
read is what their descriptions say.

Invariant: a run that no manifest names is garbage; one that a manifest names exists,
because it was written before it was published.

Checked by tests/durable/test_manifest_store.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from reclock.durable.keyed import Contents, Json
from reclock.errors import InvalidValue
from reclock.ids import CollectionId, ObjectId

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reclock.durable.store import Append, Store, UpperMismatch
    from reclock.time.antichain import Antichain
    from reclock.time.timestamp import Timestamp

PREFIX: Final = "manifest/"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Manifest:
    """The runs of an object, with its frontiers."""

    contents: Contents

    @property
    def upper(self) -> Antichain[Timestamp]:
        """The times at which the object is not complete yet."""
        return self.contents.state.upper

    def runs(self) -> dict[str, Json]:
        """Return the description of every run."""
        return self.contents.values()


@dataclass(frozen=True, slots=True)
class Publication:
    """A step of one object: runs that come and go, and its new upper."""

    manifest: Manifest
    new_upper: Antichain[Timestamp]
    added: Mapping[str, Json] = field(default_factory=dict)
    removed: frozenset[str] = frozenset()

    def append(self) -> Append:
        """Return the step as an append, to publish with others."""
        for name in self.added.keys() & (self.manifest.contents.texts.keys() - self.removed):
            message = f'run "{name}" is already in the manifest'
            raise InvalidValue(message, hint="run names are never used twice")
        changes: dict[str, Json | None] = dict.fromkeys(self.removed)
        changes.update(self.added)
        return self.manifest.contents.change(changes, self.new_upper)[0]


class ManifestStore:
    """The manifests kept in ``store``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, item: ObjectId) -> Manifest:
        """Return the manifest of ``item``, creating an empty one if there is none."""
        self._store.open(_collection(item), VERSION)
        return self.load(item)

    def load(self, item: ObjectId) -> Manifest:
        """Return the current manifest of ``item``."""
        return Manifest(Contents.read(self._store.snapshot(_collection(item))))

    def publish(self, publications: Sequence[Publication]) -> UpperMismatch | None:
        """Take all steps at once, or none and say whose manifest has moved."""
        return self._store.append([publication.append() for publication in publications])

    def drop(self, item: ObjectId) -> None:
        """Forget the manifest of ``item``; its runs become garbage."""
        self._store.drop(_collection(item))


def _collection(item: ObjectId) -> CollectionId:
    return CollectionId(f"{PREFIX}{item}")

"""The id of a database: kept with its records, made at the first request.

Files of several databases may lie in one place; the id tells them apart. It is unique, except for
copies of the records. One collection, ``identity``, with one record.

Checked by tests/durable/test_identity.py.
"""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Final

from reclock.durable.keyed import Contents
from reclock.ids import CollectionId
from reclock.time.antichain import Antichain

if TYPE_CHECKING:
    from reclock.durable.store import Store

VERSION: Final = 1
_COLLECTION: Final = CollectionId("identity")
_KEY: Final = "database"


def identity_of(store: Store) -> str:
    """Return the id of the database whose records are in ``store``."""
    store.open(_COLLECTION, VERSION)
    contents = Contents.read(store.snapshot(_COLLECTION))
    found = contents.values().get(_KEY)
    if found is None:
        found = {"id": token_hex(8)}
        upper = Antichain.of(contents.state.upper.element().step())
        store.append([contents.change({_KEY: found}, upper)[0]])
    return str(found["id"])

"""The catalog: versions, races, and what survives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.store.kit import at
from reclock.durable.catalog_store import CATALOG, Catalog, CatalogStore
from reclock.durable.store import UpperMismatch
from reclock.errors import NewerFormat
from reclock.ids import ObjectId

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.durable.store import Store

U1, U2 = ObjectId("u1"), ObjectId("u2")


def changed(outcome: Catalog | UpperMismatch) -> Catalog:
    assert isinstance(outcome, Catalog)
    return outcome


def test_every_change_is_one_version(reopen: Callable[[], Store]) -> None:
    store = reopen()
    catalogs = CatalogStore(store)
    catalog = catalogs.load()
    assert (catalog.version, catalog.items()) == (0, {})
    catalog = changed(catalogs.append(catalog, {U1: {"name": "orders"}, U2: {"name": "v"}}))
    catalog = changed(catalogs.append(catalog, {U1: {"name": "Orders"}, U2: None}))
    assert (catalog.version, catalog.items()) == (2, {U1: {"name": "Orders"}})
    assert len(store.snapshot(CATALOG).updates) == 1
    assert CatalogStore(reopen()).load().items() == {U1: {"name": "Orders"}}


def test_an_outdated_catalog_cannot_be_changed(store: Store) -> None:
    catalogs = CatalogStore(store)
    seen = catalogs.load()
    first = changed(catalogs.append(seen, {U1: {}}))
    assert catalogs.append(seen, {U1: {"late": True}}) == UpperMismatch(CATALOG, at(1))
    assert catalogs.load().items() == first.items() == {U1: {}}


def test_a_catalog_from_the_future_is_refused(store: Store) -> None:
    CatalogStore(store)
    store.open(CATALOG, 99)
    with pytest.raises(NewerFormat):
        CatalogStore(store)

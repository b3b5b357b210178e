"""Manifests: a tick of many objects is published whole, or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from conformance.store.kit import at
from reclock.durable.manifest_store import ManifestStore, Publication
from reclock.durable.store import UpperMismatch
from reclock.errors import InvalidValue
from reclock.failpoints import FailpointRaised, armed
from reclock.ids import CollectionId, ObjectId

if TYPE_CHECKING:
    from collections.abc import Callable

    from reclock.durable.store import Store

U1, U2 = ObjectId("u1"), ObjectId("u2")


def test_a_tick_moves_all_objects_together(reopen: Callable[[], Store]) -> None:
    manifests = ManifestStore(reopen())
    one, two = manifests.open(U1), manifests.open(U2)
    tick = [
        Publication(one, at(5), added={"r1": {"rows": 3}, "r2": {"rows": 1}}),
        Publication(two, at(5), added={"s1": {"rows": 9}}),
    ]
    with armed({"durable.commit.before": "raise"}), pytest.raises(FailpointRaised):
        manifests.publish(tick)
    manifests = ManifestStore(reopen())
    assert [manifests.load(u).runs() for u in (U1, U2)] == [{}, {}]
    assert manifests.publish(tick) is None
    manifests = ManifestStore(reopen())
    assert manifests.load(U1).runs() == {"r1": {"rows": 3}, "r2": {"rows": 1}}
    assert manifests.load(U2).runs() == {"s1": {"rows": 9}}
    assert manifests.load(U2).upper == at(5)


def test_a_repeated_or_late_tick_is_refused_whole(store: Store) -> None:
    manifests = ManifestStore(store)
    one, two = manifests.open(U1), manifests.open(U2)
    assert manifests.publish([Publication(two, at(5), added={"s1": {}})]) is None
    late = [Publication(one, at(5), added={"r1": {}}), Publication(two, at(5), added={"s2": {}})]
    assert manifests.publish(late) == UpperMismatch(CollectionId("manifest/u2"), at(5))
    assert manifests.load(U1).runs() == {}
    assert manifests.load(U2).runs() == {"s1": {}}


def test_an_idle_tick_writes_no_record(store: Store) -> None:
    manifests = ManifestStore(store)
    manifests.open(U1)
    for t in range(1, 6):
        assert manifests.publish([Publication(manifests.load(U1), at(t))]) is None
    assert store.snapshot(CollectionId("manifest/u1")).updates == ()
    assert manifests.load(U1).upper == at(5)


def test_a_merge_swaps_runs_with_the_next_tick_and_stays_bounded(store: Store) -> None:
    manifests = ManifestStore(store)
    manifests.open(U1)
    for t in range(6):
        manifest = manifests.load(U1)
        old = frozenset(manifest.runs())
        step = Publication(manifest, at(t + 1), added={f"r{t}": {"upper": t + 1}}, removed=old)
        assert manifests.publish([step]) is None
    assert manifests.load(U1).runs() == {"r5": {"upper": 6}}
    assert len(store.snapshot(CollectionId("manifest/u1")).updates) == 1


def test_run_names_are_not_reused(store: Store) -> None:
    manifests = ManifestStore(store)
    assert manifests.publish([Publication(manifests.open(U1), at(1), added={"r": {}})]) is None
    with pytest.raises(InvalidValue, match='run "r" is already in the manifest'):
        manifests.publish([Publication(manifests.load(U1), at(2), added={"r": {"other": 1}})])
    with pytest.raises(InvalidValue, match='"q" is not in collection'):
        manifests.publish([Publication(manifests.load(U1), at(2), removed=frozenset({"q"}))])
    manifests.drop(U1)
    assert manifests.open(U1).runs() == {}

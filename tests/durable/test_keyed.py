"""One JSON record per key: folding, changing, and refusing what is anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.store.kit import CLOSED, append, at, fresh, up
from memory_store import MemoryStore
from reclock.durable.keyed import Contents
from reclock.errors import Corrupt, InvalidValue

if TYPE_CHECKING:
    from reclock.durable.keyed import Json
    from reclock.durable.store import Store
    from reclock.ids import CollectionId

values = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=3),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=4,
    ),
    max_size=3,
)  # fmt: skip
edits = st.dictionaries(st.sampled_from(["", "a", "b", "é\0\ud800"]), st.none() | values)


def read(store: Store, c: CollectionId) -> Contents:
    return Contents.read(store.snapshot(c))


@given(st.lists(edits, max_size=8))
def test_contents_are_what_was_last_put_and_no_more(rounds: list[dict[str, Any]]) -> None:
    store = MemoryStore()
    (c,) = fresh(store, "c")
    contents, model = read(store, c), {}
    for n, edit in enumerate(rounds):
        changes = {k: v for k, v in edit.items() if v is not None or k in model}
        change, contents = contents.change(changes, at(n + 1))
        assert store.append([change]) is None
        model.update(changes)
        model = {k: v for k, v in model.items() if v is not None}
        assert len(store.snapshot(c).updates) == len(model)
        assert contents.values() == model == read(store, c).values()
        assert contents.texts == read(store, c).texts
        assert contents.state == store.state(c)


def test_writing_what_is_there_already_writes_nothing() -> None:
    store = MemoryStore()
    (c,) = fresh(store, "c")
    first, contents = read(store, c).change({"k": {"b": 1, "a": 2}}, at(1))
    again, _ = contents.change({"k": {"a": 2, "b": 1}}, at(2))
    assert [u.diff for u in first.updates] == [1]
    assert again.updates == ()


def test_a_record_is_retracted_as_it_was_written() -> None:
    """Also when today's code would write it otherwise."""
    store = MemoryStore()
    (c,) = fresh(store, "c")
    append(store, c, [up('{ "value": {"x": 1}, "key": "k" }', 0)], at(0), at(1))
    change, _ = read(store, c).change({"k": {"x": 2}}, at(2))
    assert store.append([change]) is None
    assert read(store, c).values() == {"k": {"x": 2}}


def test_removing_what_is_not_there_is_refused() -> None:
    store = MemoryStore()
    (c,) = fresh(store, "c")
    with pytest.raises(InvalidValue, match='"k" is not in collection'):
        read(store, c).change({"k": None}, at(1))


def test_a_value_that_is_no_json_is_refused() -> None:
    store = MemoryStore()
    (c,) = fresh(store, "c")
    bad: Json = {"x": float("nan")}
    with pytest.raises(InvalidValue, match="JSON"):
        read(store, c).change({"k": bad}, at(1))
    with pytest.raises(InvalidValue, match="JSON"):
        read(store, c).change({"k": {"x": object()}}, at(1))


def test_a_closed_collection_takes_no_changes() -> None:
    store = MemoryStore()
    (c,) = fresh(store, "c")
    last, contents = read(store, c).change({"k": {}}, CLOSED)
    assert store.append([last]) is None
    with pytest.raises(InvalidValue):
        contents.change({"k": None}, CLOSED)


@pytest.mark.parametrize(
    "updates",
    [
        [up("no json", 0)],
        [up("[1]", 0)],
        [up('{"key": "k"}', 0)],
        [up('{"key": 1, "value": {}}', 0)],
        [up('{"key": "k", "value": 1}', 0)],
        [up('{"key": "k", "value": {}}', 0, 2)],
        [up('{"key": "k", "value": {}}', 0, -1)],
        [up('{"key": "k", "value": {}}', 0), up('{"key": "k", "value": {"x": 1}}', 0)],
    ],
)
def test_anything_else_is_corrupt_and_names_the_collection(updates: list[Any]) -> None:
    store = MemoryStore()
    (c,) = fresh(store, "c")
    append(store, c, updates, at(0), at(1))
    with pytest.raises(Corrupt, match=c):
        read(store, c)

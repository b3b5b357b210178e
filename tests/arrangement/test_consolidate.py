from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reclock.arrangement import consolidate as module
from reclock.arrangement.consolidate import consolidate
from reclock.arrangement.layout import Layout, kh_of
from reclock.errors import InvalidValue
from strategies.arrangements import (
    changes_in,
    changes_of,
    hashes,
    layouts,
    model,
    table_of,
)


@given(st.data())
def test_it_is_the_model(data):
    layout = data.draw(layouts())
    changes = data.draw(changes_of(layout))
    made = consolidate(layout, layout.conform(table_of(layout, changes, data.draw(hashes))))
    read = changes_in(layout, [made])
    assert model(read) == model(changes)
    assert len(read) == len(model(changes)), "equal updates are one"
    assert np.all(np.diff(kh_of(made)) >= 0)


@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_show(data, rng):
    layout = data.draw(layouts())
    changes = data.draw(changes_of(layout))
    how = data.draw(hashes)
    shuffled = changes[:]
    rng.shuffle(shuffled)
    one = consolidate(layout, layout.conform(table_of(layout, changes, how)))
    other = consolidate(layout, layout.conform(table_of(layout, shuffled, how)))
    assert one.serialize() == other.serialize()
    assert consolidate(layout, one).serialize() == one.serialize()


@given(st.data(), st.randoms(use_true_random=False))
def test_colliding_fingerprints_change_nothing(data, rng):
    layout = data.draw(layouts())
    changes = data.draw(changes_of(layout))
    shuffled = changes[:]
    rng.shuffle(shuffled)

    def constant(columns, size):
        del columns
        return np.zeros(size, np.uint64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fingerprint", constant)
        made = consolidate(layout, layout.conform(table_of(layout, changes, "constant")))
        other = consolidate(layout, layout.conform(table_of(layout, shuffled, "constant")))
    read = changes_in(layout, [made])
    assert model(read) == model(changes)
    assert len(read) == len(model(changes))
    assert made.serialize() == other.serialize()


def test_a_multiplicity_out_of_range_is_refused():
    layout = Layout.of({}, {})
    large = 2**62
    table = pa.Table.from_arrays(
        [pa.array([0, 0]), pa.array([1, 1]), pa.array([large, large])], schema=layout.schema
    )
    with pytest.raises(InvalidValue, match="multiplicity"):
        consolidate(layout, layout.conform(table))
    table = table.set_column(2, layout.schema.field(2), pa.array([large, large - 1]))
    assert changes_in(layout, [consolidate(layout, layout.conform(table))])[0].diff == 2**63 - 1

"""BANK: transfers between two accounts of those there are."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reclock.connectors.generator.bank import Bank


@given(st.integers(0, 2**63 - 1), st.integers(2, 2**32 - 1), st.integers(0, 10**13 - 50))
def test_transfers_have_two_ends(seed: int, accounts: int, first: int) -> None:
    offsets, columns, diffs = Bank(seed, accounts).rows(first, first + 50)
    ids, giver, taker, amount = (column.to_numpy() for column in columns[:4])
    assert (ids == offsets + 1).all()
    assert (giver != taker).all()
    for side in (giver, taker):
        assert ((side >= 1) & (side <= accounts)).all()
    assert ((amount >= 1) & (amount <= 1_000)).all()
    assert (diffs == 1).all()


def test_all_accounts_give_and_take() -> None:
    _, columns, _ = Bank(1, 10).rows(0, 10_000)
    for side in columns[1:3]:
        found = np.bincount(side.to_numpy())
        assert found[0] == 0
        assert (np.abs(found[1:] - 1_000) < 200).all()


def test_the_smallest_bank() -> None:
    _, columns, _ = Bank(1, 2).rows(0, 100)
    assert set(zip(columns[1].to_pylist(), columns[2].to_pylist(), strict=True)) == {(1, 2), (2, 1)}


def test_known_answers() -> None:
    _, columns, _ = Bank(7).rows(10**12, 10**12 + 2)
    rows = zip(*(column.to_pylist() for column in columns), strict=True)
    assert [(*row[:-1], row[-1].isoformat()) for row in rows] == [
        (1000000000001, 32, 61, 559, "2055-09-09T01:46:40"),
        (1000000000002, 96, 35, 54, "2055-09-09T01:46:40.001000"),
    ]

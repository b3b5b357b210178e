"""What the demonstration compares its output with: a plain computation of the same transfers."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from reclock.demo.bank import Expected, embedded_pipeline, kafka_pipeline, transfers
from reclock.sql.parse import parse_statements


@given(st.integers(0, 300))
def test_expected_balances_are_the_transfers_added_up_one_by_one(count):
    balances = Counter()
    for transfer in transfers(0, count):
        balances[transfer.to_account] += transfer.amount
        balances[transfer.from_account] -= transfer.amount
    assert Expected.of(count).balances == dict(balances)


def test_transfers_do_not_depend_on_how_they_are_asked_for():
    assert transfers(0, 50) == transfers(0, 20) + transfers(20, 50)
    assert json.loads(transfers(4, 5)[0].json())["id"] == 5


def test_the_pipelines_are_statements():
    assert len(parse_statements(kafka_pipeline("localhost:9"))) == 9
    assert len(parse_statements(embedded_pipeline(3))) == 7

from __future__ import annotations

import pickle

import pytest

from reclock.errors import Unreadable
from reclock.ids import HolderId, ObjectId
from reclock.time.counted import CountedAntichain
from reclock.time.expiry import DataflowKind, Dependency, Lifetime
from reclock.time.frontier import CLOSED, Bounds, at
from reclock.time.holds import HoldRow, Holds
from reclock.time.oracle import OracleState
from reclock.time.policy import Policy
from reclock.time.select import AsOf, AsOfAtLeast, Isolation, Lag, select
from reclock.time.timeline import CONSTANT, EPOCH_MS, TimelineContext
from reclock.time.timestamp import Timestamp

VALUES = [
    CONSTANT,
    TimelineContext(EPOCH_MS, "orders"),
    OracleState(Timestamp(3), Timestamp(4)),
    Policy(1_000),
    Dependency("orders", CLOSED, refreshed=True),
    Lifetime(1_000, 5),
    DataflowKind.INDEX,
    Isolation.SERIALIZABLE,
    AsOf(Timestamp(3)),
    AsOfAtLeast(Timestamp(3)),
    Lag("orders", Timestamp(3), Timestamp(4)),
    HoldRow(ObjectId("u1"), HolderId("sink/u2"), at(3)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: type(v).__name__)
def test_values_pickle(value: object) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


def test_a_counted_frontier_pickles_with_its_counts() -> None:
    copy = pickle.loads(pickle.dumps(CountedAntichain([(Timestamp(3), 2)])))
    copy.update([(Timestamp(3), -1)])
    assert copy.frontier == at(3)


def test_an_error_of_a_rule_pickles_whole() -> None:
    with pytest.raises(Unreadable) as caught:
        select([Bounds("orders", at(9), at(9))], as_of=AsOf(Timestamp(3)))
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.code, copy.detail, copy.hint) == (
        caught.value.code,
        "orders has since {9}",
        "the earliest time that can be read is 9",
    )


def test_a_ledger_of_holds_stays_in_its_process() -> None:
    with pytest.raises(TypeError):
        pickle.dumps(Holds())

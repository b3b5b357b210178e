"""Which queries look for the row of an error: one per step that can fail, inputs first."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from model.evaluate import evaluate
from model.evaluate_scalar import EvaluationError
from reclock.ids import ObjectId
from reclock.sql.plan.build.functions import call
from reclock.sql.plan.relation import Filter, Get, Project, Reduce, column
from reclock.sql.plan.scalar import Fault, Literal, Scalar, can_fail
from reclock.sql.schema import Column, Schema
from reclock.sql.types import BIGINT
from reclock.sql.witness import suspects
from reclock.time.timeline import EPOCH_MS

T = Get(
    ObjectId("u1"),
    "t",
    Schema((Column("k", BIGINT), Column("x", BIGINT), Column("y", BIGINT))),
    EPOCH_MS,
    frozenset({frozenset({0})}),
)
ZERO = "22012|division by zero"


def over(scalar: Scalar, by: Scalar) -> Scalar:
    return call("/", (scalar, by))


def number(value: int) -> Literal:
    return Literal(value, BIGINT)


def test_a_fault_cannot_fail() -> None:
    failing = over(number(1), column(T, 1))
    assert can_fail(failing)
    assert not can_fail(Fault(failing))


def test_what_cannot_fail_has_no_suspects() -> None:
    assert not list(suspects(Filter(T, (call(">", (column(T, 1), number(0))),)), ZERO))


def test_steps_come_inputs_first_and_chains_are_one() -> None:
    below = Project(T, (("a", over(number(1), column(T, 1))), ("b", column(T, 2))))
    chain = Filter(below, (call(">", (over(number(1), column(below, 1)), number(0))),))
    grouped = Reduce(chain, (0,), ())
    above = Project(grouped, (("c", over(number(1), column(grouped, 0))),))
    assert [s.names for s in suspects(above, ZERO)] == [("t.k", "t.x", "t.y"), ("a",)]


@given(st.lists(st.tuples(st.integers(-2, 2), st.integers(-2, 2)), max_size=6))
def test_the_first_failing_row_is_found_if_and_only_if_there_is_one(
    rows: list[tuple[int, int]],
) -> None:
    plan = Project(
        Filter(T, (call(">", (over(number(2), column(T, 1)), number(0))),)),
        (("q", over(number(3), column(T, 2))),),
    )
    tables = {"t": Counter({(k, *row): 1 for k, row in enumerate(rows)})}
    failing = [(k, x, y) for k, (x, y) in enumerate(rows) if x == 0 or (2 // x > 0 and y == 0)]
    (suspect,) = suspects(plan, ZERO)
    assert list(evaluate(suspect.plan.root, tables)) == failing[:1]
    (other,) = suspects(plan, "22003|out of range")
    assert not list(evaluate(other.plan.root, tables))
    try:
        evaluate(plan, tables)
    except EvaluationError:
        assert failing
    else:
        assert not failing

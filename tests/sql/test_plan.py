from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import FrozenInstanceError

import pytest

from model.evaluate import answer
from reclock.errors import Error, TimelineMismatch
from reclock.ids import ObjectId
from reclock.sql.names import CatalogItem
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import block_of, plan_query, plan_scalar
from reclock.sql.plan.node import PlanError
from reclock.sql.plan.relation import Constant, Filter, Get, Join, JoinKind, KeyPair, Project
from reclock.sql.plan.scalar import ColumnRef, Literal
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax.query import Select
from reclock.sql.types import BOOLEAN, INTEGER, TEXT
from reclock.time.timeline import EPOCH_MS, External
from strategies.queries import FuzzCatalog

ONE = Schema((Column("a", INTEGER, nullable=False),))


class Catalog:
    def __init__(self) -> None:
        near = Get(ObjectId("u1"), "near", ONE, EPOCH_MS)
        self._items = {
            "near": CatalogItem(ObjectId("u1"), "near", "table", ONE, EPOCH_MS),
            "far": CatalogItem(ObjectId("u2"), "far", "source", ONE, External("far")),
            "view": CatalogItem(ObjectId("u3"), "view", "view", ONE, EPOCH_MS, plan=near),
        }

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        return self._items.get(name[-1])

    def relation_names(self) -> tuple[str, ...]:
        return tuple(self._items)


@pytest.mark.parametrize(
    "text",
    [
        "select * from near, far",
        "select * from view join far using (a)",
        "select * from near where exists (select 1 from far where far.a = near.a)",
        "select (select max(a) from far) from near",
        "select a from near union select a from far",
        "with w as (select * from far) select * from near, w",
    ],
)
def test_timelines_never_mix(text: str) -> None:
    with pytest.raises(TimelineMismatch) as refused:
        plan_query(parse_query(text), Catalog())
    assert '"near"' in str(refused.value.detail)
    assert '"far"' in str(refused.value.detail)


def test_constants_join_anything() -> None:
    plan = plan_query(parse_query("select * from far, (values (1)) x(b)"), Catalog())
    assert plan.root.timeline.timeline == External("far")
    constant = plan_query(parse_query("select 1"), Catalog())
    assert constant.root.timeline.timeline is None


def test_ill_formed_nodes_cannot_be_made() -> None:
    node = Constant(ONE, (((1,), 1),))
    with pytest.raises(PlanError, match="column 5"):
        Project(node, (("x", ColumnRef(5, INTEGER)),))
    with pytest.raises(PlanError, match="as text"):
        Project(node, (("x", ColumnRef(0, TEXT)),))
    with pytest.raises(PlanError, match="not boolean"):
        Filter(node, (Literal(1, INTEGER),))
    with pytest.raises(PlanError, match="right key"):
        Join(JoinKind.INNER, node, node, (KeyPair(0, 1),))
    with pytest.raises(PlanError, match="does not fit"):
        Constant(ONE, (((1, 2), 1),))


def test_nodes_are_frozen_and_pickle() -> None:
    node = Filter(Constant(ONE, (((1,), 1),)), (Literal(True, BOOLEAN),))
    with pytest.raises(FrozenInstanceError):
        node.predicates = ()  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(Constant(ONE, (((1,), 1),)))).schema == ONE


def test_parameters_are_values() -> None:
    plan = plan_query(
        parse_query("select $1 + a, $2::text from near"), Catalog(), parameters=(5, "x")
    )
    assert [str(c.type) for c in plan.root.schema] == ["integer", "text"]
    with pytest.raises(Error) as missing:
        plan_query(parse_query("select $3"), Catalog(), parameters=(1,))
    assert missing.value.code == "42P02"


def test_expressions_over_one_relation() -> None:
    catalog = Catalog()
    item = catalog.resolve(("near",))
    assert item is not None
    body = parse_query("select x.a + (select max(a) from near)").body
    assert isinstance(body, Select)
    block = block_of(item, "x")
    scalar = plan_scalar(body.items[0].expression, block, catalog)
    assert scalar.type == INTEGER
    assert block.node.width == 2


def test_fingerprints_ignore_names() -> None:
    first = plan_query(parse_query("select a as x from near"), Catalog()).root
    second = plan_query(parse_query("select a as y from near"), Catalog()).root
    assert first.fingerprint == second.fingerprint
    assert first != second


def test_distinct_values_are_in_their_own_order() -> None:
    """As PostgreSQL has them; the reference evaluator is what operators are compared with."""
    rows = {"t": Counter({(1, 2, "y"): 1, (2, 1, "x"): 1, (3, 2, "x"): 1, (4, None, "z"): 1})}
    for text, expected in (
        ("select array_agg(distinct b) from t", (1, 2, None)),
        ("select array_agg(distinct b order by b desc) from t", (None, 2, 1)),
        ("select string_agg(distinct s, '') from t", "xyz"),
    ):
        plan = plan_query(parse_query(text), FuzzCatalog())
        assert answer(plan, rows) == [(expected,)]

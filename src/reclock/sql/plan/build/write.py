"""The parts of a statement that writes, planned: what it reads, its conditions and its values.

A write is planned as a query whose rows say what is taken away and added (``session.dml``);
this plans what that query is made of. All parts see what WITH before the statement names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import AmbiguousName, StatementError
from reclock.sql.names import Scope, ScopeColumn, resolve_relation
from reclock.sql.plan.build import plan_common, planner_of
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.build.conjunct import aggregates_in, windows_in
from reclock.sql.plan.build.expression import ExpressionBuilder
from reclock.sql.plan.build.select import expanded, filter_where
from reclock.sql.plan.build.source import plan_from
from reclock.sql.plan.build.subquery import row_values
from reclock.sql.plan.relation import Get
from reclock.sql.syntax.place import placed

if TYPE_CHECKING:
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.node import Node
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.schema import Schema
    from reclock.sql.syntax import query as q
    from reclock.sql.syntax.expression import Expression, Name


class WritePlanner:
    """Plans the parts of one statement."""

    def __init__(
        self,
        catalog: CatalogView,
        parameters: tuple[object, ...],
        common: tuple[q.CommonTable, ...] = (),
    ) -> None:
        self.catalog = catalog
        self._planner = planner_of(catalog, parameters)
        with placed(common):
            self._common = plan_common(self._planner, common, None)

    def block(self, node: Node, *scopes: Scope) -> Block:
        """Return rows with names; two tables of one name are refused."""
        names: set[str] = set()
        scope = Scope()
        for some in scopes:
            clash = names & some.tables
            if clash:
                message = f'table name "{min(clash)}" specified more than once'
                raise AmbiguousName(message, code="42712", hint="give one of them an alias")
            names |= some.tables
            scope += some
        return Block(node, scope, common=self._common)

    def rows_of(self, name: Name) -> Node:
        """Return the rows of the relation that is written to: no WITH query can be it."""
        found = resolve_relation(self.catalog, name)
        return Get(found.id, found.name, found.schema, found.timeline, found.unique_keys)

    def source(self, item: q.FromItem) -> tuple[Node, Scope]:
        """Return the rows of FROM or USING: they see nothing of the table that is written to."""
        with placed(item):
            return plan_from(self._planner, item, Block(common=self._common))

    def query(self, query: q.Query) -> Node:
        """Return the rows of a query."""
        with placed(query):
            block = Block(common=self._common) if self._common else None
            return self._planner.query(self._planner, query, block).relation

    def where(self, block: Block, condition: Expression | None) -> None:
        """Keep the rows for which a condition is true."""
        if condition is not None:
            with placed(condition):
                filter_where(self._planner, block, condition)

    def condition(self, block: Block, condition: Expression, what: str) -> Scalar:
        """Return a condition as a boolean."""
        _check_plain(condition, what)
        return ExpressionBuilder(self._planner, block).condition(condition, what)

    def value(self, block: Block, expression: Expression) -> Scalar:
        """Return a value over the rows of a block."""
        with placed(expression):
            return ExpressionBuilder(self._planner, block)(expression)

    def row(self, block: Block, query: q.Query, width: int) -> list[Scalar]:
        """Return the values of the one row of a query, NULLs if it has none."""
        with placed(query):
            return row_values(self._planner, block, query, width)

    def outputs(self, block: Block, items: tuple[q.SelectItem, ...]) -> list[tuple[str, Scalar]]:
        """Return what RETURNING gives."""
        with placed(items):
            _check_plain(tuple(item.expression for item in items), "RETURNING")
            build = ExpressionBuilder(self._planner, block)
            return [(name, build.value(e)) for name, e in expanded(items, block)]


def scope_of(table: str, schema: Schema, at: int = 0) -> Scope:
    """Return the names of a table's columns, which begin at a place of a block's rows."""
    return Scope(
        tuple(ScopeColumn(table, c.name, at + i, c.type, c.nullable) for i, c in enumerate(schema))
    )


def _check_plain(value: object, what: str) -> None:
    """Refuse aggregates and window functions where there are no groups."""
    for found, kind, code in (
        (aggregates_in(value), "aggregate", "42803"),
        (windows_in(value), "window", "42P20"),
    ):
        if found:
            message = f"{kind} functions are not allowed in {what}"
            hint = "use them in a subquery"
            raise StatementError(message, code=code, hint=hint, position=found[0].position)

"""The defaults of a table's columns, once per statement.

A default is a constant, an expression, which is computed for the statement (``now()`` is the same
for all of its rows), or the next number of a sequence, of which each row has its own. A statement
is planned more than once, and in a transaction it may run again, but it keeps the numbers that it
got first: ``Defaults`` remembers them.

``DRY`` takes no numbers: it is for statements that are only described or checked.

Tests: tests/session/test_defaults.py, tests/session/test_sequences.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from reclock.catalog.serial.item import Sequence
from reclock.dataflow import delta as deltas
from reclock.dataflow.error_rows import failure
from reclock.dataflow.evaluate import Evaluated, RowRequest
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python, to_python
from reclock.errors import NotSupported, UndefinedName
from reclock.session.functions import constants
from reclock.session.sequence_functions import check_may, drawn_from, named, take
from reclock.sql.names import NOTHING
from reclock.sql.plan.build import plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.coerce import assignable
from reclock.sql.plan.scalar import NULL, Cast, Literal, can_fail
from reclock.sql.types import Numeric

if TYPE_CHECKING:
    from reclock.catalog.item import Table
    from reclock.engine.core import Core
    from reclock.session.speaker import Speaker
    from reclock.sql.names import CatalogView
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.syntax.expression import Expression


class Defaults:
    """The defaults of one statement of a session; without one they are ``DRY``."""

    def __init__(self, session: Speaker | None) -> None:
        self._session = session
        self._known: dict[tuple[Expression, object], Scalar] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._many: dict[tuple[str, int], list[int]] = {}

    def scalar(self, table: Table, at: int, catalog: CatalogView, row: int | None = None) -> Scalar:
        """Return what column ``at`` gets; without a ``row``, NULL if its rows get numbers later."""
        column = table.columns[at]
        if column.sequence is not None:
            if row is None:
                return Literal(None, column.column.type)
            if self._session is None:
                return Literal(0, column.column.type)
            key = (table.name, at, row)
            if key not in self._numbers:
                (self._numbers[key],) = take(self._session, self._sequence(table, at, catalog), 1)
            return Literal(self._numbers[key], column.column.type)
        if column.default is None:
            return NULL
        kind = column.column.type
        known = self._known.get((column.default, kind))
        if known is None:
            known = self._known[column.default, kind] = self._computed(table, at)
        return known

    def called(self, cell: Expression, row: int, at: int, catalog: Any, kind: Any) -> Scalar | None:
        """Return the number of ``nextval('…')`` in a row of VALUES; None if it is no such call."""
        name = drawn_from(cell)
        if name is None:
            return None
        sequence = named(name, catalog)
        if self._session is None:
            return Literal(0, kind)
        key = ("called", name.parts, row, at)
        if key not in self._numbers:
            check_may(self._session, sequence)
            (self._numbers[key],) = take(self._session, sequence, 1)
        return Literal(self._numbers[key], kind)

    def numbers(self, table: Table, at: int, count: int, catalog: CatalogView) -> list[int]:
        """Return the numbers of so many rows that a query gave."""
        given = self._many.setdefault((table.name, at), [])
        if len(given) < count and self._session is not None:
            sequence = self._sequence(table, at, catalog)
            given += take(self._session, sequence, count - len(given))
        return given[:count]

    def column(self, table: Table, at: int, count: int, catalog: CatalogView) -> pa.Array:
        """Return the defaults of so many rows that were copied."""
        column = table.columns[at]
        kind = column.column.type
        if column.sequence is not None:
            return from_python(self.numbers(table, at, count, catalog), kind)
        value = assignable(self.scalar(table, at, catalog), kind, column.column.name)
        while isinstance(value, Cast):  # a literal that is cast
            value = value.operand
        assert isinstance(value, Literal)
        one = from_python([value.value], kind)
        return one.take(pa.array(np.zeros(count, np.int64)))

    def _sequence(self, table: Table, at: int, catalog: Any) -> Sequence:
        found = catalog.items[table.columns[at].sequence]
        assert isinstance(found, Sequence)
        return found

    def _computed(self, table: Table, at: int) -> Scalar:
        """Return a default that is no number of a sequence, as a constant if it can be one."""
        column = table.columns[at]
        assert column.default is not None
        expression, session = column.default, self._session
        expression = constants(expression, session)
        block = Block()
        before = block.node
        try:
            scalar = plan_scalar(expression, block, NOTHING)
        except UndefinedName as error:
            if error.code != "42703":
                raise
            message = "cannot use column reference in DEFAULT expression"
            hint = "write a constant, or a function of the moment such as now()"
            raise NotSupported(message, hint=hint, position=error.position) from error
        if block.node is not before:
            message = "cannot use subquery in DEFAULT expression"
            raise NotSupported(message, hint="give the value in each INSERT")
        value = assignable(scalar, column.column.type, column.column.name)
        if is_constant(value) or session is None:
            return value
        return Literal(computed(session.core, value), column.column.type)


def is_constant(value: Scalar) -> bool:
    """Return whether a value is known without Spark: the column's own check rounds a number."""
    return isinstance(value, Literal) or (
        isinstance(value, Cast)
        and isinstance(value.operand, Literal)
        and isinstance(value.type, Numeric)
    )


def computed(core: Core, scalar: Scalar) -> object:
    """Return the value of an expression over nothing, or raise its error."""
    one = deltas.build([], np.zeros(1, np.int64), np.ones(1, np.int64))
    (found,) = core.engine.evaluate([RowRequest(0, one, (scalar,))])
    assert isinstance(found, Evaluated)
    errors = found.errors[0]
    if can_fail(scalar) and errors is not None and errors[0].is_valid:
        code, _, message = errors[0].as_py().partition("|")
        raise failure(code, message, "in a DEFAULT")
    return to_python(found.values[0].cast(arrow_type(scalar.type)), scalar.type)[0]


DRY: Final = Defaults(None)
"""Defaults for statements that are not run."""

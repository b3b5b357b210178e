"""Prepared statements: one text, run repeatedly with other values.

A session has one list of them. ``PREPARE`` adds to it, and so does a server for a client of the
extended protocol; either can be run by ``EXECUTE`` and forgotten by ``DEALLOCATE``. They end with
the session, whatever becomes of the transaction that they were prepared in.

``EXECUTE name (a, …)`` is the prepared statement with the values of ``a, …``, which are converted
to its types as INSERT converts values for columns. It is admitted, authorized, measured and
answered as that statement is: ``executed`` puts one in the place of the other before all else.

Cost: constants are read where they stand; other expressions are one query over nothing.

Tests: tests/session/test_prepared.py.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from reclock.dataflow.values import rows_of
from reclock.engine.read import Readable, read_time
from reclock.errors import NotSupported, StatementError, WrongType
from reclock.sql.plan.build import plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.build.parameter import Typed
from reclock.sql.plan.coerce import assignable
from reclock.sql.plan.relation import Project, QueryPlan
from reclock.sql.plan.scalar import Cast, Literal, Scalar
from reclock.sql.statement.session import Execute
from reclock.sql.types import TEXT, UNKNOWN, Numeric
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.session.described import Description, PreparedStatement
    from reclock.session.statements.context import Context
    from reclock.sql.statement import Parsed
    from reclock.sql.types import Type


def unknown_statement(name: str) -> StatementError:
    """Return the error for a name that nothing is prepared under."""
    message = f'prepared statement "{name}" does not exist'
    return StatementError(message, code="26000", hint="prepare it first")


def check_free(name: str, known: dict[str, PreparedStatement]) -> None:
    """Refuse to prepare two statements under one name."""
    if name in known:
        message = f'prepared statement "{name}" already exists'
        raise StatementError(message, code="42P05", hint="DEALLOCATE it first")


def executed(context: Context, statement: Execute) -> tuple[Parsed, tuple[object, ...]]:
    """Return what EXECUTE runs, and with which values."""
    found = found_statement(context, statement)
    assert found.parsed is not None
    assert found.description is not None
    return found.parsed, _values(context, statement, found.description.parameters)


def described_execute(context: Context, parsed: Parsed, declared: Sequence[Type]) -> Description:
    """Return what EXECUTE takes, where its values have parameters of their own, and gives."""
    assert isinstance(parsed.statement, Execute)
    found = found_statement(context, parsed.statement).description
    assert found is not None
    types = [*declared, *[UNKNOWN] * (parsed.parameters - len(declared))]
    return replace(found, parameters=tuple(TEXT if k == UNKNOWN else k for k in types))


def found_statement(context: Context, statement: Execute) -> PreparedStatement:
    """Return what EXECUTE names."""
    found = context.session.prepared.get(statement.name)
    if found is None or found.parsed is None or isinstance(found.parsed.statement, Execute):
        raise unknown_statement(statement.name)
    return found


def _values(context: Context, statement: Execute, kinds: Sequence[Type]) -> tuple[object, ...]:
    if len(statement.arguments) != len(kinds):
        message = f'wrong number of parameters for prepared statement "{statement.name}"'
        detail = f"expected {len(kinds)} parameters but got {len(statement.arguments)}"
        raise StatementError(message, code="42601", detail=detail, hint="give a value for each $n")
    catalog, block = context.catalog, Block()
    scalars = []
    for at, (argument, kind) in enumerate(zip(statement.arguments, kinds, strict=True), 1):
        scalar = plan_scalar(argument, block, catalog, context.parameters)
        try:
            scalars.append(assignable(scalar, kind, f"${at}"))
        except WrongType as error:
            message = f"parameter ${at} of type {scalar.type} cannot be coerced to type {kind}"
            hint = "you will need to rewrite or cast the expression"
            raise WrongType(message, code="42804", hint=hint) from error
    values = _computed(context, block, scalars)
    return tuple(Typed(value, kind) for value, kind in zip(values, kinds, strict=True))


def _computed(context: Context, block: Block, scalars: list[Scalar]) -> Sequence[Any]:
    constants = [_constant(scalar) for scalar in scalars]
    if all(constant is not None for constant in constants):
        return [constant.value for constant in constants if constant is not None]
    outputs = tuple((f"c{at}", scalar) for at, scalar in enumerate(scalars))
    plan = QueryPlan(Project(block.node, outputs), len(outputs))
    if plan.root.timeline.timeline is not None:
        message = "cannot use subquery in EXECUTE parameter"
        raise NotSupported(message, hint="ask for the value first")
    core, session = context.core, context.session
    with core.reading() as world:
        when = read_time(world, None) or Timestamp(0)
        answer = Readable(plan, world, when, session.role).peek(core, session.interrupt)
    return rows_of(answer, [scalar.type for scalar in scalars])[0]


def _constant(scalar: Scalar) -> Literal | None:
    """Return a constant; a number for a numeric parameter has all the digits that were written."""
    match scalar:
        case Literal():
            return scalar
        case Cast(Literal() as written, Numeric()):
            return written
    return None

"""Expressions that need no Spark: comparisons, and what is made of them, by Arrow.

Definition. An expression is *local* if it is made of columns and constants, and of::

    =  <>  <  <=  >  >=           of two operands of one type, one of those in ``_ORDERED``
    is null, is true, is false    of any of these
    not, and, or                  three-valued

None of these can fail, so local expressions have no errors. They mean what they mean in Spark:
numbers, dates and moments compare as such, texts by their bytes, and NULL with anything is NULL.
Floats are left to Spark, whose NaN equals itself, and so are operands of two types.

Cost: a pass over the columns, and no copy of the rows to the JVM and back: what a filter over
millions of rows costs in Spark is mostly that.

Compared with Spark: tests/dataflow/test_local.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reclock.dataflow.evaluate import Evaluated
from reclock.dataflow.values import from_python
from reclock.sql import types as t
from reclock.sql.plan.scalar import And, Call, ColumnRef, Literal, Or

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type

_ORDERED: Final = frozenset({t.BOOLEAN, *t.INTEGERS, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ, t.TEXT})

_COMPARISONS: Final[dict[str, Callable[..., pa.Array]]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TESTS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "is null": lambda value: value.is_null(),
    "is true": lambda value: value.fill_null(False),
    "is false": lambda value: pc.invert(value.fill_null(True)),
    "not": pc.invert,
}


def is_local(scalar: Scalar) -> bool:
    """Return whether an expression needs no Spark."""
    match scalar:
        case ColumnRef() | Literal():
            return True
        case And(operands) | Or(operands):
            return all(map(is_local, operands))
        case Call(function, arguments):
            known = function.name in _TESTS or (
                function.name in _COMPARISONS
                and arguments[0].type == arguments[1].type
                and _is_ordered(arguments[0].type)
            )
            return known and all(map(is_local, arguments))
    return False


def _is_ordered(kind: Type) -> bool:
    return kind in _ORDERED or isinstance(kind, t.Numeric)


def evaluated(scalars: Sequence[Scalar], rows: pa.RecordBatch) -> Evaluated:
    """Return the values of local expressions over the columns of a delta.

    >>> from reclock.sql.plan.functions import find_function
    >>> from reclock.sql.plan.scalar import TRUE
    >>> large = find_function(">", (t.BIGINT, t.BIGINT))
    >>> scalar = Call(large, (ColumnRef(0, t.BIGINT), Literal(1, t.BIGINT)), t.BOOLEAN)
    >>> rows = pa.RecordBatch.from_arrays([pa.array([1, 2, None])], ["c0"])
    >>> evaluated([scalar], rows).values[0].to_pylist()
    [False, True, None]
    """
    return Evaluated(tuple(_value(s, rows) for s in scalars), (None,) * len(scalars))


def _value(scalar: Scalar, rows: pa.RecordBatch) -> pa.Array:  # noqa: PLR0911 - one per case
    match scalar:
        case ColumnRef(index):
            return rows.column(index)
        case Literal(value, kind):
            return from_python([value], kind).take(pa.array(np.zeros(rows.num_rows, np.int64)))
        case And(operands):
            return _folded(pc.and_kleene, operands, rows)
        case Or(operands):
            return _folded(pc.or_kleene, operands, rows)
        case Call(function, (one, Literal(value, kind))):
            return _COMPARISONS[function.name](_value(one, rows), from_python([value], kind)[0])
        case Call(function, (one, other)):
            return _COMPARISONS[function.name](_value(one, rows), _value(other, rows))
        case Call(function, (one,)):
            return _TESTS[function.name](_value(one, rows))
    raise AssertionError(scalar)


def _folded(
    connect: Callable[[pa.Array, pa.Array], pa.Array],
    operands: Sequence[Scalar],
    rows: pa.RecordBatch,
) -> pa.Array:
    first, *others = operands
    made = _value(first, rows)
    for other in others:
        made = connect(made, _value(other, rows))
    return made

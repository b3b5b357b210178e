"""Scalar expressions as written.

Syntax that is only another spelling is already gone: ``BETWEEN`` is two comparisons,
``EXTRACT(year FROM x)`` is ``extract('year', x)``, ``x AT TIME ZONE z`` is
``timezone(z, x)``; ``IS [NOT] NULL`` and the like are ``IsTest``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reclock.sql.interval.qualifier import PLAIN, Qualifier

if TYPE_CHECKING:
    from reclock.sql.syntax.query import Query
    from reclock.sql.types import Written


@dataclass(frozen=True, slots=True)
class Name:
    """A possibly qualified name, already folded to lower case where it was not quoted."""

    parts: tuple[str, ...]
    position: int | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Star:
    """``*`` or ``t.*``."""

    qualifier: tuple[str, ...] = ()
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NumberText:
    """A number as written; its type follows from how it is written."""

    text: str
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class StringText:
    """A quoted literal; its type follows from its surroundings."""

    text: str
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class BooleanText:
    """TRUE or FALSE."""

    value: bool
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class NullText:
    """NULL."""

    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DefaultText:
    """DEFAULT, in an INSERT or UPDATE."""


@dataclass(frozen=True, slots=True)
class IntervalText:
    """``INTERVAL '…'``, with what may follow it."""

    text: str
    qualifier: Qualifier = PLAIN
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: ``$1``, ``$2`` and so on."""

    index: int
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Operator:
    """A unary or binary operator: ``-``, ``+``, ``and``, ``like``, ``->`` and so on."""

    symbol: str
    operands: tuple[Expression, ...]
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class IsTest:
    """``x IS [NOT] NULL | TRUE | FALSE``; ``test`` is null, true or false."""

    operand: Expression
    test: str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class SortItem:
    """One entry of ORDER BY; where NULLs go is decided (last, or first when descending)."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


@dataclass(frozen=True, slots=True)
class FrameText:
    """A window frame; bounds are (kind, offset): kind is preceding, current row or following.

    An offset of None with preceding or following is UNBOUNDED.
    """

    unit: str
    start: tuple[str, Expression | None]
    end: tuple[str, Expression | None]


@dataclass(frozen=True, slots=True)
class WindowText:
    """``OVER (…)`` or a named window."""

    name: str | None = None
    partition: tuple[Expression, ...] = ()
    order: tuple[SortItem, ...] = ()
    frame: FrameText | None = None


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A call, with what may be written around an aggregate."""

    name: str
    arguments: tuple[Expression, ...]
    distinct: bool = False
    star: bool = False
    order: tuple[SortItem, ...] = ()
    within_group: tuple[SortItem, ...] = ()
    filter: Expression | None = None
    over: WindowText | None = None
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CastText:
    """``CAST(x AS type)`` and ``x::type``."""

    operand: Expression
    type: Written
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CaseText:
    """``CASE [operand] WHEN … THEN … ELSE … END``."""

    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None


@dataclass(frozen=True, slots=True)
class InList:
    """``x IN (a, b, …)``."""

    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class RowText:
    """``(a, b)`` or ``ROW(a, b)``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class ArrayText:
    """``ARRAY[a, b]``."""

    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Subscript:
    """``a[i]``, counted from 1."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class FieldText:
    """``(record).field``."""

    operand: Expression
    attribute: str
    position: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class ScalarQuery:
    """``(SELECT …)`` where a value is expected."""

    query: Query


@dataclass(frozen=True, slots=True)
class ExistsQuery:
    """``EXISTS (SELECT …)``."""

    query: Query


@dataclass(frozen=True, slots=True)
class QuantifiedQuery:
    """``x op ANY | ALL (SELECT …)``; ``x IN (SELECT …)`` is ``= ANY``."""

    operand: Expression
    symbol: str
    every: bool
    query: Query


@dataclass(frozen=True, slots=True)
class QuantifiedArray:
    """``x op ANY | ALL (array)``."""

    operand: Expression
    symbol: str
    every: bool
    array: Expression


Expression = (
    Name
    | Star
    | NumberText
    | StringText
    | BooleanText
    | NullText
    | DefaultText
    | IntervalText
    | Parameter
    | Operator
    | IsTest
    | FunctionText
    | CastText
    | CaseText
    | InList
    | RowText
    | ArrayText
    | Subscript
    | FieldText
    | ScalarQuery
    | ExistsQuery
    | QuantifiedQuery
    | QuantifiedArray
)

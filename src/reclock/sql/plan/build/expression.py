"""Scalar expressions: from syntax to typed scalars over a block's rows.

A subquery becomes a column of the block (``subquery``); an aggregate or window function
must already be one (``block.known``), else it stands where it may not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.errors import NotSupported, UndefinedName, WrongGrouping, WrongType
from reclock.interval import Interval
from reclock.sql.interval import parse_interval
from reclock.sql.plan.build.functions import COMPARISONS, call, truth
from reclock.sql.plan.build.like import unescaped
from reclock.sql.plan.build.parameter import literal_of
from reclock.sql.plan.build.subquery import exists_value, quantified_value, scalar_value
from reclock.sql.plan.coerce import (
    common_type,
    convert,
    exact,
    explicit_cast,
    meeting_type,
    negative,
    number_literal,
    to_common,
)
from reclock.sql.plan.comparable import comparison_key
from reclock.sql.plan.functions import FUNCTIONS, LISTED, is_aggregate, is_window_only
from reclock.sql.plan.functions.interval import qualified
from reclock.sql.plan.functions.length import adds_little, has_length, too_long, within
from reclock.sql.plan.functions.overload import Overload
from reclock.sql.plan.functions.postgres import knows
from reclock.sql.plan.scalar import And, Call, Case, ColumnRef, Literal, Or, Scalar, walk
from reclock.sql.syntax import expression as s
from reclock.sql.syntax.place import placed
from reclock.sql.types import (
    BOOLEAN,
    INTEGER,
    INTERVAL,
    JSON,
    TEXT,
    UNKNOWN,
    Array,
    Char,
    IntervalOf,
    Numeric,
    Record,
    Varchar,
)

if TYPE_CHECKING:
    from reclock.sql.plan.build.block import Block, Planner

_TESTS = {"null": "is null", "true": "is true", "false": "is false"}


class ExpressionBuilder:
    """Plans expressions over the rows of ``block``."""

    def __init__(self, planner: Planner, block: Block) -> None:
        self._planner = planner
        self.block = block

    def __call__(self, expression: s.Expression) -> Scalar:
        """Return ``expression`` as a typed scalar."""
        known = self.block.known.get(expression)
        if known is not None:
            return known
        if self.block.grouped is not None:
            grouped = self.block.grouped(expression)
            if grouped is not None:
                return grouped
        with placed(expression):
            return self._plan(expression)

    def value(self, expression: s.Expression) -> Scalar:
        """Return ``expression`` with a definite type: a literal of none is text."""
        made = self(expression)
        return convert(made, TEXT) if made.type == UNKNOWN else made

    def condition(self, expression: s.Expression, where: str) -> Scalar:
        """Return ``expression`` as a boolean."""
        with placed(expression):
            return truth(self(expression), where)

    def _call(self, name: str, *arguments: Scalar, position: int | None = None) -> Scalar:
        return call(name, arguments, position, maintained=self._planner.maintained)

    def _plan(self, e: s.Expression) -> Scalar:  # noqa: PLR0911, PLR0912  # one case per syntax
        match e:
            case s.Name():
                return self.block.resolve(e)
            case s.NumberText():
                return number_literal(e.text)
            case s.StringText():
                return Literal(e.text, UNKNOWN)
            case s.BooleanText():
                return Literal(e.value, BOOLEAN)
            case s.NullText():
                return Literal(None, UNKNOWN)
            case s.IntervalText():
                return Literal(parse_interval(e.text, e.qualifier), INTERVAL)
            case s.Parameter():
                return self._parameter(e)
            case s.Operator():
                return self._operator(e)
            case s.IsTest():
                operand = self(e.operand)
                operand = operand if e.test == "null" else truth(operand, "IS")
                made = self._call(_TESTS[e.test], operand)
                return self._call("not", made) if e.negated else made
            case s.FunctionText():
                return self._function(e)
            case s.CastText():
                return self._cast(e)
            case s.CaseText():
                return self._case(e)
            case s.InList():
                return self._in_list(e)
            case s.ArrayText():
                return self._array(e)
            case s.Subscript():
                return self._call("subscript", self(e.operand), self(e.index))
            case s.FieldText():
                return self._field(e)
            case s.ScalarQuery():
                return scalar_value(self._planner, self.block, e.query)
            case s.ExistsQuery():
                return exists_value(self._planner, self.block, e.query)
            case s.QuantifiedQuery():
                rows = e.operand.items if isinstance(e.operand, s.RowText) else (e.operand,)
                operands = tuple(self(r) for r in rows)
                return quantified_value(self._planner, self.block, operands, e)
            case s.QuantifiedArray():
                return self._quantified_array(e)
        message = f"{type(e).__name__.removesuffix('Text').upper()} is not supported here"
        hint = "DEFAULT stands alone in VALUES or SET; a row only in comparisons and IN"
        raise NotSupported(message, hint=hint)

    def _cast(self, e: s.CastText) -> Scalar:
        if isinstance(e.operand, s.ArrayText) and not e.operand.items and isinstance(e.type, Array):
            return Literal((), e.type)
        if isinstance(e.type, IntervalOf):
            value = explicit_cast(self(e.operand), INTERVAL, e.position)
            if isinstance(value, Literal) and isinstance(value.value, Interval):
                return Literal(e.type.qualifier.applied(value.value), INTERVAL)
            return Call(qualified(e.type.qualifier), (value,), INTERVAL)
        if not isinstance(e.type, Varchar | Char):
            return explicit_cast(self(e.operand), e.type, e.position)
        text = explicit_cast(self(e.operand), TEXT, e.position)
        fixed = isinstance(e.type, Char)
        if isinstance(text, Literal) and isinstance(text.value, str):
            cut = text.value[: e.type.length]
            return Literal(cut.rstrip(" ") if fixed else cut, TEXT)
        left = self._call("left", text, Literal(e.type.length, INTEGER), position=e.position)
        return self._call("rtrim", left, position=e.position) if fixed else left

    def _parameter(self, e: s.Parameter) -> Scalar:
        given = self._planner.parameters
        if not 1 <= e.index <= len(given):
            message = f"there is no parameter ${e.index}"
            hint = f"{len(given)} values were given"
            raise UndefinedName(message, code="42P02", hint=hint, position=e.position)
        return literal_of(given[e.index - 1])

    def _operator(self, e: s.Operator) -> Scalar:
        symbol = e.symbol
        if symbol in {"and", "or"}:
            return self._connective(e)
        if symbol == "not":
            return self._call("not", truth(self(e.operands[0]), "NOT"))
        if symbol in COMPARISONS and isinstance(e.operands[0], s.RowText):
            return self._row_comparison(e)
        if symbol == "-" and isinstance(e.operands[0], s.NumberText) and len(e.operands) == 1:
            digits = e.operands[0].text
            if digits.isdigit():
                return number_literal(f"-{digits}")
        operands = tuple(self(o) for o in e.operands)
        if symbol in {"like", "ilike"} and len(operands) == 3:
            text, pattern, escape = operands
            operands = (text, unescaped(pattern, escape, e.position))
        if symbol == "-" and len(operands) == 1 and isinstance(operands[0], Literal):
            negated = negative(operands[0])
            if negated is not None:
                return negated
        if symbol in {"->", "->>"} and operands[0].type != JSON:
            message = f"operator {symbol} needs json on its left, not {operands[0].type}"
            raise WrongType(message, hint="cast it with ::json", position=e.position)
        return self._call(symbol, *operands, position=e.position)

    def _connective(self, e: s.Operator) -> Scalar:
        kind = And if e.symbol == "and" else Or
        operands: list[Scalar] = []
        for part in e.operands:
            made = truth(self(part), e.symbol.upper())
            operands += made.operands if isinstance(made, kind) else (made,)
        return kind(tuple(operands))

    def _row_comparison(self, e: s.Operator) -> Scalar:
        left, right = e.operands
        if (
            e.symbol not in {"=", "<>"}
            or not isinstance(left, s.RowText)
            or not isinstance(right, s.RowText)
            or len(left.items) != len(right.items)
        ):
            message = f"comparison of rows with {e.symbol} is not supported"
            hint = "compare rows of as many columns with = or <>, or column by column"
            raise NotSupported(message, hint=hint, position=e.position)
        pairs = zip(left.items, right.items, strict=True)
        equal = And(tuple(self._call("=", self(a), self(b)) for a, b in pairs))
        return equal if e.symbol == "=" else self._call("not", equal)

    def _function(self, e: s.FunctionText) -> Scalar:
        if e.over is not None or is_window_only(e.name):
            if e.over is None:
                message = f"window function {e.name} requires an OVER clause"
                hint = f"write {e.name}(…) OVER (PARTITION BY … ORDER BY …)"
                raise WrongGrouping(message, hint=hint, position=e.position)
            message = "window functions are not allowed here"
            hint = "compute it in a subquery, and use its column"
            raise WrongGrouping(message, code="42P20", hint=hint, position=e.position)
        if is_aggregate(e.name):
            message = "aggregate functions are not allowed here"
            hint = "an aggregate may stand in the SELECT list, HAVING and ORDER BY, not nested"
            raise WrongGrouping(message, hint=hint, position=e.position)
        extras = ((e.distinct, "DISTINCT"), (e.order, "ORDER BY"), (e.filter, "FILTER"))
        for given, word in (*extras, (e.within_group, "WITHIN GROUP"), (e.star, "*")):
            if given and knows(e.name) and e.name not in FUNCTIONS:
                message = f"function {e.name} is not supported"
                raise NotSupported(message, hint=LISTED, position=e.position)
            if given:
                message = f"{word} specified, but {e.name} is not an aggregate function"
                raise WrongType(message, code="42809", position=e.position)
        return self._call(e.name, *(self(a) for a in e.arguments), position=e.position)

    def _case(self, e: s.CaseText) -> Scalar:
        conditions, results = [], []
        operand = None if e.operand is None else self(e.operand)
        for when, then in e.branches:
            test = self(when)
            conditions.append(
                truth(test, "CASE/WHEN") if operand is None else self._call("=", operand, test)
            )
            results.append(self(then))
        otherwise = Literal(None, UNKNOWN) if e.otherwise is None else self(e.otherwise)
        *converted, last = to_common((*results, otherwise), "CASE")
        return Case(tuple(zip(conditions, converted, strict=True)), last)

    def _in_list(self, e: s.InList) -> Scalar:
        if isinstance(e.operand, s.RowText):
            tests = tuple(self._row_comparison(s.Operator("=", (e.operand, i))) for i in e.items)
        else:
            operand = self(e.operand)
            items = _together(operand, [self(i) for i in e.items])
            tests = tuple(self._call("=", operand, i) for i in items)
        return tests[0] if len(tests) == 1 else Or(tests)

    def _array(self, e: s.ArrayText) -> Scalar:
        if not e.items:
            message = "cannot determine type of empty array"
            hint = "cast it, as in ARRAY[]::integer[]"
            raise WrongType(message, code="42P18", hint=hint)
        items = to_common(tuple(self(i) for i in e.items), "ARRAY")
        kind = Array(common_type((i.type for i in items), "ARRAY"))
        if all(isinstance(i, Literal) for i in items):
            return Literal(tuple(i.value for i in items if isinstance(i, Literal)), kind)
        types = tuple(i.type for i in items)
        made = Overload("array", types, kind, "array({*})", never_null=True)
        if has_length(kind.element) and not adds_little(items):
            text, failure = within("{bytes}", made.spark), too_long("{value} IS NULL")
            made = Overload("array", types, kind, text, (failure,), never_null=True)
        return Call(made, items, kind)

    def _field(self, e: s.FieldText) -> Scalar:
        operand = self(e.operand)
        kinds = dict(operand.type.fields) if isinstance(operand.type, Record) else {}
        if e.attribute not in kinds:
            message = f'column "{e.attribute}" not found in data type {operand.type}'
            raise UndefinedName(message, position=e.position)
        quoted = e.attribute.replace("`", "``").replace("{", "{{}")
        field = Overload(
            f"field {e.attribute}", (operand.type,), kinds[e.attribute], f"{{0}}.`{quoted}`",
            makes_null=True,
        )  # fmt: skip
        return Call(field, (operand,), kinds[e.attribute])

    def _quantified_array(self, e: s.QuantifiedArray) -> Scalar:
        operand, array = self(e.operand), self(e.array)
        if array.type == UNKNOWN:
            array = exact((Literal(None, Array(operand.type)), array))[1]
        if array.type == UNKNOWN:
            array = convert(array, Array(operand.type))
        if not isinstance(array.type, Array):
            message = "op ANY/ALL (array) requires array on right side"
            raise WrongType(message, code="42809")
        if e.symbol not in COMPARISONS:
            message = f"{e.symbol} {'ALL' if e.every else 'ANY'} (array) is not supported"
            raise NotSupported(message, hint="it is for comparisons: =, <>, <, <=, > and >=")
        if isinstance(array, Literal) and isinstance(array.value, tuple):
            literals = (Literal(v, array.type.element) for v in array.value)
            tests = tuple(self._call(e.symbol, operand, literal) for literal in literals)
            if not tests:
                return Literal(e.every, BOOLEAN)
            return And(tests) if e.every else Or(tests)
        if isinstance(array.type.element, Numeric):
            operand = exact((operand, Literal(None, array.type.element)))[0]
        kind = meeting_type(operand.type, array.type.element, "ANY/ALL")
        operand, array = (
            comparison_key(convert(given, wanted))
            for given, wanted in ((operand, kind), (array, Array(kind)))
        )
        kind = operand.type
        name, spark = ("all", "forall") if e.every else ("any", "exists")
        made = Overload(
            f"{e.symbol} {name}", (kind, Array(kind)), BOOLEAN,
            f"{spark}({{1}}, x -> {{0}} {e.symbol} x)", makes_null=True,
        )  # fmt: skip
        return Call(made, (operand, array), BOOLEAN)


def _together(operand: Scalar, items: list[Scalar]) -> list[Scalar]:
    """Return the items of IN: several without columns have one type, as an array's elements."""
    constant = [not any(isinstance(x, ColumnRef) for x in walk(i)) for i in items]
    if sum(constant) < 2:
        return items
    kinds = [i.type for i, alone in zip(items, constant, strict=True) if alone]
    try:
        common_type([operand.type, *kinds], "IN")
    except WrongType:
        return items
    alike = iter(
        to_common([operand, *(i for i, c in zip(items, constant, strict=True) if c)], "IN")[1:]
    )
    return [next(alike) if alone else i for i, alone in zip(items, constant, strict=True)]

"""Aggregates as Spark SQL text with PostgreSQL's meaning, that never fails.

For a call over the rows of a group, ``aggregate_text`` is its value and
``aggregate_error`` its error: NULL, or ``SQLSTATE|message``; None if it cannot fail. A sum
that overflows is an error of the group, not of the job (P9).

Where Spark alone would differ: ``array_agg`` keeps NULLs and is NULL for no rows; ORDER BY
inside an aggregate is obeyed; where there is none, rows are taken in the order of all
their columns (``columns.with_ties``), so that results do not depend on arrival, and two
arrays of one group correspond; with DISTINCT, values are in their own order. Averages of
exact numbers have all the digits of their type.

``over`` puts the text into a window: it follows every aggregate function in it.

Tests: tests/spark/test_aggregate_text.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from reclock.spark.columns import Columns, with_ties
from reclock.spark.exact_text import exact_text, needs_list
from reclock.sql.plan.functions.length import MAX_BYTES, TOO_LONG, bytes_of, within
from reclock.sql.plan.interval_text import has_interval, key_text, let, scaled, whole_text
from reclock.sql.plan.node import SortKey
from reclock.sql.plan.spark_literal import quote_string
from reclock.sql.types import BIGINT, DOUBLE, FLOATS, INTERVAL, REAL, Numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.order import WindowCall
    from reclock.sql.plan.reduce import AggregateCall
    from reclock.sql.types import Type

_EXACT_AVERAGE: Final = "DECIMAL(34, 12)"
"""Spark averages it with 16 digits after the point, and sums up to 26 before it."""

_TOO_LONG: Final = quote_string(f"{TOO_LONG.code}|{TOO_LONG.message}")
_OUT_OF_UNIT: Final = quote_string("22003|percentile value is not between 0 and 1")


def aggregate_text(call: AggregateCall, columns: Columns, *, exact: bool = False) -> str:
    """Return text for the value of ``call``; NULL where ``aggregate_error`` is not.

    ``exact`` adds up as a view does, with all values of a group in memory (``exact_text``).
    """
    return _Aggregate.of(call, columns, exact=exact).value


def aggregate_error(call: AggregateCall, columns: Columns, *, exact: bool = False) -> str | None:
    """Return text for the error of ``call``, NULL if it has a value; None if it always has."""
    return _Aggregate.of(call, columns, exact=exact).error


def framed_text(call: WindowCall, columns: Columns, order: Sequence[SortKey], over: str) -> str:
    """Return text for the value of an aggregate over the frame ``over`` (``OVER (…)``)."""
    return _Aggregate.of_window(call, columns, order, over).value


def framed_error(call: WindowCall, columns: Columns, over: str) -> str | None:
    """Return text for the error of an aggregate over the frame ``over``."""
    return _Aggregate.of_window(call, columns, (), over).error


@dataclass(frozen=True)
class _Aggregate:
    """A call, with its arguments as text."""

    name: str
    spark: str
    arguments: tuple[str, ...]
    kinds: tuple[Type, ...]
    type: Type
    columns: Columns
    order: tuple[SortKey, ...]
    condition: str | None
    distinct: bool = False
    over: str = ""
    exact: bool = False

    @classmethod
    def of(cls, call: AggregateCall, columns: Columns, *, exact: bool = False) -> _Aggregate:
        return cls(
            call.function.name,
            call.function.spark.partition("(")[0],
            tuple(columns.some(call.arguments)),
            tuple(columns.kinds[a] for a in call.arguments),
            call.type,
            columns,
            call.order,
            None if call.filter is None else columns[call.filter],
            call.distinct,
            exact=exact,
        )

    @classmethod
    def of_window(
        cls, call: WindowCall, columns: Columns, order: Sequence[SortKey], over: str
    ) -> _Aggregate:
        return cls(
            call.function.name,
            call.function.spark.partition("(")[0],
            tuple(columns.some(call.arguments)),
            tuple(columns.kinds[a] for a in call.arguments),
            call.type,
            columns,
            tuple(order),
            None if call.filter is None else columns[call.filter],
            over=f" {over}",
        )

    @property
    def value(self) -> str:  # noqa: PLR0911 - one form per kind of aggregate
        if self.kinds and not self.over and needs_list(self.name, self.kinds[0], exact=self.exact):
            values = self._apply("collect_list", self.arguments[0])
            return exact_text(self.name, self.kinds[0], self.type, values)
        match self.name:
            case "count":
                return self._apply("count", self.arguments[0] if self.arguments else "1")
            case "sum":
                return self._sum()
            case "avg":
                return self._average()
            case "array_agg":
                return self._present(f"transform({self._list()}, e -> e.v.v0)")
            case "string_agg":
                parts = "concat(CASE WHEN i > 0 THEN coalesce(e.v.v1, '') ELSE '' END, e.v.v0)"
                joined = f"array_join(transform({self._list()}, (e, i) -> {parts}), '')"
                return self._present(within(self._bytes(), joined, MAX_BYTES))
            case "any_row":
                return self._first()
            case "percentile_cont" | "percentile_disc":
                return self._percentile()
            case "mode":
                picked = "min({})" if self.distinct else "mode({}, true)"
                return picked.format(self._if(self.arguments[0])) + self.over
            case "corr" | "covar_pop" | "covar_samp" | "regr_slope" | "regr_intercept" | "regr_r2":
                return self._of_pairs()
        if self.kinds and has_interval(self.kinds[0]):  # min or max
            return self._extreme()
        return self._apply(self.spark, *self.arguments)

    @property
    def error(self) -> str | None:
        if self.name in {"sum", "avg"} and self.type not in FLOATS:
            code, what = "22003", f"{self.type} out of range"
            if isinstance(self.type, Numeric):
                what = "numeric field overflow"
            elif self.type == INTERVAL:
                code, what = "22008", "interval out of range"
            failed = f"{self.value} IS NULL AND {self._count(self.arguments[0])} > 0"
            return f"CASE WHEN {failed} THEN {quote_string(f'{code}|{what}')} END"
        if self.name == "string_agg":
            return f"CASE WHEN {self._bytes()} > {MAX_BYTES} THEN {_TOO_LONG} END"
        if self.name.startswith("percentile"):
            asked = f"max({self._if(self.arguments[0])}){self.over}"
            return f"CASE WHEN {asked} NOT BETWEEN 0 AND 1 THEN {_OUT_OF_UNIT} END"
        return None

    def _bytes(self) -> str:
        """Return the bytes of all texts, and of what stands between them."""
        if self.distinct:
            each = f"n + {bytes_of('e.v.v0')} + {bytes_of('e.v.v1')}"
            return f"aggregate({self._entries()}, 0L, (n, e) -> {each})"
        each = f"{bytes_of(self.arguments[0])} + {bytes_of(self.arguments[1])}"
        counted = f"CASE WHEN {self.arguments[0]} IS NOT NULL THEN {each} END"
        return f"coalesce(sum({self._if(counted)}){self.over}, 0L)"

    def _if(self, text: str) -> str:
        """Return ``text`` for the rows that the FILTER lets through, else NULL."""
        return text if self.condition is None else f"CASE WHEN {self.condition} THEN {text} END"

    def _apply(self, function: str, *arguments: str) -> str:
        """Return an aggregate that ignores NULLs; the first of them carries the FILTER."""
        first, *rest = arguments
        inside = ", ".join([self._if(first), *rest])
        return f"{function}({'DISTINCT ' if self.distinct else ''}{inside}){self.over}"

    def _count(self, text: str) -> str:
        return f"count({self._if(text)}){self.over}"

    def _present(self, text: str) -> str:
        """Return ``text``, or NULL if the list has no entries."""
        return f"CASE WHEN count({self._entry()}){self.over} > 0 THEN {text} END"

    def _sum(self) -> str:
        argument = self.arguments[0]
        if self.type == INTERVAL:
            return self._interval_sum()
        if self.type == DOUBLE:
            return self._apply("sum", argument)
        if self.type == REAL:
            return f"CAST({self._apply('sum', argument)} AS FLOAT)"
        if self.kinds[0] == BIGINT:
            return self._apply("try_sum", f"CAST({argument} AS DECIMAL(28, 0))")
        total = self._apply("try_sum", argument)
        if isinstance(self.type, Numeric):
            return f"try_cast({total} AS {self.type.spark_name})"
        return total

    def _average(self) -> str:
        argument = self.arguments[0]
        if self.type == INTERVAL:
            total = let("y", self._interval_sum(), scaled("y", "try_divide(?, z)"))
            return let("z", f"double({self._count(argument)})", total)
        if not isinstance(self.type, Numeric):
            return self._apply("try_avg", argument)
        fitting = f"try_cast({argument} AS {self._average_type()})"
        average = f"try_cast({self._apply('try_avg', fitting)} AS {self.type.spark_name})"
        if not isinstance(self.kinds[0], Numeric):
            return average
        all_fit = f"{self._count(fitting)} = {self._count(argument)}"
        return f"CASE WHEN {all_fit} THEN {average} END"

    def _of_pairs(self) -> str:
        """Return an aggregate of pairs: Spark's, but for NaN and infinite numbers PostgreSQL's."""
        y, x = self.arguments
        present = " AND ".join(f"{text} IS NOT NULL" for text in (y, x))
        over = self.over

        def some(test: str) -> str:
            return f"coalesce(bool_or({self._if(f'{present} AND {test}')}){over}, false)"

        def same(text: str) -> str:  # or so near that no square tells them apart
            counted = self._if(f"CASE WHEN {present} THEN {text} END")
            return f"coalesce(var_pop({counted}){over} = 0D, false)"

        wild_y, wild_x = (some(f"(isnan({t}) OR abs({t}) = double('infinity'))") for t in (y, x))
        flat_y, flat_x = f"NOT {wild_y} AND {same(y)}", f"NOT {wild_x} AND {same(x)}"
        known = {
            "corr": f"WHEN {flat_y} OR {flat_x} THEN NULL",
            "covar_pop": "",
            "covar_samp": f"WHEN {self._count(f'CASE WHEN {present} THEN 1 END')} < 2 THEN NULL",
            "regr_r2": f"WHEN {flat_x} THEN NULL WHEN {flat_y} THEN 1D",
        }
        rule = known.get(self.name, f"WHEN {flat_x} THEN NULL")
        otherwise = f"CASE {rule} ELSE double('nan') END" if rule else "double('nan')"
        value = self._apply(self.spark, y, x)
        return f"CASE WHEN {wild_y} OR {wild_x} THEN {otherwise} ELSE {value} END"

    def _extreme(self) -> str:
        """Return the least or greatest by key; of several equal ones the least by its numbers."""
        argument, kind = self.arguments[0], self.kinds[0]
        if kind == INTERVAL and self.spark == "max":
            entry = f"named_struct('k', -{key_text(argument, kind)}, 'v', {argument})"
            entry = f"CASE WHEN {argument} IS NOT NULL THEN {entry} END"
            return f"{self._apply('min', entry)}.v"
        return f"{self._apply(self.spark, _by_key(argument, kind))}.v"

    def _interval_sum(self) -> str:
        """Return the sum of each number by itself; NULL if one is too large."""
        argument = self.arguments[0]
        months, days = (
            f"try_cast({self._apply('sum', f'bigint({argument}.{field})')} AS INT)"
            for field in ("months", "days")
        )
        exact = f"CAST({argument}.micros AS DECIMAL(20, 0))"
        micros = f"try_cast({self._apply('sum', exact)} AS BIGINT)"
        return whole_text(months, days, micros)

    def _average_type(self) -> str:
        """Return a type whose average Spark computes with the digits of the result."""
        given = self.kinds[0]
        if isinstance(given, Numeric) and given.scale > 12:
            return self.type.spark_name
        return _EXACT_AVERAGE

    def _keys(self) -> list[SortKey]:
        """Return what entries are sorted by: ORDER BY, then all columns or the values."""
        if not self.distinct:
            return list(with_ties(self.order, len(self.columns)))
        positions = {text: i for i, text in reversed(list(enumerate(self.columns.all)))}
        keys = list(self.order)
        said = {key.column for key in keys}
        mine = (positions[text] for text in self.arguments)
        return keys + [SortKey(at) for at in dict.fromkeys(mine) if at not in said]

    def _runs(self) -> list[tuple[bool, list[SortKey]]]:
        """Return the sort keys as runs of one direction, each with whether it descends."""
        runs: list[tuple[bool, list[SortKey]]] = []
        for key in self._keys():
            if not runs or runs[-1][0] != key.descending:
                runs.append((key.descending, []))
            runs[-1][1].append(key)
        return runs

    def _entry(self) -> str:
        """Return a row as sort keys ``g0, …`` and values ``v``; NULL if it does not count."""
        parts = []
        for number, (descending, keys) in enumerate(self._runs()):
            inside = []
            for key in keys:
                last = key.nulls_first == descending
                test = "IS NULL" if last else "IS NOT NULL"
                inside += [f"{self.columns[key.column]} {test}", self.columns.sortable(key.column)]
            parts.append(f"'g{number}', struct({', '.join(inside)})")
        values = ", ".join(f"'v{i}', {text}" for i, text in enumerate(self.arguments))
        parts.append(f"'v', named_struct({values})")
        entry = f"named_struct({', '.join(parts)})"
        if self.name == "string_agg":
            entry = f"CASE WHEN {self.arguments[0]} IS NOT NULL THEN {entry} END"
        return self._if(entry)

    def _entries(self) -> str:
        distinct = "DISTINCT " if self.distinct else ""
        return f"collect_list({distinct}{self._entry()}){self.over}"

    def _list(self) -> str:
        """Return the entries as a sorted array."""
        runs, entries = self._runs(), self._entries()
        if not any(descending for descending, _ in runs):
            return f"array_sort({entries})"
        compare = "0"
        for number, (descending, _) in reversed(list(enumerate(runs))):
            less, more = ("1", "-1") if descending else ("-1", "1")
            compare = (
                f"CASE WHEN a.g{number} < b.g{number} THEN {less}"
                f" WHEN a.g{number} > b.g{number} THEN {more} ELSE {compare} END"
            )
        return f"array_sort({entries}, (a, b) -> {compare})"

    def _first(self) -> str:
        if any(descending for descending, _ in self._runs()):
            return f"get({self._list()}, 0).v.v0"
        return f"min({self._entry()}){self.over}.v.v0"

    def _percentile(self) -> str:
        """Return the value at a fraction of the sorted values, between two if it falls there."""
        fraction, argument = self.arguments
        distinct = "DISTINCT " if self.distinct else ""
        if has_interval(self.kinds[1]):
            argument = _by_key(argument, self.kinds[1])
        values = f"array_sort(collect_list({distinct}{self._if(argument)}){self.over})"
        asked = f"max({self._if(fraction)}){self.over}"
        if self.name == "percentile_disc":
            picked = "get(p.s, CAST(greatest(ceil(p.f * size(p.s)), 1) AS INT) - 1)"
        else:
            place = "p.f * (size(p.s) - 1)"
            low, high = (f"get(p.s, CAST({f}({place}) AS INT))" for f in ("floor", "ceil"))
            between = f"{low} + ({high} - {low}) * ({place} - floor({place}))"
            picked = f"CASE WHEN {low} = {high} THEN {low} ELSE {between} END"
        pair = f"array(named_struct('s', {values}, 'f', {asked}))"
        if has_interval(self.kinds[1]):
            picked = f"{picked}.v"
        valid = f"CASE WHEN p.f BETWEEN 0 AND 1 THEN {picked} END"
        return f"transform({pair}, p -> {valid})[0]"


def _by_key(text: str, kind: Type) -> str:
    """Return a value with intervals in it, as an entry that sorts as SQL says; NULL for NULL."""
    entry = f"named_struct('k', {key_text(text, kind)}, 'v', {text})"
    return f"CASE WHEN {text} IS NOT NULL THEN {entry} END"

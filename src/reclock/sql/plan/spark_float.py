"""Floats as PostgreSQL's text, and texts as floats, in Spark SQL.

What they mean is defined by ``reclock.sql.float_text``. Spark writes the digits that Java finds.
Java's are PostgreSQL's but for these, which are made here::

    from 2^53 (real: 2^24)    Java before 19 writes too many digits, and every Java takes the
                              midpoint between two floats: from the exact integer, below 2^125
                              (real: 2^63)
    powers of two, numbers    Java before 19 writes too many, and every Java at least two: fewer
    near 0, larger numbers    are tried, down to one
    five doubles of 1e38      midpoints that are too large for exact decimals: a table

The text is over a name, which it uses often: a column or a variable of a lambda.

Cost: numbers from 0.001 up to below 10^7 (real: 10^6), and all that are in no row of this table,
cost a few operations on texts; the others some dozens.

Tests: tests/sql/test_spark_float.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.sql.plan.spark_literal import quote_string
from reclock.sql.types import REAL

if TYPE_CHECKING:
    from reclock.sql.types import Type

_NUMBER: Final = (
    "'(?i)^[ \\\\t-\\\\r]*[+-]?(([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?|inf(inity)?|nan)"
    "[ \\\\t-\\\\r]*$'"
)
_MAX_FIGURES: Final = 4096
"""A text of more is no number: reading one takes the square of its length."""

_QUOTED: Final = 1024
_OVERFLOW: Final = quote_string("22003|value out of range: overflow")
_UNDERFLOW: Final = quote_string("22003|value out of range: underflow")
_INFINITE: Final = "double('Infinity')"
_MIDPOINTS: Final = {
    "5.62949953421312e37": "56294995342131195",
    "7.881299347898368e37": "78812993478983685",
    "1.125899906842624e38": "11258999068426239",
    "2.251799813685248e38": "22517998136852478",
    "4.503599627370496e38": "45035996273704956",
}
_SPLIT: Final = range(10, 71, 10)
"""By such powers of two a large number is divided, to become a whole one of 64 bits."""


def float_as_text(name: str, kind: Type) -> str:
    """Return Spark SQL for the text of the float ``name``; NULL for NULL."""
    real = kind == REAL
    plain = f"abs({name}) >= 0.001D AND abs({name}) < {'1e6D' if real else '1e7D'}"
    figures = _layout("__q", 6 if real else 15)
    return (
        f"CASE WHEN {plain} THEN regexp_replace(CAST({name} AS STRING), '[.]0$', '')"
        f" WHEN {name} = 0 OR isnan({name}) OR abs({name}) = double('Infinity')"
        f" THEN regexp_replace(CAST({name} AS STRING), '[.]0$', '')"
        f" WHEN {name} IS NOT NULL THEN concat(CASE WHEN {name} < 0 THEN '-' ELSE '' END,"
        f" {_bound(_figures(name, real=real), '__q', figures)}) END"
    )


def _layout(q: str, below: int) -> str:
    """Return text for figures ``q.d``, of which the first counts 10^``q.e``."""
    d, e = f"{q}.d", f"{q}.e"
    return (
        f"CASE WHEN {e} < -4 OR {e} >= {below} THEN concat(left({d}, 1),"
        f" CASE WHEN length({d}) > 1 THEN concat('.', substring({d}, 2)) ELSE '' END,"
        f" CASE WHEN {e} < 0 THEN 'e-' ELSE 'e+' END,"
        f" CASE WHEN abs({e}) < 10 THEN '0' ELSE '' END, CAST(abs({e}) AS STRING))"
        f" WHEN {e} < 0 THEN concat('0.', repeat('0', -{e} - 1), {d})"
        f" WHEN {e} >= length({d}) - 1 THEN rpad({d}, {e} + 1, '0')"
        f" ELSE concat(left({d}, {e} + 1), '.', substring({d}, {e} + 2)) END"
    )


def _figures(name: str, *, real: bool) -> str:
    """Return text for a struct of the figures ``d`` and the exponent ``e``."""
    a = f"abs(CAST({name} AS DOUBLE))"
    if real:
        exact, near, far = f"{a} >= 16777216D AND {a} < {2.0**63!r}D", "1e-30D", f"{2.0**63!r}D"
        power = f"CAST({a} - {a} * 3.01e-8D AS FLOAT) <> abs({name})"
    else:
        exact, near, far = f"{a} >= {2.0**53!r}D AND {a} < {2.0**125!r}D", "1e-290D", "1e300D"
        power = f"{a} - {a} * 5.6e-17D <> {a}"
    # ``power`` holds for all powers of two, and for few other numbers.
    cases = [f"WHEN {exact} THEN {_from_integer(a, real=real)}"]
    if not real:
        cases += [
            f"WHEN {a} = {number}D THEN {_struct(repr(figures), number.split('e')[1])}"
            for number, figures in _MIDPOINTS.items()
        ]
    cases.append(f"WHEN {a} < {near} OR {a} >= {far} OR {power} THEN {_fewest(a, real=real)}")
    return f"CASE {' '.join(cases)} ELSE {_of_java(f'abs({name})')} END"


def _struct(figures: str, exponent: str) -> str:
    return f"named_struct('d', {figures}, 'e', {exponent})"


def _of_java(value: str) -> str:
    """Return the figures that Java writes."""
    return _bound(f"CAST({value} AS STRING)", "__t", _read("__t"))


def _read(t: str) -> str:
    """Return the figures of Java's text ``t``: 0.00123, 12.3 or 1.23E-10."""
    mantissa = f"substring_index({t}, 'E', 1)"
    whole = f"substring_index({mantissa}, '.', 1)"
    figures = f"replace({mantissa}, '.', '')"
    exponent = f"CASE WHEN instr({t}, 'E') > 0 THEN int(substring_index({t}, 'E', -1)) ELSE 0 END"
    zeros = f"(length({figures}) - length(ltrim('0', {figures})))"
    return _struct(f"trim(BOTH '0' FROM {figures})", f"length({whole}) - 1 + {exponent} - {zeros}")


def _fewest(a: str, *, real: bool) -> str:
    """Return the fewest of Java's figures of a double that still mean the number.

    Of 17 figures, with which the distance to the next float is from 1 to 23 (real: to 1.3e10),
    at most one multiple of the greatest step means the number. Near 0 floats are further apart.
    """
    kind, least = ("FLOAT", "1.2e-38D") if real else ("DOUBLE", "2.3e-308D")
    every = ", ".join(f"{10**j}L" for j in range(17, 0, -1))
    some = ", ".join(f"{10**j}L" for j in (range(11, 7, -1) if real else (2, 1)))
    steps = f"CASE WHEN {a} < {least} THEN array({every}) ELSE array({some}) END"

    def means(whole: str) -> str:
        return (
            f"CAST(concat(CAST({whole} AS STRING), 'E', CAST(__w.p AS STRING)) AS {kind})"
            f" = CAST({a} AS {kind})"
        )

    low, high = "(__w.z - __w.z % __p)", "(__w.z - __w.z % __p + __p)"
    twice = "__w.z % __p + __w.z % __p"
    rounds_down = f"{twice} < __p OR ({twice} = __p AND {low} % (__p + __p) = 0)"
    nearer = f"CASE WHEN {rounds_down} THEN {low} ELSE {high} END"
    further = f"CASE WHEN {rounds_down} THEN {high} ELSE {low} END"
    chosen = f"CASE WHEN {means(nearer)} THEN {nearer} WHEN {means(further)} THEN {further} END"
    tried = f"get(filter(transform({steps}, __p -> {chosen}), __c -> __c IS NOT NULL), 0)"
    made = _bound(
        f"CAST(coalesce({tried}, __w.z) AS STRING)",
        "__n",
        _struct("rtrim('0', __n)", "length(__n) - 1 + __w.p"),
    )
    given = "named_struct('z', CAST(rpad(__v.d, 17, '0') AS BIGINT), 'p', __v.e - 16)"
    return _bound(_of_java(a), "__v", _bound(given, "__w", made))


def _from_integer(a: str, *, real: bool) -> str:
    """Return the fewest figures between the midpoints around a whole number, exactly.

    At most one multiple of the power of ten above the distance to the next float is one.
    """
    if real:
        gap = f"(CAST(CAST({a} + {a} * {0.75 * 2.0**-23!r}D AS FLOAT) AS DOUBLE) - {a})"
        low = f"CAST({a} - {gap} * 0.375D AS FLOAT) <> CAST({a} AS FLOAT)"
    else:
        gap = f"({a} + {a} * {0.75 * 2.0**-52!r}D - {a})"
        low = f"{a} - {gap} * 0.375D <> {a}"
    given = f"named_struct('x', {_whole(a)}, 'h', {_whole(gap)}, 'l', {low})"
    digits = "length(CAST(__w.h AS STRING))"
    steps = f"array({digits}, {digits} - 1, greatest({digits} - 2, 0))"
    step = "CAST(concat('1', repeat('0', __s)) AS DECIMAL(38, 0))"
    below = "(__r + __r + CASE WHEN __w.l THEN __r + __r ELSE 0BD END < __w.h)"
    above = "((__p - __r) + (__p - __r) < __w.h)"
    rounds_up = "(__p - __r < __r OR (__p - __r = __r AND (__w.x - __r) % (__p + __p) <> 0))"
    chosen = (
        f"CASE WHEN {above} AND ({rounds_up} OR NOT {below}) THEN __w.x - __r + __p"
        f" WHEN {below} THEN __w.x - __r END"
    )
    each = _bound(step, "__p", _bound("__w.x % __p", "__r", chosen))
    tried = f"get(filter(transform({steps}, __s -> {each}), __c -> __c IS NOT NULL), 0)"
    made = _bound(
        f"CAST(CAST(coalesce({tried}, __w.x) AS DECIMAL(38, 0)) AS STRING)",
        "__n",
        _struct("rtrim('0', __n)", "length(__n) - 1"),
    )
    return _bound(given, "__w", made)


def _bound(value: str, name: str, within: str) -> str:
    """Return ``within``, in which ``name`` stands for a value that is computed once."""
    return f"element_at(transform(array({value}), {name} -> {within}), 1)"


def _whole(a: str) -> str:
    """Return a whole double below 2^133 as a decimal, exactly; Spark casts the digits of Java."""
    cases = [f"WHEN {a} < {2.0**63!r}D THEN CAST(CAST({a} AS BIGINT) AS DECIMAL(38, 0))"]
    cases += [
        f"WHEN {a} < {2.0 ** (63 + k)!r}D THEN CAST(CAST({a} / {2.0**k!r}D AS BIGINT)"
        f" AS DECIMAL(19, 0)) * {2**k}BD"
        for k in _SPLIT
    ]
    return f"CAST(CASE {' '.join(cases)} END AS DECIMAL(38, 0))"


def text_as_float(name: str, kind: Type) -> str:
    """Return Spark SQL for the number that a text is; NULL if it is none, or has no room."""
    read = f"try_cast({name} AS {kind.spark_name})"
    infinite = f"abs(__n) = {_INFINITE} AND NOT rlike({name}, '(?i)inf')"
    nothing = f"__n = 0 AND rlike({name}, '^[^eE]*[1-9]')"
    checked = _bound(read, "__n", f"CASE WHEN {infinite} OR {nothing} THEN NULL ELSE __n END")
    nan = f"CAST('NaN' AS {kind.spark_name})"
    return (
        f"CASE WHEN {_is_number(name)}"
        f" THEN CASE WHEN rlike({name}, '(?i)nan') THEN {nan} ELSE {checked} END END"
    )


def text_as_float_failure(name: str, kind: Type) -> str:
    """Return Spark SQL for the error of a text that is not NULL and gives no number."""
    range_ = quote_string('22003|"')
    syntax = quote_string(f'22P02|invalid input syntax for type {kind}: "')
    out = quote_string(f'" is out of range for type {kind}')
    return (
        f"CASE WHEN {_is_number(name)}"
        f" THEN concat({range_}, left(trim({name}), {_QUOTED}), {out})"
        f" ELSE concat({syntax}, left({name}, {_QUOTED}), '\"') END"
    )


def _is_number(name: str) -> str:
    return f"octet_length({name}) <= {_MAX_FIGURES} AND rlike({name}, {_NUMBER})"


def double_as_real(name: str) -> str:
    """Return Spark SQL for a double as a real; NULL if it is too large or too near to zero."""
    lost = f"CASE WHEN {name} = 0 THEN false ELSE __r = 0 OR abs(__r) = {_INFINITE} END"
    kept = f"NOT ({lost}) OR abs({name}) = {_INFINITE}"
    return _bound(f"CAST({name} AS FLOAT)", "__r", f"CASE WHEN {kept} THEN __r END")


def double_as_real_failure(name: str) -> str:
    """Return Spark SQL for the error of a double that is not NULL and gives no real."""
    return f"CASE WHEN abs({name}) > 1 THEN {_OVERFLOW} ELSE {_UNDERFLOW} END"

"""Scalars as Spark SQL: one text that never fails, and one that says what went wrong.

For a scalar e over a row, ``compile_scalars`` gives two texts::

    value(e)   never raises; meaningful when error(e) is NULL
    error(e)   NULL when e has a value, else 'SQLSTATE|message'; None when e cannot fail

so the dataflow sends rows with an error to the error collection and no job fails (P9).
Laziness is respected: in CASE, AND, OR and COALESCE an operand that would not have been
evaluated contributes no error. A fallible operation needs its operands' values twice (in
its value and in its error), so operands that are more than a column become *stages*:
columns added by earlier SELECTs. The text is linear in the size of the expression, and so is
what Spark makes of it: no value is nested more than ``NESTED`` levels deep, and no more than
about ``ERRORS`` errors wait to be looked at, each with the columns that it is made of, before
they become a column themselves.

Base: ANSI mode (``spark.sql.ansi.enabled=true``) and session time zone UTC. Compared with
Python on tricky rows in tests/sql/test_spark_text.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidValue
from reclock.sql.plan.scalar import (
    And,
    Call,
    Case,
    Cast,
    Coalesce,
    ColumnRef,
    Fault,
    Literal,
    Or,
    cast_can_fail,
)
from reclock.sql.plan.spark_cast import cast_failure, cast_text
from reclock.sql.plan.spark_literal import literal_text, quote_name, quote_string
from reclock.sql.plan.spark_stages import Stages
from reclock.sql.plan.spark_template import fill
from reclock.sql.types import FLOATS, Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.functions.overload import Failure
    from reclock.sql.plan.scalar import Scalar

NESTED: Final = 32
ERRORS: Final = 8


@dataclass(frozen=True, slots=True)
class SparkScalars:
    """Texts for some scalars over one row.

    ``stages``: in order, the (name, text) columns to add by successive SELECTs before
    ``values`` and ``errors`` can be evaluated. ``kept``: for each stage, which columns of those
    before it are still needed. ``errors`` has None where nothing can fail.
    """

    stages: tuple[tuple[tuple[str, str], ...], ...]
    kept: tuple[tuple[str, ...], ...]
    values: tuple[str, ...]
    errors: tuple[str | None, ...]

    @property
    def error(self) -> str | None:
        """The first error of any of them, or None when nothing can fail."""
        return _first([e for e in self.errors if e is not None])


@dataclass(frozen=True, slots=True)
class _Piece:
    """A value, its errors in order, and how many stages must come before each."""

    value: str
    level: int = 0
    depth: int = 0
    errors: tuple[str, ...] = ()
    error_level: int = 0
    error_size: int = 0
    """How many errors, and CASEs that choose among them, these are."""

    @property
    def atom(self) -> bool:
        return self.depth == 0

    @property
    def error(self) -> str | None:
        return _first(self.errors)

    @property
    def needs(self) -> int:
        return max(self.level, self.error_level)


def compile_scalars(
    scalars: Sequence[Scalar], columns: Sequence[str], prefix: str = "__s"
) -> SparkScalars:
    """Return the texts of ``scalars`` over a row whose columns are named ``columns``.

    ``prefix`` begins the names of stage columns; no column may begin with it.
    """
    compiler = _Compiler(columns, prefix)
    pieces = [compiler.compile(s) for s in scalars]
    values, errors = tuple(p.value for p in pieces), tuple(p.error for p in pieces)
    kept = compiler.stages.kept(text for text in (*values, *errors) if text is not None)
    return SparkScalars(compiler.stages.columns, kept, values, errors)


def _first(errors: Sequence[str]) -> str | None:
    """Return text for the first of ``errors`` that is not NULL."""
    if not errors:
        return None
    return errors[0] if len(errors) == 1 else f"coalesce({', '.join(errors)})"


class _Compiler:
    def __init__(self, columns: Sequence[str], prefix: str) -> None:
        self._columns = [quote_name(c) for c in columns]
        self._made: dict[Scalar, _Piece] = {}
        self.stages = Stages(prefix)

    def compile(self, scalar: Scalar) -> _Piece:
        made = self._made.get(scalar)
        if made is None:
            made = self._made[scalar] = self._bounded(self._compile(scalar))
        return made

    def _bounded(self, piece: _Piece) -> _Piece:
        if piece.depth > NESTED:
            piece = self._atom(piece)
        if piece.error_size > ERRORS:
            piece = self._error_atom(piece)
        return piece

    def _compile(self, scalar: Scalar) -> _Piece:  # noqa: PLR0911  # one per case
        match scalar:
            case ColumnRef():
                return _Piece(self._columns[scalar.index])
            case Literal():
                return _Piece(literal_text(scalar.value, scalar.type))
            case Call():
                return self._call(scalar)
            case Cast():
                return self._cast(scalar)
            case And() | Or():
                return self._connective(scalar)
            case Coalesce():
                return self._coalesce(scalar)
            case Case():
                return self._case(scalar)
            case Fault():
                return self._fault(scalar)
        message = f"cannot write {scalar} for Spark: it refers to an enclosing query"
        raise InvalidValue(message)

    def _atom(self, piece: _Piece) -> _Piece:
        """Return ``piece`` with its value in a column of its own."""
        if piece.atom:
            return piece
        name, level = self.stages.add(piece.value, piece.level)
        return replace(piece, value=name, level=level, depth=0)

    def _error_atom(self, piece: _Piece) -> _Piece:
        """Return ``piece`` with its error, if it has any, in a column of its own."""
        if piece.error is None:
            return piece
        name, level = self.stages.add(piece.error, piece.error_level)
        return replace(piece, errors=(name,), error_level=level, error_size=1)

    def _fault(self, scalar: Fault) -> _Piece:
        part = self._error_atom(self.compile(scalar.operand))
        return _Piece(part.error or "CAST(NULL AS STRING)", part.error_level)

    def _call(self, scalar: Call) -> _Piece:
        parts = [self.compile(a) for a in scalar.arguments]
        function = scalar.function
        twice = any(function.spark.count(f"{{{i}}}") > 1 for i in range(len(parts)))
        if function.failures or function.guarded or twice:
            parts = [self._atom(p) for p in parts]
        values = [p.value for p in parts]
        level = max((p.level for p in parts), default=0)
        text = fill(function.spark, values, scalar.type.spark_name)
        if function.guarded:
            present = " AND ".join(f"{v} IS NOT NULL" for v in values)
            text = f"CASE WHEN {present} THEN {text} END"
        value = _Piece(text, level, depth=1 + max((p.depth for p in parts), default=0))
        errors = list(dict.fromkeys(e for p in parts for e in p.errors))
        error_level = max((p.error_level for p in parts), default=0)
        if function.failures:
            if any(f.when is None or "{value}" in f.when for f in function.failures):
                value = self._atom(value)
            own = [self._failure(f, values, value.value) for f in function.failures]
            errors += own
            error_level = max(error_level, value.level)
        size = sum(p.error_size for p in parts) + len(function.failures)
        return replace(value, errors=tuple(errors), error_level=error_level, error_size=size)

    def _failure(self, failure: Failure, values: list[str], value: str) -> str:
        present = "".join(f" AND {v} IS NOT NULL" for v in values)
        if failure.when is None:
            condition = f"{value} IS NULL{present}"
        else:
            condition = fill(failure.when, values, value=value)
            if not failure.even_null:
                condition = f"({condition}){present}"
        text = quote_string(f"{failure.code}|{failure.message}")
        return f"CASE WHEN {condition} THEN {text} END"

    def _cast(self, scalar: Cast) -> _Piece:
        source, target = scalar.operand.type, scalar.type
        part = self.compile(scalar.operand)
        fallible = cast_can_fail(source, target)
        often = source in FLOATS or isinstance(source, Array)  # the text of a float uses it often
        part = self._atom(part) if fallible or (often and target != source) else part
        value = replace(part, value=cast_text(part.value, source, target), depth=part.depth + 1)
        if not fallible:
            return value
        value = self._atom(value)
        own = (
            f"CASE WHEN {value.value} IS NULL AND {part.value} IS NOT NULL"
            f" THEN {cast_failure(part.value, source, target)} END"
        )
        return replace(
            value,
            errors=(*part.errors, own),
            error_level=max(part.error_level, value.level),
            error_size=part.error_size + 1,
        )

    def _lazy(self, parts: list[_Piece], stops: str) -> tuple[list[_Piece], tuple[str, ...], int]:
        """Return the parts and the error of evaluating them until one satisfies ``stops``."""
        if not any(p.errors for p in parts):
            return parts, (), 0
        parts = [self._atom(self._error_atom(p)) for p in parts]  # each is named twice
        cases = []
        for part in parts:
            if part.error is not None:
                cases.append(f"WHEN {part.error} IS NOT NULL THEN {part.error}")
            cases.append(f"WHEN {stops.format(part.value)} THEN NULL")
        return parts, (f"CASE {' '.join(cases)} END",), max(p.needs for p in parts)

    def _connective(self, scalar: And | Or) -> _Piece:
        decided = "({} <=> false)" if isinstance(scalar, And) else "({} <=> true)"
        word = " AND " if isinstance(scalar, And) else " OR "
        return self._one_after_other(scalar, decided, word, "")

    def _coalesce(self, scalar: Coalesce) -> _Piece:
        return self._one_after_other(scalar, "{} IS NOT NULL", ", ", "coalesce")

    def _one_after_other(
        self, scalar: And | Or | Coalesce, stops: str, word: str, function: str
    ) -> _Piece:
        parts, errors, error_level = self._lazy([self.compile(o) for o in scalar.operands], stops)
        value = f"{function}({word.join(p.value for p in parts)})"
        level, depth = max(p.level for p in parts), 1 + max(p.depth for p in parts)
        return _Piece(value, level, depth, errors, error_level, error_size=len(errors))

    def _case(self, scalar: Case) -> _Piece:
        conditions = [self.compile(c) for c, _ in scalar.branches]
        results = [self.compile(r) for _, r in scalar.branches]
        otherwise = self.compile(scalar.otherwise)
        fallible = any(p.errors for p in (*conditions, *results, otherwise))
        if fallible:
            conditions = [self._atom(self._error_atom(c)) for c in conditions]
        pairs = list(zip(conditions, results, strict=True))
        branches = " ".join(f"WHEN {c.value} THEN {r.value}" for c, r in pairs)
        value = f"CASE {branches} ELSE {otherwise.value} END"
        parts = (*conditions, *results, otherwise)
        level, depth = max(p.level for p in parts), 1 + max(p.depth for p in parts)
        if not fallible:
            return _Piece(value, level, depth=depth)
        cases = []
        for condition, result in pairs:
            if condition.error is not None:
                cases.append(f"WHEN {condition.error} IS NOT NULL THEN {condition.error}")
            cases.append(f"WHEN {condition.value} THEN {result.error or 'NULL'}")
        error = f"CASE {' '.join(cases)} ELSE {otherwise.error or 'NULL'} END"
        needs, size = max(p.needs for p in parts), 1 + sum(p.error_size for p in parts)
        return _Piece(value, level, depth, (error,), needs, size)

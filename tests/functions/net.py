"""Asks reclock and a PostgreSQL for the values of calls over edge values, and compares.

An answer is a text, as the wire has it, or the SQLSTATE of an error, or NULL; the bytes of its
binary form are compared, too. reclock is asked as a view asks (expressions over columns, by Spark:
values beside errors; by the driver, if it can), and with literals in place of columns, as constants
are computed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from reclock.dataflow.local import evaluated, is_local
from reclock.dataflow.types import arrow_type
from reclock.dataflow.values import from_python
from reclock.errors import Error
from reclock.server.codec import binary, text
from reclock.spark.evaluator import Bundle, projection
from reclock.sql import types as t
from reclock.sql.names import Scope, ScopeColumn
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.coerce import convert
from reclock.sql.plan.relation import Constant
from reclock.sql.plan.scalar import can_fail
from reclock.sql.rewrite.fold_constants import fold_scalar
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax.query import Select
from strategies.queries import FuzzCatalog

from .edges import of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.spark.session import Spark
    from reclock.sql.plan.scalar import Scalar

    from .cases import Case
    from .edges import Literal

MANY = 20_000
TRY = """
CREATE FUNCTION pg_temp.answer(expression text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE made text; missing boolean;
BEGIN
  EXECUTE 'SELECT x IS NULL, format(''%s'', x) FROM (SELECT ' || expression || ' AS x) AS v'
    INTO missing, made;
  IF missing THEN RETURN NULL; END IF;
  RETURN '=' || made;
EXCEPTION WHEN OTHERS THEN RETURN '!' || SQLSTATE;
END $$
"""


@dataclass(frozen=True)
class Difference:
    """What the two say of one call with one tuple of arguments."""

    case: Case
    arguments: tuple[Literal, ...]
    wanted: str | None
    got: str | None
    how: str
    kind: t.Type | None

    def __str__(self) -> str:
        said = f"{self.wanted!r} wanted, {self.got!r} found"
        return f"[{self.how}] {self.case} {self.arguments!r}: {said}"


def quoted(literal: Literal, kind: t.Type) -> str:
    """Return a value as both read it."""
    if literal is None:
        return f"NULL::{kind}"
    return "'" + literal.replace("'", "''") + f"'::{kind}"


def tuples(case: Case) -> list[tuple[Literal, ...]]:
    """Return the tuples of arguments of a call: all, or some if there are too many."""
    choices = [of(kind) for kind in case.kinds]
    if prod(map(len, choices)) <= MANY:
        return list(product(*choices))
    random = Random(0)
    return [tuple(map(random.choice, choices)) for _ in range(MANY)]


def ask_postgres(
    connection: Any, asked: Sequence[tuple[Case, tuple[Literal, ...]]]
) -> list[str | None]:
    """Return PostgreSQL's answers."""
    texts = [case.expression.format(*map(quoted, row, case.kinds)) for case, row in asked]
    found = connection.execute(
        "SELECT pg_temp.answer(x) FROM unnest(%s::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n",
        (texts,),
    )
    return [row[0] for row in found.fetchall()]


def planned(expression: str, kinds: Sequence[t.Type]) -> Scalar:
    """Return an expression over columns of these types, as a plan has it."""
    names = [f"c{i}" for i in range(len(kinds))]
    schema = Schema(tuple(Column(n, k) for n, k in zip(names, kinds, strict=True)))
    scope = Scope(tuple(ScopeColumn("t", c.name, i, c.type) for i, c in enumerate(schema)))
    body = parse_query(f"SELECT {expression}").body
    assert isinstance(body, Select)
    made = plan_scalar(body.items[0].expression, Block(Constant(schema, ()), scope), FuzzCatalog())
    return convert(made, t.TEXT) if made.type == t.UNKNOWN else made


def computed(
    spark: Spark, columns: Sequence[pa.Array], count: int, scalars: Sequence[Scalar]
) -> list[list[str | None]]:
    """Return the answers of each scalar, row by row, as a tick of a view computes them."""
    ones = pa.array([1] * count, pa.int64())
    arrays = [*columns, ones, ones]
    named = [f"c{i}" for i in range(len(arrays))]
    bundle = Bundle(pa.RecordBatch.from_arrays(arrays, named), tuple(scalars))
    frame = spark.session.createDataFrame(pa.Table.from_arrays(arrays, [f"b0{n}" for n in named]))
    answer = iter(projection(frame, [bundle]).toArrow().columns)
    found = []
    for scalar in scalars:
        values = next(answer).combine_chunks().cast(arrow_type(scalar.type))
        errors = next(answer).to_pylist() if can_fail(scalar) else [None] * count
        found.append(shown(values, errors, scalar.type))
    return found


def shown(values: pa.Array, errors: Sequence[str | None], kind: t.Type) -> list[str | None]:
    """Return values and errors as answers."""
    made: list[str | None] = []
    for value, error in zip(values, errors, strict=True):
        if error is not None:
            made.append("!" + error[:5])
        elif not value.is_valid:
            made.append(None)
        else:
            try:
                made.append("=" + text.write(value.as_py(), kind))
            except (ValueError, OverflowError) as cause:
                made.append(f"?{type(cause).__name__}")
    return made


def columns_of(kinds: Sequence[t.Type], rows: Sequence[tuple[Literal, ...]]) -> list[pa.Array]:
    """Return tuples of literals as columns."""
    return [from_python([r[i] for r in rows], kind) for i, kind in enumerate(kinds)]


def compare(
    spark: Spark, connection: Any, asked: Sequence[Case], rows: Sequence[tuple[Literal, ...]]
) -> list[Difference]:
    """Return where calls with the same types of arguments differ from PostgreSQL, over columns."""
    kinds = asked[0].kinds
    scalars: dict[Case, Scalar] = {}
    refused: dict[Case, str] = {}
    names = [f"c{i}" for i in range(len(kinds))]
    for case in asked:
        try:
            scalars[case] = planned(case.expression.format(*names), kinds)
        except Error as error:
            refused[case] = "!" + error.code
    columns = columns_of(kinds, rows)
    found = dict(
        zip(scalars, computed(spark, columns, len(rows), list(scalars.values())), strict=True)
    )
    differences: list[Difference] = []
    for case in asked:
        wanted = ask_postgres(connection, [(case, row) for row in rows])
        ways = {"view": found.get(case) or [refused[case]] * len(rows)}
        if case in scalars and is_local(scalars[case]):
            batch = pa.RecordBatch.from_arrays(columns, names)
            made = evaluated([scalars[case]], batch)
            errors = [None] * len(rows) if made.errors[0] is None else made.errors[0].to_pylist()
            ways["driver"] = shown(made.values[0], errors, scalars[case].type)
        kind = scalars[case].type if case in scalars else None
        if kind is not None:
            differences += binary_differences(connection, case, kind, found[case])
        for how, got in ways.items():
            differences += _differing(case, rows, wanted, got, how=how, kinds=[kind] * len(rows))
    return differences


def binary_differences(
    connection: Any, case: Case, kind: t.Type, answers: Sequence[str | None]
) -> list[Difference]:
    """Return which answers have other bytes on the wire than PostgreSQL's, of the same type."""
    texts = sorted({answer[1:] for answer in answers if answer and answer[0] == "="})
    if not texts:
        return []
    asked = f"SELECT x::{kind} FROM unnest(%s::text[]) WITH ORDINALITY AS u (x, n) ORDER BY n"
    result = connection.execute(asked, (texts,), binary=True).pgresult
    found = []
    for at, literal in enumerate(texts):
        theirs = result.get_value(at, 0)
        ours = binary.write(from_python([literal], kind)[0].as_py(), kind)
        if ours != theirs:
            found.append(Difference(case, (literal,), theirs.hex(), ours.hex(), "binary", kind))
    return found


def compare_constants(
    spark: Spark, connection: Any, asked: Sequence[tuple[Case, tuple[Literal, ...]]]
) -> list[Difference]:
    """Return where calls with literals differ, which are read and folded while planning."""
    made = [_constant(case, row) for case, row in asked]
    scalars = [scalar for scalar in made if not isinstance(scalar, str)]
    one = [pa.array([0], pa.int64())]
    answers = iter(computed(spark, one, 1, scalars))
    got = [m if isinstance(m, str) else next(answers)[0] for m in made]
    wanted = ask_postgres(connection, asked)
    differences: list[Difference] = []
    for (case, row), want, answer, scalar in zip(asked, wanted, got, made, strict=True):
        kind = None if isinstance(scalar, str) else scalar.type
        differences += _differing(case, [row], [want], [answer], how="constant", kinds=[kind])
    return differences


def _differing(
    case: Case,
    rows: Sequence[tuple[Literal, ...]],
    wanted: Sequence[str | None],
    got: Sequence[str | None],
    *,
    how: str,
    kinds: Sequence[t.Type | None],
) -> list[Difference]:
    answers = zip(rows, wanted, got, kinds, strict=True)
    return [Difference(case, row, w, g, how, kind) for row, w, g, kind in answers if w != g]


def _constant(case: Case, row: tuple[Literal, ...]) -> Scalar | str:
    """Return a call with literals as arguments, folded; or how planning refuses it."""
    try:
        return fold_scalar(planned(case.expression.format(*map(quoted, row, case.kinds)), ()))
    except Error as error:
        return "!" + error.code

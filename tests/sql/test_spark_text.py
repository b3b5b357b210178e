from __future__ import annotations

import datetime
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from model.evaluate_scalar import EvaluationError, evaluate_scalar
from reclock.sql.names import Scope, ScopeColumn
from reclock.sql.parse import parse_query
from reclock.sql.plan.build import plan_scalar
from reclock.sql.plan.build.block import Block
from reclock.sql.plan.coerce import convert
from reclock.sql.plan.functions import FUNCTIONS
from reclock.sql.plan.functions.overload import AnyOf
from reclock.sql.plan.relation import Constant
from reclock.sql.plan.scalar import Call, Literal
from reclock.sql.plan.spark_text import compile_scalars
from reclock.sql.schema import Column, Schema
from reclock.sql.syntax.query import Select
from reclock.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    UNKNOWN,
    Array,
    Numeric,
)
from strategies.queries import FuzzCatalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reclock.sql.plan.scalar import Scalar

pytestmark = pytest.mark.spark

COLUMNS = {
    "i": INTEGER,
    "j": INTEGER,
    "w": BIGINT,
    "h": SMALLINT,
    "n": Numeric(12, 2),
    "x": DOUBLE,
    "s": TEXT,
    "b": BOOLEAN,
    "d": DATE,
    "m": TIMESTAMP,
}
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, 30, 15)  # noqa: DTZ001  # a timestamp without zone
ROWS: list[tuple[Any, ...]] = [
    (7, 2, 5, 1, Decimal("3.25"), 1.5, "12", True, DAY, NOON),
    (-7, 2, -5, 2, Decimal("-3.25"), -1.5, " 7 ", False, DAY, NOON),
    (7, 0, 0, 0, Decimal("0.00"), 0.0, "abc", None, DAY, NOON),
    (2**31 - 1, 1, 2**63 - 1, 2**15 - 1, Decimal("9999999999.99"), 1e300, "", True, DAY, NOON),
    (-(2**31), -1, -(2**63), -(2**15), Decimal("0.01"), float("inf"), "1.5", False, DAY, NOON),
    (None, 1, None, None, None, None, None, None, None, None),
    (1, None, 1, 1, Decimal("2.50"), 2.5, "it's \\ a `quote`", True, DAY, NOON),
    (0, -3, 3, 3, Decimal("-0.50"), -2.5, "%_x", None, DAY, NOON),
]
EXPRESSIONS = [
    "i + j", "i - j", "i * j", "i / j", "i % j", "w + 1", "w * 2", "w / j", "-i", "-w", "h + h",
    "abs(i)", "i + w", "n + 1", "n * n", "n / 3", "n / j", "n % 2", "x * 10", "x / j", "i + n",
    "i::text", "s::int", "s::numeric(5,1)", "n::int", "x::int", "x::bigint", "w::int",
    "i::smallint",
    "n::numeric(3,1)", "b::int", "i::boolean", "b::text", "d::text", "m::date", "m::text",
    "case when j = 0 then 0 else i / j end", "case when j <> 0 then i / j end",
    "j <> 0 and i / j > 1", "j = 0 or i / j > 1", "i / j > 1 or j = 0", "i / j > 1 and j <> 0",
    "coalesce(i, 1 / j)", "coalesce(i / j, 0)", "nullif(i, 7)", "greatest(i, j)", "least(i, j, 3)",
    "case when i / j > 1 then 1 when s::int = 12 then 2 else w::int end",
    "s || i", "s || 'x' || s", "length(s)", "upper(s)", "reverse(s)", "substring(s, 2)",
    "substring(s, 0, 2)", "substring(s, 2, j)", "left(s, -1)", "right(s, -1)", "left(s, 2)",
    "replace(s, 'a', 'zz')", "replace(s, '', 'zz')", "trim(s)", "strpos(s, 'b')", "repeat(s, j)",
    "s like 'a%'", "s like '%\\_x'", "s ilike 'A%'", "i is null", "b is true", "not b",
    "s like s", "s like s || '%'", "s ilike '%' || upper(s)", "s like null", "s like s || '\\'",
    "s like s escape 'x'", "s not like s escape ''", "s like s escape null",
    "s like s escape '`'", "s::varchar(2)", "i::varchar(1)",
    "i is distinct from j", "i = j", "i in (1, 7, null)", "b and i > 0", "b or i > 0",
    "i between 1 and 7", "concat(s, i, b)", "concat(s, null, s)", "s || s || null",
    "sqrt(x)", "d + 1", "d - 1", "d - d",
    "extract(year from d)", "extract(month from m)", "i & 3", "(i + j) * (i - j) / (j + 1)",
    "((i + 1) + 1) + 1", "floor(n)", "ceil(n)", "floor(x)", "sign(i)", "(array[1,2,3])[j]",
    "left(s, j)", "right(s, j)", "substring(s, j)", "replace(s, s, s)", "null::int / 0",
    "starts_with(s, 'a')", "mod(i, j)", "i / (j - j)", "1 / 0", "5", "null", "'x'", "1.50",
]  # fmt: skip


def planned(text: str, over: Block | None = None) -> Scalar:
    schema = Schema(tuple(Column(n, t) for n, t in COLUMNS.items()))
    scope = Scope(tuple(ScopeColumn("t", c.name, i, c.type) for i, c in enumerate(schema)))
    body = parse_query(f"select {text}").body
    assert isinstance(body, Select)
    block = over or Block(Constant(schema, ()), scope)
    made = plan_scalar(body.items[0].expression, block, FuzzCatalog())
    return convert(made, TEXT) if made.type == UNKNOWN else made


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    sql = pytest.importorskip("pyspark.sql")
    session = (
        sql.SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    yield session
    session.stop()


def expected(scalar: Scalar, row: tuple[Any, ...]) -> tuple[object, str | None]:
    try:
        return evaluate_scalar(scalar, row), None
    except EvaluationError as error:
        return None, error.code


@pytest.mark.filterwarnings("ignore")  # pyspark's own deprecations are not ours
def test_values_and_errors_are_those_of_postgresql(spark: Any) -> None:
    scalars = [planned(text) for text in EXPRESSIONS]
    names = list(COLUMNS)
    compiled = compile_scalars(scalars, names)
    schema = ", ".join(f"{n} {t.spark_name}" for n, t in COLUMNS.items())
    frame = spark.createDataFrame(ROWS, schema)
    for stage in compiled.stages:
        frame = frame.selectExpr("*", *(f"{text} AS `{name}`" for name, text in stage))
    outputs = [f"{text} AS v{i}" for i, text in enumerate(compiled.values)]
    outputs += [
        f"{text or 'CAST(NULL AS STRING)'} AS e{i}" for i, text in enumerate(compiled.errors)
    ]
    frame = frame.selectExpr(*outputs)
    types = dict(frame.dtypes)
    wrong = []
    for row, got in zip(ROWS, frame.collect(), strict=True):
        for i, (text, scalar) in enumerate(zip(EXPRESSIONS, scalars, strict=True)):
            value, code = expected(scalar, row)
            error = got[f"e{i}"]
            if (error.split("|")[0] if error else None) != code:
                wrong.append((text, row, "error", code, error))
            elif code is None and got[f"v{i}"] != value:
                wrong.append((text, row, "value", value, got[f"v{i}"]))
    assert not wrong, "\n".join(str(w) for w in wrong)
    for i, (text, scalar) in enumerate(zip(EXPRESSIONS, scalars, strict=True)):
        name = scalar.type.spark_name.lower().replace(", ", ",")
        assert types[f"v{i}"] == name, text


@pytest.mark.filterwarnings("ignore")
def test_patterns_that_differ_from_row_to_row(spark: Any) -> None:
    random = Random(4)
    letters = ["a", "a", "b", "%", "_", "\\", "!", "\n", "$", "1", "😀"]
    texts = ["".join(random.choices(letters, k=random.randint(0, 4))) for _ in range(9000)]
    rows = [*zip(texts[::2], texts[1::2], strict=True)]
    rows += [(p.replace("\\", "").replace("%", "a_").replace("_", "b"), p) for _, p in rows]
    scope = Scope(tuple(ScopeColumn("t", c, i, TEXT) for i, c in enumerate("tp")))
    schema = Schema(tuple(Column(c, TEXT) for c in "tp"))
    queries = ["t like p", "t ilike p", "t like p escape '!'", "t like p escape '\\'",
               "t like p escape ''", "t like p escape '$'"]  # fmt: skip
    scalars = [planned(text, Block(Constant(schema, ()), scope)) for text in queries]
    compiled = compile_scalars(scalars, "tp")
    frame = spark.createDataFrame(rows, "t STRING, p STRING").coalesce(1)
    for stage in compiled.stages:
        frame = frame.selectExpr("*", *(f"{text} AS `{name}`" for name, text in stage))
    got = frame.selectExpr(*compiled.values, *(str(error) for error in compiled.errors)).collect()
    hits = 0
    for row, answer in zip(rows, got, strict=True):
        for i, scalar in enumerate(scalars):
            value, code = expected(scalar, row)
            error = answer[len(scalars) + i]
            assert (error and error.split("|")[0]) == code, (row, queries[i])
            assert code or answer[i] == value, (row, queries[i])
            hits += value is True
    assert hits > 1000


LONG = "repeat(s, 4194304)"
"""Of eight MiB, as s has two characters."""

ANSWERS: list[tuple[str, object]] = [
    ("""('{"a": {"b": [1, "x"]}}'::json -> 'a' -> 'b' ->> 1)""", "x"),
    ("""('{"a": {"b": 1}}'::json ->> 'a')""", '{"b":1}'),
    ("""('{"a": null}'::json ->> 'a')""", None),
    ("""('{"a": "t"}'::json -> 'a')""", '"t"'),
    ("""('{"a": 1}'::json ->> 'zz')""", None),
    ("""('[1, 2, 3]'::json ->> -1)""", "3"),
    ("""('[1, 2, 3]'::json -> 5)""", None),
    ("date_trunc('hour', m)::text", "2024-02-29 12:00:00"),
    ("date_trunc('month', d)::text", "2024-02-01 00:00:00+00"),
    ("to_char(m, 'YYYY-MM-DD HH24:MI:SS')", "2024-02-29 12:30:15"),
    ("(m + interval '1 month')::text", "2024-03-29 12:30:15"),
    ("(m - interval '1 day 2 hours')::text", "2024-02-28 10:30:15"),
    ("(m at time zone 'Europe/Paris')::text", "2024-02-29 11:30:15+00"),
    ("extract(epoch from m)", Decimal("1709209815.000000")),
    ("extract(dow from d)", Decimal("4.000000")),
    ("extract(isodow from d)", Decimal("4.000000")),
    ("extract(second from m)", Decimal("15.000000")),
    ("split_part('a,b,c', ',', 2)", "b"),
    ("split_part('a,b,c', ',', 9)", ""),
    ("initcap('hello world')", "Hello World"),
    ("lpad('7', 3, '0')", "007"),
    (f"length({LONG} || s)", 8 << 20 | 2),
    ("length(replace(repeat(s, 16384), 'none', repeat('b', 4096)))", 32768),
    ("length(replace(repeat(s, 16384), s, repeat('b', 256)))", 4 << 20),
    ("concat_ws(null, s, s)", None),
    ("array_append(array[s, s], null)", ["12", "12", None]),
    ("md5('x')", "9dd4e461268c8034f5c8564e155c67a6"),
    ("chr(233)", "é"),
    ("translate('abc', 'ab', 'xy')", "xyc"),
    ("'foo' ~ '^f.o$'", True),
    ("'a_b' like 'a\\_b'", True),
    ("string_to_array('a.b', '.')", ["a", "b"]),
    ("array_to_string(array['a', 'b'], '-')", "a-b"),
    ("array_length(array[1, 2], 1)", 2),
    ("array[1, 2] || 3", [1, 2, 3]),
    ("2 = any(array[1, 2])", True),
    ("power(2, 10)", 1024.0),
    ("round(2.5)", Decimal(3)),
    ("2.5::int", 3),
    ("2.5::double precision::int", 2),
    ("1.0 / 3", Decimal("0.3333333333333333")),
    ("make_date(2024, 2, 29)", DAY),
    ("'2024-02-29'::date + 1", datetime.date(2024, 3, 1)),
    ("greatest(1, null, 3)", 3),
    ("to_hex(255)", "ff"),
    ("position('b' in 'abc')", 2),
    # What a text has in braces is no place in a template: this would be Spark SQL.
    ("concat('{1}', ', version(), ')", "{1}, version(), "),
    ("greatest('{type}', '{1}', '{0}')", "{type}"),
    ("array['{1}', s, '{*}']", ["{1}", "12", "{*}"]),
    ("split_part('{1}', '{2}', 1)", "{1}"),
]
FAILURES = [
    ("make_date(2024, 2, 30)", "22008"),
    ("ln(0.0)", "2201E"),
    ("'x'::text::date", "22P02"),
    ("('{'||'a')::json", "22P02"),
    ("split_part('a', ',', 0)", "22023"),
    ("exp(1000.0)", "22003"),
    ("power(0, -1)", "2201F"),
    # Nothing is allocated for what would be too long, neither in a task nor where Spark plans.
    ("repeat('a', 2000000000)", "54000"),
    ("repeat(s, 2000000000)", "54000"),
    ("repeat(repeat('ab', 30000), 30000)", "54000"),
    ("lpad('a', 2000000000)", "54000"),
    ("lpad('a', 2000000000, s)", "54000"),
    ("rpad('a', 2000000000)", "54000"),
    ("rpad(s, 2000000000, 'xy')", "54000"),
    ("replace(repeat(s, 9999), s, repeat('b', 9999))", "54000"),
    (" || ".join([LONG] * 9), "54000"),
    (f"concat(null, {', '.join([LONG] * 9)})", "54000"),
    (f"concat_ws({LONG}, s, s, s, s, s, s, s, s, s)", "54000"),
    ("string_to_array(repeat(s, 8388609), ',')", "54000"),
    (f"array_to_string(array[s, s, s, s, s, s, s, s, s], {LONG})", "54000"),
    (f"array[{', '.join([LONG] * 9)}]", "54000"),
    (f"array[{LONG}, {LONG}, {LONG}, {LONG}] || array[{', '.join([LONG] * 5)}]", "54000"),
    ("repeat('9', 5000)::numeric", "22003"),
]


@pytest.mark.filterwarnings("ignore")  # pyspark's own deprecations are not ours
def test_known_answers_of_postgresql(spark: Any) -> None:
    scalars = [planned(text) for text, _ in (*ANSWERS, *FAILURES)]
    compiled = compile_scalars(scalars, list(COLUMNS))
    schema = ", ".join(f"{n} {t.spark_name}" for n, t in COLUMNS.items())
    frame = spark.createDataFrame(ROWS[:1], schema)
    for stage in compiled.stages:
        frame = frame.selectExpr("*", *(f"{text} AS `{name}`" for name, text in stage))
    outputs = [f"{text} AS v{i}" for i, text in enumerate(compiled.values)]
    outputs += [
        f"{text or 'CAST(NULL AS STRING)'} AS e{i}" for i, text in enumerate(compiled.errors)
    ]
    got = frame.selectExpr(*outputs).first()
    wrong = [
        (text, value, got[f"v{i}"], got[f"e{i}"])
        for i, (text, value) in enumerate(ANSWERS)
        if got[f"v{i}"] != value or got[f"e{i}"] is not None
    ]
    wrong += [
        (text, code, got[f"v{i}"], got[f"e{i}"])
        for i, (text, code) in enumerate(FAILURES, len(ANSWERS))
        if str(got[f"e{i}"]).split("|")[0] != code
    ]
    assert not wrong, "\n".join(str(w) for w in wrong)


def test_spark_gives_every_function_its_declared_type(spark: Any) -> None:
    stand_ins = {"any": INTEGER, "anyarray": Array(INTEGER), "number": INTEGER,
                 "numeric": Numeric(12, 2)}  # fmt: skip
    calls = []
    for overload in (o for overloads in FUNCTIONS.values() for o in overloads):
        types = tuple(stand_ins[p.name] if isinstance(p, AnyOf) else p for p in overload.parameters)
        arguments = tuple(Literal(None, kind) for kind in types)
        calls.append(Call(overload, arguments, overload.result_type(types)))
    compiled = compile_scalars(calls, [])
    frame = spark.range(1)
    for stage in compiled.stages:
        frame = frame.selectExpr("*", *(f"{text} AS `{name}`" for name, text in stage))
    frame = frame.selectExpr(*(f"{text} AS v{i}" for i, text in enumerate(compiled.values)))
    for (_, got), call in zip(frame.dtypes, calls, strict=True):
        declared = call.type.spark_name.lower().replace(", ", ",").replace(": ", ":")
        assert got == declared, call.function


def test_text_grows_linearly() -> None:
    sizes = []
    for depth in (10, 20, 40):
        compiled = compile_scalars([planned("i" + " + j" * depth)], list(COLUMNS))
        stages = sum(len(text) for stage in compiled.stages for _, text in stage)
        sizes.append(stages + len(compiled.error or ""))
    assert sizes[2] < 5 * sizes[0]

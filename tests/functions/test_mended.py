"""What the net found, one line each, with PostgreSQL's answer: = and a text, ! and a SQLSTATE.

All of them are computed by one Spark job, as a view computes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from reclock.errors import Error

from .net import computed, planned

if TYPE_CHECKING:
    from reclock.spark.session import Spark

pytestmark = pytest.mark.spark

MENDED: dict[str, str | None] = {
    # text of floats, and floats of texts
    "(c0::float8 + 1e23::float8)::text": "=9.999999999999999e+22",
    "('x' || (c0::float8 / 100000))": "=x1e-05",
    "concat(c0::float8 / 3)": "=0.3333333333333333",
    "array_to_string(array[c0::float8, 1e23, 1.5e-7], ',')": "=1,9.999999999999999e+22,1.5e-07",
    "(c0 || 'e400')::float8": "!22003",
    "(c0 || 'e-400')::float8": "!22003",
    "(c0 || 'e39')::real": "!22003",
    "(c0 || 'd')::float8": "!22P02",
    "('+nan' || left(c0::text, 0))::float8": "=NaN",
    "(c0::float8 * 1e300)::real": "!22003",
    "(c0::float8 * 1e-300)::real": "!22003",
    "(c0::float8 * 1e308) * 10": "!22003",
    "(c0::float8 * 1e-308) * 1e-308": "!22003",
    "(c0::float8 * 1e308) + 1.7e308": "!22003",
    "(c0::float8 * 1e-300) / 1e300": "!22003",
    "('NaN' || left(c0::text, 0))::float8 / 0": "=NaN",
    "(c0 + 16777216)::real::numeric(20,0)": "=16777200",
    "(c0 * 123456789012345680)::float8::numeric(20,0)": "=123456789012346000",
    # mathematics
    "power(c0::float8 - 3, 1e300)": "!22003",
    "power(c0::float8, ('NaN' || left(c0::text, 0))::float8)": "=1",
    "(c0::float8 * 2) ^ 1e15": "!22003",
    "(c0::float8 * 0) ^ (-1)": "!2201F",
    "power(c0::float8, nullif(c0, 1)::float8)": None,
    "atan2(c0::float8 - 1, nullif(c0, 1)::float8)": None,
    "sign(('NaN' || left(c0::text, 0))::float8)": "=0",
    "asin(('NaN' || left(c0::text, 0))::float8)": "=NaN",
    "sin((c0 || '')::float8 * ('inf' || left(c0::text, 0))::float8)": "!22003",
    "exp(c0::float8 * -1e5)": "!22003",
    "degrees(c0::float8 * 1e308)": "!22003",
    "degrees(c0::float8 / 10)": "=5.729577951308232",
    "radians(c0::float8 * 5e-324)": "!22003",
    "atan2(('-0' || left(c0::text, 0))::float8, c0 - 2)": "=-3.141592653589793",
    "-(c0 * 99999999999999999999999999999.999999999::numeric(38,9))::numeric(38,6)": (
        "=-100000000000000000000000000000.000000"
    ),
    "abs(left('-99999999999999999999999999999.999999999', c0 + 50)::numeric(38,9))": (
        "=99999999999999999999999999999.999999999"
    ),
    # texts
    "initcap(left('it''s line-break', c0 + 50))": "=It'S Line-Break",
    "initcap(left('\u0130\u0131', c0 + 5))": "=\u0130\u0131",
    "left('\u00fcber', c0 + 5) ~* '\u00dc'": "=t",
    "string_to_array(left('', c0), ',')": "={}",
    "string_to_array(left('ab', c0 + 1), '')": "={ab}",
    "string_to_array(left('a\\Eb', c0 + 5), '\\E')": "={a,b}",
    "concat(c0 = 1, c0 = 2)": "=tf",
    "concat_ws('-', c0 = 1, array[c0, null])": "=t-{1,NULL}",
    "array[left('a b', c0 + 5), '', 'null', null]::text": '={"a b","","null",NULL}',
    "chr(-c0)": "!22023",
    "encode(left(repeat('\\x41', c0), 4)::text::bytea, 'hex')": "!0A000",
    "left('on', c0 + 5)::boolean": "=t",
    "(c0 || '0000000000')::integer": "!22003",
    "(c0 || 'e40')::numeric(12,2)": "!22003",
    # arrays
    "array_cat(array[c0], null::integer[])": "={1}",
    "array_append(null::integer[], c0)": "={1}",
    "array_position(array[c0, null], null::integer)": "=2",
    "array[c0, null] @> array[null::integer]": "=f",
    "array[c0, null] && array[c0 + 1, null]": "=f",
    "array[c0] < array[null::integer]": "=t",
    "array_to_string(array[c0 = 1, null, c0 = 2], ',')": "=t,f",
    "array[c0 = 1]::float8[]": "!42846",
    "array[c0 || '', 'x']::integer[]": "!22P02",
    # intervals that may be NULL, of which Spark knows some numbers
    "date_trunc('year', nullif(make_interval(days => c0), interval '1 day'))": None,
    "case when c0 > 1 then interval '1 day' end": None,
    "case when c0 > 1 then timestamp '2024-01-02' - timestamp '2024-01-01' end": None,
    "date_trunc('hour', make_interval(secs => c0))": "=00:00:00",
    "date_bin(make_interval(days => c0 + 2147483646), timestamp '2024-01-01', '2000-01-01')": (
        "!22008"
    ),
    "date_bin(make_interval(days => c0 + 999), timestamp '0001-01-02', timestamp '0001-01-03')": (
        "!22008"
    ),
    # dates and json
    "make_date(c0 + 9999, 1, 1)": "!22008",
    "make_date(2024, 1, nullif(c0, 1))": None,
    "date '9999-12-31' + c0": "!22008",
    "to_timestamp(c0 * 1.2345678901234567e-4::float8)": "=1970-01-01 00:00:00.000124+00",
    "to_char(timestamp '2024-03-05 01:02:03' , 'DDD [DD] #')": "=065 [05] #",
    "timezone('Europe/Berlin', timestamp '2024-10-27 02:30:00')": "=2024-10-27 01:30:00+00",
    "left('[1]', c0 + 5)::json -> 2147483647": None,
    "json_array_length(left('{}', c0 + 5)::json)": "!22023",
}


@pytest.fixture(scope="module")
def answers(spark: Spark) -> dict[str, str | None]:
    from reclock.sql.types import INTEGER  # noqa: PLC0415

    scalars, found = {}, {}
    for expression in MENDED:
        try:
            scalars[expression] = planned(expression, [INTEGER])
        except Error as error:
            found[expression] = "!" + error.code
    rows = computed(spark, [pa.array([1], pa.int32())], 1, list(scalars.values()))
    return found | {e: row[0] for e, row in zip(scalars, rows, strict=True)}


@pytest.mark.parametrize("expression", list(MENDED))
def test_as_postgresql_says(answers: dict[str, str | None], expression: str) -> None:
    assert answers[expression] == MENDED[expression]


def test_base64_has_lines_of_postgresql(spark: Spark) -> None:
    from reclock.sql.types import BYTEA  # noqa: PLC0415

    scalar = planned("encode(c0, 'base64')", [BYTEA])
    [[made]] = computed(spark, [pa.array([b"x" * 60])], 1, [scalar])
    assert made is not None
    assert made[1:] == "eHh4" * 19 + "\n" + "eHh4"


def test_minus_a_constant_keeps_its_digits_and_its_range(spark: Spark) -> None:
    digits = "1234567890123456789012345678901234.5"
    asked = [f"(-{digits})::text", "- '-32768'::smallint", "- '-2147483648'::integer"]
    scalars = [planned(text, []) for text in asked]
    rows = computed(spark, [pa.array([1], pa.int32())], 1, scalars)
    assert [row[0] for row in rows] == [f"=-{digits}", "!22003", "!22003"]
    with pytest.raises(Error) as raised:
        planned("- true", [])
    assert raised.value.code == "42883"


def test_zeros_of_both_signs_stay_apart(spark: Spark) -> None:
    scalars = [planned(f"'{zero}'::float8::text", []) for zero in ("-0", "0")]
    scalars += [
        planned(f"array_to_string('{{{zero}}}'::float8[], ',')", []) for zero in ("-0", "0")
    ]
    rows = computed(spark, [pa.array([1], pa.int32())], 1, scalars)
    assert [row[0] for row in rows] == ["=-0", "=0", "=-0", "=0"]


@pytest.mark.parametrize("pattern", ["Month", "SSSS", '"x"', "\\Y"])
def test_patterns_that_mean_something_else_are_refused(pattern: str) -> None:
    with pytest.raises(Error) as raised:
        planned(f"to_char(timestamp '2024-03-05', '{pattern}')", [])
    assert raised.value.code == "0A000"

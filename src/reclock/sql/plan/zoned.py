"""Expressions in the zone of a session: what a call or a cast is there, if it is not the same.

The meaning of an expression is that of UTC with the zone's conversions written out:
``extract(hour FROM t)`` of a timestamptz in Europe/Berlin is ``extract(hour FROM t AT TIME ZONE
'Europe/Berlin')``. So a plan says all that it depends on,
and nothing that runs it knows of sessions. In UTC nothing is rewritten.

Elements of arrays and records are written and cut as in UTC.

Tests: tests/functions/test_zones.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reclock.sql.plan.functions import find_function
from reclock.sql.plan.functions.zoned import CUT, ZONED
from reclock.sql.plan.scalar import Call, Case, Cast, Literal
from reclock.sql.types import BOOLEAN, DATE, INTERVAL, TEXT, TIMESTAMP, TIMESTAMPTZ
from reclock.sql.zone import DEFAULT, spark_name, zone

if TYPE_CHECKING:
    from reclock.sql.plan.scalar import Scalar
    from reclock.sql.types import Type

_HAS_ZONE = r"[ tT][0-9][0-9:.]* *([zZ]|[+-][0-9]{1,2}(:?[0-9]{2}){0,2}|[A-Za-z]+/[A-Za-z_/]+) *$"


def is_zoned() -> bool:
    """Return whether anything differs from UTC."""
    return zone() != DEFAULT


def local(moment: Scalar) -> Scalar:
    """Return what the zone's clocks show at a moment."""
    return _called("timezone", moment)


def _moment(time: Scalar) -> Scalar:
    """Return when the zone's clocks show a time."""
    return _called("timezone", time)


def _called(name: str, *arguments: Scalar) -> Scalar:
    given = (Literal(spark_name(zone()), TEXT), *arguments)
    found = ZONED.get(name) or find_function(name, tuple(a.type for a in given))
    return Call(found, given, found.result_type(tuple(a.type for a in given)))


def cast_there(scalar: Scalar, wanted: Type) -> Scalar | None:  # noqa: PLR0911  # one per case
    """Return a conversion that depends on the zone; None if it does not."""
    if not is_zoned():
        return None
    source = scalar.type
    if source == TIMESTAMPTZ:
        if wanted == TIMESTAMP:
            return local(scalar)
        if wanted == DATE:
            return Cast(local(scalar), DATE)
        if wanted == TEXT:
            return _called("zoned text", scalar)
    if wanted == TIMESTAMPTZ:
        if source == TIMESTAMP:
            return _moment(scalar)
        if source == DATE:
            return _moment(Cast(scalar, TIMESTAMP))
        if source == TEXT:
            pattern = (scalar, Literal(_HAS_ZONE, TEXT))
            has_zone = Call(find_function("~", (TEXT, TEXT)), pattern, BOOLEAN)
            return Case(((has_zone, Cast(scalar, TIMESTAMPTZ)),), _moment(Cast(scalar, TIMESTAMP)))
    return None


def call_there(  # noqa: PLR0911  # one per case
    name: str, arguments: tuple[Scalar, ...]
) -> tuple[str, tuple[Scalar, ...]] | Scalar:
    """Return a call as it is in the zone: another name, other arguments, or all of another."""
    if not is_zoned() or not any(a.type == TIMESTAMPTZ for a in arguments):
        return name, arguments
    first = arguments[0]
    kinds = tuple(a.type for a in arguments)
    if name.startswith("date_trunc "):
        if name.removeprefix("date_trunc ") in CUT:
            return _called(f"zoned {name}", first)
        cut = find_function(name, (TIMESTAMP,))
        return _moment(Call(cut, (local(first),), TIMESTAMP))
    if (name.startswith("extract ") and name != "extract epoch") or name == "to_char":
        return name, (local(first), *arguments[1:])
    if name in {"+", "-"} and kinds == (TIMESTAMPTZ, INTERVAL):
        return _called(f"zoned {name}", *arguments)
    if name == "+" and kinds == (INTERVAL, TIMESTAMPTZ):
        return _called("zoned +", *reversed(arguments))
    if name == "age":
        if len(arguments) == 1:
            today = Cast(local(Call(find_function("now", ()), (), TIMESTAMPTZ)), DATE)
            return name, (Cast(today, TIMESTAMP), local(first))
        return name, tuple(local(a) if a.type == TIMESTAMPTZ else a for a in arguments)
    return name, arguments

"""What depends on the zone of a session: each function has the zone's name as its first argument.

They are not in the table of functions: ``plan.zoned`` puts them in the place of what does it in
UTC. A time of day is that of the zone's clocks; days and months are added to what they show, hours
to the moment; a moment that is cut to an hour or less keeps its offset. So does PostgreSQL.

Tests: tests/functions/test_zones.py.
"""

from __future__ import annotations

from typing import Final

from reclock.interval import HOUR, MINUTE, SECOND
from reclock.sql.plan.functions.datetime import MOMENT
from reclock.sql.plan.functions.interval import TIME_RANGE
from reclock.sql.plan.functions.overload import Overload
from reclock.sql.plan.interval_text import let
from reclock.sql.types import INTERVAL, TEXT, TIMESTAMPTZ

CUT: Final = {
    "hour": HOUR, "minute": MINUTE, "second": SECOND, "milliseconds": 1_000, "microseconds": 1,
}  # fmt: skip


def _text() -> str:
    """Return text for a moment with its offset."""
    seconds = "(unix_micros(l) - unix_micros({1})) div 1000000"

    def part(number: str) -> str:
        return f"lpad(CAST({number} AS STRING), 2, '0')"

    minutes = (
        f"CASE WHEN abs(o) % 3600 <> 0 THEN concat(':', {part('abs(o) div 60 % 60')}) ELSE '' END"
    )
    rest = f"CASE WHEN abs(o) % 60 <> 0 THEN concat(':', {part('abs(o) % 60')}) ELSE '' END"
    made = (
        "concat(CAST(l AS STRING), CASE WHEN o < 0 THEN '-' ELSE '+' END,"
        f" {part('abs(o) div 3600')}, {minutes}, {rest})"
    )
    return let("l", "from_utc_timestamp({1}, {0})", let("o", seconds, made))


def _moved(sign: str) -> str:
    """Return text for a moment plus an interval: months, then days, as clocks show them."""

    def step(at: str, number: str, unit: str) -> str:
        local = f"from_utc_timestamp({at}, {{0}})"
        there = f"try_add({local}, try_multiply(INTERVAL '1' {unit}, {number}))"
        moved = MOMENT.replace("{1}", there)
        return f"CASE WHEN {number} = 0 THEN {at} ELSE {moved} END"

    months, days, micros = "{2}.months", "{2}.days", "{2}.micros"
    if sign == "-":
        months, days = f"try_subtract(0, {months})", f"try_subtract(0, {days})"
        micros = f"try_subtract(0L, {micros})"
    made = f"try_add(d, try_multiply(INTERVAL '0.000001' SECOND, {micros}))"
    return let("m", step("{1}", months, "MONTH"), let("d", step("m", days, "DAY"), made))


def _overloads() -> list[Overload]:
    made = [Overload("zoned text", (TEXT, TIMESTAMPTZ), TEXT, _text())]
    kinds = (TEXT, TIMESTAMPTZ, INTERVAL)
    made += [
        Overload(f"zoned {sign}", kinds, TIMESTAMPTZ, _moved(sign), (TIME_RANGE,)) for sign in "+-"
    ]
    clock = "unix_micros(from_utc_timestamp({1}, {0}))"
    for field, unit in CUT.items():
        text = f"timestamp_micros(unix_micros({{1}}) - pmod({clock}, {unit}L))"
        made.append(Overload(f"zoned date_trunc {field}", (TEXT, TIMESTAMPTZ), TIMESTAMPTZ, text))
    return made


ZONED: Final = {overload.name: overload for overload in _overloads()}

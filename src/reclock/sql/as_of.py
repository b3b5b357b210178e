"""The times that statements name: AS OF t, UP TO t.

A time is a number of its timeline, or, in the ``EpochMilliseconds`` timeline, a date and time as
text; one without a zone is in UTC. Constants have no timeline and take either. A parameter stands
for any of these; a statement is given its values when it begins (``with_times``), so that only
numbers and text are left when it runs.

Tests: tests/engine/test_read.py.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from reclock.errors import InvalidValue, UndefinedName, WrongType
from reclock.sql import statement as s
from reclock.sql.plan.build.parameter import Placeholder, Typed
from reclock.sql.plan.coerce import read_literal
from reclock.sql.syntax.expression import Parameter
from reclock.sql.types import BIGINT, TIMESTAMPTZ
from reclock.time import select
from reclock.time.timeline import EPOCH_MS
from reclock.time.timestamp import Timestamp

if TYPE_CHECKING:
    from reclock.sql.statement.select import AsOf
    from reclock.time.timeline import Timeline

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def with_times(statement: s.Statement, parameters: tuple[object, ...]) -> s.Statement:
    """Return a statement with the values of those of its times that are parameters."""
    match statement:
        case s.SelectStatement() | s.Subscribe():
            return _reading(statement, parameters)
        case s.Copy() | s.Declare() | s.ExplainTimestamp() | s.ExplainPlan():
            if isinstance(statement.of, s.SelectStatement | s.Subscribe):
                return replace(statement, of=_reading(statement.of, parameters))
    return statement


def _reading(
    statement: s.SelectStatement | s.Subscribe, parameters: tuple[object, ...]
) -> s.SelectStatement | s.Subscribe:
    as_of = statement.as_of
    if as_of is not None and isinstance(as_of.time, Parameter):
        time = _value(as_of.time, parameters)
        statement = replace(statement, as_of=replace(as_of, time=time))
    if isinstance(statement, s.Subscribe) and isinstance(statement.up_to, Parameter):
        statement = replace(statement, up_to=_value(statement.up_to, parameters))
    return statement


def _value(parameter: Parameter, parameters: tuple[object, ...]) -> int | str:
    if not 1 <= parameter.index <= len(parameters):
        message = f"there is no parameter ${parameter.index}"
        hint = f"{len(parameters)} values were given"
        raise UndefinedName(message, code="42P02", hint=hint, position=parameter.position)
    value = parameters[parameter.index - 1]
    if isinstance(value, Placeholder):
        value.decide(BIGINT)
        return 0
    if isinstance(value, Typed):
        value = value.value
    if isinstance(value, date):  # a datetime is one too
        return value.isoformat()
    if isinstance(value, int | str) and not isinstance(value, bool):
        return value
    message = f"${parameter.index} is not a time: it is {value!r}"
    hint = "give a whole number, a datetime, or a date and time as text"
    raise WrongType(message, hint=hint, position=parameter.position)


def time_of(given: int | str | Parameter, timeline: Timeline | None) -> Timestamp:
    """Return the time of a timeline that a statement names.

    >>> time_of("1970-01-01 00:00:01.5", EPOCH_MS), time_of("1970-01-01 01:00+01", None)
    (Timestamp(1500), Timestamp(0))
    """
    assert not isinstance(given, Parameter), "statements get their times when they begin"
    if isinstance(given, int) or given.strip().isdigit():
        return Timestamp(int(given))
    if timeline not in {None, EPOCH_MS}:
        message = f'"{given}" is not a time of timeline {timeline}'
        hint = "only EpochMilliseconds has dates; write a whole number"
        raise InvalidValue(message, hint=hint)
    moment = read_literal(given, TIMESTAMPTZ)
    assert isinstance(moment, datetime)
    return Timestamp((moment - _EPOCH) // timedelta(milliseconds=1))


def asked(as_of: AsOf | None, timeline: Timeline | None) -> select.AsOf | select.AsOfAtLeast | None:
    """Return what AS OF asks of a read in a timeline."""
    if as_of is None:
        return None
    time = time_of(as_of.time, timeline)
    return select.AsOfAtLeast(time) if as_of.at_least else select.AsOf(time)

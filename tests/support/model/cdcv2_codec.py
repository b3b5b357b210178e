"""CDCv2 messages as JSON, one per line or record.

The spelling is a contract with other programs::

    {"array": [{"data": {…}, "time": t, "diff": d}, …]}
    {"progress": {"lower": [l], "upper": [u], "counts": [{"time": t, "count": n}, …]}}

An empty ``upper`` closes the collection. Times and diffs are integers; data is an object,
one field per column. Numbers with a fraction or an exponent decode to ``Decimal``, digit for
digit: whether a column is a DOUBLE or a NUMERIC is not known here, and a detour through
binary floating point would lose what only the column's type may give up.

Anything else is a ``MalformedMessage`` whose detail names the place and what is wrong with
it: fields that are missing, unknown or repeated, numbers that are not integers, values JSON
does not have. ``decode(encode(m)) == m`` for data made of text, booleans, NULL, integers,
decimals, lists and objects; a float comes back as the decimal of its shortest text.

Tests: tests/change/test_cdcv2_codec.py.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NoReturn

from reclock.change.cdcv2.message import Message, Progress, Updates, refuse
from reclock.change.update import Update
from reclock.errors import InvalidValue
from reclock.time.antichain import Antichain
from reclock.time.timestamp import Timestamp

DEEPEST: Final = 100
"""How deep data may be nested: far beyond any table, far from Python's recursion limit."""


def encode(message: Message) -> str:
    """Return the message as one line of JSON, without the end of line.

    >>> encode(Updates((Update({"id": 7}, Timestamp(3), 1),)))
    '{"array": [{"data": {"id": 7}, "time": 3, "diff": 1}]}'
    """
    if isinstance(message, Updates):
        return _json({"array": [u._asdict() for u in message.array]})
    counts = [{"time": time, "count": count} for time, count in message.counts]
    body = {"lower": [*message.lower], "upper": [*message.upper], "counts": counts}
    return _json({"progress": body})


def _json(value: Any) -> str:
    """Write JSON as the standard library does, and decimals with all their digits."""
    match value:
        case None | bool() | str() | int():
            return json.dumps(value)
        case float() if math.isfinite(value):
            return json.dumps(value)
        case Decimal() if value.is_finite():
            return str(value)
        case list() | tuple():
            return "[" + ", ".join(map(_json, value)) + "]"
        case Mapping() if all(isinstance(name, str) for name in value):
            fields = (f"{json.dumps(name)}: {_json(field)}" for name, field in value.items())
            return "{" + ", ".join(fields) + "}"
    message = f"{value!r} has no form in JSON"
    raise InvalidValue(message, hint="encode dates, bytes and special numbers as text before")


def decode(line: str | bytes) -> Message:
    """Return the message in a line of JSON.

    >>> decode('{"progress": {"lower": [0], "upper": [4], "counts": [{"time": 3, "count": 1}]}}')
    Progress(lower={0}, upper={4}, counts=((Timestamp(3), 1),))
    >>> decode('{"array": [{"data": {}, "time": "3", "diff": 1}]}')
    Traceback (most recent call last):
    reclock.errors.MalformedMessage: malformed CDCv2 message
    detail: array[0].time is "3", not an integer
    """
    try:
        value = json.loads(
            line,
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except (ValueError, ArithmeticError, RecursionError) as error:
        refuse(f"not JSON: {error}")
    if not isinstance(value, dict) or not value.keys() & {"array", "progress"}:
        refuse(f'the message is {_show(value)}, not an object with "array" or "progress"')
    if "array" in value:
        array = _list(_fields(value, "the message", "array")["array"], "array")
        return Updates(tuple(_update(update, f"array[{n}]") for n, update in enumerate(array)))
    return _progress(_fields(value, "the message", "progress")["progress"])


def _update(value: Any, where: str) -> Update[dict[str, Any], Timestamp]:
    fields = _fields(value, where, "data", "time", "diff")
    data = fields["data"]
    if not isinstance(data, dict):
        refuse(f"{where}.data is {_show(data)}, not an object")
    if _nesting(data) > DEEPEST:
        refuse(f"{where}.data is nested more than {DEEPEST} deep")
    diff = _integer(fields["diff"], f"{where}.diff")
    return Update(data, _time(fields["time"], f"{where}.time"), diff)


def _progress(value: Any) -> Progress:
    fields = _fields(value, "progress", "lower", "upper", "counts")
    counts = [
        (f"progress.counts[{n}]", _fields(count, f"progress.counts[{n}]", "time", "count"))
        for n, count in enumerate(_list(fields["counts"], "progress.counts"))
    ]
    return Progress(
        _frontier(fields["lower"], "progress.lower"),
        _frontier(fields["upper"], "progress.upper"),
        tuple(
            (_time(count["time"], f"{at}.time"), _integer(count["count"], f"{at}.count"))
            for at, count in counts
        ),
    )


def _frontier(value: Any, where: str) -> Antichain[Timestamp]:
    times = [_time(t, f"{where}[{n}]") for n, t in enumerate(_list(value, where))]
    if len(times) > 1:
        refuse(f"{where} has {len(times)} times; totally ordered times need one")
    return Antichain(times)


def _fields(value: Any, where: str, *names: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        refuse(f"{where} is {_show(value)}, not an object")
    missing = [name for name in names if name not in value]
    if missing:
        refuse(f'{where} has no "{missing[0]}"')
    unknown = [name for name in value if name not in names]
    if unknown:
        refuse(f"{where} has an unknown field {_show(unknown[0])}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        refuse(f"{where} is {_show(value)}, not an array")
    return value


def _integer(value: Any, where: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        refuse(f"{where} is {_show(value)}, not an integer")
    return value


def _time(value: Any, where: str) -> Timestamp:
    number = _integer(value, where)
    if not 0 <= number <= Timestamp.greatest:
        refuse(f"{where} is {_show(number)}, not between 0 and {Timestamp.greatest}")
    return Timestamp(number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, refusing a field that is given twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        refuse(f"field {_show(repeated)} is given twice in one object")
    return made


def _refuse_constant(name: str) -> NoReturn:
    refuse(f"{name} is not a number of JSON")


def _nesting(value: Any) -> int:
    """Return how deep arrays and objects are nested in ``value``, without recursion."""
    depth, level = 0, [value]
    while level := [v for v in level if isinstance(v, list | dict)]:
        depth += 1
        level = [v for inside in level for v in _inside(inside)]
    return depth


def _inside(value: list[Any] | dict[str, Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _show(value: Any) -> str:
    """Return the value for a message to a person: what it is if it is long or nested."""
    if isinstance(value, list | dict):
        return "an array" if isinstance(value, list) else "an object"
    text = _json(value)
    return text if len(text) <= 60 else text[:59] + "…"

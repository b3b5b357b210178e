"""Names and constants as Spark SQL text."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from reclock.interval import Interval
from reclock.sql.types import BYTEA, DATE, INTERVAL, TIMESTAMP, TIMESTAMPTZ, Array

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reclock.sql.types import Type


def quote_name(name: str) -> str:
    """Quote a column name.

    >>> quote_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def quote_string(text: str) -> str:
    r"""Quote a string, so that any character survives.

    >>> quote_string("it's a \\")
    "'it\\'s a \\\\'"
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\x00", "\\0") + "'"


def literal_text(value: object, kind: Type) -> str:
    """Return a constant as Spark SQL of exactly the type ``kind``."""
    if value is None:
        return f"CAST(NULL AS {kind.spark_name})"
    if isinstance(kind, Array):
        inside = ", ".join(literal_text(v, kind.element) for v in cast("Iterable[object]", value))
        return f"CAST(array({inside}) AS {kind.spark_name})"
    text = _plain(value, kind)
    return text if text is not None else f"CAST({quote_string(str(value))} AS {kind.spark_name})"


def _plain(value: object, kind: Type) -> str | None:  # noqa: PLR0911  # one per case
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == BYTEA and isinstance(value, bytes):
        return f"X'{value.hex()}'"
    if isinstance(value, str):
        return quote_string(value)
    if isinstance(value, Interval):
        return (
            f"CAST(named_struct('days', {value.days}, 'micros', {value.microseconds}L,"
            f" 'months', {value.months}) AS {INTERVAL.spark_name})"
        )
    if kind == TIMESTAMPTZ and isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None)
        return f"TIMESTAMP_LTZ'{moment.isoformat(' ')}Z'"
    if kind == TIMESTAMP and isinstance(value, datetime):
        return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
    if kind == DATE and isinstance(value, date):
        return f"DATE'{value.isoformat()}'"
    if isinstance(value, Decimal):
        return f"CAST('{value:f}' AS {kind.spark_name})"
    return None

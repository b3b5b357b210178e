"""A Reduce or Window over tagged snapshots of groups, as Spark SQL.

The rows are ``version, c0, …``; every version is computed by itself: the version is one more
grouping key, or partition. The text gives the version, the node's columns ``c0, …``, and
``bad``, the error of the group or row (``SQLSTATE|message``) where it has no value: like
all text that ticks run, it never raises.

Tests: tests/spark/test_spark_maintain.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from reclock.spark.aggregate_text import aggregate_error, aggregate_text
from reclock.spark.columns import Columns
from reclock.spark.window_text import constants_of, window_error, window_text
from reclock.sql.plan.relation import Reduce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reclock.sql.plan.relation import Window

_ROWS: Final = "\0rows"
"""Where the table stands; no text of SQL has such a character."""


def group_text(node: Reduce | Window, passing: Sequence[str] = ()) -> str:
    """Return the query over the table ``{rows}``.

    Columns that are ``passing`` come out as they are, of a version that has one row.
    """
    columns = Columns.of(node.inputs[0].schema)
    source = f"(SELECT {', '.join(['version', *columns.names, *passing])} FROM {_ROWS})"
    text = (
        _reduce(node, columns, source, passing)
        if isinstance(node, Reduce)
        else _window(node, columns, source, passing)
    )
    made = [f"c{i}" for i in range(node.width)]
    return _template(f"SELECT {', '.join(['version', *made, 'bad', *passing])} FROM ({text})")


def _template(text: str) -> str:
    """Return a query in which nothing but the table is filled in: constants may have braces.

    >>> _template(f"SELECT '{{rows.x}}' FROM {_ROWS}").format(rows="t")
    "SELECT '{rows.x}' FROM t"
    """
    return text.replace("{", "{{").replace("}", "}}").replace(_ROWS, "{rows}")


def _reduce(node: Reduce, columns: Columns, source: str, passing: Sequence[str]) -> str:
    keys = [columns[k] for k in node.keys]
    calls = [call for _, call in node.aggregates]
    values = [*keys, *(aggregate_text(call, columns) for call in calls)]
    items = [f"{text} AS c{i}" for i, text in enumerate(values)]
    bad = _first([aggregate_error(call, columns) for call in calls])
    grouped = ", ".join(dict.fromkeys(["version", *keys]))
    firsts = [f"first({name}) AS {name}" for name in passing]
    made = ", ".join(["version", *items, bad, *firsts])
    return f"SELECT {made} FROM {source} GROUP BY {grouped}"


def _window(node: Window, columns: Columns, source: str, passing: Sequence[str]) -> str:
    known = constants_of(node.input)
    partition = ["version", *columns.some(node.partition)]
    calls = [call for _, call in node.calls]
    values = [window_text(call, columns, partition, node.order, known) for call in calls]
    errors = [window_error(call, columns, partition, node.order, known) for call in calls]
    items = [*columns.names, *(f"{text} AS c{len(columns) + i}" for i, text in enumerate(values))]
    made = ", ".join(["version", *items, _first(errors), *passing])
    return f"SELECT {made} FROM {source}"


def _first(errors: list[str | None]) -> str:
    """Return the column ``bad``: the first error that is there."""
    some = [error for error in errors if error is not None]
    return f"coalesce({', '.join(some)}, NULL) AS bad" if some else "CAST(NULL AS STRING) AS bad"

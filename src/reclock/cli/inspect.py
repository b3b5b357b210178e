"""``reclock inspect``: look into a state, whether a reclock is running in it or not.

What is shown is what was durable a moment ago, from a copy (``reclock.session.offline``); nothing
is changed and no process is disturbed. Tests: tests/cli/test_inspect.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Unpack

import click

from reclock.cli import options

if TYPE_CHECKING:
    from pathlib import Path

    from reclock.cli.options import Elsewhere

QUESTIONS: Final = {
    "remap": 'SELECT source, timestamp, partition, "offset" FROM reclock.bindings ORDER BY 1, 2, 3',
    "frontiers": "SELECT object, since, upper FROM reclock.frontiers ORDER BY 1",
    "sinks": "SELECT sink, frontier FROM reclock.sink_status ORDER BY 1",
    "arrangements": "SELECT object, operator, records, pending, bytes, runs "
    "FROM reclock.arrangement_sizes ORDER BY bytes DESC, 1, 2",
    "errors": "SELECT object, timestamp, code, message, detail FROM reclock.errors ORDER BY 1, 2",
}
_TIMES: Final = ("timestamp", "since", "upper", "frontier")
"""Columns that people see with the moment that a number is."""


@click.command(short_help="Look into a state, whether a reclock runs in it or not.")
@click.argument("what", type=click.Choice(list(QUESTIONS)))
@options.looked_at
@click.option("--json", "as_json", is_flag=True, help="A JSON object per line, for programs.")
def inspect(what: str, state: Path, *, as_json: bool, **elsewhere: Unpack[Elsewhere]) -> None:
    """Show what is durable, in a state directory or elsewhere.

    \b
    remap         which offsets of each source belong to which timestamps
    frontiers     from when to when each object can be read
    sinks         up to which time each sink's output is known to be committed
    arrangements  what is stored, and how much of it
    errors        errors that views and sources hold
    """  # noqa: D301 - the escape is click's: it leaves the lines as they are
    from reclock.rows.moment import with_moment  # noqa: PLC0415
    from reclock.rows.text_table import table  # noqa: PLC0415 - the other commands start faster
    from reclock.session.offline import look  # noqa: PLC0415
    from reclock.sql.schema import Column, Schema  # noqa: PLC0415
    from reclock.sql.types import TEXT  # noqa: PLC0415

    with look(state, **elsewhere) as db:
        result = db.execute(QUESTIONS[what])
    if as_json:
        for row in result.rows:
            click.echo(json.dumps(dict(zip(result.columns, row, strict=True)), default=str))
        return
    assert result.schema is not None
    times = [column.name in _TIMES for column in result.schema]
    columns = zip(result.schema, times, strict=True)
    schema = Schema(tuple(Column(c.name, TEXT) if time else c for c, time in columns))
    rows = [
        [
            with_moment(v) if time and v is not None else v
            for v, time in zip(row, times, strict=True)
        ]
        for row in result.rows
    ]
    click.echo(table(rows, schema))

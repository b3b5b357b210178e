"""The result of a statement, for Python and other libraries.

Frames have the columns' SQL types as Arrow has them: numeric as decimal, timestamps in
microseconds, json as text, arrays and records nested; intervals of months as days, like the
Python values. In a notebook, or printed, a result shows itself as a table of its first rows.

Tests: tests/rows/test_result.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

from reclock.errors import InvalidValue
from reclock.rows.moment import with_moment

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd  # type: ignore[import-untyped] # has no types
    import polars as pl
    import pyarrow as pa

    from reclock.sql.schema import Schema
    from reclock.time.timestamp import Timestamp

SHOWN_ROWS: Final = 50


@dataclass(frozen=True, slots=True)
class Result:
    """Columns and rows of a query, or what a statement did.

    ``tag`` is PostgreSQL's command tag. ``timestamp`` is the time a read was answered at,
    or a write committed at; None for statements that do neither.
    """

    tag: str
    columns: tuple[str, ...] = ()
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    timestamp: Timestamp | None = None
    schema: Schema | None = field(default=None, repr=False)
    """The names and SQL types of the columns, of a query."""
    notices: tuple[str, ...] = ()
    """What else there is to know: what IF NOT EXISTS has left as it is."""
    warnings: tuple[tuple[str, str], ...] = ()
    """What was probably not meant, with its SQLSTATE: a BEGIN in a transaction."""

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        import pyarrow as pa  # noqa: PLC0415 - results without frames stay cheap

        from reclock.dataflow.values import from_python  # noqa: PLC0415

        if self.schema is None:
            message = f"{self.tag} has no rows"
            raise InvalidValue(message, hint="frames are made from queries, such as SELECT")
        arrays = [
            from_python((row[place] for row in self.rows), c.type)
            for place, c in enumerate(self.schema)
        ]
        return pa.table(arrays, names=list(self.columns))

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a pandas frame; types stay Arrow's, so that NULL stays NULL."""
        import pandas as pd  # noqa: PLC0415 - results without frames stay cheap

        return self.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a polars frame."""
        import polars as pl  # noqa: PLC0415 - results without frames stay cheap

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def _repr_html_(self) -> str:
        """Show the result in a notebook."""
        if self.schema is None:
            return f"<p>{escape(self.tag)}</p>"
        table = html_table(self.columns, self.rows[:SHOWN_ROWS])
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        some = f", the first {SHOWN_ROWS} shown" if len(self.rows) > SHOWN_ROWS else ""
        return f"{table}<p>{count}{some}{self._at}</p>"

    def __str__(self) -> str:
        """Return the result for people: a table of the first rows, and its time."""
        if self.schema is None:
            return f"{self.tag}{self._at}"
        from reclock.rows.text_table import table  # noqa: PLC0415 - results stay cheap

        lines = table(self.rows[:SHOWN_ROWS], self.schema).split("\n")
        more = len(self.rows) - SHOWN_ROWS
        count = f"{len(self.rows)} row{'' if len(self.rows) == 1 else 's'}"
        some = f", the first {SHOWN_ROWS} shown" if more > 0 else ""
        return "\n".join([*lines[:-1], f"({count}{some}{self._at})"])

    @property
    def _at(self) -> str:
        return "" if self.timestamp is None else f" at {with_moment(int(self.timestamp))}"


def html_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows below their column names, for a notebook."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def already_there(name: object) -> tuple[str, ...]:
    """Return the notice of a CREATE … IF NOT EXISTS that had nothing to do."""
    return (f'relation "{name}" already exists, skipping',)


def _cell(value: object) -> str:
    return "<i>NULL</i>" if value is None else escape(str(value))

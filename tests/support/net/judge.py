"""PostgreSQL, which knows nothing of our code: the answers that all paths must give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg

from net.tables import SCHEMA, ddl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from net.tables import Contents

_OIDS = {
    16: "boolean", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 701: "double precision",
    1007: "integer[]", 1082: "date", 1114: "timestamp", 1700: "numeric",
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """Rows and the names of their types, or the SQLSTATE of why there are none."""

    rows: Counter | None
    types: tuple[str, ...] = ()
    code: str = ""
    message: str = ""

    @property
    def refused(self) -> bool:
        """Whether the query itself is wrong, whatever the rows."""
        return self.code[:2] in {"42", "0A"} or self.code == "22023"


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(tuple(v) if isinstance(v, list) else v for v in row)


class Judge:
    """One connection to a PostgreSQL with the tables of the net."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        for statement in (*(f"drop table if exists {t}" for t in SCHEMA), *ddl()):
            self._connection.execute(statement)
        self._connection.execute("set statement_timeout = '3s'; set jit = off")
        self._now: Contents | None = None

    def load(self, contents: Contents) -> None:
        """Make ``contents`` what the tables hold."""
        if self._now is contents:
            return
        self._now = contents
        self._connection.execute("; ".join(f"delete from {name}" for name in SCHEMA))
        with self._connection.cursor() as cursor:
            for name, columns in SCHEMA.items():
                rows = [
                    tuple(list(v) if isinstance(v, tuple) else v for v in row)
                    for row in contents[name].elements()
                ]
                if rows:
                    marks = ", ".join("(" + ", ".join(["%s"] * len(columns)) + ")" for _ in rows)
                    flat = [v for row in rows for v in row]
                    cursor.execute(f"insert into {name} values {marks}", flat)

    def ask(self, text: str, contents: Contents) -> Answer:
        """Return PostgreSQL's answer."""
        self.load(contents)
        try:
            cursor = self._connection.execute(text.encode())
            types = tuple(_OIDS.get(c.type_code, str(c.type_code)) for c in cursor.description)
            return Answer(Counter(plain(row) for row in cursor.fetchall()), types)
        except psycopg.Error as error:
            return Answer(None, (), error.sqlstate or "XX000", str(error).split("\n")[0])

    def close(self) -> None:
        self._connection.close()

"""PostgreSQL, which knows nothing of our code: the answers that all paths must give."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.adapt import Loader

from net.tables import SCHEMA, ddl
from reclock.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from net.tables import Contents

_OIDS = {
    16: "boolean", 20: "bigint", 21: "smallint", 23: "integer", 25: "text", 701: "double precision",
    1007: "integer[]", 1082: "date", 1114: "timestamp", 1700: "numeric", 17: "bytea", 700: "real",
    1184: "timestamptz", 1186: "interval", 3802: "json", 1009: "text[]",
}  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """Rows and the names of their types, or the SQLSTATE of why there are none."""

    rows: Counter | None
    types: tuple[str, ...] = ()
    code: str = ""
    message: str = ""
    certain: bool = False  # that there is an error, however the query is planned

    @property
    def failed(self) -> bool:
        """Whether a row has no value, as a division by zero."""
        return self.code[:2] in {"22", "21", "54"} and not self.refused

    @property
    def refused(self) -> bool:
        """Whether the query itself is wrong, whatever the rows."""
        return self.code[:2] in {"42", "0A"}


def plain(row: Sequence[Any]) -> tuple[Any, ...]:
    """Return a row that equals every other one with the same values."""
    return tuple(map(_plain, row))


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


class _Json(Loader):
    def load(self, data: Any) -> str:
        return bytes(data).decode()


class _Real(Loader):
    def load(self, data: Any) -> float:
        return single(float(bytes(data)))


def single(value: float) -> float:
    """Return exactly the real that a double is written for."""
    made: float = struct.unpack("f", struct.pack("f", value))[0]
    return made


class _Interval(Loader):
    """Reads what PostgreSQL writes: psycopg's timedelta has no months."""

    def load(self, data: Any) -> Interval:
        text = bytes(data).decode()
        unit = dict.fromkeys(("year", "mon", "day"), 0)
        for count, name in re.findall(r"([-+]?\d+) (year|mon|day)", text):
            unit[name] = int(count)
        micros = 0
        if clock := re.search(r"(-?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?", text):
            sign, hours, minutes, seconds, fraction = clock.groups()
            micros = (int(hours) * 60 + int(minutes)) * 60 + int(seconds)
            micros = micros * 1_000_000 + int((fraction or "").ljust(6, "0"))
            micros = -micros if sign else micros
        return Interval(unit["year"] * 12 + unit["mon"], unit["day"], micros)


BEYOND: Final = "22008"
"""The code of what Python, as we, has no year for."""


def _given(value: Any) -> Any:
    if isinstance(value, Interval):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


class Judge:
    """One connection to a PostgreSQL with the tables of the net."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        for statement in (*(f"drop table if exists {t}" for t in SCHEMA), *ddl()):
            self._connection.execute(statement)
        self._connection.execute("set statement_timeout = '3s'; set jit = off")
        self._connection.execute("set timezone = 'UTC'")
        self._connection.adapters.register_loader("jsonb", _Json)
        self._connection.adapters.register_loader("interval", _Interval)
        self._connection.adapters.register_loader("float4", _Real)
        self._now: Contents | None = None

    def load(self, contents: Contents) -> None:
        """Make ``contents`` what the tables hold."""
        if self._now is contents:
            return
        self._now = contents
        self._connection.execute("; ".join(f"delete from {name}" for name in SCHEMA))
        with self._connection.cursor() as cursor:
            for name, columns in SCHEMA.items():
                rows = [tuple(map(_given, row)) for row in contents[name].elements()]
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
            code = error.sqlstate or (BEYOND if isinstance(error, psycopg.DataError) else "XX000")
            return Answer(None, (), code, str(error).split("\n")[0])

    def close(self) -> None:
        self._connection.close()

"""The relations of the net, their rows, and how these change: the same for PostgreSQL and us.

Names repeat (``a``, ``b``, ``s``), for NATURAL and USING; ``v`` has a primary key, for rules about
unique keys. Most values are few, so that rows meet; some are the edges of their type (``EDGES``):
the least and the greatest, NaN, infinities, empty and unlike texts. ``history`` gives the contents
at a few times, each from the one before by random writes: rows come, go, and come again.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from model.evaluate_scalar import NAN
from reclock.ids import ObjectId
from reclock.interval import DAY, HOUR, Interval
from reclock.sql.names import CatalogItem
from reclock.sql.schema import Column, Schema
from reclock.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    REAL,
    SMALLINT,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Array,
    Numeric,
)
from reclock.time.timeline import EPOCH_MS

if TYPE_CHECKING:
    from random import Random

Row = tuple[Any, ...]
Contents = dict[str, Counter]

SCHEMA = {
    "t": (("a", "int"), ("b", "int"), ("s", "text")),
    "u": (("a", "int"), ("c", "big"), ("n", "num")),
    "v": (("k", "int"), ("d", "int"), ("f", "bool")),
    "w": (("b", "int"), ("a", "int"), ("day", "date"), ("ts", "ts"), ("x", "float")),
    "e": (("i", "int"), ("l", "arr"), ("s", "text")),
    "p": (("a", "int"), ("h", "small"), ("q", "real"), ("z", "tz"), ("o", "iv")),
    "g": (("b", "int"), ("j", "json"), ("y", "bytes"), ("m", "texts"), ("x", "float")),
}
TYPES = {
    "int": INTEGER, "big": BIGINT, "num": Numeric(10, 2), "text": TEXT, "bool": BOOLEAN,
    "date": DATE, "ts": TIMESTAMP, "float": DOUBLE, "arr": Array(INTEGER),
    "small": SMALLINT, "real": REAL, "tz": TIMESTAMPTZ, "iv": INTERVAL, "json": JSON,
    "bytes": BYTEA, "texts": Array(TEXT),
}  # fmt: skip
POSTGRES = {
    "int": "int", "big": "bigint", "num": "numeric(10, 2)", "text": "text", "bool": "boolean",
    "date": "date", "ts": "timestamp", "float": "double precision", "arr": "int[]",
    "small": "smallint", "real": "real", "tz": "timestamptz", "iv": "interval", "json": "jsonb",
    "bytes": "bytea", "texts": "text[]",
}  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "int": (0, 1, 2, 3, 3, -1, 7),
    "big": (0, 1, 2, 3, -5, 10**12),
    "num": (Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("99.99")),
    "text": ("x", "y", "xy", "", "Ä", "x ", "X", "a%b", "10"),
    "bool": (True, False),
    "date": (date(2024, 2, 29), date(2024, 3, 1), date(1999, 12, 31), date(1, 2, 10)),
    "ts": (
        datetime.fromisoformat("2024-02-29 23:59:59.999999"),
        datetime.fromisoformat("2024-03-01"),
        datetime.fromisoformat("1970-01-01 00:00:01"),
        datetime.fromisoformat("1582-10-10 12:00:00"),
    ),
    "float": (0.0, 0.5, -0.25, 1.0, 3.0, 1024.5),
    "arr": ((), (1,), (1, 2), (2, None, 1), (None,), (3, 3)),
    "small": (0, 1, 2, 3, -1),
    "real": (0.0, 0.5, -2.25, 1.0, 3.0),
    "tz": (
        datetime.fromisoformat("2024-03-31 01:30:00+00:00"),
        datetime.fromisoformat("2024-02-29 23:59:59.5+00:00"),
        datetime.fromisoformat("1969-12-31 23:59:59.999999+00:00"),
    ),
    "iv": (
        Interval(1, 0, 0), Interval(0, -3, 0), Interval(0, 0, 2 * HOUR + 4_500_000),
        Interval(14, 0, -1), Interval(0, 1, -5 * HOUR), Interval(0, 0, 0),
    ),
    "json": (
        "1", '"x"', "null", "true", "[]", "{}", '{"a": 1, "b": "x"}', '[1, "y", null]',
        '{"a": null}', '{"a": "Ä", "b": -2.5}',
    ),
    "bytes": (b"", b"x", b"\x00\xff", b"xy"),
    "texts": ((), ("x",), ("x", None, ""), (None,), ("a,b", 'q"\\', "NULL", "Ä")),
}  # fmt: skip
EDGES: dict[str, tuple[Any, ...]] = {
    "int": (2**31 - 1, -(2**31)),
    "big": (2**63 - 1, -(2**63)),
    "num": (Decimal("99999999.99"), Decimal("-99999999.99"), Decimal("0.01")),
    "text": ("\u4e2d\U0001f600", "e\u0301", "ß\u0130", "  ", "\n\t", "a_b\\", "-7", "1999-12-31"),
    "bool": (True,),
    "date": (date(9999, 12, 31), date(1, 1, 1)),
    "ts": (datetime(9999, 12, 31, 23, 59, 59, 999999), datetime(1, 1, 1)),  # noqa: DTZ001
    "float": (NAN, float("inf"), float("-inf"), 1e15, 123456789012.5),
    "arr": ((2**31 - 1, None), tuple(range(12))),
    "small": (2**15 - 1, -(2**15)),
    "real": (NAN, float("inf"), float("-inf"), 16777216.0),
    "tz": (
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1, 1, 1, tzinfo=UTC),
    ),
    "iv": (Interval(-(2**31), 0, 0), Interval(0, 2**31 - 1, 0), Interval(0, 0, 106751991 * DAY)),
    "json": ("{" + ", ".join(f'"{c}": "{c}"' for c in "abcdef") + "}", '"\\u0001"', '""'),
    "bytes": (bytes(range(256)),),
    "texts": (("\u4e2d\U0001f600", " ", "{}"), tuple("abcdefghijkl")),
}
_EDGE = 0.04


class NetCatalog:
    """A catalog with the tables of ``SCHEMA``."""

    def __init__(self) -> None:
        self.items = {
            name: CatalogItem(
                ObjectId(f"u{number}"),
                name,
                "table",
                Schema(tuple(Column(c, TYPES[k], (name, c) != ("v", "k")) for c, k in columns)),
                EPOCH_MS,
                frozenset({frozenset({0})}) if name == "v" else frozenset(),
            )
            for number, (name, columns) in enumerate(SCHEMA.items(), 1)
        }

    def resolve(self, name: tuple[str, ...]) -> CatalogItem | None:
        return self.items.get(name[-1])

    def relation_names(self) -> tuple[str, ...]:
        return tuple(self.items)


CATALOG = NetCatalog()


def ddl() -> list[str]:
    """Return what makes the tables."""
    made = []
    for name, columns in SCHEMA.items():
        key = " primary key"
        inside = ", ".join(
            f"{c} {POSTGRES[k]}{key if (name, c) == ('v', 'k') else ''}" for c, k in columns
        )
        made.append(f"create table {name} ({inside})")
    return made


def value(random: Random, kind: str) -> Any:
    drawn = random.random()
    if drawn < 0.2:
        return None
    return random.choice(EDGES[kind] if drawn > 1 - _EDGE else VALUES[kind])


def history(random: Random, times: int) -> list[Contents]:
    """Return the contents of all tables at ``times`` times."""
    now: Contents = {name: Counter() for name in SCHEMA}
    made = []
    for at in range(times):
        now = {name: Counter(rows) for name, rows in now.items()}
        for name in SCHEMA:
            for _ in range(random.choice((0, 1, 1, 2)) + 2 * (at == 0)):
                _change(random, name, now[name])
        made.append(now)
    return made


def _change(random: Random, name: str, rows: Counter) -> None:
    if rows and random.random() < 0.35:
        row = random.choice(sorted(rows.elements(), key=repr))
        rows[row] -= 1
        if not rows[row]:
            del rows[row]
        return
    row = tuple(value(random, kind) for _, kind in SCHEMA[name])
    if name == "v":
        free = [k for k in range(-1, 6) if all(r[0] != k for r in rows)]
        if not free:
            return
        row = (random.choice(free), *row[1:])
    rows[row] += random.choice((1, 1, 1, 2)) if name != "v" else 1

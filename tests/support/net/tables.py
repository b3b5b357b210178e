"""The relations of the net, their rows, and how these change: the same for PostgreSQL and us.

Names repeat (``a``, ``b``, ``s``), for NATURAL and USING; ``v`` has a primary key, for rules about
unique keys. ``history`` gives the contents at a few times, each from the one before by random
writes: rows come, go, and come again.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from reclock.ids import ObjectId
from reclock.sql.names import CatalogItem
from reclock.sql.schema import Column, Schema
from reclock.sql.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    TEXT,
    TIMESTAMP,
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
}
TYPES = {
    "int": INTEGER, "big": BIGINT, "num": Numeric(10, 2), "text": TEXT, "bool": BOOLEAN,
    "date": DATE, "ts": TIMESTAMP, "float": DOUBLE, "arr": Array(INTEGER),
}  # fmt: skip
POSTGRES = {
    "int": "int", "big": "bigint", "num": "numeric(10, 2)", "text": "text", "bool": "boolean",
    "date": "date", "ts": "timestamp", "float": "double precision", "arr": "int[]",
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
}


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
    return None if random.random() < 0.2 else random.choice(VALUES[kind])


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

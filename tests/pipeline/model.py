"""What must be visible at each time: plain Python, written from the documents.

Nothing here imports the product. A *record* is what somebody wrote upstream, and what it means:
a row, nothing (a tombstone), or a fault, which is a payload that does not decode. ``bindings`` says
at which time it belongs; the envelope says what records up to a time amount to (docs/sources.md).
Faults that are skipped are left out before.

A relation at a time is a multiset of rows, or ``Broken``: it cannot be read, because some record
in it does not decode.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Row = tuple[Any, ...]
Rows = Counter[Row]


class Broken(Exception):
    """There is an error in the place of rows."""


class Fault(NamedTuple):
    """A payload that does not decode."""

    why: str = ""


class Change(NamedTuple):
    """A message of Debezium: rows before and after, and where it is in the database's log."""

    before: Row | None
    after: Row | None
    position: int | None = None


@dataclass(frozen=True)
class Record:
    """A record, and what it means; ``extra`` are the included columns."""

    part: str
    offset: int
    value: Row | Fault | Change | None
    key: Row | Fault | None = None
    extra: Row = ()


Placed = tuple[int, Record]
"""A record and its time."""


def in_order(placed: Iterable[Placed]) -> list[Record]:
    """Return records by time, then by their place in their part."""
    return [r for _, r in sorted(placed, key=lambda p: (p[0], p[1].part, p[1].offset))]


def appended(placed: Iterable[Placed], width: int, *, inline: bool) -> Rows:
    """ENVELOPE NONE: every record is a row more."""
    rows: Rows = Counter()
    for record in in_order(placed):
        bad = isinstance(record.value, Fault)
        if bad and not inline:
            raise Broken(record)
        told = (bad,) if inline else ()
        value = (None,) * width if bad else record.value
        rows[(*value, *record.extra, *told)] += 1  # type: ignore[misc]
    return rows


def upserted(placed: Iterable[Placed], width: int, *, inline: bool) -> Rows:
    """ENVELOPE UPSERT: the last record of a key counts; no value is no row."""
    held: dict[Row, tuple[Record, bool]] = {}
    lost = False
    for record in in_order(placed):
        key = record.key
        if key is None or isinstance(key, Fault):
            lost = True
            continue
        bad = isinstance(record.value, Fault)
        if record.value is None:
            held.pop(key, None)
        else:
            held[key] = (record, bad)
    if lost:
        raise Broken("a record without a key")
    rows: Rows = Counter()
    for key, (record, bad) in held.items():
        if bad and not inline:
            raise Broken(record)
        told = (bad,) if inline else ()
        value = (None,) * (width - len(key)) if bad else record.value
        rows[(*key, *value, *record.extra, *told)] += 1  # type: ignore[misc]
    return rows


def captured(placed: Iterable[Placed], *, keyed: bool) -> Rows:
    """ENVELOPE DEBEZIUM: rows go and come; what the database has said already is left out."""
    said: set[int] = set()
    fresh = []
    for record in in_order(placed):
        position = record.value.position if isinstance(record.value, Change) else None
        if record.value is not None and position not in said:
            fresh.append(record)
        if position is not None:
            said.add(position)
    return _by_key(fresh) if keyed else _by_row(fresh)


def _by_key(records: list[Record]) -> Rows:
    held = {record.key: record for record in records}
    rows: Rows = Counter()
    for record in held.values():
        if not isinstance(record.value, Change):
            raise Broken(record)
        if record.value.after is not None:
            rows[(*record.value.after, *record.extra)] += 1
    return rows


def _by_row(records: list[Record]) -> Rows:
    rows: Rows = Counter()
    for record in records:
        if not isinstance(record.value, Change):
            raise Broken(record)
        if record.value.before is not None:
            rows[record.value.before] -= 1
        if record.value.after is not None:
            rows[record.value.after] += 1
    return +rows


class View(NamedTuple):
    """A query over relations, as SQL and as a function of their rows and the time."""

    sql: str
    rows: Callable[[list[Rows], int], Rows]
    inputs: int = 1
    times: Callable[[list[Rows]], set[int]] = lambda _: set()
    """When the rows change by themselves."""
    key: str | None = None
    """The column that is unique."""


def _where(rows: Rows, keep: Callable[[Row], bool]) -> Rows:
    return Counter({row: n for row, n in rows.items() if keep(row)})


def _grouped(rows: Rows) -> Rows:
    groups: dict[Any, list[int | None]] = {}
    for row in rows.elements():
        groups.setdefault(row[0], []).append(row[1])
    made: Rows = Counter()
    for key, values in groups.items():
        known = [v for v in values if v is not None]
        some = (sum(known), min(known), max(known)) if known else (None, None, None)
        made[(key, len(values), len(known), *some)] += 1
    return made


def _total(rows: Rows) -> Rows:
    known = [row[1] for row in rows.elements() if row[1] is not None]
    return Counter([(rows.total(), sum(known) if known else None)])


def _joined(left: Rows, right: Rows, *, outer: bool = False) -> Rows:
    made: Rows = Counter()
    for a, n in left.items():
        found = [(b, m) for b, m in right.items() if a[0] is not None and a[0] == b[0]]
        for b, m in found:
            made[(*a[:2], b[1])] += n * m
        if outer and not found:
            made[(*a[:2], None)] += n
    return made


def _top(rows: Rows) -> Rows:
    """The two greatest values of each key, by value and then by all; equal rows are alike."""
    groups: dict[Any, list[Row]] = {}
    for row in rows.elements():
        groups.setdefault(row[0], []).append(row[:2])
    made: Rows = Counter()
    for found in groups.values():
        found.sort(key=lambda r: (r[1] is None, -(r[1] or 0)))
        made.update(found[:2])
    return made


def _valid(rows: Rows, time: int) -> Rows:
    return _where(rows, lambda r: r[1] is not None and 500 * r[1] <= time < 500 * r[1] + 3_000)


VIEWS = {
    "all": View("SELECT * FROM {0}", lambda r, _: r[0]),
    "filter": View(
        "SELECT * FROM {0} WHERE v > 4 OR k = 1",
        lambda r, _: _where(r[0], lambda x: (x[1] or 0) > 4 or x[0] == 1),
    ),
    "grouped": View(
        "SELECT k, count(*) AS n, count(v) AS m, sum(v) AS t, min(v) AS a, max(v) AS b FROM {0} "
        "GROUP BY k",
        lambda r, _: _grouped(r[0]),
        key="k",
    ),
    "total": View("SELECT count(*) AS n, sum(v) AS t FROM {0}", lambda r, _: _total(r[0])),
    "distinct": View(
        "SELECT DISTINCT v FROM {0}", lambda r, _: Counter({(row[1],) for row in r[0]})
    ),
    "top": View(
        "SELECT k, v FROM (SELECT k, v, row_number() OVER (PARTITION BY k "
        "ORDER BY v DESC NULLS LAST) AS i FROM {0}) AS x WHERE i <= 2",
        lambda r, _: _top(r[0]),
    ),
    "valid": View(
        "SELECT k, v FROM {0} WHERE mz_now() >= 500 * v AND mz_now() < 500 * v + 3000",
        lambda r, t: Counter([x[:2] for x in _valid(r[0], t).elements()]),
        times=lambda r: {
            x for row in r[0] if row[1] is not None for x in (500 * row[1], 500 * row[1] + 3_000)
        },
    ),
    "joined": View(
        "SELECT a.k, a.v, b.v AS w FROM {0} AS a JOIN {1} AS b ON a.k = b.k",
        lambda r, _: _joined(r[0], r[1]),
        inputs=2,
    ),
    "outer": View(
        "SELECT a.k, a.v, b.v AS w FROM {0} AS a LEFT JOIN {1} AS b ON a.k = b.k",
        lambda r, _: _joined(r[0], r[1], outer=True),
        inputs=2,
    ),
    "except": View(
        "SELECT k, v FROM {0} EXCEPT ALL SELECT k, v FROM {1}",
        lambda r, _: (
            Counter([x[:2] for x in r[0].elements()]) - Counter([x[:2] for x in r[1].elements()])
        ),
        inputs=2,
    ),
    "both": View(
        "SELECT k, v FROM {0} UNION ALL SELECT k, v FROM {1}",
        lambda r, _: Counter([x[:2] for x in (*r[0].elements(), *r[1].elements())]),
        inputs=2,
    ),
}
"""Views over relations whose first columns are ``k bigint`` and ``v bigint``."""

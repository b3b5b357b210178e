"""When two rows are the same row: SQL's rule for group keys, as Python equality.

Python and SQL disagree on keys. In SQL all NaN are one key, as are 0.0 and −0.0; arrays,
structs and maps are keys like any other; NULL groups with NULL. ``canonical`` maps a value
to one that is hashable and for which ``==`` is SQL's rule, and that still reads like the
value it came from (columns by number, fields by name)::

    canonical(a) == canonical(b)   ⇔   a and b are the same group key
    canonical(canonical(a)) is equal to canonical(a)

Floats keep their value except NaN, which becomes the one ``NAN`` (Python compares the
elements of a tuple by identity first), and −0.0, which becomes 0.0. Lists and tuples of
any class become tuples, mappings a ``FrozenMap``, sets a frozenset, byte arrays bytes.
Numbers are compared by value, so Decimal 1.0 and 1.00 are one key. Limit: True and 1 are
one key too, as in Python, and the NaN of floats is not that of decimals; a column has one
type, so they do not meet there.

``sort_key`` is a total order over all of these, for determinism and for ORDER BY. It is
PostgreSQL's where that has one: NaN after every number, NULL after everything. It is also
the strictest identity: it keeps True apart from 1, for data without column types.

Laws: tests/change/test_value.py.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import singledispatch
from typing import Any, Final, TypeVar, final

from reclock.errors import InvalidValue
from reclock.interval import Interval

K = TypeVar("K")
V = TypeVar("V")

Row = tuple[Any, ...]
"""The data of a relational collection: one value per column."""

NAN: Final = math.nan
"""The float NaN of canonical values; equal to itself inside tuples and as a key."""

DECIMAL_NAN: Final = Decimal("NaN")
"""The decimal NaN of canonical values."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@final
class FrozenMap(Mapping[K, V]):
    """A mapping that can be a key; equal to any mapping with the same items.

    >>> row = FrozenMap({"id": 1, "tags": ("a",)})
    >>> row["id"], row == {"tags": ("a",), "id": 1}, row in {row}
    (1, True, True)
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[K, V] | Iterable[tuple[K, V]]) -> None:
        self._items = dict(items)
        self._hash = hash(frozenset(self._items.items()))

    def __getitem__(self, key: K) -> V:
        return self._items[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenMap, (self._items,)  # hashes of texts differ between processes

    def __repr__(self) -> str:
        return f"FrozenMap({self._items!r})"


@singledispatch
def canonical(value: Any) -> Any:
    """Return the hashable value that equals those of all values of the same group key.

    >>> canonical((1, float("nan"), [2, -0.0])) == canonical((1, float("nan"), [2, 0.0]))
    True
    >>> canonical({"a": [1, None]})
    FrozenMap({'a': (1, None)})
    """
    if not isinstance(value, Hashable):
        message = f"a value of type {type(value).__name__} cannot be part of a row"
        raise InvalidValue(message, hint="use scalars, lists, tuples, mappings and sets of them")
    return value


@canonical.register
def _(value: float) -> float:
    return NAN if math.isnan(value) else value or 0.0


@canonical.register
def _(value: Decimal) -> Decimal:
    return DECIMAL_NAN if value.is_nan() else value


@canonical.register(list)
@canonical.register(tuple)
def _(value: Iterable[Any]) -> Row:
    return tuple(canonical(v) for v in value)


@canonical.register(Mapping)
def _(value: Mapping[Any, Any]) -> FrozenMap[Any, Any]:
    return FrozenMap((canonical(k), canonical(v)) for k, v in value.items())


@canonical.register(AbstractSet)
def _(value: AbstractSet[Any]) -> frozenset[Any]:
    return frozenset(canonical(v) for v in value)


@canonical.register(bytearray)
@canonical.register(memoryview)
def _(value: bytearray | memoryview) -> bytes:
    return bytes(value)


SortKey = tuple[Any, ...]
"""The rank of a kind of value, then what orders values of that kind."""


@singledispatch
def sort_key(value: Any) -> SortKey:
    """Return a hashable tuple by which any two values are ordered.

    >>> sorted([None, 2, float("nan"), "b", 1.5, "a"], key=sort_key)
    [1.5, 2, nan, 'a', 'b', None]
    >>> sort_key({"ok": True}) == sort_key({"ok": 1})
    False
    """
    return (98, type(value).__qualname__, repr(value))


@sort_key.register
def _(_: None) -> SortKey:
    return (99,)


@sort_key.register
def _(value: bool) -> SortKey:
    return (0, value)


@sort_key.register
def _(value: int) -> SortKey:
    return (1, False, value)


@sort_key.register
def _(value: float) -> SortKey:
    return (1, True, 0) if math.isnan(value) else (1, False, value)


@sort_key.register
def _(value: Decimal) -> SortKey:
    return (1, True, 1) if value.is_nan() else (1, False, value)


@sort_key.register
def _(value: str) -> SortKey:
    return (2, value)


@sort_key.register(bytes)
@sort_key.register(bytearray)
@sort_key.register(memoryview)
def _(value: bytes | bytearray | memoryview) -> SortKey:
    return (3, bytes(value))


@sort_key.register
def _(value: date) -> SortKey:
    return (4, value)


@sort_key.register
def _(value: datetime) -> SortKey:
    if value.utcoffset() is None:
        return (5, value.replace(tzinfo=None))
    return (6, value - _EPOCH)


@sort_key.register
def _(value: timedelta) -> SortKey:
    return (7, value)


@sort_key.register
def _(value: Interval) -> SortKey:
    return (11, value.days, value.microseconds, value.months)  # as a struct of them sorts


@sort_key.register(list)
@sort_key.register(tuple)
def _(value: Iterable[Any]) -> SortKey:
    return (8, tuple(sort_key(v) for v in value))


@sort_key.register(Mapping)
def _(value: Mapping[Any, Any]) -> SortKey:
    return (9, tuple(sorted((sort_key(k), sort_key(v)) for k, v in value.items())))


@sort_key.register(AbstractSet)
def _(value: AbstractSet[Any]) -> SortKey:
    return (10, tuple(sorted(sort_key(v) for v in value)))

"""Numbers of objects: stable over restarts, and never those of another object.

An object's number follows from its id, which is never reused; a role's from its name. Ranges do
not overlap: below 16384 is what every database has, then objects, then roles, then defaults.

Tests: tests/server/pg_catalog/test_rows.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from zlib import crc32

from reclock.catalog.item import number_of

if TYPE_CHECKING:
    from reclock.ids import ObjectId

OWNER: Final = 10
"""Who opened the database himself."""

DATABASE: Final = 5
PG_CATALOG: Final = 11
PUBLIC: Final = 2200
RECLOCK: Final = 2201
INFORMATION_SCHEMA: Final = 2202
TABLESPACE: Final = 1663
HEAP: Final = 2
BTREE: Final = 403
COLLATION: Final = 100
LANGUAGE: Final = 12
SERVERS: Final = 12_000
RELATIONS: Final = 13_000
"""Those of ``pg_catalog`` and ``information_schema``, after the well-known ones."""

SYSTEM: Final = 14_000
FUNCTIONS: Final = 6_000

_FIRST: Final = 16_384
_EACH: Final = 4
_ROLES: Final = 1 << 30
_DEFAULTS: Final = 1 << 31
_COLUMNS: Final = 2_048
_CHECKS: Final = 1_601


def of_object(item: ObjectId) -> int:
    """Return the number of an object.

    >>> from reclock.ids import ObjectId
    >>> of_object(ObjectId("u1")), of_key(of_object(ObjectId("u1")))
    (16388, 16389)
    """
    return _FIRST + number_of(item) * _EACH


def of_key(relation: int) -> int:
    """Return the number of the index of a relation's primary key."""
    return relation + 1


def of_constraint(relation: int) -> int:
    """Return the number of the constraint that a relation's primary key is."""
    return relation + 2


def of_rule(relation: int) -> int:
    """Return the number of the rule that a view is."""
    return relation + 3


def of_role(name: str) -> int:
    """Return the number of a role."""
    return _ROLES + crc32(name.encode()) % _ROLES


def of_check(relation: int, number: int) -> int:
    """Return the number of a check constraint; columns have at most the numbers before these."""
    return of_default(relation, _CHECKS + number)


def of_default(relation: int, column: int) -> int:
    """Return the number of a column's default."""
    return _DEFAULTS + ((relation - _FIRST) // _EACH * _COLUMNS + column) % _DEFAULTS
